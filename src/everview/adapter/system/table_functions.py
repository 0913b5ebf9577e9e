"""Table functions of PostgreSQL's catalogs that tools call: of partitions, extensions, options, keywords.

Like the functions of `system.functions`, they are registered by key, and found by name only in a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from everview.compute.functions.keywords import COLUMNS, NEED_AS, RESERVED, TYPES_AND_FUNCTIONS
from everview.compute.functions.naming import key_of
from everview.compute.functions.registry import TABLES
from everview.compute.functions.spark_sql import not_on_spark
from everview.compute.functions.table import TableFunction
from everview.compute.ir.types import BOOLEAN, INT2, INT4, INT8, TEXT, SqlType, array_of

_by_name: dict[str, list[TableFunction]] = {}
# PostgreSQL's categories of words.
_WORDS = (
    ("R", "reserved", RESERVED),
    ("T", "reserved (can be function or type name)", TYPES_AND_FUNCTIONS),
    ("C", "unreserved (cannot be function or type name)", COLUMNS),
)
# Words of our own statements, for tools; their category is PostgreSQL's U.
_OWN = "envelope progress replacing retain sink snapshot source subscribe tail upsert within"


def table_functions(name: str) -> Sequence[TableFunction]:
    """The overloads of this name."""
    return _by_name.get(name, ())


def _add(
    name: str,
    args: tuple[SqlType, ...],
    columns: Sequence[tuple[str, SqlType]],
    evaluate: Callable[..., Iterable[tuple[Any, ...]]],
) -> None:
    refused = not_on_spark(name)
    function = TableFunction(
        key_of(name, args),
        name,
        args,
        tuple(each for _, each in columns),
        lambda _types, *values: evaluate(*values),
        lambda given, types, _columns: refused(given, types, TEXT),
        names=tuple(column for column, _ in columns),
        volatile=True,
    )
    TABLES[function.key] = function
    _by_name.setdefault(name, []).append(function)


def _nothing(*_: Any) -> Iterable[tuple[Any, ...]]:
    return ()


def _keywords() -> Iterable[tuple[Any, ...]]:
    for code, category, words in (*_WORDS, ("U", "unreserved", _OWN.split())):
        for word in words:
            bare = word not in NEED_AS
            yield word, code, bare, category, "can be bare label" if bare else "requires AS"


def _options(given: Sequence[str | None]) -> Iterable[tuple[Any, ...]]:
    for each in given:
        name, found, value = (each or "").partition("=")
        yield name, value if found else None


def _expanded(values: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    return [(value, number + 1) for number, value in enumerate(values)]


_EXTENSION = [("name", TEXT), ("default_version", TEXT), ("comment", TEXT)]
# Nothing is partitioned: of what is no partition, PostgreSQL gives no ancestors and no tree.
_add("pg_partition_ancestors", (INT8,), [("relid", INT8)], _nothing)
_add(
    "pg_partition_tree",
    (INT8,),
    [("relid", INT8), ("parentrelid", INT8), ("isleaf", BOOLEAN), ("level", INT4)],
    _nothing,
)
_add("pg_available_extensions", (), _EXTENSION, _nothing)
_add("pg_options_to_table", (array_of(TEXT),), [("option_name", TEXT), ("option_value", TEXT)], _options)
_add(
    "aclexplode",
    (array_of(TEXT),),
    [("grantor", INT8), ("grantee", INT8), ("privilege_type", TEXT), ("is_grantable", BOOLEAN)],
    _nothing,  # nobody is granted anything: owners and superusers alone may change what is there
)
_add(
    "pg_get_keywords",
    (),
    [("word", TEXT), ("catcode", TEXT), ("barelabel", BOOLEAN), ("catdesc", TEXT), ("baredesc", TEXT)],
    _keywords,
)
for _element in (INT2, INT8):
    _add("_pg_expandarray", (array_of(_element),), [("x", _element), ("n", INT4)], _expanded)
