"""Connections and secrets, and what they come to when they are used.

A secret is opened when somebody connects, and not before: whoever connects next has what ALTER has said. The contents
of certificates are written to files in a folder of this process that nobody else can read, since libraries take files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from everview.adapter.catalog.items import ENVIRONMENT, FILE, SEALED, Connection, Item, Secret
from everview.adapter.catalog.specs import DriverSink
from everview.adapter.catalog.state import Catalog
from everview.adapter.connection_kinds import CONNECTIONS, connection_kind
from everview.adapter.errors import INVALID_PARAMETER_VALUE, WRONG_OBJECT_TYPE
from everview.adapter.sealing import KEY_VARIABLE, Sealer, SecretUnavailable
from everview.compute.sql.errors import SqlError, did_you_mean
from everview.errors import EverviewError
from everview.reach.files import check_opened
from everview.storage.contract import GlobalId

SECRET_BYTES_MAX = 64 << 10


def check_options(to: str, options: Mapping[str, str], secrets: Mapping[str, GlobalId]) -> None:
    """Raise unless a connection of this kind can have these options."""
    known = connection_kind(to).options
    for name in (*options, *secrets):
        if name not in known:
            close = did_you_mean(name, known)
            message = f"a connection to {to.upper()} has no option {name.upper()}"
            hint = close or f"{', '.join(each.upper() for each in known)} can be given"
            raise SqlError(INVALID_PARAMETER_VALUE, message, hint=hint)
    for name, option in known.items():
        if option.required and not options.get(name):
            raise SqlError(INVALID_PARAMETER_VALUE, f"a connection to {to.upper()} needs {name.upper()}")
        if option.secret and name in options:
            hint = f"CREATE SECRET s AS '…', and {name.upper()} SECRET s"
            raise SqlError(INVALID_PARAMETER_VALUE, f"{name.upper()} takes a secret, not a text", hint=hint)
        given = options.get(name)
        if given is None:
            continue
        if option.choices and given not in option.choices:
            message = f'invalid value for {name.upper()}: "{given}"'
            raise SqlError(INVALID_PARAMETER_VALUE, message, hint=f"one of {', '.join(option.choices)}")
        if option.number and not (given.isascii() and given.isdigit() and 0 < int(given) < 65_536):
            message = f'invalid value for {name.upper()}: "{given}"'
            raise SqlError(INVALID_PARAMETER_VALUE, message, hint="a number from 1 to 65535")


class Connections:
    """The connections and secrets of one environment, as those who connect need them."""

    def __init__(self, sealer: Sealer, catalog: Callable[[], Catalog]) -> None:
        self.sealer, self._catalog = sealer, catalog
        self._lock = threading.Lock()
        self._folder: Path | None = None

    def close(self) -> None:
        """Remove what was written to files."""
        with self._lock:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def text(self, secret: Secret) -> str:
        """What a secret is."""
        if secret.origin == SEALED:
            return self.sealer.unseal(secret.value, secret.id)
        if secret.origin == ENVIRONMENT:
            if secret.value == KEY_VARIABLE or secret.value not in os.environ:
                message = f'secret "{secret.name}" has no value'
                raise SecretUnavailable(message, detail=f"the server's variable {secret.value} is not set")
            return _checked(secret.name, os.environ[secret.value])
        assert secret.origin == FILE
        try:
            with open(secret.value, "rb") as file:
                if secret.confined:
                    check_opened(file.fileno(), secret.value)
                data = file.read(SECRET_BYTES_MAX + 1)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SecretUnavailable(f'secret "{secret.name}" cannot be read: {secret.value}: {reason}') from None
        try:
            return _checked(secret.name, data.decode().rstrip("\r\n"))
        except UnicodeDecodeError:
            raise SecretUnavailable(f'secret "{secret.name}" is not a text', detail=secret.value) from None

    def settings(self, connection: Connection) -> dict[str, str]:
        """The options of a connection, with the texts of its secrets."""
        items, found = self._catalog().items, dict(connection.options)
        for name, id in connection.secrets.items():
            secret = items[id]
            assert isinstance(secret, Secret)
            found[name] = self.text(secret)
        return found

    def for_source(self, connection: Connection) -> str:
        """How a source connects now."""
        return CONNECTIONS[connection.to].for_source(self.settings(connection), self._file)

    def named(self, id: GlobalId) -> Connection:
        """A connection that exists."""
        found = self._catalog().items[id]
        assert isinstance(found, Connection)
        return found

    def config_of(self, spec: DriverSink) -> dict[str, Any]:
        """All settings of a sink's driver."""
        if spec.connection is None:
            return dict(spec.config)
        connection = self.named(spec.connection)
        given = CONNECTIONS[connection.to].for_sink(self.settings(connection), self._file)
        return {**given, **spec.config}

    def validate(self, connection: Connection) -> list[EverviewError]:
        """Connect; raises if that fails. Gives what else a source would need."""
        return CONNECTIONS[connection.to].check(self.settings(connection), self._file)

    def users(self, item: Item) -> list[Item]:
        """The sources and sinks that connect by what a connection or secret says."""
        return [each for each in self._catalog().closure([item.id]) if not isinstance(each, Secret | Connection)]

    def _file(self, text: str) -> str:
        """A private file with this text."""
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="everview-tls-"))  # for its owner alone
            path = self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.pem"
            if not path.exists():
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(file, "w") as opened:
                    opened.write(text if text.endswith("\n") else f"{text}\n")
            return str(path)


def check_connects(item: Item, to: str) -> Connection:
    """A connection to this kind of system, or an error."""
    if not isinstance(item, Connection):
        raise SqlError(WRONG_OBJECT_TYPE, f'"{item.name}" is not a connection', detail=f"it is a {item.kind}")
    if item.to != to:
        message = f'connection "{item.name}" does not lead to {to.upper()}'
        raise SqlError(WRONG_OBJECT_TYPE, message, detail=f"it leads to {item.to.upper()}")
    return item


def check_secret_text(text: str) -> None:
    """Raise unless a secret can be this text."""
    if len(text.encode()) > SECRET_BYTES_MAX:
        raise SqlError("54000", f"a secret has at most {SECRET_BYTES_MAX} bytes")
    if not text or "\0" in text:
        raise SqlError(INVALID_PARAMETER_VALUE, "a secret cannot be empty, nor hold NUL")


def _checked(name: str, text: str) -> str:
    try:
        check_secret_text(text)
    except SqlError as error:
        raise SecretUnavailable(f'secret "{name}" cannot be used: {error.message}') from None
    return text
