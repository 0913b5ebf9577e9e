"""CREATE, DROP, ALTER and COMMENT."""

from __future__ import annotations

from collections.abc import Callable

from everview.adapter.catalog import items
from everview.adapter.sources.registry import SOURCES
from everview.adapter.statements import nodes
from everview.adapter.statements.connections import (
    parse_alter_connection,
    parse_alter_secret,
    parse_connection,
    parse_secret,
)
from everview.adapter.statements.nodes import ColumnDefinition, Statement
from everview.adapter.statements.options import (
    in_cluster,
    listed_options,
    object_kind,
    option_list,
    option_value,
    refuse_options,
    refuse_temporary,
    with_options,
)
from everview.adapter.statements.replacements import parse_alter_replacement, parse_replacement, replacing
from everview.adapter.statements.sinks import parse_alter_sink, parse_create_sink, parse_place
from everview.adapter.statements.sources import parse_connected
from everview.adapter.statements.subscriptions import parse_alter_subscription, parse_create_subscription
from everview.adapter.statements.words import Words, if_exists, if_not_exists
from everview.compute.sql.errors import UNDEFINED_OBJECT, SqlError, unsupported

COLUMNS_MAX = 1_600
_CONSTRAINTS = ("not", "null", "default", "primary", "unique", "check", "references", "collate", "constraint")
_BEHIND_DEFAULT = ("not", "null", "primary", "unique", "check", "references")
_COLLATIONS = ("default", "C", "POSIX", "ucs_basic")
_ACCESS_METHODS = ("btree", "hash")  # what tools write; an index here is one kind of thing
_NO_KEYS = "uniqueness of rows is not enforced in tables; leave the constraint out"


def parse_create(words: Words) -> Statement:
    or_replace = words.accept("or", "replace")
    refuse_temporary(words)
    if words.accept("view"):
        return _view(words, or_replace=or_replace)
    if or_replace:
        raise words.error("only views can be replaced")
    for kind_words, parse in _CREATED.items():
        if words.accept(*kind_words.split()):
            return parse(words)
    if words.accept("materialized", "view"):
        return _view(words, materialized=True)
    if words.accept("default", "index"):
        in_cluster(words)
        words.expect("on")
        return nodes.CreateIndex(None, words.path(), ())
    if words.accept("unique"):
        raise unsupported("a unique index", words.next.start + 1, hint="indexes make look-ups fast and enforce nothing")
    if words.next.is_word("schema", "database"):
        namespace: items.NamespaceKind = items.Schema if words.take().value == "schema" else items.Database
        unless = if_not_exists(words)
        path = words.path()
        owner = words.name() if words.accept("authorization") else None
        return nodes.CreateNamespace(namespace, path, unless, owner)
    for kind_word in ("cluster", "function", "type", "sequence", "trigger", "extension"):
        if words.sees(kind_word):
            raise unsupported(f"CREATE {kind_word.upper()}", words.next.start + 1)
    raise words.error("expected the kind of an object")


def _table(words: Words) -> Statement:
    unless = if_not_exists(words)
    path = words.path()
    if words.sees("as"):
        raise unsupported("CREATE TABLE AS", words.next.start + 1, hint="create the table, then INSERT … SELECT")
    return nodes.CreateTable(path, _columns(words), unless, with_options(words))


def _columns(words: Words) -> tuple[ColumnDefinition, ...]:
    if words.next.is_symbol("(") and words.ahead(1).is_symbol(")"):
        words.take()
        words.take()
        return ()
    columns = words.listed(lambda: _column(words))
    if len(columns) > COLUMNS_MAX:
        raise SqlError("54011", f"tables can have at most {COLUMNS_MAX} columns")
    return columns


def _column(words: Words) -> ColumnDefinition:
    if words.next.is_word("primary", "unique", "foreign", "check", "exclude", "constraint"):
        raise _constraint(words)
    name = words.name()
    start = words.next.start
    type_text = words.until(lambda: words.next.is_word(*_CONSTRAINTS) or words.next.is_symbol(","))
    if not type_text:
        raise words.error("expected a type")
    not_null, default = False, None
    while words.next.is_word(*_CONSTRAINTS):
        if words.accept("not", "null"):
            not_null = True
        elif words.sees("null") and not_null:
            raise words.error("the column is NOT NULL")
        elif words.accept("null"):
            pass
        elif words.sees("default") and default is not None:
            raise words.error("a default was given already")
        elif words.accept("default"):
            default = words.until(lambda: words.next.is_word(*_BEHIND_DEFAULT) or words.next.is_symbol(","))
        elif words.accept("collate"):
            _collation(words)
        else:
            raise _constraint(words)
    return ColumnDefinition(name, type_text, start + 1, not_null, default)


