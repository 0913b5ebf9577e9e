"""Sample arguments for every function of the registry, as texts, and how PostgreSQL spells the call.

A function without samples of its own gets combinations of the samples of its argument types.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from everview.compute.functions.casts import WIDENED
from everview.compute.functions.contract import Failure, Function
from everview.compute.functions.input import from_text
from everview.compute.functions.naming import base, short_name
from everview.compute.functions.plan_functions import PARAMETER
from everview.compute.functions.precision import PRECISE
from everview.compute.functions.registry import FUNCTIONS
from everview.compute.functions.resolve import result_type
from everview.compute.ir.types import JSONB, TEXT, Kind, SqlType, array_of, numeric
from tests.compute.functions import samples_by_name

CASES_MAX = 60
Texts = tuple[str | None, ...]

POOL: dict[str, Texts] = {
    "bool": ("true", "false", None),
    "int2": ("0", "1", "-7", "32767", "-32768", "5", None),
    "int4": ("0", "1", "-7", "2147483647", "-2147483648", "3", None),
    "int8": ("0", "1", "-7", "9223372036854775807", "-9223372036854775808", "4000000000", None),
    "float4": ("0", "1.5", "-2.5", "3e38", "1e-40", "NaN", "-Infinity", "0.1", None),
    "float8": ("0", "1.5", "-2.5", "1e308", "1e-308", "NaN", "Infinity", "-Infinity", "0.1", "123456789.125", None),
    "numeric": ("0", "1", "-1.5", "2.345", "-0.005", "12345678901.234", "0.001", None),
    "text": ("", "a", "abc", "Hello World", "ünïcødé", "x,y,,z", " pad ", "12", None),
    "varchar": ("", "abc", "abcdef", "ab  ", None),
    "bpchar": ("", "abc", "abcdef", "ab  ", None),
    "bytea": ("\\x", "\\x00ff", "\\xdeadbeef", "\\x61", None),
    "date": (
        "2024-02-29",
        "2000-01-01",
        "1999-12-31",
        "0001-01-01",
        "9999-12-31",
        "2021-07-04",
        "infinity",
        "-infinity",
        None,
    ),
    "time": ("00:00:00", "12:34:56.789", "23:59:59.999999", None),
    "timestamp": (
        "2024-02-29 12:34:56.789",
        "2000-01-01 00:00:00",
        "1999-12-31 23:59:59.999999",
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59",
        "2021-03-31 01:02:03",
        "infinity",
        "-infinity",
        None,
    ),
    "interval": (
        "0",
        "1 month",
        "-1 year -2 mons +3 days -04:05:06.7",
        "30 days",
        "1 day 25:00:00",
        "100000 hours",
        "1.5 seconds",
        "-3 days",
        None,
    ),
    "uuid": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000", None),
    "jsonb": (
        '{"a": 1, "bb": [1, 2, {"c": null}], "b": "x\\ny\\"z"}',
        '[1, "a", null, {"a": 2}, [3]]',
        '"a"',
        "12.5",
        "null",
        "true",
        "{}",
        "[]",
        None,
    ),
    "mz_timestamp": ("0", "1700000000000", "9223372036854775807", None),
}
POOL["timestamptz"] = tuple(each if not each or "inf" in each else f"{each}+00" for each in POOL["timestamp"])
_ARRAY_POOL: dict[str, Texts] = {
    "int4": ("{}", "{1}", "{1,2,NULL}", "{3,2,1}", "{NULL}", None),
    "text": ("{}", "{a}", '{a,"b c",NULL,""}', '{"x\\"y","null",b}', None),
    "numeric": ("{1.5,2}", "{2.345,NULL}", "{}", None),
    "jsonb": ('{"1","{\\"a\\": 1}"}', "{}", None),
    "interval": ('{"1 mon","30 days"}', "{}", None),
    "float8": ("{NaN,1,Infinity}", "{1}", "{0.1,NULL}", None),
}


def pool(sql_type: SqlType) -> Texts:
    """Sample texts of a type; None is NULL."""
    if sql_type.kind is not Kind.ARRAY:
        return POOL[short_name(sql_type)]
    name = short_name(sql_type)[:-2]
    if name in _ARRAY_POOL:
        return _ARRAY_POOL[name]
    some = [each for each in POOL[name] if each][:2]
    quoted = ",".join('"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in some)
    return ("{" + quoted + "}", "{NULL," + quoted + "}", "{}", None)


_TEXT_CASTS: dict[str, Texts] = {
    "bool": ("t", " TRUE ", "off", "of", "o", "maybe", "1", ""),
    "int2": ("1", " -5 ", "32768", "1.5", "x", "", "1_000", "+3"),
    "int4": ("1", " -5 ", "2147483648", "1.5", "x", "", "1_000", "-2147483648"),
    "int8": ("1", " -5 ", "9223372036854775808", "1.5", "x", "", "9223372036854775807"),
    "float4": ("1.5", "1e40", "1e-50", "inf", "-Infinity", "nan", "x", " 2 ", ".5", "5.", "1e", "0e0", "-0.0001"),
    "float8": (
        "1.5",
        "1e400",
        "1e-400",
        "inf",
        "-Infinity",
        "nan",
        "x",
        " 2 ",
        ".5",
        "5.",
        "1e",
        "1e15",
        "123456789012",
    ),
    "numeric": ("1.5", " -2.25 ", "1e3", "1e-3", "x", "", ".5", "5.", "99999999999.999", "1.2345"),
    "bytea": ("\\x6162", "abc", "\\xabc", "\\xzz", ""),
    "date": (
        "2024-02-29",
        "2023-02-29",
        "2024-13-01",
        " 2024-1-5 ",
        "x",
        "",
        "2024-01-05 10:00:00",
        "epoch",
        "0000-01-01",
        *(" Infinity", "-infinity\t", "+infinity", "- INFINITY", "inf", "infinity 10:00"),
    ),
    "time": ("12:34", "12:34:56.7890123", "24:00:00", "25:00", "12:60", "x", "", "1:02:03"),
    "timestamp": (
        *("2024-02-29 12:34:56", "2024-02-29T12:34:56.5", "2024-02-30", "2024-02-29", "x", "", "epoch"),
        *("2024-01-01 24:00:00", "2024-01-01 10:00:00+02", "2024-01-01 10:00:00 Z", "2024-01-01 10:61:00"),
        *(" Infinity", "-infinity\t", "+infinity", "- INFINITY", "inf", "infinity +02"),
    ),
    "interval": (
        *(
            "1 day",
            "2 hours 30 minutes",
            "1 year 2 mons 3 days 04:05:06",
            "P1Y2M3DT4H5M6S",
            "1.5 days",
            "-1 month",
            "x",
            "",
        ),
        *("3 weeks ago", "90", "1 day -02:03:04.5", "10 milliseconds", "1.5 months"),
    ),
    "uuid": (
        "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "{a0eebc999c0b4ef8bb6d6bb9bd380a11}",
        "x",
        "a0eebc99-9c0b4ef8-bb6d-6bb9bd380a11",
    ),
    "jsonb": ('{"b":1,"a":[1,2 ,{}],"b":2}', "[1,", "1.50", '"\\u00e9\\t"', "nul", "", '{"aa":1,"b":2}', "1e2"),
    "mz_timestamp": ("5", "x", "9223372036854775807", "9223372036854775808", "18446744073709551615"),
}
_TEXT_CASTS["timestamptz"] = (*_TEXT_CASTS["timestamp"], "2024-01-01 10:00:00-05:30", "2024-01-01 10:00:00+17")

# By name: rows of arguments, for the overloads of that many arguments.
OWN: dict[str, Sequence[Texts]] = {
    "substring": [
        (a, b, c)
        for a in ("hello", "", "ünï")
        for b in ("1", "0", "-2", "3", "2147483647")
        for c in ("2", "0", "-1", "2147483647")
    ]
    + [(a, b) for a in ("hello", "", "ünï") for b in ("1", "0", "-2", "3", "9")]
    + [("foobar", "o.b"), ("foobar", "o(.)b"), ("foobar", "x"), ("foo", None)],
    "left": [(a, b) for a in ("hello", "", "ünï") for b in ("0", "2", "-2", "9", "-9", "2147483647", "-2147483647")],
    "lpad": [(a, b, c) for a in ("hi", "", "hello") for b in ("0", "4", "-1", "7") for c in ("xy", "", "é")]
    + [(a, b) for a in ("hi", "") for b in ("0", "1", "4", "-1")],
    "split_part": [
        (a, b, c) for a in ("a,b,c", "", "abc") for b in (",", "", "bc") for c in ("1", "2", "-1", "0", "9", "-9")
    ],
    "strpos": [("hello", "l"), ("hello", ""), ("", "x"), ("", ""), ("ünï", "ï"), (None, ""), ("a", None)],
    "quote_ident": [("select",), ("values",), ("name",), ("Name",), ('a"b',), ("",), ("x$1",), ("1x",), (None,)],
    "repeat": [("ab", "3"), ("ab", "0"), ("ab", "-1"), ("", "5"), (None, "1")],
    "translate": [("12345", "143", "ax"), ("abc", "", "x"), ("aab", "aa", "xy"), ("", "a", "b")],
    "replace": [("abcabc", "b", "XX"), ("abc", "", "x"), ("", "a", "b"), ("abc", "abc", "")],
    "chr": [("65",), ("0",), ("-1",), ("8364",), ("1114112",), ("55296",), ("128512",)],
    "~~": [
        (a, b)
        for a in ("hello", "h%llo", "a\nb", "He_lo")
        for b in ("h%", "%o", "%ll%", "h_llo", "", "%", "h\\%llo", "\\", "a_b", "He\\_lo", "h.llo")
    ]
    + [("h%llo", "h#%llo", "#"), ("hello", "h#%llo", "#"), ("a\\b", "a\\b", ""), ("hello", "hel%", "ab")],
    "~": [
        (a, b)
        for a in ("foobar", "", "FOO", "a\nb")
        for b in ("o+", "^f.*r$", "x|b", "a.b", "[[:digit:]]", "[[:alpha:]]+", "")
    ],
    "string_to_array": [
        ("a,b,,c", ","),
        ("", ","),
        ("abc", None),
        ("abc", ""),
        (None, ","),
        ("a.b", "."),
        ("a\\Eb", "\\E"),
        ("a,b,,c", ",", ""),
        ("a,NULL,b", ",", "NULL"),
        ("a,b", ",", None),
    ],
    "extract": [],
    "timezone": [
        (zone, at)
        for zone in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
        for at in ("2024-02-29 12:34:56.789", "2021-07-04 01:02:03", "1999-12-31 23:59:59", "-infinity")
    ],
    "make_date": [("2024", "2", "29"), ("2023", "2", "29"), ("2024", "13", "1"), ("0", "1", "1"), (None, "1", "1")],
    "make_time": [("8", "15", "23.5"), ("24", "0", "0"), ("24", "0", "1"), ("8", "60", "0"), ("8", "0", "60")],
    "make_timestamp": [
        ("2024", "2", "29", "8", "15", "23.5"),
        ("2023", "2", "29", "0", "0", "0"),
        ("2023", "2", "28", "25", "0", "0"),
    ],
    "make_interval": [("1", "2", "3", "4", "5", "6", "7.8")[:count] for count in range(1, 8)],
    "to_timestamp": [
        ("2024-02-29 12:34:56", "YYYY-MM-DD HH24:MI:SS"),
        ("2024-02-29 25:00:00", "YYYY-MM-DD HH24:MI:SS"),
        ("12:34:56.5 2024-02-29", "HH24:MI:SS.MS YYYY-MM-DD"),
        ("2024-02-29T12:34:56Z", 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        *(
            (text, "YYYY-MM-DD HH12:MI AM")
            for text in ("2024-02-29 12:34 am", "2024-02-29 12:34 PM", "2024-02-29 1:34 pm")
        ),
        *((text, "YYYY-MM-DD HH12:MI P.M.") for text in ("2024-02-29 13:34 p.m.", "2024-02-29 11:34 a.m.")),
        *((text, "YYYY-MM-DD HH:MI") for text in ("2024-02-29 12:34", "2024-02-29 13:34", "2024-02-29 1:34")),
        ("0",),
        ("1700000000.123456",),
        ("-1.5",),
        ("NaN",),
        ("1e20",),
        ("Infinity",),
        ("-Infinity",),
    ],
    "date_bin": [
        (stride, "2024-02-29 12:34:56.789", "2001-01-01")
        for stride in ("15 minutes", "1 day", "-1 day", "1 month", "0", "7 days 1 hour")
    ]
    + [("1 hour", "1999-12-31 23:59:59.999999", "2001-01-01 00:30:00")]
    + [(stride, "infinity", origin) for stride in ("1 day", "1 month", None) for origin in ("2001-01-01", "-infinity")]
    + [(stride, "2024-02-29", "infinity") for stride in ("1 day", "1 month", "-1 day")]
    + [("1 day", "infinity", None)],
    "round": [(a, b) for a in ("2.345", "-2.345", "1234.5", "0", None) for b in ("0", "2", "-2", "5", "-9")]
    + [(a,) for a in ("2.5", "3.5", "-2.5", "0.4999", "12345678.5", None)],
    "power": [(a, b) for a in ("0", "2", "-2", "1", "0.5", None) for b in ("0", "2", "-1", "0.5", "10")],
    "exp": [("0",), ("1",), ("-1",), ("10",), ("2.5",)],
    "format": [("%s-%I-%L %%", "a", "b c", "d'e"), ("%2$s %1$s", "a", "b"), ("%s", None), ("%s",), ("%x", "a")],
    "jsonb_set": [
        ('{"a": [1, 2]}', "{a,0}", "9"),
        ('{"a": 1}', "{b}", "2"),
        ("[1]", "{5}", "2"),
        ("1", "{a}", "2"),
        ('{"a": 1}', "{b,c}", "2"),
        ('{"a": 1}', "{b}", "2", "false"),
        ("[1,2]", "{-1}", "3"),
    ],
    "#>": [(a, b) for a in POOL["jsonb"] for b in ("{a}", "{bb,2,c}", "{bb,-1}", "{0}", "{}", "{bb,x}", "{NULL}")],
    "->": [(a, b) for a in POOL["jsonb"] for b in ("a", "zz", "0")],
    "?|": [(a, b) for a in POOL["jsonb"] for b in ("{a,z}", "{}", "{NULL}")],
    "jsonb_extract_path": [(POOL["jsonb"][0], "bb", "0"), (POOL["jsonb"][0], "zz")],
    "concat": [("a", None, "b"), (None,), ("x", "y")],
    "concat_ws": [(",", "a", None, "b"), (None, "a"), (",", None)],
    "jsonb_build_object": [("b", "1", "a", '"x"'), ("a", None), ("a", "1", "a", "2"), ()],
    "to_char": [
        (at, pattern)
        for at in ("2024-02-29 12:34:56.789", "2021-07-04 00:02:03", "1999-12-31 23:59:59.999999", None)
        for pattern in (
            *(
                "YYYY-MM-DD HH24:MI:SS.MS",
                "Day, DD Month YYYY",
                "FMDay FMDD FMMonth",
                "DY mon Mon MON",
                "HH12:MI AM",
                "hh:mi pm",
            ),
            *("Q D ID DDD WW W IW IYYY CC YY", "US", '"the year" YYYY', "MONTH month", "", "FMx FM|FMFMMM MMthth"),
            *("FMMS FMUS FMQ FMDDD FMIDDD FMJ FMCC FMYYY FMIW", "Y FMY Y,YYY IYY IY I", "SSSS SSSSS FMFF3 FF1FF2 ff6"),
            *("A.M. p.m. Am A.D. bc B.C. AD", "FMRM|RM|rm|Rm", "TZ|tz|TZH|TZM|OF|of|Tz", "TMMonth|tmMON|TMdy|TMMM"),
            *("Mm|Yyyy|yyyY|Hh24|mI|dAY|MonTH", "DDTH|Monthth|RMth|SSSSth|FF1th|Wth|DDSP|FXMM"),
            *('YYYY\\"x\\"MM \\a"q\\"q"', '"unclosed YYYY', "YYYYYYY DDDD MMM SSS IIYY WWW"),
        )
    ]
    + [
        (span, pattern)
        for span in ("-1 year -2 mons +3 days -04:05:06.7", "15h 2m 12s", "100:02:12.000567", "26 mons 45 days")
        for pattern in ("YYYY|YYY|YY|Y|MM|DD", "HH24:MI:SS|HH12|HH", "MS|US|FF3|SSSS", "am|P.M.|FMMM|FMHH24|FMYYYYth")
    ]
    + [("1 day", pattern) for pattern in ("Month", "D", "TZ", "AD", "of")]
    + [
        (number, pattern)
        for number in ("0", "-7", "1234.5", "-0.004", "1234567", None)
        for pattern in ("9,999.99", "FM999G990D00", "S099", "999MI", "SG9.9", "FM999.99PR", '"="09')
    ],
    "to_date": [
        ("2024-02-29", "YYYY-MM-DD"),
        ("20240229", "YYYYMMDD"),
        ("29.02.2024", "DD.MM.YYYY"),
        ("x", "YYYY-MM-DD"),
        ("2023-02-29", "YYYY-MM-DD"),
        ("2024-13-01", "YYYY-MM-DD"),
        (" 2024-1-5 tail", "YYYY-MM-DD"),
        *(
            (text, "DD Mon YYYY")
            for text in ("05 Dec 2000", "5-DEC-2000", "5december2000", "05 Foo 2000", "31 Feb 2000")
        ),
        *((text, "Month DD, YYYY") for text in ("December 5, 2000", "december 5 2000", "Dec 5, 2000", "May 05 , 2000")),
        *((text, "Dy, DD Mon YY") for text in ("Tue, 05 Dec 00", "tue 5 dec 69", "Tue,5 Dec 70", "X, 5 Dec 70")),
        *((text, "YYYYDDD") for text in ("2024060", "2024366", "2023366")),
        *((text, "YYYY/MM/DD") for text in ("2024-02-29", "2024 02 29", "2024. 02.29")),
        ("2024-W-29", 'YYYY-"x"-DD'),
    ],
    "jsonb_build_array": [("1", None, '"x"'), ()],
    "subscript": [],
}
_SAME_AS = {
    "substring": ("substr",),
    "left": ("right",),
    "to_bin": ("to_oct",),
    "lpad": ("rpad",),
    "btrim": ("ltrim", "rtrim"),
    "~~": ("!~~", "~~*", "!~~*"),
    "~": ("!~", "~*", "!~*"),
    "round": ("trunc",),
    "power": ("^", "pow"),
    "#>": ("#>>",),
    "->": ("->>",),
    "?|": ("?&",),
    "jsonb_extract_path": ("jsonb_extract_path_text",),
}
OWN |= samples_by_name.OWN
for _name, _aliases in _SAME_AS.items():
    OWN |= dict.fromkeys(_aliases, OWN[_name])
_FIELDS = (
    *(
        "microseconds",
        "milliseconds",
        "second",
        "minute",
        "hour",
        "day",
        "dow",
        "isodow",
        "doy",
        "week",
        "isoyear",
        "month",
    ),
    *("quarter", "year", "decade", "century", "millennium", "epoch", "YEARS", "nonsense"),
    *("julian", "timezone", "timezone_hour", "timezone_minute"),
)
_SUBSCRIPTS = ("1", "2", "0", "-1", "9", None)

# Spark renders these with a literal at these places.
LITERAL: dict[str, tuple[int, ...]] = {
    "regexp_replace": (1, 2, 3),
    "regexp_substr": (2, 3, 4, 5),
    **dict.fromkeys(
        ("regexp_match", "regexp_like", "substring_regex", "regexp_count", "regexp_split_to_array"), (1, 2)
    ),
    **dict.fromkeys(("matches", "not_matches", "imatches", "not_imatches", "to_char", "to_date", "to_timestamp"), (1,)),
    **dict.fromkeys(("extract", "date_trunc", "timezone"), (0,)),
}


@dataclass(frozen=True)
class Case:
    """One call: the function, its arguments as texts and as values, and what it gives."""

    function: Function
    types: tuple[SqlType, ...]
    texts: Texts
    values: tuple[Any, ...]
    result: SqlType

    def evaluate(self) -> Any:
        """The value, or the Failure."""
        function = self.function
        if function.strict and None in self.values:
            return None
        try:
            return function.evaluate(self.result, *self.values) if function.typed else function.evaluate(*self.values)
        except Failure as failure:
            return failure


def cases(function: Function) -> Iterator[Case]:
    """Calls of a function."""
    for types in variants(function):
        first = True
        for texts in _texts(function, types):
            try:
                values = tuple(
                    None if text is None else from_text(text, each) for text, each in zip(texts, types, strict=False)
                )
            except Failure:
                continue
            used = types[: len(texts)]
            result = result_of(function, used)
            yield Case(function, used, texts, values, result)
            if function.strict and first:  # and what a NULL in the place of each argument gives
                first = False
                for place in range(len(values)):
                    nulled = tuple(None if at == place else each for at, each in enumerate(values))
                    absent = tuple(None if at == place else each for at, each in enumerate(texts))
                    yield Case(function, used, absent, nulled, result)
            if function.name == "cast" and result.kind in PRECISE:
                yield Case(function, used, texts, values, SqlType(result.kind, length=2))


def variants(function: Function) -> Iterator[tuple[SqlType, ...]]:
    """The types of arguments that the function is tried with."""
    declared = function.args
    if function.variadic:
        last = {"concat": TEXT, "concat_ws": TEXT, "format": TEXT, "jsonb_build_array": JSONB}.get(
            function.name, declared[-1]
        )
        if function.name == "jsonb_build_object":
            yield (TEXT, JSONB) * 3
            return
        declared = (*declared[:-1], last, last, last)
    declared = tuple(TEXT if each.kind is Kind.UNKNOWN else each for each in declared)
    numbers = [each for each in declared if base(each).kind is Kind.NUMERIC or each == array_of(numeric())]
    if not numbers:
        yield tuple(_modified(each) for each in declared)
        return
    yield tuple(
        numeric(14, 3)
        if each.kind is Kind.NUMERIC
        else array_of(numeric(8, 3))
        if each == array_of(numeric())
        else each
        for each in declared
    )
    if all(each.kind is Kind.NUMERIC for each in numbers):
        yield declared
        # Of two representations, in turn: some fit a word, some do not.
        turn = itertools.cycle((numeric(6, 2), numeric(24, 2 if function.name == "array" else 5)))
        yield tuple(next(turn) if each.kind is Kind.NUMERIC else each for each in declared)


def _modified(sql_type: SqlType) -> SqlType:
    return SqlType(sql_type.kind, length=5) if sql_type.kind is Kind.CHAR else sql_type


def _texts(function: Function, types: tuple[SqlType, ...]) -> Iterator[Texts]:
    name = function.name
    if name in ("cast", "assign"):
        source, target = types[0], base(function.result if isinstance(function.result, SqlType) else types[0])
        reading = source.kind in (Kind.TEXT, Kind.VARCHAR) and short_name(target) in _TEXT_CASTS
        own = (
            _TEXT_CASTS[short_name(target)]
            if reading
            else ("{1,2}", "{", "{}", "{NULL}")
            if (source.kind is Kind.TEXT and target.kind is Kind.ARRAY)
            else pool(source)
        )
        yield from ((each,) for each in (*own, None))
        return
    if name in ("extract", "date_part", "date_trunc") and len(types) == 2:
        infinite = [each for each in pool(types[1]) if each and "infinity" in each]
        yield from itertools.product(_FIELDS, pool(types[1])[:4])
        # A timestamp has no time zone; of an infinite one PostgreSQL says NULL all the same.
        yield from itertools.product([each for each in _FIELDS if "timezone" not in str(each)], infinite)
        return
    if name in ("subscript", "slice"):
        choices = [pool(types[0]), *([_SUBSCRIPTS] * (len(types) - 1))]
        yield from itertools.islice(itertools.product(*choices), 200)
        return
    if name in ("array_length", "array_upper", "array_lower"):
        yield from itertools.product(pool(types[0]), ("1", "2", None))
        return
    if name in OWN:
        kinds = [short_name(each) for each in types]
        for texts in OWN[name]:
            if name == "to_timestamp" and len(types) == 1 and kinds != ["float8"]:
                continue
            if len(texts) == len(types) or (function.variadic and len(texts) <= len(types)):
                if name in ("substring", "substr") and (kinds[-1] == "text") != (not _is_int(texts[-1])):
                    continue
                yield tuple(
                    "\\x616263" if kind == "bytea" and name.startswith("subst") else text
                    for kind, text in zip(kinds, texts, strict=False)
                )
        return
    combinations = list(itertools.product(*(pool(each) for each in types)))
    stride = max(1, -(-len(combinations) // CASES_MAX))
    while stride > 1 and any(stride % len(pool(each)) == 0 for each in types):
        stride += 1
    yield from combinations[::stride]


def _is_int(text: str | None) -> bool:
    return text is not None and text.lstrip("-").isdigit()


def result_of(function: Function, types: tuple[SqlType, ...]) -> SqlType:
    """The type of a call's result."""
    if function.key == WIDENED:
        return numeric(38, 18) if types[0].scale > 3 else numeric(24, 4)
    if function.name in ("cast", "assign"):
        target = result_type(function.result, types)
        if target.kind is Kind.NUMERIC:
            return numeric(10, 2)
        if target == array_of(numeric()):
            return array_of(numeric(10, 2))
        return SqlType(target.kind, length=4) if target.kind in (Kind.VARCHAR, Kind.CHAR) else target
    return result_type(function.result, types)


