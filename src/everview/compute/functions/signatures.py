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
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from everview.compute.functions.contract import AggregateFunction, Function, GroupRows, ResultType
from everview.compute.functions.naming import TYPES, key_of, named
from everview.compute.functions.spark_sql import Renderer, not_on_spark
from everview.compute.ir.types import UNKNOWN, SqlType, array_of, numeric

Types = str | SqlType | Sequence[SqlType]  # what a letter of a signature stands for; a text names types
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")


class Signature(NamedTuple):
    """One overload: its name, its arguments, and its result, or the types of a table's columns."""

    key: str
    name: str
    args: tuple[SqlType, ...]
    results: tuple[Any, ...]
    variadic: bool


def signatures(text: str, T: Types = (), S: Types = ()) -> Iterator[Signature]:
    heads, groups, results, variadic = _parsed(text)
    for first, second in product(_choice(T), _choice(S)):
        letters = {"T": first, "S": second}
        found = _types(results, letters)
        for name, word in heads:
            args: tuple[SqlType, ...] = ()
            for more in groups:
                args += _types(more, letters)
                yield Signature(key_of(word, args, variadic=variadic), name, args, found, variadic)


@lru_cache
def _parsed(text: str) -> tuple[list[tuple[str, str]], list[list[str]], list[str], bool]:
    """Names with the words of their keys; arguments, the optional ones in groups of their own; results."""
    names, _, rest = text.partition("(")
    given, _, results = rest.rpartition(") -> ") if " -> " in rest else (rest[:-1], "", "")
    first, *optional = given.removesuffix("...").split(" [, ")
    if optional:
        optional[-1] = optional[-1][: -len(optional)]
    heads = []
    for head in names.split(", "):
        name, _, word = head.partition(" as " if head[0].isalpha() else " ")
        heads.append((name, word or name))
    results = results[1:-1] if results.startswith("(") else results
    groups = [each.split(", ") if each else [] for each in (first, *optional)]
    return heads, groups, results.split(", ") if results else [], given.endswith("...")


def _choice(types: Types) -> Sequence[SqlType]:
    if isinstance(types, str):
        return named(types)
    return [types] if isinstance(types, SqlType) else types or [UNKNOWN]


def _types(names: list[str], letters: Mapping[str, SqlType]) -> tuple[Any, ...]:
    return tuple([letters.get(name) or TYPES.get(name) or _other_type(name, letters) for name in names])


def _other_type(text: str, letters: Mapping[str, SqlType]) -> ResultType:
    if text == "$1":
        return lambda types: types[0]
    if text.endswith("[]"):
        (element,) = _types([text[:-2]], letters)
        return array_of(element)
    precise = _NUMERIC.fullmatch(text)
    assert precise, text
    return numeric(int(precise[1]), int(precise[2]))


class Family(list[Function]):
    def define(
        self,
        signature: str,
        evaluate: Callable[..., Any],
        spark: str | Renderer | None = None,
        *,
        result: ResultType | None = None,
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
    def define(
        self,
        signature: str,
        evaluate: Callable[[SqlType, GroupRows], Any],
        spark: str | Renderer,
        *,
        result: ResultType | None = None,
        T: Types = (),
        **more: Any,
    ) -> None:
        """Add the overloads of a signature; `more` are fields of `AggregateFunction`."""
        for each in signatures(signature, T):
            to = result or each.results[0]
            self.append(AggregateFunction(each.key, each.name, each.args, to, evaluate, spark, **more))
