"""Forms of expressions that mean something only where there is a session: parameters, `current_user`, `::regclass`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from everview.compute.functions.numbers import integer_of
from everview.compute.sql import hir
from everview.compute.sql.coerce import call
from everview.compute.sql.datatypes import type_name
from everview.compute.sql.errors import SYNTAX_ERROR, UNDEFINED_FUNCTION, SqlError, unsupported
from everview.compute.sql.hir import FUNCTION_SCHEMAS
from everview.compute.sql.hosting import host
from everview.compute.sql.parse import Tree, error_at, position_of
from everview.compute.sql.set_returning import field_name

if TYPE_CHECKING:
    from everview.compute.sql.expression import Expressions

# Types of identifiers of objects: a cast to one of them looks into the catalog.
OBJECT_IDS = frozenset(
    ["oid", "regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoper", "regoperator"]
)

# Words that are functions without parentheses, as sqlglot names them.
WORDS: dict[type, str] = {
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
    exp.CurrentTime: "current_time",
    exp.Localtime: "localtime",
    exp.Localtimestamp: "localtimestamp",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
    exp.CurrentSchema: "current_schema",
    exp.CurrentCatalog: "current_catalog",
}
# Words that sqlglot takes for columns.
COLUMN_WORDS = frozenset(("user", "current_role", "current_catalog"))


def _parameter(binder: Expressions, tree: exp.Parameter) -> hir.HScalar:
    number = tree.this.name
    if not number.isdigit() or not 1 <= integer_of(number) <= 65_535:
        raise error_at(tree, SYNTAX_ERROR, f'syntax error at or near "${number}"')
    return host().parameter(int(number), position_of(tree))


def session_function(name: str, position: int | None) -> hir.HScalar:
    """A function of the session without arguments."""
    found = host().function(name, [], position)
    if found is None:
        raise SqlError(UNDEFINED_FUNCTION, f"function {name}() does not exist", position=position)
    return found


def _qualified(binder: Expressions, tree: exp.Dot) -> hir.HScalar:
    """A function with its schema, or a field of what a table function gave in a query inside."""
    if isinstance(tree.expression, exp.Anonymous) and isinstance(tree.this, exp.Identifier):
        if tree.this.name.lower() in FUNCTION_SCHEMAS:
            return binder.bind(tree.expression)
        shown = f"{tree.this.name}.{tree.expression.name}"
        raise error_at(tree, UNDEFINED_FUNCTION, f"function {shown} does not exist")
    if isinstance(tree.this, exp.Paren) and isinstance(tree.this.this, exp.Column):
        composite = tree.this.this
        table = composite.args.get("table")
        name = field_name(composite.name, tree.expression.name)
        if binder.scope.has(None if table is None else table.name, name):
            return binder.scope.find(None if table is None else table.name, name, position_of(tree))
    raise unsupported("selecting a field of a composite value", position_of(tree))


def _operator(binder: Expressions, tree: exp.Operator) -> hir.HScalar:
    """`OPERATOR(pg_catalog.~)`, as psql writes it."""
    schema, _, symbol = str(tree.args["operator"]).rpartition(".")
    if schema not in ("", "pg_catalog"):
        raise error_at(tree, UNDEFINED_FUNCTION, f"operator {schema}.{symbol} does not exist")
    args = [binder.bind(tree.this), binder.bind(tree.expression)]
    if symbol in ("!~", "!~*"):
        return call("not", [call(symbol[1:], args, position_of(tree))])
    return call(symbol, args, position_of(tree))


def object_cast(tree: Tree) -> str | None:
    """The kind of object whose identifier a cast asks for, if it does."""
    if not isinstance(tree, exp.DataType):
        return None
    name = type_name(tree)
    return name if name in OBJECT_IDS else None


SESSION_FORMS: dict[type, Callable[[Expressions, Any], hir.HScalar]] = {
    exp.Parameter: _parameter,
    exp.Dot: _qualified,
    exp.Operator: _operator,
    **dict.fromkeys(WORDS, lambda binder, tree: session_function(WORDS[type(tree)], position_of(tree))),
}
