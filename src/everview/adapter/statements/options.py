"""WITH (…) options, types of objects and the other phrases that several statements share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from everview.adapter.catalog import items
from everview.adapter.statements.nodes import AsOf
from everview.adapter.statements.words import Words
from everview.compute.sql.errors import SYNTAX_ERROR, UNDEFINED_OBJECT, SqlError, unsupported

CLUSTER = "default"  # the only one
# What may stand behind the time of a query, and what may not: a query has one time, whatever it reads.
TAIL = ("order", "limit", "offset", "fetch")
AFTER_TIME = (*TAIL, "where", "group", "having", "window", "join", "left", "union", "except", "intersect", "for")
_KINDS: tuple[items.ObjectKind, ...] = (
    *(items.Table, items.View, items.Index, items.Source, items.Sink),
    *(items.Subscription, items.Secret, items.Connection),
    *(items.Schema, items.Database, items.Role, items.ColumnInfo, items.Cluster),
)


def object_kind(words: Words) -> items.ObjectKind:
    if words.accept("materialized", "view"):
        return items.MaterializedView
    if words.accept("user"):
        return items.Role
    for kind in _KINDS:
        if words.accept(kind.noun):
            return kind
    raise words.error("expected the kind of an object")


def with_options(words: Words) -> dict[str, str]:
    """`WITH (name [words] [=] value, ...)`, if it stands there: names in lower case, without a value the empty text."""
    return option_list(words) if words.accept("with") else {}


def option_list(words: Words) -> dict[str, str]:
    ttl_on = ""

    def name() -> str:
        parts = [option_name(words)]
        while words.next.kind == "word" and not words.next.is_word("for"):
            if words.ahead(1).is_symbol(",") or words.ahead(1).is_symbol(")"):
                break  # the last bare word is the value
            parts.append(words.take().value)
        words.accept_symbol("=")
        words.accept("for")
        return " ".join(parts)

    def value(name: str, position: int) -> str:
        nonlocal ttl_on
        text = option_value(words)
        if name == "ttl":  # TTL '7 days' ON column
            words.expect("on")
            ttl_on = words.name()
        return text

    found = listed_options(words, name, value)
    return {**found, "ttl on": ttl_on} if "ttl" in found else found


def listed_options(
    words: Words, name: Callable[[], str], value: Callable[[str, int], str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Options in parentheses: `name` reads a name, then `value` its value, of the name at a position."""
    found = dict(given or {})

    def option() -> None:
        position, key = words.next.start + 1, name()
        if key in found:
            raise SqlError(SYNTAX_ERROR, f"option {key.upper()} specified more than once", position=position)
        found[key] = value(key, position)

    words.listed(option)
    return found


def option_name(words: Words) -> str:
    """Take one word of an option's name."""
    if words.next.kind not in ("word", "quoted"):
        raise words.error("expected the name of an option")
    return words.take().value


def option_value(words: Words) -> str:
    """Take the value of an option: a word, a string or a number. Empty if the option has no value."""
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
    expression = words.until(lambda: words.sees("up", "to") or words.next.is_word("with", *AFTER_TIME))
    if not expression:
        raise words.error("expected a time")
    return AsOf(expression, at_least)


def isolation(words: Words) -> tuple[str | None, bool | None]:
    """The modes of a transaction: its isolation level, and whether it only reads."""
    level: str | None = None
    read_only: bool | None = None
    while not words.done:
        if words.sees("isolation", "level"):
            refuse_repeated(words, "ISOLATION LEVEL", given=level is not None)
            words.accept("isolation", "level")
            level = _level(words)
        elif words.sees("read", "only") or words.sees("read", "write"):
            refuse_repeated(words, "READ ONLY or READ WRITE", given=read_only is not None)
            words.take()
            read_only = words.take().value == "only"
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


def in_cluster(words: Words) -> None:
    """`IN CLUSTER name`, if it stands there. There is one cluster, so the name says nothing new."""
    if words.accept("in", "cluster"):
        position = words.next.start + 1
        check_cluster("default" if words.accept("default") else words.name(), position)


def check_cluster(name: str, position: int | None = None) -> None:
    """Raise unless a cluster of this name exists."""
    if name != CLUSTER:
        hint = f"there is one cluster, and its name is {CLUSTER}"
        raise SqlError(UNDEFINED_OBJECT, f'cluster "{name}" does not exist', hint=hint, position=position)


def boolean(text: str, name: str) -> bool:
    """What an option that is on or off says."""
    if text.lower() in ("true", "on", "yes", "1", "t"):
        return True
    if text.lower() in ("false", "off", "no", "0", "f"):
        return False
    raise SqlError("22023", f'option {name.upper()} requires a boolean value, not "{text}"')


def refuse_repeated(words: Words, clause: str, *, given: bool) -> None:
    """Raise if a clause that was `given` already comes once more."""
    if given:
        raise words.error(f"{clause} specified more than once")


def refuse_options(options: dict[str, str], what: str) -> None:
    """Raise if there are options on an object that takes no options."""
    if options:
        raise SqlError("22023", f"{what} has no option {min(options).upper()}")


def refuse_temporary(words: Words) -> None:
    """Objects of one session only are not supported."""
    if words.next.is_word("temp", "temporary"):
        raise unsupported("a temporary object", words.next.start + 1)