def _collation(words: Words) -> None:
    """The name after COLLATE: texts are ordered by code points, which these collations ask for."""
    position = words.next.start + 1
    name = "default" if words.accept("default") else words.path()[-1]
    if name not in _COLLATIONS:
        hint = f"texts are ordered by code points: {', '.join(_COLLATIONS)}"
        raise unsupported(f'the collation "{name}"', position, hint=hint)


def _constraint(words: Words) -> SqlError:
    position = words.next.start + 1
    if words.accept("constraint"):
        words.name()
    word = words.next.value
    name = {"primary": "PRIMARY KEY", "foreign": "FOREIGN KEY", "references": "FOREIGN KEY"}.get(word, word.upper())
    hint = _NO_KEYS if word in ("primary", "unique") else "leave the constraint out, and check it in a view"
    return unsupported(f"a {name} constraint", position, hint=hint)


def _view(words: Words, *, or_replace: bool = False, materialized: bool = False) -> Statement:
    unless = if_not_exists(words)
    path = words.path()
    columns = words.names() if words.next.is_symbol("(") else ()
    if materialized and words.accept("replacing"):
        return replacing(words, path, columns, unless=unless)
    if materialized:
        in_cluster(words)
    options = with_options(words)
    if not materialized and "retain history" in options:
        hint = "give it to the tables below the view, or to a materialized view"
        raise unsupported("RETAIN HISTORY of a view that is not materialized", hint=hint)
    if not materialized:
        refuse_options(options, "a view")
    words.expect("as")
    return nodes.CreateView(path, columns, words.rest(), materialized, unless, or_replace, options)


def _index(words: Words) -> Statement:
    words.accept("concurrently")  # nobody's writes wait for an index that is made
    unless = if_not_exists(words)
    name = None if words.sees("on") or words.sees("in", "cluster") else words.name()
    in_cluster(words)
    words.expect("on")
    on = words.path()
    if words.accept("using"):
        _access_method(words)
    keys = words.expressions()
    refuse_options(with_options(words), "an index")
    return nodes.CreateIndex(name, on, keys, unless)


def _access_method(words: Words) -> None:
    position, name = words.next.start + 1, words.name()
    if name not in _ACCESS_METHODS:
        hint = "leave USING out: an index keeps rows by key"
        raise SqlError(UNDEFINED_OBJECT, f'access method "{name}" does not exist', hint=hint, position=position)


def _source(words: Words) -> Statement:
    unless = if_not_exists(words)
    path = words.path()
    columns = _columns(words) if words.next.is_symbol("(") else ()
    in_cluster(words)
    words.expect("from")
    if words.sees("cdc"):
        place = parse_place(words)
        return nodes.CreateSource(path, place.kind, "", place.arguments, unless, with_options(words), columns)
    arguments: dict[str, str] = {}
    named = next((name for name, each in SOURCES.items() if each.has_subject and words.accept(*name.split())), None)
    kind, argument = (words.name(), "") if named is None else (named, words.name())
    if words.accept("connection"):
        if columns:
            raise words.error("the columns of the tables are those upstream", words.first)
        return parse_connected(words, path, kind, if_not_exists=unless)
    if words.next.is_symbol("("):

        def name() -> str:
            parts = [words.take().value]
            while words.next.kind == "word":
                parts.append(words.take().value)
            words.accept_symbol("=")
            return " ".join(parts)

        arguments = listed_options(words, name, lambda name, position: option_value(words))
    words.accept("for", "all", "tables")
    return nodes.CreateSource(path, kind, argument, arguments, unless, with_options(words), columns)


