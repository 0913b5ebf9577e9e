"""Where change streams are, as the catalog writes it down: folders and topics, opened to be written or to be read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from everview.adapter.catalog.items import ColumnInfo
from everview.cdc.codec.contract import SUFFIXES, Codec, Item, codec_for
from everview.cdc.contract import Frontier, Progress
from everview.cdc.errors import InvalidUse
from everview.cdc.files import Folder, FolderInlet, FolderOutlet, Inlet
from everview.cdc.reader import START
from everview.cdc.schema import StreamSchema
from everview.cdc.sink import BulkWriter, Outlet
from everview.cdc.tracker import Tracker
from everview.compute.ir.types import declared_type, outside_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's session for much at once, once there is one.
SparkWhenThere: TypeAlias = "Callable[[], SparkSession | None]"

FILES, KAFKA = "cdc files", "cdc kafka"
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    FILES: ("path", "format"),
    KAFKA: ("brokers", "topic", "properties", "create_topics", "format"),
}
POLL_S = 0.02  # how long a poll waits for a topic's next message; more are fetched meanwhile, whoever waits
LOOK_S = 2.0  # how long a topic is silent before it is taken to hold no more
_REQUIRED = {FILES: ("path",), KAFKA: ("brokers", "topic")}
_SUFFIX = {"json": ".jsonl", "avro": ".avro"}


def is_stream(kind: str) -> bool:
    """Whether a sink or source of this kind is a change stream."""
    return kind in ARGUMENTS


def absolute(arguments: Mapping[str, str]) -> dict[str, str]:
    """Where something is, whatever folder the server is started from next; addresses stay what they are."""
    found = dict(arguments)
    path = found.get("path")
    if path and "://" not in path and not path.startswith(("file:", "memory:")):
        found["path"] = os.path.abspath(path)
    return found


def check_arguments(kind: str, arguments: Mapping[str, str]) -> None:
    """An error unless these say where a stream is."""
    known = ARGUMENTS[kind]
    for name in arguments:
        if name not in known:
            raise InvalidUse(f'{kind.upper()} has no option "{name}"', hint=f"one of {', '.join(known)}")
    missing = [name for name in _REQUIRED[kind] if not arguments.get(name)]
    if missing:
        raise InvalidUse(f"{kind.upper()} needs {missing[0].upper()}")
    if "properties" in arguments:
        _properties(arguments)


def schema_of(columns: Sequence[ColumnInfo]) -> StreamSchema:
    """The schema of a stream that tells of these columns, by the names that users know."""
    return StreamSchema(pa.schema([pa.field(each.name, outside_type(each.type), each.nullable) for each in columns]))


def schema_to_read(columns: Sequence[ColumnInfo]) -> StreamSchema:
    """The schema of a stream that fills these columns: a number that does not fit its column is not read."""
    return StreamSchema(pa.schema([pa.field(each.name, declared_type(each.type), each.nullable) for each in columns]))


def suffix_of(arguments: Mapping[str, str]) -> str:
    """How files in the stream's format end."""
    return _SUFFIX[arguments.get("format", "json")]


def outlet_of(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> Outlet:
    """Where a sink writes to."""
    codec = codec_for(suffix_of(arguments), schema)
    if kind == FILES:
        return FolderOutlet(Folder(arguments["path"]), codec)
    from everview.cdc.kafka import KafkaOutlet

    return KafkaOutlet(_properties(arguments), arguments["topic"], codec)


def bulk_writer_of(
    arguments: Mapping[str, str], schema: StreamSchema, outlet: Outlet, session: SparkSession | None
) -> BulkWriter | None:
    """What writes large ranges of a collection where the data are, if there is Spark and the stream is of files."""
    if session is None or not isinstance(outlet, FolderOutlet):
        return None
    from everview.cdc.spark.writer import SparkWriter

    return SparkWriter(session, schema, Folder(arguments["path"]), suffix_of(arguments), outlet.writer).write


def make_place(kind: str, arguments: Mapping[str, str]) -> None:
    """Make the folder or the topic that a sink writes to, where it is not there."""
    if kind == FILES:
        Folder(arguments["path"]).close()
        return
    from everview.cdc.kafka import make_topic

    if arguments.get("create_topics", "true").lower() not in ("false", "off"):
        make_topic(_properties(arguments), arguments["topic"])


def inlet_of(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> Inlet:
    """Where a source reads from."""
    if kind == FILES:
        return FolderInlet(folder_of(arguments), schema)
    inlet: Inlet = _topic(arguments, codec_for(suffix_of(arguments), schema), poll_s=POLL_S)
    return inlet


def folder_of(arguments: Mapping[str, str]) -> Folder:
    """The folder of a stream, to be read; of its files only those in the format, if it names one."""
    suffixes = (suffix_of(arguments),) if "format" in arguments else SUFFIXES
    return Folder(arguments["path"], read_only=True, suffixes=suffixes)


def is_empty(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> bool:
    """Whether nobody has written to a place yet."""
    if kind == FILES:
        return not Folder(arguments["path"], read_only=True).files()
    return next(_items(kind, arguments, schema), None) is None


def told_so_far(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> Frontier:
    """How far the statements that are there already reach."""
    tracker = Tracker(START)
    for item in _items(kind, arguments, schema):
        if isinstance(item, Progress):
            tracker.hear(item)
    return tracker.covered


def _items(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> Iterator[Item]:
    if kind == FILES:
        folder = Folder(arguments["path"], read_only=True)
        for info in folder.files():
            yield from folder.items(info.key, codec_for("." + info.key.rpartition(".")[2], schema))
        return
    from everview.cdc.kafka import topic_exists

    if not topic_exists(_properties(arguments), arguments["topic"]):
        return
    inlet = _topic(arguments, codec_for(suffix_of(arguments), schema), poll_s=LOOK_S)
    try:
        inlet.restore({})
        more = True
        while more:
            more = False
            for piece in inlet.pieces():
                more = True
                yield from piece.items
    finally:
        inlet.close()


def _topic(arguments: Mapping[str, str], codec: Codec, **how: float) -> Any:
    from everview.cdc.kafka import KafkaInlet

    return KafkaInlet(_properties(arguments), arguments["topic"], codec, **how)  # type: ignore[arg-type]


def _properties(arguments: Mapping[str, str]) -> dict[str, Any]:
    try:
        given = json.loads(arguments.get("properties", "{}"))
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InvalidUse("PROPERTIES must be a JSON object of librdkafka's settings")
    return {"bootstrap.servers": arguments["brokers"], **given}
