"""The forms of expressions: one small function for each kind of node, called with the binder and the node."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from everview.compute.functions.naming import display_name
from everview.compute.functions.numbers import EXACT, integer_of
from everview.compute.functions.ordered_sets import NAMES as ORDERED_SETS
from everview.compute.functions.ordered_sets import registered_name
from everview.compute.ir import types as t
from everview.compute.ir.relation import Order
from everview.compute.ir.scalar import And, Case, Coalesce, Literal, Or
from everview.compute.sql import hir
from everview.compute.sql.clauses import changes_nothing
from everview.compute.sql.coerce import all_open, call, coerce, settled, unified
from everview.compute.sql.comparisons import OPERATORS, comparison, is_query, is_row, row_pairs, rows_compared
from everview.compute.sql.datatypes import bind_type
from everview.compute.sql.errors import SYNTAX_ERROR, UNDEFINED_FUNCTION, SqlError, unsupported
from everview.compute.sql.hir import AGGREGATE_NAMES, WINDOW_NAMES, Placeholder
from everview.compute.sql.hosting import host, is_stored
from everview.compute.sql.parse import Tree, error_at, position_of, written
from everview.compute.sql.session_forms import COLUMN_WORDS, SESSION_FORMS, object_cast, session_function
from everview.compute.sql.windows import bind_window
from everview.compute.sql.word_forms import WORD_FORMS

if TYPE_CHECKING:
    from everview.compute.sql.expression import Expressions

_FLOAT_DIGITS = 17  # that a float has, at most


def _literal(binder: Expressions, tree: exp.Literal) -> hir.HScalar:
    if tree.is_string:
        return Literal(tree.this, t.UNKNOWN)
    text = tree.this
    if text.isdigit():
        value = integer_of(text)
        for kind, limit in ((t.INT4, 2**31), (t.INT8, 2**63)):
            if value < limit:
                return Literal(value, kind)
    return _number(text, position_of(tree))


def _number(text: str, position: int | None) -> hir.HScalar:
    """A number that is not a whole one of 64 bits: a numeric, or double precision where that would lose what it says.

    Nothing is exact about 1e308 or 1e-30, and a float is what it will be compared with or stored as. But a long whole
    number means every digit, so it is no float: if it is too long, that is an error.
    """
    number = Decimal(text)
    whole_digits, scale = number.adjusted() + 1, max(0, -int(number.normalize(EXACT).as_tuple().exponent))
    too_long = whole_digits > t.NUMERIC_PRECISION and "e" in text.lower()
    too_fine = bool(number) and scale > t.NUMERIC_SCALE and whole_digits + t.NUMERIC_SCALE < _FLOAT_DIGITS
    if too_long or too_fine:
        return coerce(Literal(text, t.UNKNOWN), t.FLOAT8, position=position)
    written = max(0, -int(number.as_tuple().exponent))
    if max(whole_digits, 0) + written > t.NUMERIC_PRECISION or written > t.NUMERIC_SCALE:
        return coerce(Literal(text, t.UNKNOWN), t.numeric(), position=position)
    fixed = number.quantize(Decimal(1).scaleb(-written), context=EXACT)
    return Literal(fixed, t.numeric(max(1, len(fixed.as_tuple().digits), written), written))


def _adjacent_strings(binder: Expressions, tree: exp.Concat) -> hir.HScalar:
    changes_nothing(tree, "coalesce", "safe")  # what NULL would be among them, and there is none
    return Literal("".join(each.this for each in tree.expressions), t.UNKNOWN)


def _hex(binder: Expressions, tree: exp.HexString) -> hir.HScalar:
    raise unsupported("a bit-string literal", position_of(tree), hint="write '\\x…'::bytea")


def _column_ref(binder: Expressions, tree: exp.Column) -> hir.HScalar:
    if isinstance(tree.this, exp.Star):
        raise error_at(tree, SYNTAX_ERROR, "* is not allowed here")
    schema = schema_before(tree)
    table = identifier(tree.args["table"]) if tree.args.get("table") is not None else None
    if table is None and not tree.this.args.get("quoted") and tree.name.lower() in COLUMN_WORDS:
        return session_function(tree.name.lower(), position_of(tree))
    return binder.scope.find(table, identifier(tree.this), position_of(tree), schema)


def schema_before(tree: exp.Column) -> tuple[str, ...]:
    """The schema that a column's table is written with, behind its database.

    In stored queries it does not count: earlier versions stored it unchecked, beside aliases.
    """
    parts = (tree.args.get("catalog"), tree.args.get("db"))
    return () if is_stored() else tuple(identifier(part) for part in parts if part is not None)


def identifier(tree: Tree) -> str:
    """The name that an identifier means: folded to lower case unless it is quoted."""
    return str(tree.name if tree.args.get("quoted") else tree.name.lower())


def _cast(binder: Expressions, tree: exp.Cast) -> hir.HScalar:
    kind = object_cast(tree.to)
    if kind is not None:
        return host().object_id(binder.bind(tree.this), kind, position_of(tree))
    to = bind_type(tree.to)
    if isinstance(tree.this, exp.Array) and not tree.this.expressions and to.kind is t.Kind.ARRAY:
        return coerce(Literal("{}", t.UNKNOWN), to, "explicit", position_of(tree))
    return coerce(settled_unless_literal(binder.bind(tree.this)), to, "explicit", position_of(tree))


def settled_unless_literal(scalar: hir.HScalar) -> hir.HScalar:
    """A quoted literal keeps its openness; anything else of unknown type becomes text."""
    return scalar if isinstance(scalar, Literal) else settled(scalar)


def chained(tree: Tree) -> list[Tree]:
    """The operands of `a AND b AND c`, which the parser nests to the left, in their order."""
    kind, operands = type(tree), []
    while type(tree) is kind:
        operands.append(tree.expression)
        tree = tree.this
    return [tree, *reversed(operands)]


def _not(binder: Expressions, tree: exp.Not) -> hir.HScalar:
    if isinstance(tree.this, exp.Is):
        return _is(binder, tree.this, negated=True)
    return call("not", [binder.bind_as(tree.this, t.BOOLEAN)])


def _is(binder: Expressions, tree: exp.Is, negated: bool = False) -> hir.HScalar:
    what = tree.expression
    if isinstance(what, exp.Null) and is_row(tree.this):
        # A row IS NOT NULL if no field is, which is more than that it is not the case that all are.
        test = "is not null" if tree.args.get("negate") else "is null"
        fields = And(tuple(call(test, [settled(binder.bind(each))]) for each in tree.this.expressions))
        return call("not", [fields]) if negated else fields
    value = binder.bind(tree.this)
    negated = negated != bool(tree.args.get("negate"))
    name = {exp.Null: "null", exp.Boolean: "true" if what.this else "false"}.get(type(what))
    if name is None:
        raise unsupported(f"IS {written(what)}", position_of(tree))
    if name != "null":
        value = coerce(value, t.BOOLEAN, "implicit", position_of(tree))
    return call(f"is not {name}" if negated else f"is {name}", [settled(value)])


def _negative(binder: Expressions, tree: exp.Neg) -> hir.HScalar:
    value = binder.bind(tree.this)
    is_number = isinstance(value, Literal) and value.type.kind in (t.Kind.INT4, t.Kind.INT8, t.Kind.NUMERIC)
    if is_number and value.value is not None:
        return _negated(value, written=isinstance(tree.this, exp.Literal))
    return call("-", [value], position_of(tree))


def _negated(value: Literal, *, written: bool) -> Literal:
    """Negate a number. The sign of a literal counts for its type: -2147483648 is an integer."""
    number = EXACT.minus(value.value) if isinstance(value.value, Decimal) else -value.value
    if written and number == -(2**31):
        return Literal(int(number), t.INT4)
    if written and number == -(2**63):
        return Literal(int(number), t.INT8)
    return Literal(number, value.type)


def _in(binder: Expressions, tree: exp.In) -> hir.HScalar:
    query = queried(tree)
    if query is not None:
        return binder.quantified(tree.this, "=", query, every=False)
    options = tree.expressions
    if is_row(tree.this):
        return Or(tuple(rows_compared("=", row_pairs(binder, tree.this, each)) for each in options))
    left, *rights = unified([binder.bind(tree.this), *map(binder.bind, options)], "IN", position_of(tree))
    return Or(tuple(call("=", [left, right]) for right in rights))


def queried(tree: exp.In) -> Tree | None:
    """The query that an IN looks into, if it is one; VALUES is."""
    only = tree.expressions[0] if len(tree.expressions) == 1 else None
    return tree.args.get("query") or (only if isinstance(only, exp.Values) else None)


def _between(binder: Expressions, tree: exp.Between) -> hir.HScalar:
    value, low, high = (binder.bind(each) for each in (tree.this, tree.args["low"], tree.args["high"]))
    position = position_of(tree)
    inside = And((call(">=", [value, low], position), call("<=", [value, high], position)))
    if not tree.args.get("symmetric"):
        return inside
    return Or((inside, And((call(">=", [value, high], position), call("<=", [value, low], position)))))


def _distinct_from(binder: Expressions, tree: Tree) -> hir.HScalar:
    differs = isinstance(tree, exp.NullSafeNEQ)
    name = "is distinct from" if differs else "is not distinct from"
    if is_row(tree.this) and is_row(tree.expression):
        pairs = row_pairs(binder, tree.this, tree.expression)
        each = tuple(call(name, list(pair), position_of(tree)) for pair in pairs)
        return Or(each) if differs else And(each)
    return call(name, [binder.bind(tree.this), binder.bind(tree.expression)], position_of(tree))


def _case(binder: Expressions, tree: exp.Case) -> hir.HScalar:
    subject = tree.this
    conditions = []
    for branch in tree.args["ifs"]:
        if subject is None:
            conditions.append(binder.bind_as(branch.this, t.BOOLEAN))
        else:
            conditions.append(call("=", [binder.bind(subject), binder.bind(branch.this)], position_of(branch)))
    default = tree.args.get("default")
    # What is behind ELSE comes first: between types that can be cast both ways, the first is chosen.
    values = [binder.bind(default) if default is not None else Literal(None, t.UNKNOWN)]
    values += [binder.bind(branch.args["true"]) for branch in tree.args["ifs"]]
    otherwise, *results = unified([settled(value) if all_open(values) else value for value in values], "CASE")
    return Case(tuple(zip(conditions, results, strict=True)), otherwise, otherwise.type)


def _scalar_subquery(binder: Expressions, tree: Tree) -> hir.HScalar:
    query, _ = binder.subquery(tree)
    columns = hir.types(query)
    if len(columns) != 1:
        raise error_at(tree, SYNTAX_ERROR, "subquery must return only one column")
    return hir.Subquery("scalar", query, columns[0])


def _array(binder: Expressions, tree: exp.Array) -> hir.HScalar:
    items = [binder.bind(each) for each in tree.expressions]
    if not items:
        hint = "write an explicit cast: ARRAY[]::integer[]"
        raise error_at(tree, "42P18", "cannot determine type of empty array", hint=hint)
    items = [settled(item) for item in items] if all_open(items) else unified(items, "ARRAY", position_of(tree))
    if items[0].type.kind is t.Kind.MZ_TIMESTAMP:  # of which there are no arrays: these are of milliseconds
        items = [coerce(item, t.INT8, "explicit") for item in items]
    return call("array", items, position_of(tree))


def _subscript(binder: Expressions, tree: exp.Bracket) -> hir.HScalar:
    value = binder.bind(tree.this)
    for index in tree.expressions:
        if isinstance(index, exp.Slice):
            first = Literal(1, t.INT4) if index.this is None else binder.bind(index.this)
            last = call("cardinality", [value]) if index.expression is None else binder.bind(index.expression)
            value = call("slice", [value, first, last], position_of(tree))
        else:
            place = binder.bind(index)
            if value.type.alias in t.VECTORS:  # those of PostgreSQL's catalogs are counted from 0
                place = call("+", [place, Literal(1, t.INT4)], position_of(index))
            value = call("subscript", [value, place], position_of(tree))
    return value


def _interval(binder: Expressions, tree: exp.Interval) -> hir.HScalar:
    unit = tree.args.get("unit")
    if isinstance(tree.this, exp.Paren):
        hint = f"write '…'::interval({tree.this.this.name})"
        raise unsupported("interval(n) in front of a literal", position_of(tree), hint=hint)
    text = tree.this.name if tree.this is not None else ""
    # With a unit the text is a number of it, and of no smaller one.
    amount = r"\s*[+-]?\d+(\.\d*)?\s*" if unit is not None and unit.name.lower() == "second" else r"\s*[+-]?\d+\s*"
    if unit is not None and (isinstance(unit, exp.IntervalSpan) or re.fullmatch(amount, text) is None):
        hint = "say the units in the text: interval '1 day 2 hours'"
        raise unsupported("an interval with fields", position_of(tree), hint=hint)
    written = Literal(f"{text} {unit.name}" if unit is not None else text, t.UNKNOWN)
    return coerce(written, t.INTERVAL, "explicit", position_of(tree))


def _collate(binder: Expressions, tree: exp.Collate) -> hir.HScalar:
    collation = tree.expression
    schema = collation.text("table") if isinstance(collation, exp.Column) else ""
    if collation.name not in ("C", "POSIX", "default", "ucs_basic") or schema not in ("", "pg_catalog"):
        name = ".".join(filter(None, (schema, collation.name)))
        raise unsupported(f'collation "{name}"', position_of(tree), hint="text is ordered by code points")
    return binder.bind(tree.this)


def _window(binder: Expressions, tree: exp.Window) -> hir.HScalar:
    windows = binder.calls.windows
    if windows is None:
        raise SqlError(*binder.no_windows(), position=position_of(tree))
    found = bind_window(binder.in_window(), tree, binder.calls.named)
    if found not in windows:
        windows.append(found)
    return Placeholder("window", windows.index(found), found.type)


def _filtered_aggregate(binder: Expressions, tree: exp.Filter) -> hir.HScalar:
    if isinstance(tree.this, exp.WithinGroup):
        return _within_group(binder, tree.this, tree.expression.this)
    return binder.aggregate(tree.this, tree.expression.this)


def _within_group(binder: Expressions, tree: exp.WithinGroup, condition: Tree | None = None) -> hir.HScalar:
    """An aggregate over sorted values: one that the registry has under a name of its own."""
    name, order = tree.this.name.lower(), tree.expression.expressions
    if name not in ORDERED_SETS or len(order) != 1:
        hint = f"WITHIN GROUP (ORDER BY one value) follows {', '.join(ORDERED_SETS)}"
        raise error_at(tree.this, UNDEFINED_FUNCTION, f"there is no ordered-set aggregate {name}", hint=hint)
    direct = tree.this.expressions
    if len(direct) != (0 if name == "mode" else 1):
        raise error_at(tree, UNDEFINED_FUNCTION, f"function {name} takes another number of arguments")
    for each in direct:
        _check_fraction(binder.bind(each), position_of(each))
    called = registered_name(name, descending=bool(order[0].args.get("desc")))
    changes_nothing(order[0], "nulls_first")  # NULLs take no part
    return binder.aggregate(exp.Anonymous(this=called, expressions=[*direct, order[0].this]), condition)


def _check_fraction(given: hir.HScalar, position: int | None) -> None:
    value = coerce(given, t.FLOAT8, "implicit", position)
    if not isinstance(value, Literal):
        raise unsupported("a fraction that is no constant", position)
    if value.value is not None and not 0 <= value.value <= 1:
        raise SqlError("22003", f"percentile value {value.value:g} is not between 0 and 1", position=position)


def _function(binder: Expressions, tree: exp.Anonymous) -> hir.HScalar:
    name = tree.name.lower()
    if name in AGGREGATE_NAMES:
        return binder.aggregate(tree)
    if name in ORDERED_SETS:
        raise error_at(tree, "42809", f"WITHIN GROUP is required for ordered-set aggregate {name}")
    if name in WINDOW_NAMES:
        raise error_at(tree, "42809", f"window function {name} requires an OVER clause")
    if name in ("array", "exists") and len(tree.expressions) == 1 and is_query(tree.expressions[0]):
        order: list[Order] = []
        query, _ = binder.subquery(tree.expressions[0], order)
        if name == "exists":
            return hir.Subquery("exists", query)
        return hir.Subquery("array", query, t.array_of(hir.types(query)[0]), order=tuple(order))
    args = [binder.bind(each) for each in _in_order(name, tree)]
    if name == "array_lower" and args and args[0].type.alias in t.VECTORS:
        return Literal(0, t.INT4)
    if name == "grouping":
        return binder.grouping(tuple(args), position_of(tree))
    special = _SPECIAL.get(name)
    if special is not None:
        return special(args, position_of(tree))
    own = host().function(name, args, position_of(tree))
    return own if own is not None else call(name, args, position_of(tree))


def _in_order(name: str, tree: exp.Anonymous) -> list[Tree]:
    """The arguments of a call in their places; only one function is called by the names of its arguments, in effect."""
    given = tree.expressions
    named = [each for each in given if isinstance(each, exp.Kwarg)]
    if not named:
        return list(given)
    if name != "make_interval":
        raise unsupported("an argument by its name", position_of(tree), hint="give the arguments in their order")
    places: list[Tree] = [*given[: len(given) - len(named)]]
    places += [exp.Literal.number(0) for _ in range(len(_INTERVAL_PARTS) - len(places))]
    for each in named:
        if each.name.lower() not in _INTERVAL_PARTS:
            hint = f"its arguments are {', '.join(_INTERVAL_PARTS)}"
            raise error_at(tree, UNDEFINED_FUNCTION, f"make_interval has no argument {each.name.lower()}", hint=hint)
        places[_INTERVAL_PARTS.index(each.name.lower())] = each.expression
    return places


def _type_of(args: list[hir.HScalar], position: int | None) -> hir.HScalar:
    """pg_typeof, which is known as soon as the types are."""
    if len(args) != 1:
        raise SqlError(UNDEFINED_FUNCTION, "pg_typeof takes one argument", position=position)
    return Literal(display_name(args[0].type), t.TEXT)


def _coalesce(args: list[hir.HScalar], position: int | None) -> hir.HScalar:
    args = [settled(arg) for arg in args] if all_open(args) else unified(args, "COALESCE", position)
    return Coalesce(tuple(args), args[0].type)


def _nullif(args: list[hir.HScalar], position: int | None) -> hir.HScalar:
    equal = call("=", args, position)
    first = args[0]
    # PostgreSQL's value is the operand of the equality that it has chosen, and that is cast only where it has to be.
    to, both = equal.args[0].type, {arg.type.kind for arg in args}
    if first.type.kind is not to.kind and not any(both <= family for family in _COMPARED_AS_THEY_ARE):
        first = coerce(first, to, "implicit", position)
    return Case(((equal, Literal(None, first.type)),), first, first.type)


def _extreme(args: list[hir.HScalar], position: int | None, name: str) -> hir.HScalar:
    args = [settled(arg) for arg in args] if all_open(args) else unified(args, name.upper(), position)
    value = call(name, args, position)
    return coerce(value, args[0].type) if args[0].type.kind is t.Kind.VARCHAR else value


_COMPARED_AS_THEY_ARE = (
    {t.Kind.INT2, t.Kind.INT4, t.Kind.INT8},
    {t.Kind.FLOAT4, t.Kind.FLOAT8},
    {t.Kind.DATE, t.Kind.TIMESTAMP, t.Kind.TIMESTAMPTZ},
)
_INTERVAL_PARTS = ("years", "months", "weeks", "days", "hours", "mins", "secs")
_SPECIAL: dict[str, Callable[[list[hir.HScalar], int | None], hir.HScalar]] = {
    "coalesce": _coalesce,
    "nullif": _nullif,
    "greatest": partial(_extreme, name="greatest"),
    "least": partial(_extreme, name="least"),
    "pg_typeof": _type_of,
}
BINARY: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Pow: "^",
    exp.DPipe: "||",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.RegexpLike: "~",
    exp.RegexpILike: "~*",
    exp.ArrayContainsAll: "@>",
    exp.ArrayContainedBy: "<@",
    exp.ArrayOverlaps: "&&",
    exp.JSONBContains: "?",
    exp.JSONBContainsTopKey: "?",
    exp.JSONBContainsAnyTopKeys: "?|",
    exp.JSONBContainsAllTopKeys: "?&",
    exp.StartsWith: "^@",
}
HANDLERS: dict[type, Callable[[Expressions, Any], hir.HScalar]] = {
    exp.Literal: _literal,
    exp.Concat: _adjacent_strings,
    exp.HexString: _hex,
    exp.Boolean: lambda binder, tree: Literal(bool(tree.this), t.BOOLEAN),
    exp.Null: lambda binder, tree: Literal(None, t.UNKNOWN),
    exp.Column: _column_ref,
    exp.Paren: lambda binder, tree: binder.bind(tree.this),
    exp.Cast: _cast,
    exp.And: lambda binder, tree: And(tuple([binder.bind_as(each, t.BOOLEAN) for each in chained(tree)])),
    exp.Or: lambda binder, tree: Or(tuple([binder.bind_as(each, t.BOOLEAN) for each in chained(tree)])),
    exp.Not: _not,
    exp.Is: _is,
    exp.Neg: _negative,
    exp.BitwiseNot: lambda binder, tree: binder.call("~", tree, tree.this),
    exp.In: _in,
    exp.Between: _between,
    exp.NullSafeEQ: _distinct_from,
    exp.NullSafeNEQ: _distinct_from,
    exp.Case: _case,
    exp.Exists: lambda binder, tree: hir.Subquery("exists", binder.subquery(tree.this)[0]),
    exp.Subquery: _scalar_subquery,
    exp.Select: _scalar_subquery,
    exp.Array: _array,
    exp.Bracket: _subscript,
    exp.Interval: _interval,
    exp.Collate: _collate,
    exp.Filter: _filtered_aggregate,
    exp.WithinGroup: _within_group,
    exp.Window: _window,
    exp.Anonymous: _function,
    **SESSION_FORMS,
    **WORD_FORMS,
    **dict.fromkeys(OPERATORS, comparison),
}
