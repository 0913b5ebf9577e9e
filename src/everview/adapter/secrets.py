"""What is secret in statements and settings, and how they look where anyone may see them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from everview.compute.sql.errors import SqlError
from everview.compute.sql.lexer import tokens
from everview.errors import EverviewError
from everview.flow.drivers.registry import options_of

HIDDEN = "***"
# A password may hold what ends it elsewhere, so both readings of where it ends are hidden.
_IN_ADDRESS = (re.compile(r"(://[^\s/@:]*:)[^\s/]*(@)"), re.compile(r"(://[^\s/@:]*:)[^\s@]*(@)"))
_WORDS = r"password|passwd|secret|token|credential|access_?key|api_?key|signature|\bsig\b"
_SETTING = re.compile(rf"(?i)([\w.-]*(?:{_WORDS})[\w.-]*\s*[=:]\s*)('(?:[^'\\]|\\.)*'|[^\s&;'\",]+)")
_SECRET_NAME = re.compile(rf"(?i){_WORDS}|jaas|\.pem$|\.key$")
_OBJECTS = ("headers", "storage_options", "config")  # JSON objects of which every value may be a secret
_WITH_SECRETS = (
    *(("create", kind) for kind in ("sink", "source", "secret", "connection", "role", "user")),
    *(("alter", kind) for kind in ("sink", "secret", "connection", "role")),
)


def masked(text: str) -> str:
    """A text without the passwords of addresses, nor the values of settings that are secret by their names."""
    return _SETTING.sub(rf"\1{HIDDEN}", without_passwords(text))


def without_passwords(text: str) -> str:
    """A text without the passwords of addresses, for one from which all other secrets are gone."""
    for pattern in _IN_ADDRESS:
        text = pattern.sub(rf"\1{HIDDEN}\2", text)
    return text


@contextmanager
def without_secrets() -> Iterator[None]:
    """Within the block, whatever fails on purpose is told without secrets."""
    try:
        yield
    except EverviewError as error:
        error.message = masked(error.message)
        error.args = (error.message,)
        error.detail = None if error.detail is None else masked(error.detail)
        error.hint = None if error.hint is None else masked(error.hint)
        raise


def shown_arguments(kind: str, arguments: Mapping[str, str]) -> dict[str, str]:
    """What says where a sink or source is, as it may be shown."""
    return {name: _shown(kind, name, value) for name, value in arguments.items()}


def hold_secrets(kind: str, settings: Mapping[str, Any]) -> bool:
    """Whether something in the settings of a sink is not to be shown."""
    secret = {option.name for option in options_of(kind) if option.secret}
    return any(
        bool(value) if name in secret or isinstance(value, dict) else HIDDEN in _shown(kind, name, str(value))
        for name, value in settings.items()
    )


def _shown(kind: str, name: str, value: str) -> str:
    if name in _OBJECTS or name == "properties":
        try:
            given = json.loads(value)
        except ValueError:
            return HIDDEN
        if not isinstance(given, dict):
            return HIDDEN
        every = name in _OBJECTS
        return json.dumps({key: HIDDEN if every or _SECRET_NAME.search(key) else each for key, each in given.items()})
    if any(option.name == name and option.host_only for option in options_of(kind)):
        parts = urlsplit(value)
        host = parts.netloc.rpartition("@")[2]
        return (
            f"{parts.scheme}://{host}/{HIDDEN}" if parts.path.strip("/") or parts.query else f"{parts.scheme}://{host}"
        )
    return masked(value)


def shown_statement(text: str) -> str:
    """A statement as others may see it: without its strings, if it may hold secrets."""
    try:
        found = tokens(text)
    except SqlError:
        return text.split(None, 1)[0] if text.strip() else ""
    if (found[0].value, found[min(1, len(found) - 1)].value) not in _WITH_SECRETS:
        return text
    parts, at = [], 0
    for token in found:
        if token.kind == "string":
            parts += [text[at : token.start], f"'{HIDDEN}'"]
            at = token.end + 1
    return "".join([*parts, text[at:]])
