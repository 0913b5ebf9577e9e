"""Connections to Kafka: tried when they are made, used by sinks, and with the secrets that they name."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from everview.adapter.catalog.items import Connection, Sink
from everview.adapter.catalog.specs import DriverSink
from everview.adapter.coordinator import Coordinator
from everview.cdc.kafka_connection import KafkaConnection
from everview.errors import EverviewError
from tests.adapter.delivery import delivered, ok
from tests.adapter.scripts import SessionClient
from tests.adapter.test_cdc_sources import brokers  # noqa: F401 (a fixture)
from tests.waiting import eventually

HUSH = "hush-hush-4711"


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def refusal(sql: SessionClient, statement: str) -> EverviewError:
    with pytest.raises(EverviewError) as failed:
        sql.session.run(sql.session.prepare(statement))
    sql.session.fail()
    sql.session.sync()
    return failed.value


def settings(coordinator: Coordinator, name: str = "k") -> dict[str, object]:
    """What a sink by a connection is given."""
    (found,) = [each for each in coordinator.catalog.state.of(Connection) if each.name == name]
    given = KafkaConnection().for_sink(coordinator.connections.settings(found), str)
    return {"brokers": given["brokers"], **json.loads(given["properties"])}


def records(address: str, topic: str) -> list[dict[str, object]]:
    """The values in a topic."""
    reader = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": str(uuid.uuid4()), "enable.auto.commit": False}
    )
    try:
        partitions = reader.list_topics(topic, timeout=30).topics[topic].partitions
        reader.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
        found = [each for each in reader.consume(100, 5.0) if each.error() is None]
        return [json.loads(value) for each in found if (value := each.value())]
    finally:
        reader.close()


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    with Coordinator.open(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def sql(coordinator: Coordinator) -> SessionClient:
    return SessionClient(coordinator)


def test_a_sink_delivers_by_a_connection(
    coordinator: Coordinator,
    sql: SessionClient,
    brokers: str,  # noqa: F811
) -> None:
    topic = f"t-{uuid.uuid4()}"
    ok(sql, f"CREATE CONNECTION k TO KAFKA (BROKERS '{brokers}')", "VALIDATE CONNECTION k")
    ok(sql, "CREATE TABLE t (a int, b text)", "INSERT INTO t VALUES (1, 'x')")
    into = f"KAFKA CONNECTION k (TOPIC '{topic}', CREATE_TOPICS false, PROGRESS_TOPIC '{topic}-progress')"
    producer = confluent_kafka.Producer({"bootstrap.servers": brokers})
    for name in (topic, f"{topic}-progress"):  # this broker makes topics that a producer asks for
        producer.list_topics(name, timeout=30)
    ok(sql, f"CREATE SINK s FROM t INTO {into} KEY (a) DELTA UPDATES")
    (item,) = coordinator.catalog.state.of(Sink)
    assert isinstance(item.spec, DriverSink)
    assert coordinator.connections.config_of(item.spec)["brokers"] == brokers and "brokers" not in item.spec.config
    delivered(coordinator, "s")
    assert "INTO KAFKA CONNECTION everview.public.k" in "\n".join(ok(sql, "SHOW CREATE SINK s"))
    eventually(lambda: [each for each in records(brokers, topic) if each.get("a") == 1])
    assert sql("ALTER SINK s SET (BROKERS 'x')")[0].startswith("! 22023")
    assert sql("DROP CONNECTION k")[0].startswith("! 2BP01")
    ok(sql, "DROP CONNECTION k CASCADE")
    assert ok(sql, "SHOW SINKS") == ["name|comment"]


def test_a_broker_that_does_not_answer_is_said(sql: SessionClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.cdc.kafka_connection.CONNECT_S", 1.0)
    error = refusal(sql, "CREATE CONNECTION k TO KAFKA (BROKERS '127.0.0.1:1')")
    assert error.message == "cannot connect to Kafka" and "127.0.0.1:1" in str(error.detail)
    ok(sql, "CREATE CONNECTION k TO KAFKA (BROKERS '127.0.0.1:1') WITH (VALIDATE = false)")
    assert refusal(sql, "VALIDATE CONNECTION k").message == "cannot connect to Kafka"
    assert sql("VALIDATE CONNECTION k")[0].startswith("! 08006")


def test_what_a_connection_says_reaches_the_client(
    coordinator: Coordinator, sql: SessionClient, tmp_path: Path
) -> None:
    ok(sql, f"CREATE SECRET pw AS '{HUSH}'", "CREATE SECRET pem AS '-----BEGIN PRIVATE KEY-----hush'")
    options = (
        "SECURITY PROTOCOL 'sasl_ssl', SASL MECHANISMS 'SCRAM-SHA-512', SASL USERNAME 'u', SASL PASSWORD SECRET pw"
    )
    tls = "SSL CERTIFICATE AUTHORITY 'ca', SSL CERTIFICATE 'own', SSL KEY SECRET pem"
    ok(sql, f"CREATE CONNECTION k TO KAFKA (BROKERS 'h:1,i:2', {options}, {tls}) WITH (VALIDATE = false)")
    assert settings(coordinator) == {
        "brokers": "h:1,i:2",
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": HUSH,
        "ssl.ca.pem": "ca",
        "ssl.certificate.pem": "own",
        "ssl.key.pem": "-----BEGIN PRIVATE KEY-----hush",
    }
    ok(sql, "ALTER SECRET pw AS 'another'")
    assert settings(coordinator)["sasl.password"] == "another"
    assert HUSH not in "\n".join(
        [*ok(sql, "SHOW CREATE CONNECTION k"), *ok(sql, "SELECT * FROM mz_catalog.mz_connections")]
    )
    assert HUSH.encode() not in all_bytes(tmp_path / "data")
    wrong = {
        "SECURITY PROTOCOL 'tls'": "plaintext, ssl, sasl_plaintext, sasl_ssl",
        "SASL MECHANISMS 'GSSAPI'": "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        "SASL PASSWORD 'clear'": "SASL PASSWORD SECRET s",
        "BROKER 'h'": "did you mean brokers?",
    }
    for option, hint in wrong.items():
        error = refusal(sql, f"CREATE CONNECTION l TO KAFKA (BROKERS 'h:1', {option}) WITH (VALIDATE = false)")
        assert hint in str(error.hint), (option, error.hint)
    assert "needs BROKERS" in refusal(sql, "CREATE CONNECTION l TO KAFKA (SASL USERNAME 'u')").message
    lead = "CREATE SOURCE p FROM POSTGRES CONNECTION k (PUBLICATION 'p') FOR ALL TABLES"
    assert "does not lead to POSTGRES" in refusal(sql, lead).message
