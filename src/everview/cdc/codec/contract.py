"""What every codec does: one message to bytes and back, and files of messages that may be cut off or damaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from everview.cdc.contract import Message, Progress
from everview.cdc.errors import InvalidUse
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema
from everview.cdc.times import to_wire

RECORD_BYTES_MAX = 256 << 20


@dataclass(frozen=True, slots=True)
class Bad:
    """Bytes of a file, from `position` on, that are no message, and why."""

    position: int
    raw: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Partial:
    """The file ends within a record: its writer is still at it, or died. What comes before is good."""

    position: int
    raw: bytes


Item: TypeAlias = Message[Row] | Bad | Partial


class Codec(Protocol):
    """A codec for streams of one schema."""

    suffix: str
    schema: StreamSchema

    def encode(self, message: Message[Row]) -> bytes:
        """One message, as where each has its own envelope."""

    def decode(self, data: bytes) -> Message[Row]:
        """The message, or Undecodable."""

    def encode_file(self, messages: Iterable[Message[Row]]) -> bytes:
        """A whole file of messages."""

    def decode_file(self, file: pa.NativeFile, where: str) -> Iterator[Item]:
        """What is in a file, in order; raises SchemaDiffers if it says that it is of another schema."""


def codec_for(suffix: str, schema: StreamSchema) -> Codec:
    """The codec whose files end in `.jsonl` or `.avro`."""
    if suffix == ".jsonl":
        from everview.cdc.codec.json import JsonCodec

        return JsonCodec(schema)
    if suffix == ".avro":
        from everview.cdc.codec.avro import AvroCodec

        return AvroCodec(schema)
    raise InvalidUse(f"no codec writes files that end in {suffix}", hint="use .jsonl or .avro")


def progress_json(progress: Progress) -> dict[str, Any]:
    """A progress statement in the form that both codecs have."""
    counts = [{"time": to_wire(time), "count": number} for time, number in progress.counts]
    lower, upper = ([to_wire(time) for time in bound] for bound in (progress.lower, progress.upper))
    return {"lower": lower, "upper": upper, "counts": counts}


def suffix_of(name: str) -> str:
    """The end of a file's name, which names its codec."""
    return "." + name.rpartition(".")[2]


SUFFIXES = (".jsonl", ".avro")
