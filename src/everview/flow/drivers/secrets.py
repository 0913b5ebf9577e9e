"""What is secret in an endpoint's settings, and texts without it: exactly that, and nothing else.

Of an address it is the password, of a JSON object the values whose names say so, of anything else all of it.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

HIDDEN = "***"
_SHORT = 4  # characters; less is a part of many words, and hidden only where it stands alone
_LINE = 8  # characters of a line that tells something of a secret of several
_DEPTH_MAX = 20
_NAMES = re.compile(
    r"(?i)password|passwd|secret|token|credential|access_?key|account_?key|api_?key|signature|\bsig\b|sas"
)
_DSN = re.compile(r"(?i)(?:^|\s)[\w.]*(?:password|secret|token)\w*\s*=\s*('(?:[^'\\]|\\.)*'|\S+)")


def hidden(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets, in any form in which they may turn up."""
    forms = {form for each in secrets for part in _parts(each) for form in _forms(part)}
    for secret in sorted(forms, key=len, reverse=True):
        if len(secret) >= _SHORT:
            text = text.replace(secret, HIDDEN)
        else:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
    return text


def secrets_of(value: str) -> set[str]:
    """The secrets in the text of a setting that may hold some."""
    if "://" in value:
        return set(_of_address(value))
    if found := [each.strip("'") for each in _DSN.findall(value)]:
        return set(found)
    try:
        given = json.loads(value)
    except ValueError:
        given = None
    return set(secrets_in(given)) if isinstance(given, Mapping) else {value}


def secrets_in(given: Mapping[str, Any]) -> Iterator[str]:
    """The values of an object, of any depth, whose names say that they are secret."""
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from secrets_in(value)
        elif _NAMES.search(name) and isinstance(value, str | int | float) and not isinstance(value, bool):
            yield str(value)


def _of_address(address: str) -> Iterator[str]:
    authority, _, _ = address.partition("://")[2].partition("?")
    login = authority.rpartition("@")[0]  # a password may hold what ends it elsewhere
    if ":" in login:
        yield login.partition(":")[2]
        yield urllib.parse.unquote(login.partition(":")[2])
    for name, value in urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query):
        if _NAMES.search(name):
            yield value


def _parts(secret: str, depth: int = 0) -> Iterator[str]:
    """A secret with its lines, and with the texts in it if it is JSON: a service account's key is both."""
    secret = secret.strip() or secret
    if not secret:
        return
    yield secret
    lines = [line.strip() for line in secret.splitlines()]
    yield from (line for line in lines if len(lines) > 1 and len(line) >= _LINE)
    if secret[0] in '{["' and depth < _DEPTH_MAX:
        try:
            said = json.loads(secret)
        except ValueError:
            return
        yield from _parts_in(said, depth)


def _parts_in(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping | list) and depth < _DEPTH_MAX:
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _parts_in(each, depth + 1)
    elif isinstance(value, str):
        yield from _parts(value, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool) and len(str(value)) >= _SHORT:
        yield str(value)


def _forms(secret: str) -> Iterator[str]:
    """A secret as it may turn up: plain, in JSON, and in an address."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield urllib.parse.quote(secret, safe="")
    yield urllib.parse.quote_plus(secret)
