"""Scalar expressions over one row: columns by position, literals, calls of registered functions, and the lazy forms.

A call names a function of the registry by its key, which stands for one overload; what it computes, whether it is
strict and how it fails is written there once. `And`, `Or`, `Case` and `Coalesce` are forms of their own because they do
not evaluate all of their arguments, which matters where an argument may fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, TypeAlias

from everview.compute.ir.types import BOOLEAN, SqlType


@dataclass(frozen=True, slots=True)
class Column:
    """Column `index` of the input row."""

    index: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant, in the representation of its type; None is NULL."""

    value: Any
    type: SqlType

    def __hash__(self) -> int:
        return hash((tuple(self.value) if isinstance(self.value, list) else self.value, self.type))


@dataclass(frozen=True, slots=True)
class Call:
    """A registered function applied to arguments."""

    function: str
    args: tuple[Scalar, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class And:
    """Three-valued conjunction; evaluated left to right, and an operand after a false one is not."""

    args: tuple[Scalar, ...]
    type: SqlType = BOOLEAN


@dataclass(frozen=True, slots=True)
class Or:
    """Three-valued disjunction; evaluated left to right, and an operand after a true one is not."""

    args: tuple[Scalar, ...]
    type: SqlType = BOOLEAN


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is true, else `otherwise`."""

    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar
    type: SqlType


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first argument that is not NULL."""

    args: tuple[Scalar, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Failed:
    """Whether the evaluation of the argument fails. This one never does, and is never NULL."""

    arg: Scalar
    type: SqlType = BOOLEAN


@dataclass(frozen=True, slots=True)
class FailedTable:
    """Whether a table function fails for these arguments."""

    function: str
    args: tuple[Scalar, ...]
    added: tuple[SqlType, ...]
    type: SqlType = BOOLEAN


Scalar: TypeAlias = Column | Literal | Call | And | Or | Case | Coalesce | Failed | FailedTable


def children(scalar: Scalar) -> tuple[Scalar, ...]:
    match scalar:
        case Column() | Literal():
            return ()
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Failed(arg):
            return (arg,)
        case _:
            return scalar.args


def rebuild(scalar: Scalar, operands: tuple[Scalar, ...]) -> Scalar:
    match scalar:
        case Column() | Literal():
            return scalar
        case Case():
            pairs = tuple(zip(operands[:-1:2], operands[1:-1:2], strict=True))
            return replace(scalar, branches=pairs, otherwise=operands[-1])
        case Failed():
            return replace(scalar, arg=operands[0])
        case _:
            return replace(scalar, args=operands)


def transform(scalar: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
    """Replace the topmost subexpressions for which `change` gives something."""
    changed = change(scalar)
    if changed is not None:
        return changed
    operands = children(scalar)
    if not operands:
        return scalar
    others = tuple([transform(operand, change) for operand in operands])
    same = all(map(is_, others, operands))
    return scalar if same else rebuild(scalar, others)


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """The expression and everything inside it, parents first, from left to right."""
    waiting = [scalar]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += reversed(children(part))


def columns_of(scalar: Scalar) -> set[int]:
    return {part.index for part in walk(scalar) if isinstance(part, Column)}


def shift(scalar: Scalar, offset: int) -> Scalar:
    """The expression over a row with `offset` more columns in front."""
    return remap(scalar, lambda index: index + offset)


def remap(scalar: Scalar, place: Callable[[int], int]) -> Scalar:
    """The expression with every column moved to where `place` says."""
    return transform(scalar, lambda part: Column(place(part.index), part.type) if isinstance(part, Column) else None)


def substitute(scalar: Scalar, values: tuple[Scalar, ...] | list[Scalar]) -> Scalar:
    """The expression with every column replaced by the expression that computes it."""
    return transform(scalar, lambda part: values[part.index] if isinstance(part, Column) else None)
