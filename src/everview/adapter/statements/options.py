"""WITH (…) options, types of objects and the other phrases that several statements share."""

from __future__ import annotations

from everview.adapter.statements.nodes import AsOf, ObjectKind
from everview.adapter.statements.words import Words
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError, unsupported

_KINDS: dict[str, ObjectKind] = {
    "table": "table",
    "view": "view",
    "index": "index",
    "source": "source",
    "sink": "sink",
    "schema": "schema",
    "database": "database",
    "role": "role",
    "user": "role",
    "column": "column",
    "cluster": "cluster",
}


def object_kind(words: Words) -> ObjectKind:
    """The kind of object that a statement is about."""
    if words.accept("materialized", "view"):
        return "materialized view"
    token = words.next
    if token.kind != "word" or token.value not in _KINDS:
        raise words.error("expected the kind of an object")
    words.take()
    return _KINDS[token.value]


def with_options(words: Words) -> dict[str, str]:
    """`WITH (name [words] [=] value, ...)`, if it stands there: names in lower case, without a value the empty text."""
    return _options(words) if words.accept("with") else {}


def _options(words: Words) -> dict[str, str]:
    found: dict[str, str] = {}

    def option() -> None:
        parts = [_option_word(words)]
        while words.next.kind == "word" and not words.next.is_word("for"):
            if words.ahead(1).is_symbol(",") or words.ahead(1).is_symbol(")"):
                break  # the last bare word is the value
            parts.append(words.take().value)
        words.accept_symbol("=")
        words.accept("for")
        name = " ".join(parts)
        if name in found:
            raise SqlError(SYNTAX_ERROR, f"option {name.upper()} specified more than once")
        found[name] = option_value(words)

    words.listed(option)
    return found


def _option_word(words: Words) -> str:
    if words.next.kind not in ("word", "quoted"):
        raise words.error("expected the name of an option")
    return words.take().value


def option_value(words: Words) -> str:
    """The value of an option: a word, a string or a number; empty if there is none."""
    token = words.next
    if token.kind in ("word", "string", "number", "quoted"):
        return words.take().value
    if token.is_symbol("-"):
        return str(words.integer())
    return ""


def as_of(words: Words) -> AsOf | None:
    """`AS OF [AT LEAST] expression`, if it stands there."""
    if not words.accept("as", "of"):
        return None
    at_least = words.accept("at", "least")
    expression = words.until(lambda: words.sees("up", "to") or words.sees("with"))
    if not expression.strip():
        raise words.error("expected a time")
    return AsOf(expression, at_least)


def isolation(words: Words) -> tuple[str | None, bool | None]:
    """The modes of a transaction: its isolation level, and whether it only reads."""
    level: str | None = None
    read_only: bool | None = None
    while not words.done:
        if words.accept("isolation", "level"):
            level = _level(words)
        elif words.accept("read", "only"):
            read_only = True
        elif words.accept("read", "write"):
            read_only = False
        elif words.accept("not", "deferrable") or words.accept("deferrable"):
            pass
        elif not words.accept_symbol(","):
            raise words.error("expected a mode of transactions")
    return level, read_only


def _level(words: Words) -> str:
    for phrase in (("strict", "serializable"), ("serializable",)):
        if words.accept(*phrase):
            return " ".join(phrase)
    for phrase in (("repeatable", "read"), ("read", "committed"), ("read", "uncommitted"), ("snapshot",)):
        if words.accept(*phrase):
            return "serializable"  # what these ask for, and more
    raise words.error("expected an isolation level")


def skip_cluster(words: Words) -> None:
    """`IN CLUSTER name`: there is one cluster, whatever it is called."""
    if words.accept("in", "cluster"):
        words.name()


def refuse_temporary(words: Words) -> None:
    """Objects of one session only are not supported."""
    if words.next.is_word("temp", "temporary"):
        raise unsupported("a temporary object", words.next.start + 1)
