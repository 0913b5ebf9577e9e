"""Streams as Kafka topics: a message of the protocol is the value of a message of the topic, in any partition.

Writing waits until the brokers have all of it, and tries again what a full queue refuses: the last progress statement
may be the one that nothing follows. Reading keeps, for each partition, from which offset on anything may still be
needed; after a restart it goes on from there, whatever was read before.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from everview.cdc.codec.contract import Bad, Codec, Item
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import InvalidUse, TransportFailed, Undecodable
from everview.cdc.files import Piece
from everview.cdc.joining import Digest, told_before
from everview.cdc.reader import START, Reader
from everview.cdc.rows import Row
from everview.cdc.times import bound_of
from everview.cdc.watch import Standing

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
except ImportError as missing:
    raise InvalidUse(
        "streams over Kafka need the confluent-kafka library", hint="install it: pip install 'everview[kafka]'"
    ) from missing

MESSAGE_BYTES_MAX = 1_000_000  # what brokers take unless they are told otherwise
FLUSH_S = 60.0
POLL_S = 0.2
POLL_MESSAGES = 10_000
OPEN_MESSAGES_MAX = 1_000_000
ADMIN_S = 10.0
SILENCE_S = 30.0  # of brokers that have messages to give
WRITER = "everview-writer"  # the header of messages that says who wrote them


def topic_exists(config: Mapping[str, Any], topic: str) -> bool:
    client = AdminClient(dict(config))  # kept in a name: it ends what it has begun when it is let go
    try:
        return topic in client.list_topics(timeout=ADMIN_S).topics
    except KafkaException as error:
        raise TransportFailed("the brokers do not answer", detail=str(error.args[0])) from error


def make_topic(config: Mapping[str, Any], topic: str) -> None:
    """Make a topic, unless it is there, with as many partitions as the brokers think right."""
    if topic_exists(config, topic):
        return
    client = AdminClient(dict(config))
    try:
        for made in client.create_topics([NewTopic(topic)]).values():
            made.result(ADMIN_S)
    except (KafkaException, TimeoutError) as error:
        cause = error.args[0] if error.args else "the brokers do not answer"
        if isinstance(cause, KafkaError) and cause.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        hint = "make it by other means, and say CREATE_TOPICS false"
        raise TransportFailed(f"topic {topic} cannot be made", detail=str(cause), hint=hint) from error


def read_topic(config: Mapping[str, Any], topic: str, codec: Codec) -> Iterator[tuple[str, Item]]:
    """What a topic holds now, message by message, each with its place."""
    consumer = _consumer(config, f"look-{topic}", ends=True)
    try:
        places = [TopicPartition(topic, partition) for partition in _partitions(consumer, topic)]
        left = {each.partition: consumer.get_watermark_offsets(each, timeout=ADMIN_S) for each in places}
        consumer.assign([TopicPartition(topic, partition, first) for partition, (first, _) in left.items()])
        ends = {partition: end for partition, (first, end) in left.items() if first < end}
        while ends:
            message = consumer.poll(SILENCE_S)
            error = None if message is None else message.error()
            if message is not None and error is not None and error.code() == KafkaError._PARTITION_EOF:
                ends.pop(message.partition() or 0, None)  # its last offsets may be no messages
                continue
            if message is None or error is not None:
                raise _unreadable(topic, error or "the brokers are silent")
            partition, offset, value = message.partition(), message.offset(), message.value() or b""
            assert partition is not None and offset is not None
            if partition not in ends or offset >= ends[partition]:
                continue  # it came meanwhile
            yield f"{topic}/{partition}/{offset}", _decoded(codec, value)
            if offset + 1 >= ends[partition]:
                del ends[partition]
    except KafkaException as failure:
        raise _unreadable(topic, failure.args[0]) from failure
    finally:
        consumer.close()


def _consumer(config: Mapping[str, Any], name: str, *, ends: bool = False) -> Consumer:
    """A consumer that leaves no offsets with the brokers; with `ends` it tells where a partition ends."""
    settings = {"group.id": f"everview-{name}", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    return Consumer({**settings, "enable.partition.eof": ends, **config})


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    try:
        found = consumer.list_topics(topic, timeout=ADMIN_S).topics[topic]
    except KafkaException as error:
        raise _unreadable(topic, error.args[0]) from error
    if found.error is not None:
        raise _unreadable(topic, found.error)
    return list(found.partitions)


def _decoded(codec: Codec, value: bytes) -> Item:
    try:
        return codec.decode(value)
    except Undecodable as error:
        return Bad(0, value, error.detail or error.message)


def _unreadable(topic: str, cause: object, hint: str | None = None) -> TransportFailed:
    return TransportFailed(f"topic {topic} cannot be read", detail=str(cause), hint=hint)


class KafkaOutlet:
    """Where a sink writes: each call returns when the brokers have acknowledged all of its messages."""

    def __init__(self, config: Mapping[str, Any], topic: str, codec: Codec, *, flush_s: float = FLUSH_S) -> None:
        self._producer = Producer({"acks": "all", "enable.idempotence": True, **config})
        self._topic, self._codec, self._flush_s = topic, codec, flush_s
        self._failed: KafkaError | None = None
        self.writer = secrets.token_hex(4)  # nobody else's, and not that of an earlier life either

    def write(self, messages: Iterable[Message[Row]]) -> None:
        self._failed = None
        deadline = time.monotonic() + self._flush_s
        headers: dict[str, str | bytes | None] = {WRITER: self.writer.encode()}
        for data in self._encoded(messages):
            while True:
                try:
                    self._producer.produce(self._topic, data, headers=headers, on_delivery=self._delivered)
                    break
                except BufferError:
                    # Full: it empties as brokers answer. Nothing else will bring this message if it is let go.
                    if time.monotonic() > deadline:
                        raise self._failure("its queue stays full") from None
                    self._producer.poll(0.1)
                except KafkaException as error:
                    raise self._failure(str(error.args[0])) from error
            self._producer.poll(0)
        left = self._producer.flush(max(0.1, deadline - time.monotonic()))
        if self._failed is not None:
            raise self._failure(str(self._failed))
        if left:
            raise self._failure(f"{left} messages are not acknowledged after {self._flush_s:g} s")

    def _encoded(self, messages: Iterable[Message[Row]]) -> Iterator[bytes]:
        """The messages as bytes. Updates that are too long for a broker are cut in halves."""
        for message in messages:
            data = self._codec.encode(message)
            if len(data) > MESSAGE_BYTES_MAX and isinstance(message, Updates) and len(message.updates) > 1:
                half = len(message.updates) // 2
                yield from self._encoded([Updates(message.updates[:half]), Updates(message.updates[half:])])
            else:
                yield data

    def _delivered(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None:
            self._failed = error

    def _failure(self, detail: str) -> TransportFailed:
        return TransportFailed(
            f"topic {self._topic} cannot be written", detail=detail, hint="what was not acknowledged is written again"
        )


class KafkaInlet:
    def __init__(
        self,
        config: Mapping[str, Any],
        topic: str,
        codec: Codec,
        *,
        poll_s: float = POLL_S,
        poll_messages: int = POLL_MESSAGES,
    ) -> None:
        self._consumer = _consumer(config, topic)  # offsets are kept with the data, in the same commit
        self._topic, self._codec, self._poll_s, self._poll_messages = topic, codec, poll_s, poll_messages
        self._open: dict[int, deque[tuple[int, Piece]]] = {}
        self._next: dict[int, int] = {}
        self._saved: dict[int, int] = {}
        self._place = (0, 0)

    def restore(self, saved: Mapping[str, bytes]) -> None:
        partitions = _partitions(self._consumer, self._topic)
        self._saved = {int(partition): json.loads(offset) for partition, offset in saved.items()}
        self._next = {partition: self._saved.get(partition, 0) for partition in partitions}
        self._open = {partition: deque() for partition in partitions}
        start = [TopicPartition(self._topic, partition, offset) for partition, offset in self._next.items()]
        self._consumer.assign(start)

    def disturbed(self) -> bool:
        return False

    def base(self, frontier: int | None) -> tuple[int, Piece] | None:
        return None

    def pieces(self) -> Iterator[Piece]:
        for _ in range(self._poll_messages):
            message = self._consumer.poll(self._poll_s)
            if message is None:
                return
            error = message.error()
            if error is not None:
                raise _unreadable(self._topic, error)
            partition, offset, value = message.partition(), message.offset(), message.value() or b""
            assert partition is not None and offset is not None
            self._place = (partition, offset)
            yield Piece(f"{self._topic}/{partition}/{offset}", len(value), iter((_decoded(self._codec, value),)))

    def finish(self, piece: Piece) -> None:
        partition, offset = self._place
        self._next[partition] = offset + 1
        self._open[partition].append((offset, piece))
        if sum(map(len, self._open.values())) > OPEN_MESSAGES_MAX:
            raise TransportFailed(
                f"more than {OPEN_MESSAGES_MAX} messages of topic {self._topic} wait for their times to close",
                hint="see the source's stalls",
            )

    def spend(self, frontier: int | None) -> dict[str, bytes | None]:
        changes: dict[str, bytes | None] = {}
        for partition, waiting in self._open.items():
            # Undecodable messages are kept in the report and cannot be cured by reading them again.
            while waiting and (waiting[0][1].flawed or waiting[0][1].spent(frontier)):
                waiting.popleft()
            needed_from = waiting[0][0] if waiting else self._next[partition]
            if needed_from != self._saved.get(partition, 0):
                self._saved[partition] = needed_from
                changes[str(partition)] = json.dumps(needed_from).encode()
        return changes

    def close(self) -> None:
        self._consumer.close()


_END = -1  # as a time: the end of a partition


class OtherMessages:
    """The messages of a topic that others wrote, from where the sink looked last."""

    def __init__(self, config: Mapping[str, Any], topic: str, codec: Codec, own: str, standing: Standing) -> None:
        self._consumer = _consumer(config, f"others-{topic}", ends=True)
        self._config = config
        self._topic, self._codec, self._own, self._standing = topic, codec, own, standing
        self.seen = standing.shared
        self._next: dict[int, int] = {}
        self._known: dict[int, int] = {}  # the ends of the partitions when they were first looked at
        self._needed: dict[int, deque[tuple[int, int | None]]] = {}
        try:
            self._assign()
        except BaseException:
            self.close()
            raise

    def look(self) -> Iterator[Item]:
        try:
            yield from self._look()
        except KafkaException as error:
            raise self._failure(error.args[0]) from error

    def contents(self, before: int) -> tuple[int, Digest]:
        reader: Reader[Row] = Reader(START)
        items = (item for _, item in read_topic(self._config, self._topic, self._codec))
        messages = (item for item in items if isinstance(item, Updates | Progress))
        closed = (found for message in messages if (found := reader.push(message)) is not None)
        return before, told_before(closed, reader, before)

    def place(self, frontier: int) -> dict[str, int]:
        for waiting in self._needed.values():
            while waiting and waiting[0][1] is not None and waiting[0][1] <= frontier:
                waiting.popleft()
        return {str(part): self._needed[part][0][0] if self._needed[part] else at for part, at in self._next.items()}

    def close(self) -> None:
        self._consumer.close()

    def _assign(self) -> None:
        """Go to where the sink looked last. A missing topic is made by whoever writes to it first."""
        try:
            found = self._consumer.list_topics(self._topic, timeout=ADMIN_S).topics[self._topic]
        except KafkaException as error:
            raise self._failure(error.args[0]) from error
        if found.error is not None:
            if found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return
            raise self._failure(found.error)
        self._known = self._ends(list(found.partitions))
        before = self._standing.place
        if before is not None or self.seen:
            self._next = {part: (before or {}).get(str(part), 0) for part in self._known}
        else:
            self._next = dict(self._known)  # of an earlier version, which did not look at what others wrote
        self._needed = {part: deque() for part in self._known}
        self._consumer.assign([TopicPartition(self._topic, part, at) for part, at in self._next.items()])

    def _ends(self, partitions: list[int]) -> dict[int, int]:
        asked = [TopicPartition(self._topic, part, _END) for part in partitions]
        found = self._consumer.offsets_for_times(asked, timeout=ADMIN_S)
        failed = next((each.error for each in found if each.error is not None), None)
        if failed is not None:
            raise self._failure(failed)
        return {each.partition: each.offset for each in found}

    def _look(self) -> Iterator[Item]:
        if not self._next:
            self._assign()
            if not self._next:
                return
        ends = self._ends(list(self._next))
        behind = {part for part, end in ends.items() if self._next[part] < end}
        while behind:
            message = self._consumer.poll(SILENCE_S)
            if message is None:
                raise self._failure("the brokers are silent")
            error, part, offset = message.error(), message.partition(), message.offset()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise self._failure(error)
            assert part is not None and offset is not None
            # An end is told with the offset behind it: the last offsets of a partition may be no messages.
            self._next[part] = max(self._next[part], offset if error is not None else offset + 1)
            if self._next[part] >= ends[part]:
                behind.discard(part)
            if error is None and not self._is_own(dict(message.headers() or []), part, offset):
                self.seen = True
                try:
                    item = self._codec.decode(message.value() or b"")
                except Undecodable:
                    continue  # sources report it
                self._needed[part].append((offset, _needed_until(item)))
                yield item

    def _is_own(self, headers: dict[str, Any], part: int, offset: int) -> bool:
        writer = (headers.get(WRITER) or b"").decode(errors="replace")
        earlier = self._standing.writers or ()
        return writer == self._own or (writer in earlier and offset < self._known[part])

    def _failure(self, cause: object) -> TransportFailed:
        return _unreadable(self._topic, cause, "a sink reads what others write to its topic")


def _needed_until(item: Item) -> int | None:
    """The time from which on a message is no longer needed; None if it always is."""
    if isinstance(item, Progress):
        return bound_of(item.upper)
    times = [time for _, time, _ in getattr(item, "updates", ())]
    return max(times, default=-1) + 1
