"""Nothing of a syntax tree is ignored: a statement with a part that the binder did not read is refused by its name.

sqlglot reads the clauses of many dialects, and hangs them on its nodes as arguments. `watch` makes every node of a
tree remember which of its arguments were read; the binder reads what it gives a meaning to; `check_read` raises for
the first argument that is set and was not. What is read on purpose and changes nothing is read by `changes_nothing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from everview.compute.cancel import check_wanted
from everview.compute.sql.errors import unsupported

_CHECK_EVERY = 4_096  # nodes
_READ = "everview read"  # where a node keeps the names of its arguments that were read
# Leaves without clauses, which whoever meets them reads as a whole: watching these would cost most and find nothing.
_LEAVES = frozenset([exp.Literal, exp.Identifier, exp.Null, exp.Boolean, exp.Var, exp.Placeholder])
_SHOWN = {
    "into": "SELECT INTO",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "by_name": "a set operation BY NAME",
    "limit_options": "LIMIT … WITH TIES or PERCENT",
    "format": "a cast with a FORMAT",
    "search": "SEARCH or CYCLE in a recursive query",
    "version": "the version of a table",
    "when": "a time of a table by itself",
    "except_": "a star that leaves columns out",
    "exclude": "a star that leaves columns out",
    "rename": "a star that renames columns",
    "sort": "SORT BY",
    "partition": "PARTITION of a table",
    "overwrite": "INSERT OVERWRITE",
    "nulls": "IGNORE NULLS",
}
# The same argument is another clause on other nodes.
_SHOWN_ON = {
    (exp.Limit, "expressions"): "LIMIT … BY",
    (exp.Update, "order"): "ORDER BY of a change",
    (exp.Update, "limit"): "LIMIT of a change",
    (exp.Delete, "order"): "ORDER BY of a change",
    (exp.Delete, "limit"): "LIMIT of a change",
    (exp.Update, "with_"): "WITH in front of UPDATE",
    (exp.Delete, "with_"): "WITH in front of DELETE",
    (exp.Group, "all"): "GROUP BY ALL without expressions",
}
_HINTS = {
    "into": "CREATE VIEW, or CREATE TABLE and INSERT … SELECT",
    "version": "a query has one time: write AS OF behind it",
    "when": "a query has one time: write AS OF behind it",
    "limit_options": "FETCH FIRST n ROWS WITH TIES",
}


class _Read(set[str]):
    """The names of arguments that were read. Copies of a node share it: who reads a copy has read the original."""

    def __deepcopy__(self, _: object) -> _Read:
        return self


class _Watched(dict[str, Any]):
    """The arguments of a node. Reading one by its name is remembered; a walk over all of them is not."""

    __slots__ = ("read",)
    read: _Read

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return dict.get(self, name, default)

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return dict.__getitem__(self, name)

    def pop(self, name: str, *default: Any) -> Any:
        self.read.add(name)
        return dict.pop(self, name, *default)


def _nodes(tree: Any) -> Iterator[Any]:
    """All nodes of a tree, as long as somebody wants the statement."""
    for number, node in enumerate(tree.walk(), 1):
        if number % _CHECK_EVERY == 0:
            check_wanted()
        yield node


def watch(tree: Any) -> Any:
    """Make every node of a tree remember which arguments are read. Copies of nodes have to be watched again."""
    for node in _nodes(tree):
        if type(node) in _LEAVES:
            continue
        args = _Watched(node.args)
        args.read = node.meta.setdefault(_READ, _Read())
        node.args = args
    return tree


def changes_nothing(node: Any, *names: str) -> None:
    """Mark arguments as read that change nothing, because what they ask for holds anyway."""
    for name in names:
        node.args.get(name)


def read_whole(tree: Any) -> None:
    """All of a tree is accounted for, by comparison with one that is bound."""
    for node in tree.walk():
        changes_nothing(node, *node.args)


def check_read(tree: Any, position_of: Callable[[Any], int | None]) -> None:
    """Raise for the first part of a tree that was not read, and so would have no effect."""
    for node in _nodes(tree):
        args = node.args
        if type(args) is not _Watched:
            continue
        for name, value in args.items():
            if value and name not in args.read:
                first = value[0] if isinstance(value, list) else value
                position = position_of(first) if isinstance(first, exp.Expression) else None
                raise unsupported(_shown(node, name), position, hint=_HINTS.get(name))


def _shown(node: Any, name: str) -> str:
    """The clause that an argument is, as well as its name tells."""
    known = _SHOWN_ON.get((type(node), name)) or _SHOWN.get(name)
    if known is not None:
        return known
    if not node.args.read and node.arg_key:  # nobody looked at the node at all
        return _SHOWN.get(node.arg_key) or f"{node.arg_key.strip('_').replace('_', ' ').upper()} here"
    return f"{name.strip('_').replace('_', ' ').upper()} here"
