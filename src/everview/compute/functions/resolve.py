"""Which overload a call means: PostgreSQL's rules for functions, operators and the common type of several values.

An exact match wins. Else, of the overloads that implicit casts reach, those with the most exact matches, then those
that take preferred types where a cast is needed; literals of unknown type then follow the category of what is left.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from everview.compute.functions import registry
from everview.compute.functions.casts import CastContext, cast_between
from everview.compute.functions.contract import AggregateFunction, Function, ResultType
from everview.compute.functions.date_fields import field_scale
from everview.compute.functions.mathematics import scaled_type
from everview.compute.functions.naming import as_numeric, base, display_name, key_of, merged, wider_numeric
from everview.compute.functions.registry import WindowOnly
from everview.compute.functions.table import TableFunction
from everview.compute.ir.scalar import Call, Coalesce, Scalar, children
from everview.compute.ir.types import FLOAT8, MZ_TIMESTAMP, TEXT, UNKNOWN, Kind, SqlType, array_of, element_of, numeric


class ResolutionError(Exception):
    """No overload, or more than one: 42883, 42725; or types that do not go together: 42804."""

    def __init__(self, sqlstate: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.hint = hint


class Overload(Protocol):
    """An entry that a call can resolve to: a function, an aggregate, a table or a window function."""

    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def args(self) -> tuple[SqlType, ...]: ...


O = TypeVar("O", bound=Overload)  # noqa: E741


@dataclass(frozen=True, slots=True)
class Resolution:
    """The function that a call means, the types its arguments are to be cast to, and the type of the result.

    An argument of any type may have to go `through` a function instead of a cast: concat takes the text of its
    arguments, jsonb_build_array their jsonb. `through` has a key for each such argument, None for the others.
    """

    function: Function
    args: tuple[SqlType, ...]
    result: SqlType
    through: tuple[str | None, ...] = ()


_NUMBERS = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC)
_CATEGORIES = {
    **dict.fromkeys(_NUMBERS, "N"),
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.CHAR), "S"),
    **dict.fromkeys((Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ), "D"),
    **{Kind.BOOLEAN: "B", Kind.INTERVAL: "T", Kind.ARRAY: "A", Kind.UNKNOWN: "X"},
}
_PREFERRED = {Kind.BOOLEAN, Kind.FLOAT8, Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL}


_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")
_ARGUMENTS_REMEMBERED_MAX = 4


def _times_as_floats(types: Sequence[SqlType]) -> list[SqlType]:
    """The types, where times of the timeline are floats if there are floats: they are compared as numbers are."""
    if not any(each.kind in _FLOATS for each in types):
        return list(types)
    return [FLOAT8 if each.kind is Kind.MZ_TIMESTAMP else each for each in types]


def _category(sql_type: SqlType) -> str:
    return _CATEGORIES.get(sql_type.kind, "U")


def resolve(name: str, arg_types: Sequence[SqlType], values: Sequence[Any] | None = None) -> Resolution:
    """The function or operator that a call means; `values` has the values of literals, None elsewhere.

    They matter to few: round(x, 2) has two digits behind the point.
    """
    known = len(arg_types) <= _ARGUMENTS_REMEMBERED_MAX
    function, args = _chosen(name, tuple(arg_types)) if known else choose(name, arg_types, registry.by_name(name))
    if name == "jsonb_build_object" and len(args) % 2:
        raise ResolutionError("22023", "argument list must have even number of elements")
    through = tuple(_through(function, arg_types)) if function.variadic else ()
    return Resolution(function, args, _refined(function, args, values) or result_type(function.result, args), through)


@lru_cache(4096)
def _chosen(name: str, arg_types: tuple[SqlType, ...]) -> tuple[Function, tuple[SqlType, ...]]:
    """`choose` for scalar functions; statements ask for the same few again and again."""
    return choose(name, arg_types, registry.by_name(name))


def resolve_aggregate(
    name: str, arg_types: Sequence[SqlType]
) -> tuple[AggregateFunction, tuple[SqlType, ...], SqlType]:
    """The aggregate, the types of its arguments and of its result."""
    chosen, args = choose(name, arg_types, registry.aggregates_by_name(name))
    return chosen, args, result_type(chosen.result, args)


def resolve_table(
    name: str, arg_types: Sequence[SqlType], more: Sequence[TableFunction] = ()
) -> tuple[TableFunction, tuple[SqlType, ...], tuple[SqlType, ...]]:
    """The table function, the types of its arguments and of its columns; `more` are overloads beside the registry's."""
    chosen, args = choose(name, arg_types, [*registry.tables_by_name(name), *more])
    return chosen, args, chosen.columns_of(args)


