"""What others write to a topic that a sink writes as well: the messages that do not carry the name of the sink."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from everview.cdc.codec.contract import Codec, Item
from everview.cdc.contract import Progress
from everview.cdc.errors import TransportFailed, Undecodable
from everview.cdc.kafka import ADMIN_S, SILENCE_S, WRITER  # it says so if there is no library for Kafka
from everview.cdc.times import bound_of
from everview.cdc.watch import Standing

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition  # isort: skip

_END = -1  # as a time: the end of a partition


class OtherMessages:
    """Messages of a topic that another has written, from where the sink has looked before."""

    def __init__(self, config: Mapping[str, Any], topic: str, codec: Codec, own: str, standing: Standing) -> None:
        settings = {"group.id": f"everview-others-{topic}", "enable.auto.commit": False, "enable.partition.eof": True}
        self._consumer = Consumer({**settings, "auto.offset.reset": "earliest", **config})
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

    def place(self, frontier: int) -> dict[str, int]:
        for waiting in self._needed.values():
            while waiting and waiting[0][1] is not None and waiting[0][1] <= frontier:
                waiting.popleft()
        return {str(part): self._needed[part][0][0] if self._needed[part] else at for part, at in self._next.items()}

    def close(self) -> None:
        self._consumer.close()

    def _assign(self) -> None:
        """Go to where the sink has looked before; a topic that is not there yet is made by who first writes to it."""
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
        hint = "a sink reads what others write to its topic"
        return TransportFailed(f"topic {self._topic} cannot be read", detail=str(cause), hint=hint)


def _needed_until(item: Item) -> int | None:
    """The time from which on a message is not needed any more; None if it always is."""
    if isinstance(item, Progress):
        return bound_of(item.upper)
    times = [time for _, time, _ in getattr(item, "updates", ())]
    return max(times, default=-1) + 1
