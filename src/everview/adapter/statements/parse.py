"""One statement in text to a value: the first words say which parser reads the rest."""

from __future__ import annotations

from collections.abc import Callable

from everview.adapter.catalog.items import MaterializedView
from everview.adapter.statements import nodes
from everview.adapter.statements.connections import parse_validate
from everview.adapter.statements.definitions import parse_alter, parse_comment, parse_create, parse_drop
from everview.adapter.statements.nodes import Statement
from everview.adapter.statements.options import (
    TAIL,
    as_of,
    boolean,
    isolation,
    listed_options,
    object_kind,
    option_value,
    refuse_options,
    with_options,
)
from everview.adapter.statements.replacements import parse_difference
from everview.adapter.statements.subscriptions import parse_subscribe
from everview.adapter.statements.words import Path, Words
from everview.compute.sql.errors import SqlError, unsupported
from everview.compute.sql.lexer import SqlText, split
from everview.quoting import identifier

_QUERIES = ("select", "values", "with", "table")
_SHOWN = (
    *("tables", "views", "indexes", "sources", "sinks", "schemas", "databases", "columns", "objects"),
    *("roles", "clusters", "subscriptions", "sessions", "connections", "secrets"),
)
_EVERYWHERE = ("databases", "roles", "clusters", "subscriptions", "sessions")  # which are in no schema


def parse(text: str) -> Statement:
    """The statement, with or without a semicolon behind it."""
    if not isinstance(text, SqlText):
        pieces = split(text)
        if len(pieces) > 1:
            raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
        text = pieces[0] if pieces else SqlText("")
    words = Words(text)
    try:
        statement = _statement(words)
        words.expect_end()
        return statement
    finally:
        words.close()


def _statement(words: Words) -> Statement:
    token = words.next
    if token.kind == "end":
        return nodes.Empty()
    if token.is_symbol("(") or token.is_word(*_QUERIES):
        return _query(words)
    if token.is_word("insert", "update", "delete"):
        return nodes.Modify(words.rest(), token.value)
    parser = _PARSERS.get(token.value) if token.kind == "word" else None
    if parser is None:
        raise words.error("no statement begins like this")
    words.take()
    return parser(words)


def _query(words: Words) -> Statement:
    if words.next.is_word("with"):  # which may begin an INSERT, UPDATE or DELETE as well
        verb = words.sees_first("insert", "update", "delete", "select", "values", "table")
        if verb in ("insert", "update", "delete"):
            return nodes.Modify(words.rest(), verb)
    query = words.until(lambda: words.sees("as", "of"))
    time = as_of(words)
    if time is not None and words.next.is_word(*TAIL):
        query = query.followed_by(words.rest())
    elif time is not None and not (words.done or words.next.is_symbol(")")):
        raise words.error("AS OF gives the time of the whole query: it comes last, or before ORDER BY and LIMIT")
    return nodes.Query(query, time)


def _truncate(words: Words) -> Statement:
    words.accept("table")
    tables = words.series(words.path)
    words.accept("restrict")
    return nodes.Truncate(tables)


def _begin(words: Words) -> Statement:
    words.accept("transaction") or words.accept("work")
    return nodes.Begin(*isolation(words))


def _start(words: Words) -> Statement:
    words.expect("transaction")
    return nodes.Begin(*isolation(words), tag="START TRANSACTION")


def _end(commit: bool) -> Callable[[Words], Statement]:
    def parser(words: Words) -> Statement:
        words.accept("transaction") or words.accept("work")
        if not commit and words.accept("to"):
            return _savepoint(nodes.RollbackTo)(words)
        if words.sees("prepared"):
            raise unsupported("a prepared transaction", words.next.start + 1)
        words.accept("and", "no", "chain")
        return nodes.End(commit)

    return parser


def _savepoint(node: Callable[[str], Statement]) -> Callable[[Words], Statement]:
    def parser(words: Words) -> Statement:
        words.accept("savepoint")
        return node(words.name())

    return parser


def _set(words: Words) -> Statement:
    local = words.accept("local")
    if not local:
        words.accept("session") and not words.sees("characteristics")
    if words.accept("transaction"):
        return nodes.SetTransaction(*isolation(words))
    if words.accept("characteristics", "as", "transaction"):
        return nodes.SetTransaction(*isolation(words), session=True)
    if words.accept("time", "zone"):
        value = words.take().value
        return nodes.Set("timezone", None if value in ("default", "local") else value, local)
    if words.accept("names"):
        return nodes.Set("client_encoding", None if words.accept("default") else words.string(), local)
    name = ".".join(words.path())
    if not words.accept("to") and not words.accept_symbol("="):
        raise words.error('expected TO or "="')
    if words.accept("default"):
        return nodes.Set(name, None, local)
    listed = name == "search_path"
    values = words.series(lambda: _setting_value(words, listed=listed))
    return nodes.Set(name, ", ".join(values), local)