def resolve_window(name: str, arg_types: Sequence[SqlType]) -> tuple[WindowOnly, tuple[SqlType, ...], SqlType]:
    """The window function, the types of its arguments and of its result."""
    chosen, args = choose(name, arg_types, registry.windows_by_name(name))
    return chosen, args, result_type(chosen.result, args)


def result_type(result: ResultType, args: Sequence[SqlType]) -> SqlType:
    """The type of a call's result, of the types that its arguments have after casting."""
    return result(args) if callable(result) else result


def choose(name: str, arg_types: Sequence[SqlType], overloads: Sequence[O]) -> tuple[O, tuple[SqlType, ...]]:
    """The overload, and the types to cast the arguments to."""
    given = [base(each) for each in arg_types]
    if name in _COMPARED:
        given = _times_as_floats(given)
    candidates = [(each, declared) for each in overloads if (declared := _declared(each, len(given))) is not None]
    if not any(each.kind is Kind.MZ_TIMESTAMP for each in given):  # else numbers and dates would compare, through it
        candidates = [
            each for each in candidates if all(to.kind is not Kind.MZ_TIMESTAMP for to in each[1])
        ] or candidates
    fitting = [each for each in candidates if all(map(_castable, given, each[1]))]
    if not fitting:
        raise _missing(name, arg_types)
    exact = [each for each in fitting if all(map(_is_exact, given, each[1]))]
    chosen = exact or _assume_same(given, fitting) or _narrow(given, fitting)
    if len(chosen) != 1:
        raise _ambiguous(name, arg_types)
    function, declared = chosen[0]
    return function, tuple(_target(actual, to) for actual, to in zip(arg_types, declared, strict=True))


def _declared(overload: Overload, count: int) -> tuple[SqlType, ...] | None:
    declared = overload.args
    if getattr(overload, "variadic", False):
        if count < len(declared) - 1:
            return None
        return declared[:-1] + declared[-1:] * (count - len(declared) + 1)
    return declared if len(declared) == count else None


def _castable(actual: SqlType, to: SqlType) -> bool:
    if to.kind is Kind.UNKNOWN or actual.kind is Kind.UNKNOWN or actual == to:
        return True
    if actual.kind is Kind.MZ_TIMESTAMP and to.kind in _FLOATS:
        return False  # but for `_times_as_floats`
    cast = cast_between(actual, to)
    return cast is not None and cast.context is CastContext.IMPLICIT


def _is_exact(actual: SqlType, to: SqlType) -> bool:
    return to.kind is Kind.UNKNOWN or actual == to


Candidate = tuple[O, tuple[SqlType, ...]]


def _assume_same(given: Sequence[SqlType], fitting: Sequence[Candidate[O]]) -> list[Candidate[O]]:
    """Give a literal the type of the other one of two arguments, if an overload takes both."""
    if len(given) != 2 or (given[0].kind is Kind.UNKNOWN) == (given[1].kind is Kind.UNKNOWN):
        return []
    known = given[0] if given[1].kind is Kind.UNKNOWN else given[1]
    if known.kind is Kind.VARCHAR:
        known = TEXT
    return [each for each in fitting if tuple(each[1]) == (known, known)]


