"""CREATE and ALTER of secrets and connections, and VALIDATE CONNECTION."""

from __future__ import annotations

from everview.adapter.catalog.items import ENVIRONMENT, FILE, SEALED
from everview.adapter.statements import nodes
from everview.adapter.statements.nodes import Statement
from everview.adapter.statements.options import boolean, option_value, refuse_options, with_options
from everview.adapter.statements.words import Path, Words, if_not_exists
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError


def parse_secret(words: Words) -> Statement:
    """After CREATE SECRET."""
    unless = if_not_exists(words)
    path = words.path()
    return nodes.CreateSecret(path, *_value(words), unless)


def _value(words: Words) -> tuple[str, str]:
    """`AS 'text'`, `FROM FILE 'path'` or `FROM ENVIRONMENT 'name'`."""
    if words.accept("as"):
        return SEALED, words.string()
    words.expect("from")
    if words.one_of("file", "environment") == "file":
        return FILE, words.string()
    return ENVIRONMENT, words.string()


def parse_connection(words: Words) -> Statement:
    """After CREATE CONNECTION."""
    unless = if_not_exists(words)
    path = words.path()
    words.expect("to")
    to = words.name()
    options, secrets, validate = _settings(words)
    return nodes.CreateConnection(path, to, options, secrets, unless, validate)


def _settings(words: Words) -> tuple[dict[str, str], dict[str, Path], bool]:
    """Options in parentheses: their values, the names of secrets that are values, and WITH (VALIDATE)."""
    options: dict[str, str] = {}
    secrets: dict[str, Path] = {}

    def option() -> None:
        name = _option_name(words)
        if name in options or name in secrets:
            raise SqlError(SYNTAX_ERROR, f"option {name.upper()} specified more than once")
        if words.accept("secret"):
            secrets[name] = words.path()
        else:
            words.accept_symbol("=")
            position = words.next.start + 1
            options[name] = option_value(words)
            if not options[name]:
                raise SqlError(SYNTAX_ERROR, f"option {name.upper()} needs a value", position=position)

    words.listed(option)
    given = with_options(words)
    validate = boolean(given.pop("validate") or "true", "validate") if "validate" in given else True
    refuse_options(given, "a connection")
    return options, secrets, validate


def _option_name(words: Words, *, alone: bool = False) -> str:
    """The words of a name, which stands alone or before a value."""
    parts: list[str] = []
    while words.next.kind == "word" and (alone or not words.sees("secret")):
        if parts and not alone and (words.ahead(1).is_symbol(",") or words.ahead(1).is_symbol(")")):
            break  # the last bare word is the value
        parts.append(words.take().value)
    if not parts:
        raise words.error("expected the name of an option")
    return " ".join(parts)


def parse_alter_secret(words: Words, path: Path, *, if_exists: bool) -> Statement | None:
    """ALTER SECRET name AS or FROM. None for what other objects have as well."""
    if words.sees("as") or words.sees("from"):
        return nodes.AlterSecret(path, *_value(words), if_exists)
    return None


def parse_alter_connection(words: Words, path: Path, *, if_exists: bool) -> Statement | None:
    """ALTER CONNECTION name SET (…) and RESET (…). None for what other objects have as well."""
    if words.accept("set"):
        options, secrets, validate = _settings(words)
        return nodes.AlterConnection(path, options, secrets, (), if_exists, validate)
    if words.accept("reset"):
        names: list[str] = []
        words.listed(lambda: names.append(_option_name(words, alone=True)))
        return nodes.AlterConnection(path, {}, {}, tuple(names), if_exists)
    return None


def parse_validate(words: Words) -> Statement:
    """After VALIDATE."""
    words.expect("connection")
    return nodes.ValidateConnection(words.path())
