"""How overloads are written down: a row for each signature, with its meaning in Python and in Spark SQL side by side.

    define("reverse(text) -> text", lambda a: a[::-1], "reverse({0})")
    define("log, log10(float8) -> float8", _log10, _LOG10, fails=True)
    define("overlay(T, T, int4 [, int4]) -> T", _overlay, _overlay_sql, fails=True, T=(TEXT, BYTEA))
    define("^ pow_op(float8, float8) -> float8", power, _POWER, fails=True)

A row stands for one overload of each name, for each type that a capital letter may be, with and without what is in
brackets. The key of an operator begins with the word behind it; that of another name too, if one follows after `as`.
`any...` is any number of arguments. The result `$1` is the type of the first argument with its modifiers; a result that
has to be computed is given as `result=`. A function without Spark SQL is called in Python on Spark too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from everview.compute.functions.contract import AggregateFunction, Function, Result
from everview.compute.functions.naming import TYPES, key_of
from everview.compute.functions.spark_sql import Renderer, not_on_spark
from everview.compute.ir.types import SqlType, array_of, numeric

Types = str | SqlType | Sequence[SqlType]  # what a letter of a signature stands for; a text names types
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class Signature:
    """The name of one overload, its arguments, and the types that it gives: one, or those of a table's columns."""

    key: str
    name: str
    args: tuple[SqlType, ...]
    results: tuple[Result, ...]
    variadic: bool


def signatures(text: str, T: Types = (), S: Types = ()) -> Iterator[Signature]:
    """The overloads that a signature stands for."""
    heads, _, rest = text.partition("(")
    given, _, results = rest.rpartition(") -> ") if " -> " in rest else (rest[:-1], "", "")
    variadic = given.endswith("...")
    first, *optional = given.removesuffix("...").split(" [, ")
    if optional:
        optional[-1] = optional[-1][: -len(optional)]
    choices = {letter: _choice(each) for letter, each in (("T", T), ("S", S)) if each}
    for head in heads.split(", "):
        name, _, word = head.partition(" as " if head[0].isalpha() else " ")
        for chosen in product(*choices.values()):
            letters = dict(zip(choices, chosen, strict=True))
            args: tuple[SqlType, ...] = ()
            found = _types(results.strip("()") if results.startswith("(") else results, letters)
            for more in (first, *optional):
                args += _types(more, letters)
                yield Signature(key_of(word or name, args, variadic=variadic), name, args, found, variadic)


def _choice(types: Types) -> Sequence[SqlType]:
    if isinstance(types, str):
        return [TYPES[name] for name in types.split()]
    return [types] if isinstance(types, SqlType) else types


def _types(text: str, letters: Mapping[str, SqlType]) -> tuple[Any, ...]:
    return tuple(_type(each, letters) for each in text.split(", ")) if text else ()


def _type(text: str, letters: Mapping[str, SqlType]) -> Result:
    if text == "$1":
        return _first
    if text.endswith("[]"):
        element = _type(text[:-2], letters)
        assert isinstance(element, SqlType)
        return array_of(element)
    precise = _NUMERIC.fullmatch(text)
    return numeric(int(precise[1]), int(precise[2])) if precise else letters.get(text) or TYPES[text]


def _first(types: Sequence[SqlType]) -> SqlType:
    return types[0]


class Family(list[Function]):
    """Functions that belong together."""

    def define(
        self,
        signature: str,
        evaluate: Callable[..., Any],
        spark: str | Renderer | None = None,
        *,
        result: Result | None = None,
        T: Types = (),
        S: Types = (),
        **more: Any,
    ) -> None:
        """Add the overloads of a signature; `more` are fields of `Function`."""
        for each in signatures(signature, T, S):
            to, rendered = result or each.results[0], spark or not_on_spark(each.name)
            more["variadic"] = each.variadic
            self.append(Function(each.key, each.name, each.args, to, evaluate, rendered, **more))


class Aggregates(list[AggregateFunction]):
    """Aggregates that belong together."""

    def define(
        self,
        signature: str,
        evaluate: Callable[[SqlType, list[tuple[Any, ...]]], Any],
        spark: str | Renderer,
        *,
        result: Result | None = None,
        T: Types = (),
        **more: Any,
    ) -> None:
        """Add the overloads of a signature; `more` are fields of `AggregateFunction`."""
        for each in signatures(signature, T):
            to = result or each.results[0]
            self.append(AggregateFunction(each.key, each.name, each.args, to, evaluate, spark, **more))