def _narrow(given: Sequence[SqlType], fitting: Sequence[Candidate[O]]) -> list[Candidate[O]]:
    # varchar is text by another name.
    known = [TEXT if each.kind is Kind.VARCHAR else each for each in given]

    def matches(declared: Sequence[SqlType]) -> int:
        return sum(actual == to for actual, to in zip(known, declared, strict=True) if actual.kind is not Kind.UNKNOWN)

    def preferred(declared: Sequence[SqlType]) -> int:
        return sum(
            actual == to or (to.kind in _PREFERRED and _category(actual) == _category(to))
            for actual, to in zip(known, declared, strict=True)
            if actual.kind is not Kind.UNKNOWN
        )

    kept = _best(fitting, matches)
    kept = _best(kept, preferred) if len(kept) > 1 else kept
    if len(kept) > 1 and any(each.kind is Kind.UNKNOWN for each in given):
        kept = _by_category(known, kept)
    return kept


def _best(candidates: Sequence[Candidate[O]], score: Any) -> list[Candidate[O]]:
    highest = max(score(declared) for _, declared in candidates)
    return [each for each in candidates if score(each[1]) == highest]


def _by_category(given: Sequence[SqlType], candidates: list[Candidate[O]]) -> list[Candidate[O]]:
    """Literals are strings if some overload takes one there, else of the one category that all overloads agree on."""
    kept = candidates
    for place, actual in enumerate(given):
        if actual.kind is not Kind.UNKNOWN:
            continue
        categories = {_category(declared[place]) for _, declared in kept}
        wanted = "S" if "S" in categories else next(iter(categories)) if len(categories) == 1 else None
        if wanted is None:
            kept = candidates
            break
        kept = [each for each in kept if _category(each[1][place]) == wanted]
        favourites = [each for each in kept if each[1][place].kind in _PREFERRED]
        kept = favourites or kept
    if len(kept) > 1:  # the last resort: literals are of the type that all known arguments have
        known = {each for each in given if each.kind is not Kind.UNKNOWN}
        if len(known) == 1:
            only = next(iter(known))
            kept = [each for each in kept if all(_castable(only, to) for to in each[1])] or kept
    return kept


def _target(actual: SqlType, declared: SqlType) -> SqlType:
    """The type to cast an argument to: the declared type, with modifiers that keep all of the actual type's values."""
    if declared.kind is Kind.UNKNOWN:
        return TEXT if actual.kind is Kind.UNKNOWN else actual
    if base(actual) == declared:
        return actual
    if declared.kind is Kind.NUMERIC and _category(actual) == "N":
        return as_numeric(actual)
    if declared.kind is Kind.ARRAY and actual.kind is Kind.ARRAY:
        return array_of(_target(element_of(actual), element_of(declared)))
    return declared


def _signature(name: str, arg_types: Sequence[SqlType]) -> str:
    shown = [display_name(each) for each in arg_types]
    if name.isidentifier():
        return f"function {name}({', '.join(shown)})"
    return f"{shown[0]} {name} {shown[1]}" if len(shown) == 2 else f"{name} {', '.join(shown)}"


def _missing(name: str, arg_types: Sequence[SqlType]) -> ResolutionError:
    hint = None
    known = registry.NAMES
    binary = name.replace("json_", "jsonb_", 1)
    if name.startswith("json_") and binary in known:
        hint = f"json is kept as jsonb here: use {binary}"
    elif name.isidentifier() and name not in known and (close := difflib.get_close_matches(name, known, 1)):
        hint = f"did you mean {close[0]}?"
    elif name in known or not name.isidentifier():
        hint = "no overload takes these argument types, you might need to add explicit type casts"
    signature = _signature(name, arg_types)
    message = f"{signature} does not exist" if name.isidentifier() else f"operator does not exist: {signature}"
    return ResolutionError("42883", message, hint)


def _ambiguous(name: str, arg_types: Sequence[SqlType]) -> ResolutionError:
    hint = "could not choose a best candidate, you might need to add explicit type casts"
    title = _signature(name, arg_types)
    message = f"{title} is not unique" if name.isidentifier() else f"operator is not unique: {title}"
    return ResolutionError("42725", message, hint)