def sql_literal(text: str | None, sql_type: SqlType) -> str:
    """An argument as PostgreSQL reads it."""
    return "NULL::" + sql_name(sql_type) if text is None else "'" + text.replace("'", "''") + "'::" + sql_name(sql_type)


def sql_name(sql_type: SqlType) -> str:
    """The type as PostgreSQL reads it."""
    return str(sql_type)


def call(case: Case) -> str | None:
    """The call in PostgreSQL's SQL; None if it has no such function."""
    args = [sql_literal(text, each) for text, each in zip(case.texts, case.types, strict=True)]
    name = case.function.name
    if any(base(each).kind is Kind.MZ_TIMESTAMP for each in (*case.types, case.result)):
        return None
    if any(each == array_of(SqlType(Kind.CHAR)) for each in (*case.types, case.result)):
        return None  # character[] would be character(1)[]
    if base(case.types[0] if case.types else TEXT).kind is Kind.CHAR and (
        name in ("text_of", "to_jsonb") or case.result.kind is Kind.BYTEA
    ):
        return None  # a char is kept without the spaces at its end
    if name == "cast":
        return f"CAST({args[0]} AS {sql_name(case.result)})"
    if name == "assign":
        return f"attempt_assign_{'c' if case.result.kind is Kind.CHAR else 'v'}({args[0]})"
    if name.startswith("is ") and len(args) == 1:
        return f"({args[0]} {name})"
    if name.startswith("is "):
        return f"({args[0]} {name} {args[1]})"
    if name == "not":
        return f"(NOT {args[0]})"
    if name == "array":
        return f"ARRAY[{', '.join(args)}]"
    if name == "subscript":
        return f"({args[0]})[{args[1]}]"
    if name == "slice":
        return f"({args[0]})[{args[1]}:{args[2]}]"
    if name == "any_eq":
        return f"({args[0]} = ANY ({args[1]}))"
    if name == "all_ne":
        return f"({args[0]} <> ALL ({args[1]}))"
    if name == "text_of":
        return f"CASE WHEN {args[0]} IS NOT NULL THEN format('%s', {args[0]}) END"
    if name in ("greatest", "least"):
        return f"{name}({', '.join(args)})"
    if name in ("extract", "position", "substring", "overlay", "normalize", "overlaps"):
        return f'pg_catalog."{name}"({", ".join(args)})'
    if name in ("~~", "!~~", "~~*", "!~~*") and len(args) == 3:
        word = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}[name]
        return f"({args[0]} {word} {args[1]} ESCAPE {args[2]})"
    if name.replace("_", "").isalnum():
        return f"{name}({', '.join(args)})"
    return f"({name} {args[0]})" if len(args) == 1 else f"({args[0]} {name} {args[1]})"


def by_name() -> dict[str, list[Function]]:
    """All functions, together by name; casts by what they cast."""
    found: dict[str, list[Function]] = {}
    for function in FUNCTIONS.values():
        if function.volatile or function.key == PARAMETER:  # not a function of its arguments
            continue
        title = (
            f"{function.name} {short_name(function.args[0])}" if function.name in ("cast", "assign") else function.name
        )
        found.setdefault(title, []).append(function)
    return found
