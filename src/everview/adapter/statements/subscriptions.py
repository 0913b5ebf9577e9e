"""SUBSCRIBE, and CREATE and ALTER SUBSCRIPTION."""

from __future__ import annotations

from dataclasses import replace

from everview.adapter.statements import nodes
from everview.adapter.statements.nodes import Statement
from everview.adapter.statements.options import as_of, boolean, option_list, refuse_repeated, with_options
from everview.adapter.statements.words import Path, Words, if_not_exists
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError

_CLAUSES = ("with", "envelope", "as", "up", "resume")
_OPTIONS = ("snapshot", "progress", "acknowledge")


def parse_create_subscription(words: Words) -> Statement:
    unless = if_not_exists(words)
    path = words.path()
    words.expect("for")
    return nodes.CreateSubscription(path, words.path(), with_options(words), unless)


def parse_alter_subscription(words: Words, path: Path, *, if_exists: bool) -> Statement | None:
    """Parse ALTER SUBSCRIPTION name ACKNOWLEDGE, RESTART or SET. None for what other objects have as well."""
    if words.accept("acknowledge"):
        through = not words.accept("before") and words.accept("through")
        moment = words.rest()
        if not moment:
            raise words.error("expected a time")
        return nodes.AcknowledgeSubscription(path, moment, through)
    if words.accept("restart"):
        return nodes.AlterSubscription(path, "restart", if_exists=if_exists)
    if words.accept("set"):
        return nodes.AlterSubscription(path, "set", option_list(words), if_exists)
    return None


def parse_subscribe(words: Words) -> Statement:
    words.accept("to")
    found, optioned = _subscribed(words), False
    while not words.done and not words.next.is_symbol(")"):
        if words.sees("envelope"):
            refuse_repeated(words, "ENVELOPE", given=found.envelope is not None)
            words.take()
            envelope = words.one_of("upsert", "debezium")
            words.expect_symbol("(")
            words.expect("key")
            key = words.names()
            words.expect_symbol(")")
            found = replace(found, envelope=envelope, key=key)
        elif words.sees("within", "timestamp", "order", "by"):
            refuse_repeated(words, "WITHIN TIMESTAMP ORDER BY", given=found.order is not None)
            words.accept("within", "timestamp", "order", "by")
            order = words.until(lambda: words.next.is_word(*_CLAUSES) or words.next.is_symbol(")"))
            found = replace(found, order=order)
        elif words.sees("with"):
            refuse_repeated(words, "WITH", given=optioned)
            found, optioned = _subscribe_options(found, with_options(words)), True
        elif words.sees("as", "of"):
            refuse_repeated(words, "AS OF", given=found.as_of is not None)
            found = replace(found, as_of=as_of(words))
        elif words.sees("resume"):
            refuse_repeated(words, "RESUME", given=found.resume is not None or bool(found.subscription))
            words.take()
            if words.accept("from"):
                found = replace(found, resume=words.until(lambda: _at_clause(words)))
            else:
                found = replace(found, subscription=words.path())
        elif words.sees("up", "to"):
            refuse_repeated(words, "UP TO", given=found.up_to is not None)
            words.accept("up", "to")
            found = replace(found, up_to=words.until(lambda: _at_clause(words)))
        else:
            raise words.error("expected ENVELOPE, WITHIN TIMESTAMP ORDER BY, WITH, AS OF, RESUME or UP TO")
    if found.envelope and found.order:
        raise SqlError(SYNTAX_ERROR, "ENVELOPE and WITHIN TIMESTAMP ORDER BY cannot be used together")
    if (found.resume is not None or found.subscription) and (found.as_of is not None or not found.snapshot):
        detail = "it begins where the one before ended" + (", and without a snapshot" if found.resume else "")
        what = "RESUME FROM" if found.resume is not None else "RESUME"
        raise SqlError(SYNTAX_ERROR, f"{what} takes no AS OF and no SNAPSHOT", detail=detail)
    return found


def _subscribed(words: Words) -> nodes.Subscribe:
    """Parse the subject of a SUBSCRIBE: a query in parentheses, or a name."""
    if words.accept_symbol("("):
        query = words.until(lambda: False)
        words.expect_symbol(")")
        return nodes.Subscribe(query)
    position = words.next.start + 1
    return nodes.Subscribe(nodes.Named(words.path(), position))


def _at_clause(words: Words) -> bool:
    """Whether a clause of SUBSCRIBE begins here."""
    return words.next.is_word(*_CLAUSES)


def _subscribe_options(found: nodes.Subscribe, options: dict[str, str]) -> nodes.Subscribe:
    for name, value in options.items():
        if name not in _OPTIONS:
            hint = "SNAPSHOT, PROGRESS and ACKNOWLEDGE exist"
            raise SqlError("22023", f"unknown option of SUBSCRIBE: {name.upper()}", hint=hint)
        if name == "snapshot":
            found = replace(found, snapshot=boolean(value or "true", name))
        elif name == "progress":
            found = replace(found, progress=boolean(value or "true", name))
        elif value.lower() in nodes.ACKNOWLEDGED_BY:
            found = replace(found, acknowledge=value.lower())
        else:
            hint = "ACKNOWLEDGE is FETCH, COMMIT or NONE"
            raise SqlError("22023", f'a subscription cannot be acknowledged by "{value}"', hint=hint)
    return found
