"""Table functions in a select list: `SELECT unnest(a) FROM t` is `SELECT f.v FROM t, LATERAL unnest(a) AS f (v)`.

Several of them side by side go in step. That is done where they are of one array: `unnest(a)` and
`generate_subscripts(a, 1)` then are the element and the place of one walk through it, which is how tools use them.
"""

from __future__ import annotations

from sqlglot import exp

from everview.compute.functions.registry import tables_by_name
from everview.compute.sql.calls import AGGREGATE_NAMES
from everview.compute.sql.errors import unsupported
from everview.compute.sql.parse import Tree, position_of

_NAME, _COLUMN = "set_returned", "v"
_STEPWISE = ("unnest", "generate_subscripts")


def without_set_returning(tree: exp.Select) -> exp.Select:
    """The query with table functions of its select list moved to its FROM clause."""
    calls = [call for item in tree.expressions for call in _calls(item)]
    if not calls:
        return tree
    tree = tree.copy()
    calls = [call for item in tree.expressions for call in _calls(item)]
    source = calls[0]
    if len(calls) > 1:
        arrays = {call.expressions[0].sql() for call in calls}
        if len(arrays) > 1 or any(call.name.lower() not in _STEPWISE for call in calls):
            hint = "call them in FROM"
            raise unsupported("several set-returning functions in a select list", position_of(calls[1]), hint)
        source = exp.Anonymous(
            this="generate_subscripts", expressions=[calls[0].expressions[0].copy(), exp.Literal.number(1)]
        )
    place = exp.column(exp.to_identifier(_COLUMN), table=exp.to_identifier(_NAME))
    lateral = exp.Lateral(
        this=source.copy(),
        alias=exp.TableAlias(this=exp.to_identifier(_NAME), columns=[exp.to_identifier(_COLUMN)]),
    )
    for call in calls:
        value: Tree = place.copy()
        if len(calls) > 1 and call.name.lower() == "unnest":
            value = exp.Bracket(this=call.expressions[0].copy(), expressions=[value])
        _replace(tree, call, value)
    if tree.args.get("from_") is None:
        unit = exp.Subquery(
            this=exp.Select(expressions=[exp.alias_(exp.Literal.number(1), "one")]),
            alias=exp.TableAlias(this=exp.to_identifier("unit")),
        )
        tree.set("from_", exp.From(this=unit))
    tree.append("joins", exp.Join(this=lateral))
    return tree


def _replace(tree: exp.Select, call: Tree, value: Tree) -> None:
    """Put a value in the place of a call; an item of the select list keeps the call's name."""
    if call.parent is tree:
        value = exp.alias_(value, call.name.lower())
    call.replace(value)


def _calls(item: Tree) -> list[Tree]:
    """The calls of table functions in an item, not those inside queries of its own, nor in FROM."""
    if isinstance(item, (exp.Query, exp.Subquery)):
        return []
    if isinstance(item, exp.Anonymous) and _is_table_function(item.name.lower()):
        return [item]
    return [call for child in item.iter_expressions() for call in _calls(child)]


def _is_table_function(name: str) -> bool:
    return bool(tables_by_name(name)) and name not in AGGREGATE_NAMES
