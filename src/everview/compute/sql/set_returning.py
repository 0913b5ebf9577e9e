"""Table functions in a select list: `SELECT unnest(a) FROM t` is `SELECT f.v FROM t, LATERAL unnest(a) AS f (v)`.

Several of them side by side go in step. That is done where they are the same call, and where they are of arrays:
`unnest(a)` and `generate_subscripts(b, 1)` then are the element and the place of one walk through them, which is how
tools use them. A function of several columns gives a composite value: a field of it is that column, `(f(x)).n`. There
are no composite values otherwise, so in a query inside another `f(x) AS k` is a column for each field, and `(q.k).n` is
one of them.
"""

from __future__ import annotations

from sqlglot import exp

from everview.compute.functions.registry import tables_by_name
from everview.compute.sql.clauses import changes_nothing, read_whole, watch
from everview.compute.sql.errors import UNDEFINED_FUNCTION, unsupported
from everview.compute.sql.hir import AGGREGATE_NAMES, FUNCTION_SCHEMAS
from everview.compute.sql.hosting import host
from everview.compute.sql.parse import Tree, error_at, position_of

_NAME, _COLUMN = "set_returned", "v"
_STEPWISE = {"unnest": 1, "generate_subscripts": 2}  # with so many arguments


def field_name(composite: str, field: str) -> str:
    """The name of the column that stands for a field of a composite value."""
    return f"{composite}.{field}"


def without_set_returning(tree: exp.Select) -> exp.Select:
    """The query with table functions of its select list moved to its FROM clause."""
    if not any(_calls(item) for item in tree.expressions):
        return tree
    inside = tree.parent is not None
    tree = watch(tree.copy())
    calls = [call for item in tree.expressions for call in _calls(item)]
    source, first = calls[0], calls[0].name.lower()
    fields = max((each.names for each in (*tables_by_name(first), *host().table_functions(first))), key=len)
    # Whether places count from 1 is for the array to say, so they are not taken as they come.
    same = len({call.sql() for call in calls}) == 1 and first != "generate_subscripts"
    if not same:
        source = _in_step(calls)
    for call in calls[1:] if same else ():
        read_whole(call)
    columns = [] if len(fields) > 1 else [exp.to_identifier(_COLUMN)]
    lateral = exp.Lateral(
        this=source.copy(), alias=exp.TableAlias(this=exp.to_identifier(_NAME), columns=columns or None)
    )
    for call in calls:
        if len(fields) > 1:
            _replace_composite(tree, call, fields, inside=inside)
            continue
        value = _column(_COLUMN) if same else _at_step(call)
        _replace(tree, _place(call), value, call.name.lower())
    if tree.args.get("from_") is None:
        unit = exp.Subquery(
            this=exp.Select(expressions=[exp.alias_(exp.Literal.number(1), "one")]),
            alias=exp.TableAlias(this=exp.to_identifier("unit")),
        )
        tree.set("from_", exp.From(this=unit))
    tree.append("joins", exp.Join(this=lateral))
    watch(tree)  # with the copies in it
    return tree


def _in_step(calls: list[Tree]) -> Tree:
    """The places of the longest of the arrays."""
    for call in calls:
        if len(call.expressions) != _STEPWISE.get(call.name.lower()):
            hint = "call them in FROM"
            raise unsupported("several set-returning functions in a select list", position_of(call), hint)
    longest = _call("greatest", *(_length(call) for call in calls))
    return _call("generate_series", exp.Literal.number(1), longest)


def _at_step(call: Tree) -> Tree:
    """The value of a call at one step; NULL behind the end of its array."""
    first = _call("array_lower", call.expressions[0].copy(), _dimension(call))
    place = exp.Sub(this=exp.Add(this=_column(_COLUMN), expression=first), expression=exp.Literal.number(1))
    if call.name.lower() == "unnest":
        return exp.Bracket(this=call.expressions[0].copy(), expressions=[place])
    inside = exp.LTE(this=_column(_COLUMN), expression=_length(call))
    return exp.Case(ifs=[exp.If(this=inside, true=place)])


def _length(call: Tree) -> Tree:
    return _call("array_length", call.expressions[0].copy(), _dimension(call))


def _dimension(call: Tree) -> Tree:
    """The dimension of the array that a call walks through; `generate_subscripts` may name it."""
    return call.expressions[1].copy() if len(call.expressions) > 1 else exp.Literal.number(1)


def _call(name: str, *args: Tree) -> Tree:
    return exp.Anonymous(this=name, expressions=list(args))


def _column(name: str) -> Tree:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(_NAME))


def _place(call: Tree) -> Tree:
    parent = call.parent
    if not isinstance(parent, exp.Dot) or parent.expression is not call:
        return call
    if parent.this.name.lower() not in FUNCTION_SCHEMAS:
        raise error_at(parent, UNDEFINED_FUNCTION, f"function {parent.this.name}.{call.name} does not exist")
    return parent


def _replace(tree: exp.Select, place: Tree, value: Tree, name: str) -> None:
    """Put a value in the place of a call; an item of the select list keeps the call's name."""
    changes_nothing(place, "this", "expression")
    if place.parent is tree:
        value = exp.alias_(value, name, quoted=True)
    place.replace(value)


def _replace_composite(tree: exp.Select, call: Tree, fields: tuple[str, ...], *, inside: bool) -> None:
    place = _place(call)
    around = place.parent
    if isinstance(around, exp.Paren) and isinstance(around.parent, exp.Dot) and around.parent.this is around:
        access = around.parent
        changes_nothing(access, "this", "expression")
        changes_nothing(around, "this")
        if isinstance(access.expression, exp.Star):
            _spread(tree, access, {name: name for name in fields})
            return
        name = access.expression.name
        if name not in fields:
            raise unsupported(f'the field "{name}"', position_of(call), hint=f"there is {' and '.join(fields)}")
        _replace(tree, access, _column(name), name)
        return
    item = around if isinstance(around, exp.Alias) else place
    changes_nothing(item, "this")
    if item.parent is not tree or not inside:
        hint = f"select a field, ({call.name}(…)).{fields[0]}, or call it in FROM"
        raise unsupported("a composite value", position_of(call), hint)
    alias = around.alias if isinstance(around, exp.Alias) else call.name.lower()
    _spread(tree, item, {field_name(alias, name): name for name in fields})


def _spread(tree: exp.Select, item: Tree, columns: dict[str, str]) -> None:
    """Put a column for each field in the place of an item of the select list."""
    found: list[Tree] = []
    for each in tree.expressions:
        if each is item:
            found += [exp.alias_(_column(field), shown, quoted=True) for shown, field in columns.items()]
        else:
            found.append(each)
    tree.set("expressions", found)


def _calls(item: Tree) -> list[Tree]:
    """The calls of table functions in an item, not those inside queries of its own, nor in FROM."""
    if isinstance(item, (exp.Query, exp.Subquery)):
        return []
    name = item.name.lower() if isinstance(item, exp.Anonymous) else ""
    if (tables_by_name(name) or host().table_functions(name)) and name not in AGGREGATE_NAMES:
        return [item]
    return [call for child in item.iter_expressions() for call in _calls(child)]
