"""Window functions: OVER clauses bound, and calls over the same window computed by one operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from everview.compute.functions.numbers import EXACT
from everview.compute.functions.registry import windows_by_name
from everview.compute.functions.resolve import resolve_aggregate, resolve_window
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Frame, Order, WindowFunction
from everview.compute.ir.scalar import Literal
from everview.compute.ir.types import INT8, INTERVAL, Interval, Kind, SqlType
from everview.compute.sql import hir
from everview.compute.sql.coerce import coerce, resolving, settled, unified
from everview.compute.sql.errors import SYNTAX_ERROR, WINDOWING_ERROR, SqlError, unsupported
from everview.compute.sql.parse import Tree, error_at, position_of, shown

if TYPE_CHECKING:
    from everview.compute.sql.expression import Expressions

_MOVED_BY_INTERVALS = (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)

DEFAULT_FRAME = Frame("range", None, 0)


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function and its window."""

    function: WindowFunction
    partition: tuple[hir.HScalar, ...]
    order: tuple[Order, ...]

    @property
    def type(self) -> SqlType:
        return self.function.type


def bind_window(binder: Expressions, tree: exp.Window, named: Mapping[str, Tree]) -> WindowCall:
    """The call of a window function with its OVER clause."""
    if str(tree.args.get("over") or "OVER") != "OVER":
        raise unsupported(f"{tree.args['over']} of a window function", position_of(tree))
    window = _window(tree, named)
    partition = tuple(settled(binder.bind(each)) for each in window.args.get("partition_by") or [])
    clause = window.args.get("order")
    order = tuple(binder.ordered(each) for each in clause.expressions) if clause is not None else ()
    frame = _frame(binder, window.args.get("spec"), order)
    call, condition = tree.this, None
    if isinstance(call, exp.Filter):
        call, condition = call.this, call.expression.this
    if not isinstance(call, exp.Anonymous):
        raise unsupported(f"{shown(call)} as a window function", position_of(tree))
    name = call.name.lower()
    star = len(call.expressions) == 1 and isinstance(call.expressions[0], exp.Star)
    if any(isinstance(each, (exp.Distinct, exp.Order)) for each in call.expressions):
        raise unsupported("DISTINCT or ORDER BY in a window function's arguments", position_of(tree))
    args = [] if star else [binder.bind(each) for each in call.expressions]
    if name in ("lag", "lead") and len(args) == 3:  # the value and what stands for it have one type
        args[0], args[2] = unified([args[0], args[2]], name, position_of(tree))
    given = [arg.type for arg in args]
    with resolving(position_of(tree)):
        function, wanted, result = (resolve_window if windows_by_name(name) else resolve_aggregate)(name, given)
    coerced = tuple(coerce(arg, to, "implicit", position_of(tree)) for arg, to in zip(args, wanted, strict=True))
    _check_count(name, coerced, position_of(tree))
    filtered = None if condition is None else binder.in_filter().condition(condition)
    return WindowCall(WindowFunction(function.key, coerced, result, frame, filtered), partition, order)


def window_keys(binder: Expressions, tree: Tree, named: Mapping[str, Tree]) -> list[hir.HScalar]:
    """Bind the keys of a window of the WINDOW clause. They are checked even if no function uses the window."""
    window = _window(tree, named)
    partition = [settled(binder.bind(each)) for each in window.args.get("partition_by") or []]
    clause = window.args.get("order")
    order = tuple(binder.ordered(each) for each in clause.expressions) if clause is not None else ()
    _frame(binder, window.args.get("spec"), order)
    return [*partition, *(each.scalar for each in order)]


def _check_count(name: str, args: Sequence[hir.HScalar], position: int | None) -> None:
    """A number of buckets or of a row that is written down must be one; Spark would refuse the whole statement."""
    state = {"ntile": "22014", "nth_value": "22016"}.get(name)
    if state is not None and isinstance(args[-1], Literal) and args[-1].value is not None and args[-1].value < 1:
        raise SqlError(state, f"argument of {name} must be greater than zero", position=position)


def _window(tree: Tree, named: Mapping[str, Tree]) -> Tree:
    alias = tree.args.get("alias")
    if alias is None:
        return tree
    found = named.get(alias.name.lower())
    if found is None:
        raise error_at(tree, "42704", f'window "{alias.name}" does not exist')
    base = _window(found, named)
    if not any(tree.args.get(part) for part in ("partition_by", "order", "spec")):
        return base
    return _extended(alias.name, base, tree)


def _extended(name: str, base: Tree, tree: Tree) -> Tree:
    """The window that begins with another one's partitions, and its order if that has one."""
    for part, clause in (("partition_by", "PARTITION BY"), ("order", "ORDER BY")):
        if tree.args.get(part) and (part == "partition_by" or base.args.get(part)):
            raise error_at(tree, WINDOWING_ERROR, f'cannot override {clause} clause of window "{name}"')
    if base.args.get("spec"):
        raise error_at(tree, WINDOWING_ERROR, f'cannot copy window "{name}" because it has a frame clause')
    order = tree.args.get("order") or base.args.get("order")
    return exp.Window(partition_by=base.args.get("partition_by"), order=order, spec=tree.args.get("spec"))


