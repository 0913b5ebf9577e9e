"""From shard to shard through a topic, over the broker that confluent-kafka brings along for tests."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from everview.cdc import cli
from everview.cdc.codec.contract import codec_for
from everview.cdc.codec.registry import Registry, RegistryCodec
from everview.cdc.contract import MISSING
from everview.cdc.errors import CdcError, InvalidUse, TransportFailed
from everview.cdc.kafka import KafkaInlet, KafkaOutlet, read_topic
from everview.cdc.schema import StreamSchema, message_schema
from everview.cdc.sink import Sink
from everview.cdc.source import Source
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.cdc.registry import schema_registry
from tests.cdc.shards import COLUMNS, Writing, contents, expected

kafka = pytest.importorskip("confluent_kafka")
SCHEMA = StreamSchema(COLUMNS)


@pytest.fixture(scope="module")
def config() -> Iterator[dict[str, Any]]:
    """How to reach a broker that lives as long as the client that brought it."""
    owner = kafka.Producer({"bootstrap.servers": "ignored", "test.mock.num.brokers": 1})
    brokers = owner.list_topics(timeout=10).brokers.values()
    yield {"bootstrap.servers": ",".join(f"{each.host}:{each.port}" for each in brokers)}
    owner.flush(1)


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    made = Writing(tmp_path / "writing")
    yield made
    made.environment.close()


def drain(source: Source, upper: int) -> None:
    for _ in range(100):
        source.poll()
        if source.status.frontier == Antichain(upper):
            return
    raise AssertionError(f"still at {source.status.frontier}")


@pytest.mark.parametrize("suffix", [".jsonl", ".avro"])
def test_through_a_topic_with_restarts_and_two_writers(
    config: dict[str, Any], writing: Writing, tmp_path: Path, suffix: str
) -> None:
    topic, codec = f"t-{uuid.uuid4()}", codec_for(suffix, SCHEMA)
    other = Writing(tmp_path / "other")
    both = [writing, other]
    sinks = [Sink.create(each.environment, "out", each.reader, KafkaOutlet(config, topic, codec)) for each in both]
    with Environment.open(tmp_path / "reading", background=False) as reading:
        writing.advance(2)
        sinks[0].step()
        inlet = KafkaInlet(config, topic, codec)
        source, _ = Source.create(reading, "in", "copy", inlet, SCHEMA)
        for upper in (5, 6, 20):
            for each, sink in zip(both, sinks, strict=True):
                each.advance(upper)
                sink.step()
            drain(source, upper)
            inlet.close()
            inlet = KafkaInlet(config, topic, codec)
            source = Source.resume(reading, "in", inlet, SCHEMA)
        for as_of in range(20):
            assert contents(reading, "copy", as_of) == expected(as_of)
        saved = reading.scan("cdc/spent/in/")
        assert saved, "what was read is not read again"
        inlet.close()
    other.environment.close()


def test_what_cannot_be_decoded_is_reported(config: dict[str, Any], writing: Writing, tmp_path: Path) -> None:
    topic, codec = f"t-{uuid.uuid4()}", codec_for(".jsonl", SCHEMA)
    producer = kafka.Producer(config)
    producer.produce(topic, b"not a message")
    producer.produce(topic, b'{"progress":{"lower":[0],"upper":[5],"counts":[{"time":3,"count":1}]}}')
    producer.flush(10)
    with Environment.open(tmp_path / "reading", background=False) as reading:
        inlet = KafkaInlet(config, topic, codec)
        source, _ = Source.create(reading, "in", "copy", inlet, SCHEMA)
        for _ in range(50):
            source.poll()
            if source.status.bad_records and source.status.stalls:
                break
        assert source.status.bad[0].raw == b"not a message"
        assert [(s.time, s.reason) for s in source.status.stalls] == [(3, MISSING)]
        assert source.status.frontier == Antichain(3)
        inlet.close()


def test_a_topic_that_does_not_answer() -> None:
    nowhere = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    outlet = KafkaOutlet(nowhere, "t", codec_for(".jsonl", SCHEMA), flush_s=0.3)
    from everview.cdc.contract import Progress

    with pytest.raises(TransportFailed, match="cannot be written"):
        outlet.write([Progress(Antichain(0), Antichain(1))])


@pytest.mark.parametrize("form", ["json", "avro"])
def test_commands_look_into_topics(config: dict[str, Any], writing: Writing, tmp_path: Path, form: str) -> None:
    topic, codec = f"t-{uuid.uuid4()}", codec_for({"json": ".jsonl", "avro": ".avro"}[form], SCHEMA)
    sink = Sink.create(writing.environment, "out", writing.reader, KafkaOutlet(config, topic, codec))
    writing.advance(12)
    sink.step()
    (tmp_path / "schema.json").write_text(json.dumps(message_schema(SCHEMA)))
    address = f"kafka://{config['bootstrap.servers']}/{topic}?format={form}"
    run = CliRunner().invoke
    schema = ["--schema", str(tmp_path / "schema.json")]
    done = run(cli.app, ["verify", address, *schema])
    assert done.exit_code == 0 and "up to 12" in done.output
    assert "row 0" in run(cli.app, ["cat", address, *schema]).output
    assert "progress statements" in run(cli.app, ["stats", address, *schema]).output
    producer = kafka.Producer(config)
    producer.produce(topic, b"nonsense")
    producer.flush(10)
    assert isinstance(run(cli.app, ["verify", address, *schema]).exception, CdcError)
    for wrong in (["verify", address], ["verify", "kafka://broker", *schema], ["compact", address, *schema]):
        assert isinstance(run(cli.app, wrong).exception, InvalidUse)


def test_commands_look_into_topics_with_a_schema_registry(config: dict[str, Any], writing: Writing) -> None:
    topic = f"t-{uuid.uuid4()}"
    with schema_registry() as registry:
        codec = RegistryCodec(Registry(registry), topic, SCHEMA)
        sink = Sink.create(writing.environment, "out", writing.reader, KafkaOutlet(config, topic, codec))
        writing.advance(12)
        sink.step()
        address = f"kafka://{config['bootstrap.servers']}/{topic}?registry={registry}"
        run = CliRunner().invoke
        done = run(cli.app, ["verify", address])
        assert done.exit_code == 0 and "up to 12" in done.output
        assert "row 0" in run(cli.app, ["cat", address]).output
        for wrong in (f"{address}&format=json", f"kafka://{config['bootstrap.servers']}/other?registry={registry}"):
            assert isinstance(run(cli.app, ["verify", wrong]).exception, InvalidUse)


def test_a_topic_that_is_not_there(config: dict[str, Any]) -> None:
    with pytest.raises(TransportFailed, match="cannot be read"):
        list(read_topic(config, f"t-{uuid.uuid4()}", codec_for(".jsonl", SCHEMA)))
