"""The entries of the registry: functions and aggregates.

There is one entry for each overload. `evaluate` is its meaning in Python, over the representations of `ir.types`;
`spark` is the same meaning in Spark SQL, and `arrow` the same over whole columns, where there is one. A function that
can fail for arguments that are not NULL (`fails`) raises `Failure` in Python; in Spark it must give NULL instead, and a
NULL from arguments of which none is NULL then *is* the failure. So errors are data on both engines: no evaluation ever
ends a job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from everview.compute.ir.scalar import Scalar
from everview.compute.ir.types import SqlType

if TYPE_CHECKING:
    from everview.compute.functions.columns import Kernel

TRIED = "tried "


class Failure(Exception):
    """An evaluation that failed, as PostgreSQL would report it: division by zero is 22012."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message


def fail(sqlstate: str, message: str) -> Any:
    """Raise `Failure` where an expression stands."""
    raise Failure(sqlstate, message)


# The arguments of each row of a group.
GroupRows = list[tuple[Any, ...]]
ResultType = SqlType | Callable[[Sequence[SqlType]], SqlType]


class Unknown(Enum):
    """The value of an argument that is no literal."""

    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call before there are rows: types, values of literals, and the type of the result."""

    types: Sequence[SqlType]
    values: Sequence[Any]  # Unknown.UNKNOWN for what is no literal
    result: SqlType


@dataclass(frozen=True, slots=True)
class Function:
    """One overload of a scalar function, operator or cast.

    `key` is what plans refer to, such as `add(int4,int4)`. `args` are base types (`SqlType.base`); the result may
    depend on the modifiers of the actual arguments, as the scale of a product does. A `typed` function's `evaluate` is
    given the result type first, as a cast to numeric(10,2) needs.
    """

    key: str
    name: str
    args: tuple[SqlType, ...]
    result: ResultType
    evaluate: Callable[..., Any]
    spark: str | Callable[[Sequence[str], Sequence[SqlType], SqlType], str]
    strict: bool = True
    fails: bool = False
    typed: bool = False
    variadic: bool = False  # the last argument type may occur any number of times, also none
    volatile: bool = False  # not a function of its arguments alone, as now() is: refused in maintained views
    # Whether it does not fail for such arguments, though it `fails` for others.
    safe: Callable[[Arguments], bool] | None = None
    arrow: Kernel | None = None  # its meaning over whole columns, if that is quicker than to call it for each row

    def fails_for(self, arguments: Arguments) -> bool:
        """Whether it can fail for arguments of these types that are not NULL."""
        return self.fails and not (self.safe is not None and self.safe(arguments))


@dataclass(frozen=True, slots=True)
class Unfit:
    """How an aggregate fails for a group: Spark gives NULL for it, or for `witness`, though there are rows.

    What counts the rows is another aggregate, and it takes at least so many of them for a value. For arguments of some
    types it does not happen (`sure`).
    """

    sqlstate: str
    message: str
    least: int = 1
    count: str = "count(any)"
    witness: str | None = None
    sure: Callable[[Sequence[SqlType]], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class InOrder:
    """An aggregate of floats over a window, computed from one row to the next in the window's order.

    What is computed again must be the same to the last digit, or the change of a view would take away what it never
    had. So over a group a sum is exact, and rounded once; over a window that would take too long, but there the rows
    have an order. In Spark SQL it is an expression over an array of values, and one that is right where the order of
    Spark's rows is known.
    """

    evaluate: Callable[[SqlType, GroupRows], Any]
    listed: Callable[[str], str]
    streamed: str


@dataclass(frozen=True, slots=True)
class Total:
    """A sum over the rows that take part: of their argument, or, if it `counts`, of one for each row.

    A row adds to it or takes away from it, so the total is all that has to be remembered of a group.
    """

    counts: bool = False


@dataclass(frozen=True, slots=True)
class Additive:
    """A function of totals: `final(total of each amount, number of rows)`, or NULL for fewer than `least` rows.

    An amount is an expression over the argument. `final` is the key of a scalar function. With DISTINCT the amounts of
    different arguments must be different.
    """

    amounts: tuple[Callable[[Scalar], Scalar], ...]
    final: str
    least: int = 1


@dataclass(frozen=True, slots=True)
class Extreme:
    """The first argument in ascending or `descending` order, found in rows that are kept in this order."""

    descending: bool = False


@dataclass(frozen=True, slots=True)
class OneRow:
    """The argument in the only row of the group, of a larger group in its first row; or a failure, if `enforced`."""

    enforced: bool = False


Algebra: TypeAlias = Total | Additive | Extreme | OneRow


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One overload of an aggregate: its meaning over the list of argument tuples of a group, multiplicities unfolded.

    `algebra` says how the value follows from changes of the group; the optimizer, the delta rules and Spark's rendering
    read it. An aggregate without one is general: it is computed from all rows of a group that changed, in their order.
    `takes_nulls`: rows whose arguments are NULL take part, as for count(*) and array_agg.
    """

    key: str
    name: str
    args: tuple[SqlType, ...]
    result: ResultType
    evaluate: Callable[[SqlType, GroupRows], Any]
    spark: str | Callable[[Sequence[str], Sequence[SqlType], SqlType], str]
    takes_nulls: bool = False
    algebra: Algebra | None = None
    empty: Any = None  # over no rows: 0 for count, NULL for the others
    unfit: Unfit | None = None  # how it fails, if it does
    in_order: InOrder | None = None  # what it is over a window, if that is not the same

    @property
    def tried(self) -> AggregateFunction:
        """The aggregate for plans: it gives NULL where this one fails, and a scalar over it fails instead."""
        key, name = f"{TRIED}{self.key}", f"{TRIED}{self.name}"
        in_order = self.in_order and replace(self.in_order, evaluate=_attempt(self.in_order.evaluate))
        evaluate = _attempt(self.evaluate)
        return replace(self, key=key, name=name, evaluate=evaluate, algebra=None, unfit=None, in_order=in_order)


def _attempt(evaluate: Callable[[SqlType, GroupRows], Any]) -> Callable[..., Any]:
    def attempt(result: SqlType, rows: GroupRows) -> Any:
        try:
            return evaluate(result, rows)
        except Failure:
            return None

    return attempt
