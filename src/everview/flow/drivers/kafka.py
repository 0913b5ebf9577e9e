"""Kafka: delta updates in Kafka's own transactions, with the checkpoint in the same transaction: exactly once.

A topic of progress, with one partition, holds the checkpoints: for each range the last record counts. Its transactional
id fences a range's former producer, and opening a range fences the producers of all ranges that it overlaps before it
believes what they committed last. Readers that want exactly once read committed records only. With a key, a document
has it as its record's key, so that it can be compacted, and a deleted one is a record without a value.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import DELETE, Spec
from everview.flow.documents import objects
from everview.flow.drivers import contract
from everview.flow.errors import DriverFailed, FencedOff, InvalidMaterialization
from everview.flow.fencing import OwnedRange, carve
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.protocol import DriverState
from everview.reach.addresses import check_kafka

TIMEOUT_S = 30.0
OPENS_MAX = 10  # looks at the topic of progress before others have stopped to change it


class KafkaDriver(contract.Driver):
    """Topics of a Kafka cluster."""

    name = "kafka"
    pattern = contract.Pattern.AUTHORITATIVE
    guarantee = contract.Guarantee.EXACTLY_ONCE
    delta_only = shared = True
    options = (
        contract.Option("brokers", "host:port, several with commas between", required=True),
        contract.Option("properties", "a JSON object of librdkafka's settings", secret=True),
        contract.Option("create_topics", "whether to make topics that are not there", bool, default=True),
        contract.Option("progress_topic", "the topic of checkpoints; by default made from the sink's name"),
    )
    resource_options = (contract.Option("topic", "the topic to write to", required=True),)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        contract.library("confluent_kafka", "confluent-kafka", "kafka")
        try:
            self.properties = {
                "bootstrap.servers": self.config["brokers"],
                **json.loads(self.config.get("properties", "{}")),
            }
        except (ValueError, TypeError):
            raise InvalidMaterialization("properties of kafka must be a JSON object") from None
        check_kafka(self.properties)

    def validate(self, spec: Spec) -> list[contract.Validated]:
        self._topics()
        return [
            contract.Validated(contract.plain_constraints(each), (str(each.resource["topic"]),), delta_updates=True)
            for each in spec.bindings
        ]

    def _topics(self) -> set[str]:
        from confluent_kafka.admin import AdminClient

        client = AdminClient(self.properties)  # kept in a name: it ends what it has begun when it is let go
        with _failures():
            return set(client.list_topics(timeout=TIMEOUT_S).topics)

    def apply(self, spec: Spec) -> str:
        admin = contract.library("confluent_kafka.admin", "confluent-kafka", "kafka")
        wanted = {str(each.resource["topic"]): admin.NewTopic(str(each.resource["topic"])) for each in spec.bindings}
        progress = self._progress(spec)
        wanted[progress] = admin.NewTopic(progress, num_partitions=1, config={"cleanup.policy": "compact"})
        missing = [wanted[name] for name in wanted.keys() - self._topics()] if self.config["create_topics"] else []
        client = admin.AdminClient(self.properties)
        with _failures():
            for made in client.create_topics(missing).values() if missing else ():
                made.result(TIMEOUT_S)
        return f"topics {', '.join(sorted(wanted))} are there"

    def reset(self, spec: Spec) -> None:
        """Records stay: all keys are told again, behind them."""
        transactor = KafkaTransactor(self.properties, self._progress(spec), spec, WHOLE)
        try:
            transactor.start_commit(Checkpoint.at(WHOLE, START).encode())
            transactor._commit()
        finally:
            transactor.close()

    def open(self, spec: Spec, range: KeyRange, state: DriverState) -> contract.Transactor:
        return KafkaTransactor(self.properties, self._progress(spec), spec, range)

    def _progress(self, spec: Spec) -> str:
        return str(self.config.get("progress_topic") or f"everview-progress-{spec.name}")


class KafkaTransactor(contract.Transactor):
    """One range of keys in Kafka topics."""

    def __init__(self, properties: Mapping[str, Any], progress: str, spec: Spec, range: KeyRange) -> None:
        super().__init__()
        self._properties, self._progress, self._spec = dict(properties), progress, spec
        self._in_transaction = False
        self._failed: str | None = None
        with _failures():
            self._producer = self._fencing_producer(range)
            self._row = self._take_over(range)
        self.checkpoint = self._row.checkpoint.encode()

    def _fencing_producer(self, range: KeyRange) -> Any:
        """A producer of a range; whoever was one before can commit nothing any more."""
        from confluent_kafka import Producer

        identity = f"everview-{self._spec.name}-{range}"
        producer = Producer({"linger.ms": 5, **self._properties, "transactional.id": identity})
        producer.init_transactions(TIMEOUT_S)
        return producer

    def _take_over(self, range: KeyRange) -> OwnedRange:
        rows = self._rows()
        for _ in builtins.range(OPENS_MAX):
            others = [row.range for row in rows.values() if row.range.overlaps(range) and row.range != range]
            for other in others:
                self._fencing_producer(other)
            # What others committed before they were fenced is believed, so look again, until nothing is new.
            again = self._rows() if others else rows
            if again == rows:
                break
            rows = again
        else:
            raise DriverFailed("others keep taking keys over", detail=f"looked {OPENS_MAX} times")
        carved = carve(rows.values(), range)
        written = {row.range for row in carved.written}
        self._producer.begin_transaction()
        for each in carved.removed:
            if each not in written:
                self._producer.produce(self._progress, key=str(each), value=None, partition=0)
        for row in carved.written:
            self._note(row, row.checkpoint.encode())
        self._producer.commit_transaction(TIMEOUT_S)
        return carved.mine

    def _note(self, row: OwnedRange, checkpoint: str) -> None:
        value = json.dumps({"fence": row.fence, "checkpoint": checkpoint})
        self._producer.produce(self._progress, key=str(row.range), value=value, partition=0)

    def _rows(self) -> dict[str, OwnedRange]:
        """The last committed record of each range."""
        rows: dict[str, OwnedRange] = {}
        for key, value in committed_records(self._properties, self._progress):
            assert key is not None
            name = key.decode()
            if value is None:
                rows.pop(name, None)
            else:
                noted = json.loads(value)
                rows[name] = OwnedRange(KeyRange.parse(name), noted["fence"], Checkpoint.decode(noted["checkpoint"]))
        return rows

    def store(self, binding: int, documents: pa.Table) -> None:
        spec = self._spec.bindings[binding]
        topic = str(spec.resource["topic"])
        keys = objects(documents, spec.key_fields) if spec.key else [None] * documents.num_rows
        delete = documents.column(DELETE).to_pylist()
        with _failures():
            self._begin()
            for key, value, gone in zip(keys, objects(documents, spec.fields), delete, strict=True):
                self._produce(topic, key, None if gone else value)

    def _produce(self, topic: str, key: str | None, value: str | None) -> None:
        while True:
            try:
                return self._producer.produce(topic, key=key, value=value, on_delivery=self._delivered)  # type: ignore[no-any-return]
            except BufferError:  # the queue is full: let it drain
                self._producer.poll(0.1)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed = str(error)

    def _begin(self) -> None:
        if not self._in_transaction:
            self._producer.begin_transaction()
            self._in_transaction = True

    def start_commit(self, checkpoint: str) -> contract.Started:
        with _failures():
            self._begin()
            self._note(self._row, checkpoint)
            self._producer.flush(TIMEOUT_S)
        if self._failed is not None:
            raise DriverFailed("a record was not delivered to Kafka", detail=self._failed)
        return contract.Started(commit=self._commit)

    def _commit(self) -> None:
        with _failures():
            self._producer.commit_transaction(TIMEOUT_S)
        self._in_transaction = False

    def close(self) -> None:
        if self._in_transaction:
            with contextlib.suppress(Exception):  # whoever comes next aborts what is left open
                self._producer.abort_transaction(TIMEOUT_S)


def committed_records(properties: Mapping[str, Any], topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    """The keys and values that a topic holds now, partition by partition."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    reading = {"group.id": "everview", "enable.auto.commit": False, "isolation.level": "read_committed"}
    quickly = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = Consumer({**properties, **reading, **quickly})
    try:
        for partition in consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions or [0]:
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
            deadline, ended = time.monotonic() + TIMEOUT_S, False
            while not ended:
                message = consumer.poll(1.0)
                if time.monotonic() > deadline:
                    raise DriverFailed(f"topic {topic} could not be read within {TIMEOUT_S:g} s")
                error = None if message is None else message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    ended = True
                elif error is not None and not error.retriable():
                    raise DriverFailed(f"topic {topic} cannot be read", detail=str(error))
                elif message is not None and error is None:
                    yield message.key(), message.value()
    finally:
        consumer.close()


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Kafka's failures as ours."""
    from confluent_kafka import KafkaError, KafkaException

    try:
        yield
    except KafkaException as raised:
        error = raised.args[0]
        fenced = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
        if isinstance(error, KafkaError) and error.code() in fenced:
            raise FencedOff("another producer took the keys over", detail=error.str()) from None
        raise DriverFailed("Kafka failed", detail=str(error)) from None