def _setting_value(words: Words, *, listed: bool) -> str:
    if listed and words.next.kind in ("quoted", "string"):  # a list of names is read once more
        return identifier(words.take().value)
    parts = [option_value(words)]
    while words.next.kind == "word":  # STRICT SERIALIZABLE without quotes
        parts.append(words.take().value)
    if parts == [""]:
        raise words.error("expected a value")
    return " ".join(parts)


def _reset(words: Words) -> Statement:
    if words.accept("all"):
        return nodes.Reset(None)
    return nodes.Reset("timezone" if words.accept("time", "zone") else ".".join(words.path()))


def _show(words: Words) -> Statement:
    if words.accept("create"):
        kind = object_kind(words)
        return nodes.ShowCreate(kind, words.path())
    if words.accept("replacement", "diff"):
        return parse_difference(words)
    if words.accept("all"):
        return nodes.Show(None)
    if words.accept("time", "zone"):
        return nodes.Show("timezone")
    if words.accept("transaction", "isolation", "level"):
        return nodes.Show("transaction_isolation")
    if words.accept("materialized", "views"):
        what = "materialized views"
    elif words.next.is_word(*_SHOWN):
        what = words.take().value
    elif words.accept("search_path"):
        return nodes.Show("search_path")
    else:
        return nodes.Show(".".join(words.path()))
    return _show_objects(words, what)


def _show_objects(words: Words, what: str) -> Statement:
    place: Path = ()
    on: Path = ()
    if words.next.is_word("from", "in") and what not in _EVERYWHERE:
        words.take()
        words.accept("schema")
        place = words.path()
    if what == "indexes" and words.accept("on"):
        on = words.path()
    like = words.string() if words.accept("like") else None
    where = words.rest() if words.accept("where") else None
    return nodes.ShowObjects(what, place, on, like, where)


def _explain(words: Words) -> Statement:
    stage = ""
    for phrase, named in (
        (("timestamp",), "timestamp"),
        (("raw", "plan"), "raw"),
        (("optimized", "plan"), "optimized"),
        (("physical", "plan"), "maintained"),
        (("maintained", "plan"), "maintained"),
        (("plan",), "optimized"),
        (("analyze",), "analyze"),
    ):
        if words.accept(*phrase):
            stage = named
            break
    if stage == "analyze":
        raise unsupported("EXPLAIN ANALYZE", words.next.start + 1)
    form = _explain_form(words)
    if form == "json" and stage != "timestamp":
        hint = "EXPLAIN TIMESTAMP … AS JSON exists; plans are text"
        raise unsupported("EXPLAIN of a plan AS JSON", words.last.start + 1, hint=hint)
    words.accept("for")
    if words.sees("view") or words.sees("materialized", "view"):  # one that exists, whose query is meant
        kind = object_kind(words)
        # Of a view that is maintained, people want to know how it is.
        stage = stage or ("maintained" if kind is MaterializedView else "optimized")
        return nodes.Explain(stage, nodes.ShowCreate(kind, words.path()), form)
    return nodes.Explain(stage or "optimized", _statement(words), form)


def _explain_form(words: Words) -> str:
    """TEXT or JSON, as `EXPLAIN (FORMAT json) …`, `EXPLAIN … AS JSON FOR …` or neither of them says."""
    form = "text"
    if words.next.is_symbol("("):  # EXPLAIN (options) or EXPLAIN (query): a query begins with a known word
        inner = words.ahead(1)
        if not (inner.is_symbol("(") or inner.is_word(*_QUERIES)):

            def value(name: str, position: int) -> str:
                text = option_value(words)
                # An option that is off asks for nothing, and plans are VERBOSE always.
                if name != "format" and boolean(text or "true", name) and name != "verbose":
                    raise unsupported(f"EXPLAIN ({name.upper()})", position, hint="FORMAT exists")
                return text

            form = listed_options(words, lambda: words.take().value, value).get("format", form).lower()
    if words.sees("with") and words.ahead(1).is_symbol("("):
        refuse_options(with_options(words), "EXPLAIN")
    if words.accept("as"):
        form = words.name()
    if form not in ("text", "json"):
        raise words.error("expected TEXT or JSON", words.last)
    return form


def _copy(words: Words) -> Statement:
    table: Path | None = None
    columns: tuple[str, ...] = ()
    source: Statement | None = None
    if words.accept_symbol("("):
        inner = words.until(lambda: False)
        words.expect_symbol(")")
        source = parse(inner)
    else:
        position, table = words.next.start + 1, words.path()
        columns = words.names() if words.next.is_symbol("(") else ()
    into = words.one_of("from", "to") == "from"
    if not into and table is not None:
        source = nodes.Query(nodes.Named(table, position, columns))
    if not words.accept("stdin" if into else "stdout"):
        what = "STDIN" if into else "STDOUT"
        raise unsupported("COPY with files of the server", words.next.start + 1, hint=f"use {what}")
    if into and source is not None:
        raise words.error("rows cannot be copied into a query")
    return nodes.Copy(into, table, columns, source, _copy_options(words))


