"""Sample arguments of functions that need their own: of text, regular expressions and angles."""

from __future__ import annotations

from collections.abc import Sequence

# Sets of times: the ends of intervals, in order.
_SETS = ("{}", "{0}", "{5}", "{0,5}", "{1,2,7}", "{2,3,5,8}", "{0,9223372036854775806}", None)
# Numbers that are rounded to, multiplied or divided by a unit above zero.
_UNITS = [
    (value, unit)
    for value in ("0", "1", "-1", "7", "-8", "123456789012345", "9223372036854775806", "-9223372036854775807", None)
    for unit in ("1", "7", "1000", "86400000000")
]

OWN: dict[str, Sequence[tuple[str | None, ...]]] = {
    "the moment rounded up": _UNITS,
    "the next moment rounded": _UNITS,
    "the factor from": _UNITS,
    "the dividend from": _UNITS,
    "times outside": [(each,) for each in _SETS],
    "times of all": [(a, b) for a in _SETS for b in _SETS] + [("{0,9}", "{1,8}", "{2}")],
    "times of any": [(a, b) for a in _SETS for b in _SETS] + [("{0,2}", "{1,3}", "{3,4}")],
    "position": [
        ("hello", "l"),
        ("", ""),
        ("ünï", "ï"),
        ("\\x616263", "\\x62"),
        ("\\x6162", "\\x"),
        ("\\x61", "\\x62"),
    ],
    "btrim": [
        ("\\x61626361", "\\x61"),
        ("\\x6162", "\\x"),
        ("\\x6162", "\\x6261"),
        ("  a ",),
        ("",),
        (None,),
        ("xxaxyx", "xy"),
        ("abc", ""),
        ("abc", "abc"),
        ("]a]", "]"),
    ],
    "encode": [(a, b) for a in ("\\x00ff5c61", "\\x", "\\x" + "ab" * 80) for b in ("hex", "base64", "escape", "x")],
    "overlay": [
        (a, "xyz", b, c) for a in ("hello", "", "ünïcø") for b in ("1", "3", "0", "9") for c in ("2", "0", "-1", "9")
    ]
    + [(a, "xyz", b) for a in ("hello", "", "ünïcø") for b in ("1", "3", "-1", "9")]
    + [("hello", "x", "2147483647", "2147483647"), ("hello", "x", "3", "-2147483648")],
    "normalize": [("é",), ("e\u0301ﬁ",)] + [("e\u0301éﬁ", form) for form in ("NFC", "nfd", "NFKC", "NFKD", "NFX")],
    "to_bin": [(each,) for each in ("0", "5", "-1", "2147483647", "-2147483648")],
    "convert_from": [(a, b) for a in ("\\x61c3a9", "\\x", "\\xff", "\\x00") for b in ("UTF8", "utf-8", "LATIN1", "x")],
    "convert_to": [(a, b) for a in ("aé", "", "€") for b in ("UTF8", "latin1", "WIN1252", "x")],
    "get_byte": [("\\x1234ff", each) for each in ("0", "2", "3", "-1")] + [("\\x", "0")],
    "set_byte": [("\\x1234ff", at, to) for at in ("0", "2", "3") for to in ("64", "256", "-1")],
    "get_bit": [("\\x1234ff", each) for each in ("0", "1", "10", "23", "24", "-1")],
    "set_bit": [("\\x1234ff", at, to) for at in ("0", "10", "23", "24") for to in ("0", "1", "2")],
    "decode": [
        *((text, "escape") for text in ("a\\000\\\\b", "é", "a\\0", "\\400", "", "\\")),
        *((text, "hex") for text in ("61 62", "6 1", " 61\n", "6g")),
        ("YW Jj", "base64"),
        ("YQ", "base64"),
        ("6162", "hex"),
        ("616", "hex"),
        ("YWJj", "base64"),
        ("YWJj!", "base64"),
        ("a", "nope"),
    ],
    "regexp_replace": [
        ("foobar", "o", "0"),
        ("foobar", "(o)(b)", "\\2\\1"),
        ("abc", "x", "y"),
        ("abc", "b", "[\\&]"),
        ("a$b", "b", "$1"),
        ("foobar", "o", "0", "g"),
        ("fOObar", "o", "0", "gi"),
        ("abc", "(.)", "<\\1>", "g"),
        ("abcabc", "(a|b)+", "<\\1>", "g"),
        ("ab", "x*?", "-", "g"),
        ("ab", "b", "c", "q?"),
        *(("foobarbaz", "b(a).", "<\\1>", start) for start in ("1", "5", "8", "0")),
        *(("foobarbaz", "b(a).", "<\\1>", "2", number) for number in ("0", "1", "2", "3", "-1")),
        *(("fooBarbaz", "b(a).", "<\\&>", "1", number, "i") for number in ("0", "1", "2")),
    ],
    "regexp_match": [
        ("foobar", "(o+)(?=b)"),
        ("aabaab", r"(a+)b\1"),
        ("aab", "((?:a+)+)b"),
        ("foobar", "o(b)(a)"),
        ("foobar", "ob"),
        ("foobar", "x"),
        ("foobar", "OB", "i"),
    ],
    "regexp_like": [
        ("aaaab", "^(a+)+$"),
        ("aaaa", "^(a+)+$"),
        ("a b", r"\mb\M"),
        ("foobar", "ob"),
        ("foobar", "x"),
        ("foobar", "OB", "i"),
    ],
    "regexp_count": [("foobar", "o"), ("foobar", "x")]
    + [("foobar Oo", "o", start) for start in ("1", "3", "4", "10", "11", "0")]
    + [("fooBar Oo", "o", start, flags) for start in ("1", "3", "0") for flags in ("", "i", "g", "z")]
    + [("baac", "a*", "1"), ("", "", "1"), ("", "", "2"), ("ab", "^b", "2")],
    "regexp_substr": [("foobarbaz", "ba."), ("foobarbaz", "x"), ("foobarbaz", "b(a)(x)?", "1", "2", "", "2")]
    + [("foobarbaz", "b(a)(.)", start) for start in ("1", "5", "7", "8", "10", "11", "0")]
    + [("foobarbaz", "b(a)(.)", "1", number) for number in ("1", "2", "3", "0")]
    + [("foobarbaz", "B(a)(.)", "1", "1", flags) for flags in ("", "i", "g")]
    + [("foobarbaz", "B(a)(.)", "1", "2", "i", group) for group in ("0", "1", "2", "3", "-1")],
    "regexp_instr": [("foobarbaz", "ba."), ("foobarbaz", "x"), ("foobarbaz", "ba.", "5")]
    + [("foobarbaz", "ba.", "1", number) for number in ("1", "2", "3", "0")]
    + [("foobarbaz", "ba.", "1", "2", end) for end in ("0", "1", "2", "-1")]
    + [("foobarbaz", "B(a)(.)", "1", "2", end, "i") for end in ("0", "1")]
    + [("foobarbaz", "B(a)(.)(x)?", "1", "2", "0", "i", group) for group in ("0", "1", "2", "3", "4", "-1")],
    "regexp_split_to_array": [
        ("axbbxxc", "(x|b)+"),
        ("a1b22c", "[0-9]+"),
        ("abc", "x"),
        ("a,b", ","),
        ("aXbxc", "x", "i"),
        ("a", "x", ""),
    ],
    "factorial": [(each,) for each in ("0", "1", "5", "20", "33", "34", "-1", None)],
}
_ZONED = ("2024-10-27 00:45:10+00", "2024-10-27 01:45:10+00", "2024-03-31 00:59:59+00", "2021-07-04 22:30:00+00")
OWN |= {
    "date_trunc": [
        (field, at, zone)
        for field in ("hour", "minute", "day", "week", "month", "year", "nonsense")
        for at in _ZONED
        for zone in ("Europe/Berlin", "Asia/Kolkata", "UTC")
    ]
    + [("day", _ZONED[0], "Nowhere/Land")]
    + [("day", "infinity", "Asia/Kolkata"), ("day", "infinity", "Nowhere/Land"), ("nonsense", "-infinity", "UTC")],
    "make_timestamptz": [("2024", "2", "29", "8", "15", "23.5"), ("2023", "2", "29", "0", "0", "0")]
    + [("2024", "7", "1", "8", "15", "23.5", zone) for zone in ("Europe/Berlin", "UTC", "Nowhere/Land")],
    "overlaps": [
        (a, b, c, d)
        for a, b in (("01:00", "05:00"), ("05:00", "01:00"), (None, "05:00"), ("01:00", None), (None, None))
        for c, d in (("04:00", "06:00"), ("05:00", "06:00"), ("01:00", "01:00"), ("05:00", None), (None, None))
    ]
    + [("2024-01-01", "2024-02-01", "2024-01-15", "2024-03-01"), ("2024-01-01", "2024-02-01", "2024-02-01", None)],
    "#-": [
        (json, path)
        for json in ('{"a": [1, {"b": 2}], "c": 3}', "[1, 2, [3, 4]]", "5", "{}")
        for path in ("{a}", "{a,1,b}", "{a,-1}", "{2,0}", "{-1}", "{9}", "{}", "{c,x}", "{NULL}", "{a,x}")
    ],
    "jsonb_insert": [
        (json, path, "9", *after)
        for json in ('{"a": [1, {"b": 2}], "c": 3}', "[1, 2]", "5")
        for path in ("{a,1}", "{a,1,z}", "{c}", "{d}", "{0}", "{-1}", "{-9}", "{9}", "{}", "{a,x}")
        for after in ((), ("true",), ("false",))
    ],
    "jsonb_object": [
        *(("{a,1,b,NULL}",), ("{a,b,c}",), ("{}",), ("{NULL,1}",), ("{a,1,a,2}",)),
        *(("{a,b}", "{1,NULL}"), ("{a,b}", "{1}"), ("{NULL}", "{1}"), ("{}", "{}")),
    ],
}
_DEGREES = tuple(
    (each,) for each in ("0", "30", "45", "60", "90", "-120", "180", "225", "1e6", "12.5", "NaN", "Infinity")
)
_UNIT = tuple(
    (each,) for each in ("0", "0.5", "-0.5", "1", "-1", "0.3", "2", "-2", "1000", "NaN", "-Infinity", "Infinity")
)
OWN |= dict.fromkeys(("sind", "cosd", "tand", "cotd", "cot"), _DEGREES)
OWN |= dict.fromkeys(
    ("asin", "acos", "asind", "acosd", "atanh", "acosh", "erf", "erfc", "atand", "sinh", "cosh", "tanh", "asinh"), _UNIT
)
