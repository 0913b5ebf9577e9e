"""Long texts that are read as values: each takes time in proportion to its length.

None of these ended while anybody waited when the time was quadratic, or they were internal errors.
"""

from __future__ import annotations

import random
import unicodedata
from typing import Any

import pytest

from everview.compute.cancel import Cancellation, Ended, cancelable
from everview.compute.functions import byte_strings, normalizing, regex, text
from everview.compute.functions.contract import Failure
from everview.compute.functions.date_formatting import FUNCTIONS as SHOWN
from everview.compute.functions.date_parsing import FUNCTIONS as READ
from everview.compute.functions.input import from_text
from everview.compute.ir.types import (
    BYTEA,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    MZ_TIMESTAMP,
    TEXT,
    TIME,
    TIMESTAMP,
    UUID,
    Interval,
    SqlType,
    array_of,
    numeric,
)

BLANKS = " " * 1_000_000
DIGITS = "9" * 1_000_000
BYTES = b"xa" * 1_000_000

TYPES = (INT4, FLOAT8, numeric(), DATE, TIME, TIMESTAMP, INTERVAL, UUID, JSONB, MZ_TIMESTAMP, array_of(INT4))


@pytest.mark.parametrize("sql_type", TYPES, ids=str)
@pytest.mark.parametrize(
    "text",
    [
        *(f"1 day{BLANKS}x", f"{BLANKS}x", f"{BLANKS}-{BLANKS}x", f"{DIGITS}x", f"{DIGITS}.{DIGITS}x"),
        *(f"2024-01-01{BLANKS}x", f"2024-01-01 00:00:00.{DIGITS}x", f"{{{BLANKS}x", f"{{1{BLANKS}x"),
        *(f"P{DIGITS}x", f"{DIGITS}:x", f"{DIGITS} {DIGITS}x", "[" * 256 + DIGITS, '"' * 999_999, f"{{{',' * 999_999}"),
    ],
    ids=lambda text: f"{text[:12].strip()}…{text[-1]}",
)
def test_what_is_no_value_is_refused(sql_type: SqlType, text: str) -> None:
    with pytest.raises(Failure) as raised:
        from_text(text, sql_type)
    assert raised.value.sqlstate in ("22007", "22008", "22P02", "22003")


@pytest.mark.parametrize("sql_type", [INT2, INT4, INT8, numeric(), MZ_TIMESTAMP], ids=str)
@pytest.mark.parametrize("text", ["9" * 5_000, "1" + "0" * 4_300, DIGITS])
def test_numbers_that_are_too_long_are_out_of_range(sql_type: SqlType, text: str) -> None:
    signs = ("", "-", "+") if sql_type is not MZ_TIMESTAMP else ("",)
    for sign in signs:
        with pytest.raises(Failure) as raised:
            from_text(sign + text, sql_type)
        assert raised.value.sqlstate == "22003"


@pytest.mark.parametrize("sql_type", [INT4, INT8, numeric(), MZ_TIMESTAMP], ids=str)
def test_zeros_in_front_do_not_count(sql_type: SqlType) -> None:
    assert from_text("0" * 100_000 + "7", sql_type) == 7


@pytest.mark.parametrize(
    "form", ["{} days", "{}", "{}:00", "{}-1", "{} 00:00", "P{}D", "PT{}S", "P{}Y", "-{} years", "1.{} days", "{}.5 ms"]
)
def test_intervals_that_are_too_long_are_out_of_range(form: str) -> None:
    text = form.format("9" * 50_000)
    if "1." in form:
        assert from_text(text, INTERVAL) == Interval(0, 2, 0)
        return
    with pytest.raises(Failure) as raised:
        from_text(text, INTERVAL)
    assert raised.value.sqlstate == "22008"


def test_blanks_in_an_interval_do_not_matter() -> None:
    assert from_text(f"{BLANKS}@{BLANKS}1{BLANKS}day{BLANKS}-{BLANKS}2 hours{BLANKS}AGO{BLANKS}", INTERVAL) == Interval(
        0, -1, 2 * 3_600_000_000
    )


def to_timestamp(text: str, pattern: str) -> object:
    return next(each for each in READ if each.name == "to_timestamp").evaluate(text, pattern)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (" " * 100, '-""' * 200 + "YYYY"),
        ("a" * 100, "Day" * 200),
        ("1" * 200_000, "MI" * 100_000 + "x"),
        (" " * 100_000 + "x", "- " * 50_000 + "YYYY"),
    ],
)
def test_patterns_of_dates_are_read_in_linear_time(text: str, pattern: str) -> None:
    with pytest.raises(Failure) as raised:
        to_timestamp(text, pattern)
    assert raised.value.sqlstate in ("22007", "22008", "0A000")