def _copy_options(words: Words) -> dict[str, str]:
    words.accept("with")
    if words.next.is_symbol("("):

        def value(name: str, position: int) -> str:
            if words.next.is_symbol("("):
                return ",".join(words.names())
            return "*" if words.accept_symbol("*") else option_value(words)

        return listed_options(words, lambda: words.take().value, value)
    older: dict[str, str] = {}
    while not words.done:  # the syntax before 9.0
        if words.accept("csv"):
            older["format"] = "csv"
        elif words.accept("binary"):
            older["format"] = "binary"
        elif words.accept("header"):
            older["header"] = "true"
        else:
            name = words.one_of("delimiter", "null", "quote", "escape")
            words.accept("as")
            older[name] = words.string()
    return older


def _declare(words: Words) -> Statement:
    name = words.name()
    while words.next.is_word("binary", "insensitive", "asensitive", "no", "scroll"):
        if words.next.is_word("binary"):
            hint = "ask for binary results in the driver, or use COPY … (FORMAT binary)"
            raise unsupported("a BINARY cursor", words.next.start + 1, hint=hint)
        words.take()
    words.expect("cursor")
    words.accept("without", "hold")
    if words.accept("with", "hold"):
        raise unsupported("a cursor WITH HOLD", words.next.start + 1)
    words.expect("for")
    return nodes.Declare(name, _statement(words))


def _fetch(words: Words, *, move: bool = False) -> Statement:
    count: int | None = 1
    words.accept("forward") or words.accept("next")
    if words.accept("all"):
        count = None
    elif words.next.kind == "number":
        count = words.integer()
    elif words.next.is_word("backward", "prior", "first", "last", "absolute", "relative"):
        raise unsupported(f"FETCH {words.next.value.upper()}", words.next.start + 1, hint="cursors only move forward")
    words.accept("from") or words.accept("in")
    cursor = words.name()
    options = with_options(words)
    if set(options) - {"timeout"}:
        raise SqlError("22023", "unknown option of FETCH", hint="TIMEOUT exists")
    return nodes.Fetch(cursor, count, options.get("timeout"), move=move)


def _unlisten(words: Words) -> Statement:
    words.accept_symbol("*") or words.name()
    return nodes.Unlisten()


def _prepare(words: Words) -> Statement:
    name = words.name()
    types = words.expressions() if words.next.is_symbol("(") else ()
    words.expect("as")
    return nodes.PrepareStatement(name, types, words.rest())


def _deallocate(words: Words) -> Statement:
    words.accept("prepare")
    return nodes.Deallocate(None if words.accept("all") else words.name())


def _refused(what: str, hint: str | None = None) -> Callable[[Words], Statement]:
    def parser(words: Words) -> Statement:
        raise unsupported(what, words.first.start + 1, hint=hint)

    return parser


_PARSERS: dict[str, Callable[[Words], Statement]] = {
    "create": parse_create,
    "drop": parse_drop,
    "alter": parse_alter,
    "comment": parse_comment,
    "validate": parse_validate,
    "truncate": _truncate,
    "subscribe": parse_subscribe,
    "tail": parse_subscribe,
    "begin": _begin,
    "start": _start,
    "commit": _end(True),
    "end": _end(True),
    "rollback": _end(False),
    "abort": _end(False),
    "set": _set,
    "reset": _reset,
    "show": _show,
    "explain": _explain,
    "copy": _copy,
    "declare": _declare,
    "fetch": _fetch,
    "move": lambda words: _fetch(words, move=True),
    "close": lambda words: nodes.CloseCursor(None if words.accept("all") else words.name()),
    "discard": lambda words: nodes.Discard(words.one_of("all", "plans", "sequences", "temp", "temporary")),
    "prepare": _prepare,
    "execute": lambda words: nodes.Execute(words.name(), words.expressions() if words.next.is_symbol("(") else ()),
    "deallocate": _deallocate,
    "savepoint": lambda words: nodes.SetSavepoint(words.name()),
    "release": _savepoint(nodes.ReleaseSavepoint),
    "lock": _refused("LOCK", "transactions are strictly serializable without locks"),
    "grant": _refused("GRANT"),
    "revoke": _refused("REVOKE"),
    "unlisten": _unlisten,
    "listen": _refused("LISTEN", "use SUBSCRIBE"),
    "notify": _refused("NOTIFY"),
    "merge": _refused("MERGE"),
    "call": _refused("CALL"),
    "do": _refused("DO"),
    "vacuum": _refused("VACUUM", "storage compacts itself"),
    "analyze": _refused("ANALYZE", "there are no statistics to gather"),
    "refresh": _refused("REFRESH MATERIALIZED VIEW", "materialized views are always up to date"),
}
