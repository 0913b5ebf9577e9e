"""CREATE CONNECTION … TO KAFKA."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from everview.cdc.errors import TransportFailed
from everview.errors import EverviewError
from everview.reach.addresses import check_kafka
from everview.reach.connections import ConnectionKind, ConnectionOption, FileOf, Settings

CONNECT_S = 20.0
_PROPERTIES = {
    "security protocol": "security.protocol",
    "sasl mechanisms": "sasl.mechanisms",
    "sasl username": "sasl.username",
    "sasl password": "sasl.password",
    "ssl certificate authority": "ssl.ca.pem",
    "ssl certificate": "ssl.certificate.pem",
    "ssl key": "ssl.key.pem",
}


class KafkaConnection(ConnectionKind):
    """The brokers of a cluster, and who asks."""

    name = "kafka"
    options: ClassVar = {
        "brokers": ConnectionOption(required=True),
        "security protocol": ConnectionOption(choices=("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")),
        "sasl mechanisms": ConnectionOption(choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
        "sasl username": ConnectionOption(),
        "sasl password": ConnectionOption(secret=True),
        "ssl certificate authority": ConnectionOption(),
        "ssl certificate": ConnectionOption(),
        "ssl key": ConnectionOption(secret=True),
    }
    sink_settings = frozenset(("brokers", "properties"))

    def for_sink(self, settings: Settings, file_of: FileOf) -> dict[str, str]:
        return {"brokers": settings["brokers"], "properties": json.dumps(_properties(settings))}

    def check(self, settings: Settings, file_of: FileOf) -> list[EverviewError]:
        try:
            from confluent_kafka import KafkaException
            from confluent_kafka.admin import AdminClient
        except ImportError:
            raise EverviewError("confluent-kafka is not installed", hint="pip install everview[kafka]") from None
        said: list[str] = []
        properties: dict[str, Any] = {"bootstrap.servers": settings["brokers"], **_properties(settings)}
        check_kafka(properties)
        properties["error_cb"] = lambda error: said.append(error.str())
        client = None
        try:
            client = AdminClient(properties)
            client.list_topics(timeout=CONNECT_S)
        except KafkaException as error:
            if client is not None:
                client.poll(0)  # the reason, as of the password or the certificate, is told to `error_cb` alone
            detail = "; ".join(dict.fromkeys([error.args[0].str(), *said]))[:500]
            raise TransportFailed("cannot connect to Kafka", detail=detail) from None
        return []


def _properties(settings: Settings) -> dict[str, str]:
    return {ours: settings[name] for name, ours in _PROPERTIES.items() if name in settings}