def _frame(binder: Expressions, tree: Tree | None, order: tuple[Order, ...]) -> Frame:
    if tree is None:
        return DEFAULT_FRAME
    unit = str(tree.args.get("kind") or "RANGE").lower()
    bounds = [_written(tree, "start"), _written(tree, "end")]
    _check_bounds([_place(*each) for each in bounds], position_of(tree))
    start, end = (_bound(binder, bound, side, unit, order) for bound, side in bounds)
    if unit == "groups" and not order:
        raise error_at(tree, WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause")
    exclude = tree.args.get("exclude")
    name = None if exclude is None else str(exclude.name if isinstance(exclude, exp.Expression) else exclude).lower()
    return Frame(unit, start, end, None if name == "no others" else name)


def _written(tree: Tree, which: str) -> tuple[Any, str]:
    """A bound and its side, as upper-case words where they are words; an end that is not said is the current row."""
    bound, side = tree.args.get(which), str(tree.args.get(f"{which}_side") or "").upper()
    if bound is None:
        bound = "CURRENT ROW"
    if bound == "CURRENT ROW" and side:
        raise error_at(tree, SYNTAX_ERROR, f'syntax error at or near "{side}"')
    return (bound.upper() if isinstance(bound, str) else bound), side


def _place(bound: Any, side: str) -> int:
    """Where a bound is: before everything, before the current row, at it, behind it, behind everything."""
    if bound == "CURRENT ROW":
        return 2
    return {"UNBOUNDED PRECEDING": 0, "UNBOUNDED FOLLOWING": 4}.get(f"{bound} {side}", 1 if side == "PRECEDING" else 3)


def _check_bounds(places: list[int], position: int | None) -> None:
    start, end = places
    if start == 4 or end == 0:
        which = "start cannot be UNBOUNDED FOLLOWING" if start == 4 else "end cannot be UNBOUNDED PRECEDING"
        raise SqlError(WINDOWING_ERROR, f"frame {which}", position=position)
    if start > end:
        row = "current" if start == 2 else "following"
        message = f"frame starting from {row} row cannot have preceding rows"
        raise SqlError(WINDOWING_ERROR, message, position=position)


def _bound(binder: Expressions, bound: Any, side: str, unit: str, order: tuple[Order, ...]) -> Any:
    """A frame bound as a signed distance: None is unbounded, 0 the current row."""
    if bound == "UNBOUNDED":
        return None
    if bound == "CURRENT ROW":
        return 0
    scalar = binder.bind(bound)
    if unit in ("rows", "groups"):
        scalar = coerce(scalar, INT8, "implicit", position_of(bound))
    elif len(order) != 1:
        message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
        raise error_at(bound, WINDOWING_ERROR, message)
    elif scalar.type.kind is Kind.UNKNOWN:  # a quoted literal is what is added to the sort key
        key = order[0].scalar.type
        scalar = coerce(scalar, INTERVAL if key.kind in _MOVED_BY_INTERVALS else key, "implicit", position_of(bound))
    if not isinstance(scalar, Literal) or scalar.value is None:
        raise unsupported("an expression as a frame bound", position_of(bound), hint="write a constant")
    value = scalar.value
    if not isinstance(value, Interval) and value < 0:
        raise error_at(bound, "22013", "frame starting or ending offset must not be negative")
    if side != "PRECEDING":
        return value
    if isinstance(value, Interval):
        return Interval(-value.months, -value.days, -value.micros)
    return EXACT.minus(value) if isinstance(value, Decimal) else -value


def window_columns(
    query: hir.Query, calls: list[WindowCall], rewrite: Callable[[hir.HScalar], hir.HScalar]
) -> tuple[hir.Query, list[int]]:
    """The query with a column for each call behind, and where each of them is."""
    windows: dict[tuple[Any, Any], list[int]] = {}
    for index, call in enumerate(calls):
        windows.setdefault((call.partition, call.order), []).append(index)
    places = [0] * len(calls)
    for (partition, order), members in windows.items():
        width = len(hir.types(query))
        functions = []
        for offset, index in enumerate(members):
            function = calls[index].function
            args = tuple(rewrite(arg) for arg in function.args)
            condition = None if function.filter is None else rewrite(function.filter)
            functions.append(WindowFunction(function.function, args, function.type, function.frame, condition))
            places[index] = width + offset
        keys = tuple(rewrite(each) for each in partition)
        sorted_by = tuple(Order(rewrite(o.scalar), o.descending, o.nulls_first) for o in order)
        query = ir.Window(query, keys, sorted_by, tuple(functions))
    return query, places
