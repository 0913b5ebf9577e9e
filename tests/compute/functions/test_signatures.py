"""Signatures: the rows that functions are written down as, and the overloads that they stand for."""

from __future__ import annotations

import pytest

from everview.compute.functions.signatures import Types, signatures
from everview.compute.ir.types import INT4, SqlType, array_of, numeric


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("pi() -> float8", ["pi()"]),
        ("log, log10(float8) -> float8", ["log(float8)", "log10(float8)"]),
        ("power, ^ pow_op(float8, float8) -> float8", ["power(float8,float8)", "pow_op(float8,float8)"]),
        ("overlay(text, int4 [, int4]) -> text", ["overlay(text,int4)", "overlay(text,int4,int4)"]),
        ("f(int4 [, text [, text[]]]) -> int4", ["f(int4)", "f(int4,text)", "f(int4,text,text[])"]),
        ("concat(any...) -> text", ["concat(any,...)"]),
        ("concat_ws(text, any...) -> text", ["concat_ws(text,any,...)"]),
        ("substring as substring_regex(text, text) -> text", ["substring_regex(text,text)"]),
        ("|| array_push(text[], text)", ["array_push(text[],text)"]),
        ("the time moved on(int8) -> int8", ["the time moved on(int8)"]),
    ],
)
def test_keys(text: str, keys: list[str]) -> None:
    assert [each.key for each in signatures(text)] == keys


def test_an_operator_is_named_by_its_symbol() -> None:
    (found,) = signatures("<< shift_left(int8, int4) -> int8")
    assert (found.name, found.variadic) == ("<<", False)


@pytest.mark.parametrize(
    ("T", "keys"),
    [
        ("int2 int4", ["f(int2,int2[])", "f(int4,int4[])"]),
        (INT4, ["f(int4,int4[])"]),
        ((INT4, numeric()), ["f(int4,int4[])", "f(numeric,numeric[])"]),
    ],
)
def test_a_letter_is_one_type_after_another(T: Types, keys: list[str]) -> None:
    assert [each.key for each in signatures("f(T, T[]) -> T[]", T)] == keys


def test_two_letters_are_independent() -> None:
    found = [each.key for each in signatures("f(T, S) -> int4", "int4 int8", "text bool")]
    assert found == ["f(int4,text)", "f(int4,bool)", "f(int8,text)", "f(int8,bool)"]


@pytest.mark.parametrize(
    ("text", "results"),
    [
        ("f(int4) -> int4[]", (array_of(INT4),)),
        ("f(int4) -> numeric(38,6)", (numeric(38, 6),)),
        ("f(int4) -> (int4, numeric)", (INT4, numeric())),
        ("f(int4)", ()),
    ],
)
def test_results(text: str, results: tuple[SqlType, ...]) -> None:
    (found,) = signatures(text)
    assert found.results == results


def test_the_type_of_the_first_argument_keeps_its_modifiers() -> None:
    (found,) = signatures("abs(numeric) -> $1")
    assert found.results[0]([numeric(10, 2)]) == numeric(10, 2)


def test_a_type_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AssertionError, match="strng"):
        list(signatures("f(strng) -> int4"))