def test_a_long_pattern_of_dates_is_read() -> None:
    blanks = "-" * 20_000
    assert str(to_timestamp(f"2024{blanks}05{'-01' * 20_000}", f"YYYY{blanks}MM{'-DD' * 20_000}")).startswith(
        "2024-05-01"
    )
    assert str(to_timestamp("Janx05 2024", 'Mon"x"DD YYYY')).startswith("2024-01-05")
    show = next(each for each in SHOWN if each.name == "to_char")
    moment = from_text("2024-05-01", TIMESTAMP)
    assert len(show.evaluate(moment, "YYYY-" * 20_000)) == 100_000


def test_brackets_that_nothing_closes() -> None:
    assert regex.similar("[" * 300_000).count("[") == 300_000
    assert regex.similar("[a]%[") == "^(?:[a].*[)$"


def test_only_digits_name_a_group_of_a_replacement() -> None:
    assert regex.compiled("(a)").replaced("a", r"\²\1") == r"\²a"


def evaluated(name: str, *args: Any) -> Any:
    """What a function of texts, or of bytes, gives."""
    functions = byte_strings.FUNCTIONS if isinstance(args[0], bytes) else text.FUNCTIONS
    return next(each for each in functions if each.name == name and len(each.args) == len(args)).evaluate(*args)


LETTERS = "".join(map(chr, range(0x10000, 0x90000)))  # each is looked for among half a million others


@pytest.mark.parametrize(
    ("name", "left"), [("btrim", "é x x"), ("ltrim", f"é x x{LETTERS[::-1]}"), ("rtrim", f"{LETTERS}é x x")]
)
def test_many_characters_are_trimmed(name: str, left: str) -> None:
    assert evaluated(name, f"{LETTERS}é x x{LETTERS[::-1]}", LETTERS) == left
    assert evaluated(name, LETTERS * 2, LETTERS) == ""
    assert evaluated(name, LETTERS, BLANKS + "x") == LETTERS


@pytest.mark.parametrize(("name", "left"), [("btrim", "é  é"), ("ltrim", f"é  é{BLANKS}"), ("rtrim", f"{BLANKS}é  é")])
def test_blanks_are_trimmed(name: str, left: str) -> None:
    assert evaluated(name, f"{BLANKS}é  é{BLANKS}") == left
    assert evaluated(name, BLANKS * 2) == ""
    assert evaluated(name, "  ééx ", "") == "  ééx "
    assert evaluated(name, "", LETTERS) == ""


@pytest.mark.parametrize(
    ("name", "left"),
    [("btrim", b"y" + BYTES + b"y"), ("ltrim", b"y" + BYTES + b"y" + BYTES), ("rtrim", BYTES + b"y" + BYTES + b"y")],
)
def test_many_bytes_are_trimmed(name: str, left: bytes) -> None:
    ends = b"x" * 2_000_000 + b"a"
    assert evaluated(name, BYTES + b"y" + BYTES + b"y" + BYTES, ends) == left
    assert evaluated(name, BYTES, ends) == b""


def test_trimming_ends_when_it_is_to() -> None:
    with cancelable(Cancellation(lambda: True)), pytest.raises(Ended):
        evaluated("btrim", BLANKS * 2)


TEXTS = array_of(TEXT)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f'"{BLANKS}"', BLANKS),
        (f"{BLANKS}x{BLANKS}", "x"),
        (f"x{BLANKS}x", f"x{BLANKS}x"),
        ('"' + r"\"" * 1_000_000 + '"', '"' * 1_000_000),
        (r"\}" * 1_000_000, "}" * 1_000_000),
        (rf" x{BLANKS}\ {BLANKS}", f"x{BLANKS} "),
        ("\\\n", "\n"),
    ],
    ids=lambda text: f"{text[:8]}…",
)
def test_long_elements_of_arrays_are_read(written: str, meant: str) -> None:
    assert from_text(f"{{{BLANKS}1,{written},NULL{BLANKS},{BLANKS}2}}", TEXTS) == ["1", meant, None, "2"]
    for wrong in (f"{{{written}", f"{{{written},}}", f"{{{written}{{}}", f'{{{written}"}}'):
        with pytest.raises(Failure, match="malformed array literal"):
            from_text(wrong, TEXTS)