def _unmatched(context: str, one: SqlType, other: SqlType) -> ResolutionError:
    message = f"{context} types {display_name(one)} and {display_name(other)} cannot be matched"
    return ResolutionError("42804", message)


def common_type(types: Sequence[SqlType], context: str = "CASE") -> SqlType:
    """The type that CASE, UNION, VALUES, ARRAY, COALESCE and GREATEST give to values of several types."""
    known = [each for each in types if each.kind is not Kind.UNKNOWN]
    if not known:
        return TEXT if types else UNKNOWN
    known = _times_as_floats(known)
    if all(each == known[0] for each in known):
        return known[0]
    if all(base(each) == base(known[0]) for each in known):
        return merged(known)
    if any(each.kind is Kind.MZ_TIMESTAMP for each in known) and all(
        _castable(base(each), MZ_TIMESTAMP) for each in known
    ):
        return MZ_TIMESTAMP  # numbers and dates are times beside a time, as they are where they are compared with one
    best = base(known[0])
    for each in map(base, known[1:]):
        if each == best:
            continue
        if _category(each) != _category(best) or _category(each) == "U":
            raise _unmatched(context, best, each)
        if best.kind in _PREFERRED:
            continue
        if _castable(best, each) and not _castable(each, best):
            best = each
    for each in known:
        if not _castable(base(each), best):
            raise _unmatched(context, best, each)
    if best.kind is Kind.NUMERIC:
        return wider_numeric(known)
    if best.kind is Kind.ARRAY and element_of(best).kind is Kind.NUMERIC:
        return array_of(wider_numeric([element_of(each) for each in known]))
    return best


# Functions of arguments of any type, and the function that each such argument goes through first.
_THROUGH = {"concat": "text_of", "concat_ws": "text_of", "format": "text_of", "jsonb_build_array": "to_jsonb"}


def _refined(function: Function, args: Sequence[SqlType], values: Sequence[Any] | None) -> SqlType | None:
    """The type of the result, where a literal argument decides it."""
    if function.key in ("round(numeric,int4)", "trunc(numeric,int4)") and values and isinstance(values[1], int):
        return scaled_type(args, values[1])
    if function.name == "extract" and values and isinstance(values[0], str):
        return numeric(38, field_scale(values[0], args[1].kind))
    return None


def _through(function: Function, arg_types: Sequence[SqlType]) -> Iterator[str | None]:
    """The key of the function that each argument goes through; None if it is cast as usual."""
    word = _THROUGH.get(function.name)
    for place, actual in enumerate(arg_types):
        declared = function.args[min(place, len(function.args) - 1)]
        if function.name == "jsonb_build_object":
            yield key_of("text_of" if place % 2 == 0 else "to_jsonb", (_known(actual),))
        elif word and declared.kind is Kind.UNKNOWN:
            yield key_of(word, (_known(actual),))
        else:
            yield None


def _known(actual: SqlType) -> SqlType:
    if actual.kind in (Kind.UNKNOWN, Kind.VARCHAR):
        return TEXT
    return base(actual)


def call(name: str, *args: Scalar) -> Call:
    found = resolve(name, [arg.type for arg in args])
    return Call(found.function.key, args, found.result)


def cast(scalar: Scalar, to: SqlType) -> Scalar:
    """The scalar as a value of another type."""
    if scalar.type == to:
        return scalar
    found = cast_between(scalar.type, to)
    assert found is not None
    return relabeled(scalar, to) if found.key is None else Call(found.key, (scalar,), to)


def relabeled(scalar: Any, to: SqlType) -> Any:
    """The scalar as a type that has the same representation.

    The type of a call may be what it goes by, as that of a cast to varchar(2) is, and then the call must keep it. And
    an expression stays what it is, for it may be one that rows are grouped by.
    """
    return Coalesce((scalar,), to) if children(scalar) else replace(scalar, type=to)