def _role(words: Words) -> Statement:
    name = words.name()
    login, superuser, password = True, False, None
    words.accept("with")
    while not words.done:
        word = words.take()
        if word.is_word("password"):
            password = None if words.accept("null") else words.string()
        elif word.is_word("login", "nologin"):
            login = word.value == "login"
        elif word.is_word("superuser", "nosuperuser"):
            superuser = word.value == "superuser"
        elif word.is_word("createdb", "createrole"):
            hint = "superusers create databases and roles"
            raise unsupported(f"the attribute {word.value.upper()}", word.start + 1, hint=hint)
        elif not word.is_word("inherit", "encrypted", "nocreatedb", "nocreaterole"):  # what holds of every role
            raise words.error("expected an attribute of a role", word)
    return nodes.CreateRole(name, login, superuser, password)


def parse_drop(words: Words) -> Statement:
    kind = object_kind(words)
    unless = if_exists(words)
    paths = words.series(words.path)
    cascade = words.accept("cascade")
    if not cascade:
        words.accept("restrict")
    return nodes.Drop(kind, paths, unless, cascade)


# What reads the rest of a CREATE, by the words of the kind, where that is all there is to it.
_CREATED: dict[str, Callable[[Words], Statement]] = {
    "table": _table,
    "replacement materialized view": parse_replacement,
    "index": _index,
    "source": _source,
    "sink": parse_create_sink,
    "subscription": parse_create_subscription,
    "secret": parse_secret,
    "connection": parse_connection,
    "role": _role,
    "user": _role,
}

# What reads those of an object's ALTERs that no other kind of object has.
_ALTERED = {
    items.Sink: parse_alter_sink,
    items.Subscription: parse_alter_subscription,
    items.Secret: parse_alter_secret,
    items.Connection: parse_alter_connection,
}


def parse_alter(words: Words) -> Statement:
    kind = object_kind(words)
    unless = if_exists(words)
    path = words.path()
    if kind is items.Role:
        words.accept("with")
        words.expect("password")
        return nodes.AlterRole(path[-1], None if words.accept("null") else words.string())
    if kind in _ALTERED and (altered := _ALTERED[kind](words, path, if_exists=unless)) is not None:
        return altered
    if kind is items.Source and words.sees("reset") and not words.ahead(1).is_symbol("("):
        words.take()
        return nodes.ResetSource(path, unless)
    if kind is items.Source and words.next.is_word("pause", "resume"):
        return nodes.PauseSource(path, words.take().value == "pause", unless)
    if words.accept("rename", "to"):
        return nodes.Rename(kind, path, words.name(), None, unless)
    if words.accept("rename"):
        words.accept("column")
        column = words.name()
        words.expect("to")
        return nodes.Rename(kind, path, words.name(), column, unless)
    if words.accept("owner", "to"):
        return nodes.AlterOwner(kind, path, words.name())
    of_ttl = kind is items.Table and words.ahead(1).is_symbol("(") and words.ahead(2).is_word("ttl")
    if of_ttl and words.accept("set"):
        options = option_list(words)
        if set(options) != {"ttl", "ttl on"}:
            raise words.error("expected TTL alone")
        return nodes.AlterTtl(path, (options["ttl"], options["ttl on"]))
    if of_ttl and words.accept("reset"):
        words.listed(lambda: words.expect("ttl"))
        return nodes.AlterTtl(path, None)
    if words.next.is_word("set", "reset"):
        retain = None
        sets = words.take().value == "set"
        words.expect_symbol("(")
        words.expect("retain", "history")
        if sets:
            words.accept_symbol("=")
            words.accept("for")
            retain = words.string()
        words.expect_symbol(")")
        return nodes.AlterRetain(kind, path, retain)
    if kind is items.MaterializedView and (about := parse_alter_replacement(words, path)) is not None:
        return about
    if words.next.is_word("add", "drop", "alter"):
        hint = "create a new table, and copy the rows with INSERT … SELECT"
        raise unsupported(f"ALTER TABLE … {words.next.value.upper()}", words.next.start + 1, hint=hint)
    own = "ACKNOWLEDGE, RESTART, " if kind is items.Subscription else ""
    raise words.error(f"expected {own}RENAME TO, OWNER TO, SET or RESET")


def parse_comment(words: Words) -> Statement:
    words.expect("on")
    kind = object_kind(words)
    parts = [words.name()]
    while words.accept_symbol("."):
        parts.append(words.name())
    words.expect("is")
    return nodes.CommentOn(kind, tuple(parts), None if words.accept("null") else words.string())