@pytest.mark.parametrize(
    ("written", "style", "meant"),
    [
        ("78" * 1_000_000 + BLANKS + "61", "hex", b"x" * 1_000_000 + b"a"),
        ("7 8 " * 1_000_000, "hex", None),
        ("78" * 1_000_000 + "7", "hex", None),
        (BLANKS.join(["eHh4"] * 4) + "eHh4" * 1_000_000 + BLANKS + "eA==", "base64", b"xxx" * 1_000_004 + b"x"),
        ("eA==" * 1_000_000, "base64", None),
        ("x" * 1_000_000 + r"\\\141" * 1_000_000, "escape", b"x" * 1_000_000 + rb"\a" * 1_000_000),
        ("x" * 1_000_000 + r"\\" * 1_000_000 + "\\", "escape", None),
    ],
    ids=lambda value: f"{str(value)[:8]}…",
)
def test_long_bytes_are_decoded(written: str, style: str, meant: bytes | None) -> None:
    decode = next(each for each in byte_strings.FUNCTIONS if each.name == "decode").evaluate
    if meant is None:
        with pytest.raises(Failure, match="invalid"):
            decode(written, style)
        return
    assert decode(written, style) == meant
    assert decode(evaluated("encode", meant, style), style) == meant
    with cancelable(Cancellation(lambda: True)), pytest.raises(Ended):
        decode(written, style)


@pytest.mark.parametrize("sql_type", [BYTEA, TEXTS], ids=str)
def test_reading_ends_when_it_is_to(sql_type: SqlType) -> None:
    long = "\\x" + "78" * 1_000_000 if sql_type == BYTEA else f'{{"{BLANKS}"}}'
    assert len(from_text(long, sql_type)) == (1_000_000 if sql_type == BYTEA else 1)
    with cancelable(Cancellation(lambda: True)), pytest.raises(Ended):
        from_text(long, sql_type)


def test_bits_of_long_bytes_are_counted() -> None:
    assert evaluated("bit_count", b"\x81\x01" * 1_000_000) == 3_000_000
    assert evaluated("bit_count", b"") == 0


MARKS = "\u0301\u0316\u0f73\u0344\u09be\u1161\u11a8\uff9e\u314f\u0d3e\u0323"
FORMS = ("NFC", "NFD", "NFKC", "NFKD")


@pytest.mark.parametrize("form", FORMS)
def test_normal_forms_of_pieces(form: Any, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalizing, "_PIECE", 3)
    for _ in range(3_000):
        chosen = "".join(rng.choice(rng.choice([MARKS, "aeéß가각ᄀ", "ab ﬁ字"])) for _ in range(rng.randrange(30)))
        assert normalizing.normalized(chosen, form) == unicodedata.normalize(form, chosen), ascii(chosen)


def test_many_combining_characters_are_put_in_order() -> None:
    """Python takes quadratic time for these: half an hour."""
    above, below = "\u0301" * 500_000, "\u0316" * 500_000
    assert evaluated("normalize", f"x{above}{below}e\u0301") == f"x{below}{above}é"
    with cancelable(Cancellation(lambda: True)), pytest.raises(Ended):
        evaluated("normalize", f"a{above}{below}")


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("upper", ("ß" * 600_000,), "S" * 1_200_000),
        ("lower", ("ÀΣ" * 300_000,), ("àσ" * 300_000)[:-1] + "ς"),
        ("lower", ("À" * 600_000,), "à" * 600_000),
        ("initcap", ("éa ⓐb_" * 100_000,), "Éa ⓐB_" * 100_000),
        ("translate", ("éa" * 300_000, "é" + BLANKS, "x"), "xa" * 300_000),
    ],
    ids=lambda value: str(value)[:8],
)
def test_long_texts_are_changed_by_the_letter(name: str, args: tuple[str, ...], expected: str) -> None:
    assert evaluated(name, *args) == expected
    if name != "lower" or "Σ" not in args[0]:
        with cancelable(Cancellation(lambda: True)), pytest.raises(Ended):
            evaluated(name, *args)


def test_parts_of_texts(rng: random.Random) -> None:
    for _ in range(5_000):
        given = "".join(rng.choices("ab,", k=rng.randrange(12)))
        glue = rng.choice([",", "ab", "aa", "abab"])
        parts = given.split(glue)
        for number in range(1, len(parts) + 3):
            assert evaluated("split_part", given, glue, number) == (parts[number - 1] if number <= len(parts) else "")
            assert evaluated("split_part", given, glue, -number) == (parts[-number] if number <= len(parts) else "")
    assert evaluated("split_part", "ab", "", -1) == "ab" and evaluated("split_part", "ab", "", 2) == ""
    long = "ab," * 1_000_000
    assert (evaluated("split_part", long, ",", 1_000_000), evaluated("split_part", long, ",", -1)) == ("ab", "")
    with cancelable(Cancellation(lambda: True)), pytest.raises(Ended):
        evaluated("split_part", long, ",", 1_000_000)
