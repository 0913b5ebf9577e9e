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
from everview.cdc.kafka import KafkaInlet, KafkaOutlet, OtherMessages, read_topic
from everview.cdc.reader import Reader
from everview.cdc.rows import table_of
from everview.cdc.schema import StreamSchema, message_schema
from everview.cdc.sink import Sink
from everview.cdc.source import Source
from everview.cdc.watch import Contradicted, Standing
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
            source = Source(reading, "in", inlet, SCHEMA)
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


@pytest.mark.parametrize("files", ["jsonl", "avro"])
def test_a_mangled_copy_of_a_topic(config: dict[str, Any], writing: Writing, tmp_path: Path, files: str) -> None:
    topic = f"t-{uuid.uuid4()}"
    with schema_registry("name:word") as place:
        registry = place.replace("http://", "http://name:word@")
        codec = RegistryCodec(Registry(registry), topic, SCHEMA)
        sink = Sink.create(writing.environment, "out", writing.reader, KafkaOutlet(config, topic, codec))
        for upper in (5, 12):
            writing.advance(upper)
            sink.step()
        address = f"kafka://{config['bootstrap.servers']}/{topic}?registry={registry}"
        run, history = CliRunner().invoke, ["--format", "json", "--limit", "0"]
        original = run(cli.app, ["cat", address, *history]).stdout.splitlines()
        assert original
        for seed in ("1", "2"):
            target = str(tmp_path / f"mangled {seed}")
            done = run(cli.app, ["mangle", address, target, "--seed", seed, "--files", files])
            assert done.exit_code == 0 and "wrote" in done.output, done.exception
            checked = run(cli.app, ["verify", target])
            assert checked.exit_code == 0 and "up to 12" in checked.output, checked.exception
            assert sorted(run(cli.app, ["cat", target, *history]).stdout.splitlines()) == sorted(original)


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


class Shared:
    """An environment with its sink into a topic that others write too."""

    def __init__(
        self, config: dict[str, Any], topic: str, place: Path, joined: int = 0, *, differently: bool = False
    ) -> None:
        self._config, self._topic, self._codec = config, topic, codec_for(".jsonl", SCHEMA)
        self.writing = Writing(place)
        self.advance(joined, differently=differently)
        told = {"joined": Antichain(joined)} if joined else {}
        outlet = KafkaOutlet(config, topic, self._codec)
        Sink.create(self.writing.environment, "out", self.writing.reader, outlet, **told)  # type: ignore[arg-type]
        self.open()

    def open(self) -> None:
        """Begin a life of the sink."""
        outlet = KafkaOutlet(self._config, self._topic, self._codec)

        def others(standing: Standing) -> OtherMessages:
            quick = {**self._config, "fetch.wait.max.ms": 10}  # the broker of the tests lets one wait as long as it may
            return OtherMessages(quick, self._topic, self._codec, outlet.writer, standing)

        self.sink = Sink(self.writing.environment, "out", outlet, others=others)

    def write(self, upper: int, *, differently: bool = False) -> None:
        """Write up to a time, what all others do or something else."""
        self.advance(upper, differently=differently)
        self.sink.step()

    def advance(self, upper: int, *, differently: bool = False) -> None:
        """Let the collection go on."""
        writing = self.writing
        if differently:
            more = [((time, "mine"), time, 1) for time in range(writing.writer.frontier.only, upper)]
            writing.writer = writing.environment.append(writing.writer, table_of(more, COLUMNS), Antichain(upper))
        else:
            writing.advance(upper)

    def told(self) -> int:
        """How far the topic is closed; an error if anything in it contradicts itself."""
        reader: Reader[Any] = Reader()
        for _, item in read_topic(self._config, self._topic, self._codec):
            reader.take(item)  # type: ignore[arg-type]
        error = reader.contradiction()
        if error is not None:
            raise error
        reader.settle()
        return reader.frontier.only  # type: ignore[return-value]


@pytest.fixture
def shared(config: dict[str, Any], tmp_path: Path) -> Iterator[Any]:
    topic = f"t-{uuid.uuid4()}"
    made: list[Shared] = []

    def make(joined: int = 0, *, differently: bool = False) -> Shared:
        made.append(Shared(config, topic, tmp_path / f"writer{len(made)}", joined, differently=differently))
        return made[-1]

    yield make
    for each in made:
        each.writing.environment.close()


def test_writers_of_a_topic_that_agree_go_on(shared: Any) -> None:
    first = shared()
    first.write(5)
    assert not first.sink._shared
    second = shared(5)
    for upper in range(6, 20):
        for writer in (first, second) if upper % 2 else (second, first):
            if upper % 5 or writer is first:
                writer.write(upper)
        if upper in (9, 14):
            first.open()
            second.open()
    assert first.told() == 19 and first.sink._shared and second.sink._shared


def test_the_joiner_of_a_topic_is_stopped_before_it_contradicts(shared: Any) -> None:
    first = shared()
    first.write(5)
    second = shared(5)
    first.write(10)
    with pytest.raises(Contradicted, match="says otherwise"):
        second.write(10, differently=True)
    second.open()  # a restart does not help
    with pytest.raises(Contradicted):
        second.sink.step()
    first.write(15)
    assert first.told() == 15, "nothing of it was written"


def test_one_with_other_contents_does_not_join_a_topic(shared: Any) -> None:
    first = shared()
    first.write(5)
    second = shared(5, differently=True)
    with pytest.raises(Contradicted, match="the stream tells of another collection"):
        second.write(8)
    first.write(10)
    assert first.told() == 10, "nothing of it was written"


@pytest.mark.parametrize("away", [False, True])
def test_the_first_writer_of_a_topic_is_stopped_if_a_joiner_is_ahead(shared: Any, away: bool) -> None:
    """It did not know that it would not be alone; and it may have been away meanwhile."""
    first = shared()
    first.write(5)
    second = shared(5)
    second.write(12, differently=True)
    if away:
        first.open()
    for _ in range(2):
        with pytest.raises(Contradicted, match="says otherwise"):
            first.write(11)
        first.open()
    assert second.told() == 12, "nothing of it was written"


def test_what_a_life_wrote_to_a_topic_and_died_is_not_anothers(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = shared()
    first.write(5)

    def dies(*_: Any) -> None:
        raise OSError("it dies")

    monkeypatch.setattr(first.sink, "_commit", dies)
    with pytest.raises(OSError, match="it dies"):
        first.write(9)
    monkeypatch.undo()
    first.open()
    first.write(12)
    assert not first.sink._shared and first.told() == 12


def test_a_sink_looks_from_where_it_has_looked_before(shared: Any) -> None:
    first = shared()
    first.write(5)
    second = shared(5)
    for upper in range(6, 12):
        second.write(upper)
        first.write(upper)
    first.open()
    assert sum(1 for _ in first.sink._watch._others.look()) <= 2, "what is written is not read again"


def test_a_topic_that_is_not_there(config: dict[str, Any]) -> None:
    with pytest.raises(TransportFailed, match="cannot be read"):
        list(read_topic(config, f"t-{uuid.uuid4()}", codec_for(".jsonl", SCHEMA)))
