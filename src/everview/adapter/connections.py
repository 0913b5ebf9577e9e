"""Connections and secrets: which options each kind of connection has, and what they come to when they are used.

A secret is opened when somebody connects, and not before: whoever connects next has what ALTER has said. The contents
of certificates are written to files in a folder of this process that nobody else can read, since libraries take files.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everview.adapter.catalog.items import ENVIRONMENT, FILE, SEALED, Connection, Item, Secret
from everview.adapter.catalog.specs import DriverSink
from everview.adapter.catalog.state import Catalog
from everview.adapter.errors import INVALID_PARAMETER_VALUE, WRONG_OBJECT_TYPE
from everview.adapter.sealing import KEY_VARIABLE, Sealer, SecretUnavailable
from everview.compute.sql.errors import SqlError, did_you_mean, unsupported
from everview.errors import EverviewError
from everview.reach.addresses import check_kafka
from everview.reach.files import check_opened
from everview.sources.postgres import connecting
from everview.sources.postgres.errors import UpstreamFailed
from everview.storage.contract import GlobalId

SECRET_BYTES_MAX = 64 << 10
KAFKA_S = 20.0


@dataclass(frozen=True, slots=True)
class ConnectionOption:
    """An option of a connection: what it may be, and whether it has to come from a secret."""

    required: bool = False
    secret: bool = False
    choices: tuple[str, ...] = ()
    number: bool = False


CONNECTIONS: Mapping[str, Mapping[str, ConnectionOption]] = {
    "postgres": {
        "host": ConnectionOption(required=True),
        "port": ConnectionOption(number=True),
        "database": ConnectionOption(required=True),
        "user": ConnectionOption(required=True),
        "password": ConnectionOption(secret=True),
        "ssl mode": ConnectionOption(choices=connecting.SSL_MODES),
        "ssl certificate authority": ConnectionOption(),
        "ssl certificate": ConnectionOption(),
        "ssl key": ConnectionOption(secret=True),
    },
    "kafka": {
        "brokers": ConnectionOption(required=True),
        "security protocol": ConnectionOption(choices=("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")),
        "sasl mechanisms": ConnectionOption(choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
        "sasl username": ConnectionOption(),
        "sasl password": ConnectionOption(secret=True),
        "ssl certificate authority": ConnectionOption(),
        "ssl certificate": ConnectionOption(),
        "ssl key": ConnectionOption(secret=True),
    },
}
CONNECTED_SETTINGS = frozenset(("connection", "brokers", "properties"))  # of sinks, which a connection gives
_KAFKA = {
    "security protocol": "security.protocol",
    "sasl mechanisms": "sasl.mechanisms",
    "sasl username": "sasl.username",
    "sasl password": "sasl.password",
    "ssl certificate authority": "ssl.ca.pem",
    "ssl certificate": "ssl.certificate.pem",
    "ssl key": "ssl.key.pem",
}


def check_options(to: str, options: Mapping[str, str], secrets: Mapping[str, GlobalId]) -> None:
    """Raise unless a connection of this kind can have these options."""
    known = options_to(to)
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


def options_to(to: str) -> Mapping[str, ConnectionOption]:
    """The options of connections to a kind of system."""
    if to not in CONNECTIONS:
        hint = f"connections to {' and '.join(each.upper() for each in CONNECTIONS)} exist"
        raise unsupported(f"a connection to {to.upper()}", hint=hint)
    return CONNECTIONS[to]


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

    def conninfo(self, connection: Connection) -> str:
        """A connection to PostgreSQL as libpq wants it."""
        return connecting.conninfo(self.settings(connection), self._file)

    def named(self, id: GlobalId) -> Connection:
        """A connection that exists."""
        found = self._catalog().items[id]
        assert isinstance(found, Connection)
        return found

    def conninfo_of(self, id: GlobalId) -> str:
        """The present way to a PostgreSQL server."""
        return self.conninfo(self.named(id))

    def sink_settings(self, connection: Connection) -> dict[str, Any]:
        """The settings of a sink's driver that a connection gives."""
        if connection.to == "postgres":
            return {"connection": self.conninfo(connection)}
        settings = self.settings(connection)
        return {"brokers": settings["brokers"], "properties": json.dumps(_kafka_properties(settings))}

    def config_of(self, spec: DriverSink) -> dict[str, Any]:
        """All settings of a sink's driver."""
        if spec.connection is None:
            return dict(spec.config)
        return {**self.sink_settings(self.named(spec.connection)), **spec.config}

    def validate(self, connection: Connection) -> list[EverviewError]:
        """Connect; raises if that fails. Gives what else a source would need."""
        if connection.to == "kafka":
            _look_at_kafka(self.settings(connection))
            return []
        with connecting.connect(self.conninfo(connection), "everview validates") as db:
            return list(connecting.readiness(db))

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


def _kafka_properties(settings: Mapping[str, str]) -> dict[str, str]:
    return {ours: settings[name] for name, ours in _KAFKA.items() if name in settings}


def _look_at_kafka(settings: Mapping[str, str]) -> None:
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        raise EverviewError("confluent-kafka is not installed", hint="pip install everview[kafka]") from None
    said: list[str] = []
    properties: dict[str, Any] = {"bootstrap.servers": settings["brokers"], **_kafka_properties(settings)}
    check_kafka(properties)
    properties["error_cb"] = lambda error: said.append(error.str())
    try:
        client = AdminClient(properties)
        client.list_topics(timeout=KAFKA_S)
    except KafkaException as error:
        detail = "; ".join(dict.fromkeys([error.args[0].str(), *said]))[:500]
        raise UpstreamFailed("cannot connect to Kafka", detail=detail) from None
