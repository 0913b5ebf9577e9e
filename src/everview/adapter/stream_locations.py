"""Where change streams are, as the catalog writes it down: folders and topics, opened to be written or to be read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from everview.adapter.catalog.items import ColumnInfo
from everview.adapter.statements.options import boolean
from everview.cdc.codec.contract import SUFFIXES, Codec, Item, codec_for
from everview.cdc.codec.sql_values import declared, with_sql_type
from everview.cdc.compaction import Upkeep
from everview.cdc.contract import Frontier, Progress
from everview.cdc.errors import InvalidUse
from everview.cdc.files import Folder, FolderInlet, FolderOutlet, Inlet, base_time
from everview.cdc.reader import START
from everview.cdc.schema import StreamSchema, sql_type_for
from everview.cdc.sink import BulkWriter, OthersOf, Outlet
from everview.cdc.tracker import Tracker
from everview.cdc.watch import OtherFiles, Others, Standing
from everview.compute.ir.types import SqlType, declared_type, outside_type
from everview.reach.addresses import check_kafka, check_url
from everview.sources.contract import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's session for much at once, once there is one.
SparkWhenThere: TypeAlias = "Callable[[], SparkSession | None]"

FILES, KAFKA = "cdc files", "cdc kafka"
CONFINED = "confined"
LEADING = {FILES: "path"}  # what stands in a statement without its name
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    FILES: ("path", "format", CONFINED),
    KAFKA: ("brokers", "topic", "registry", "properties", "create_topics", "format"),
}
POLL_S = 0.02  # how long a poll waits for a topic's next message; more are fetched meanwhile, whoever waits
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
    is_confined(arguments)  # an error if that says nothing
    if kind == KAFKA:
        _properties(arguments)
        check_url(arguments.get("registry", ""))
    if "registry" in arguments and arguments.get("format", "avro") != "avro":
        raise InvalidUse("a schema registry is for FORMAT AVRO")


def check_forgets(kind: str) -> None:
    """Raise unless it is for a sink to say how much of a stream's past is kept."""
    if kind != FILES:
        raise InvalidUse("RETAIN HISTORY is for CDC FILES", hint="what a topic keeps is a setting of the topic")


def schema_of(columns: Sequence[ColumnInfo]) -> StreamSchema:
    """The schema of a stream that tells of these columns, by the names that users know."""
    return StreamSchema(pa.schema([_field(each, outside_type(each.type)) for each in columns]))


def schema_to_read(columns: Sequence[Column]) -> StreamSchema:
    """The schema of a stream that fills these columns: a number that does not fit its column is not read."""
    return StreamSchema(pa.schema([_field(each, declared_type(each.type)) for each in columns]))


def _field(column: ColumnInfo | Column, dtype: pa.DataType) -> pa.Field:
    return with_sql_type(pa.field(column.name, dtype, column.nullable), column.type)


def columns_in(stream: StreamSchema) -> tuple[Column, ...]:
    """The columns of a source that takes them from its stream."""
    found = []
    for field in stream.data:
        sql_type = declared(field) or sql_type_for(field.type)
        if sql_type is None or not declared_type(sql_type).equals(_with_digits(field.type, sql_type)):
            hint = "name the columns that the source is to have"
            raise InvalidUse(f'column "{field.name}" of the stream has no type of SQL: {field.type}', hint=hint)
        found.append(Column(field.name, sql_type, field.nullable))
    return tuple(found)


def _with_digits(dtype: pa.DataType, sql_type: SqlType) -> pa.DataType:
    """A stream's decimals have all digits; how many each has is declared by the SQL type."""
    if pa.types.is_decimal128(dtype):
        return pa.decimal128(declared_type(sql_type).precision, dtype.scale)
    if pa.types.is_list(dtype) and sql_type.element is not None:
        return pa.list_(_with_digits(dtype.value_type, sql_type.element))
    return dtype


def suffix_of(arguments: Mapping[str, str]) -> str:
    """How files in the stream's format end."""
    return _SUFFIX[arguments.get("format", "json")]


def outlet_of(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> Outlet:
    """Where a sink writes to."""
    codec = _codec(arguments, schema)
    if kind == FILES:
        return FolderOutlet(_folder(arguments), codec)
    from everview.cdc.kafka import KafkaOutlet

    return KafkaOutlet(_properties(arguments), arguments["topic"], codec)


def _codec(arguments: Mapping[str, str], schema: StreamSchema) -> Codec:
    """How messages are written: in the format, and framed if there is a schema registry."""
    if "registry" not in arguments:
        return codec_for(suffix_of(arguments), schema)
    from everview.cdc.codec.registry import Registry, RegistryCodec

    return RegistryCodec(Registry(arguments["registry"]), arguments["topic"], schema)


def says_schema(kind: str, arguments: Mapping[str, str]) -> bool:
    """Whether a stream of this kind says its schema once anything is written to it."""
    return kind == FILES or "registry" in arguments


def schema_in(kind: str, arguments: Mapping[str, str]) -> StreamSchema | None:
    """The schema that a stream says it has; None if it says none."""
    if kind == FILES:
        folder = folder_of(arguments)
        try:
            return folder.schema()
        finally:
            folder.close()
    if not says_schema(kind, arguments):
        return None
    from everview.cdc.codec.registry import Registry

    return Registry(arguments["registry"]).latest(arguments["topic"])


def begins_at(kind: str, arguments: Mapping[str, str]) -> int:
    """The first time of a stream whose contents are known: what happened before may be forgotten."""
    if kind != FILES:
        return 0
    folder = folder_of(arguments)
    try:
        return max((time for info in folder.files() if (time := base_time(info.key)) is not None), default=0)
    finally:
        folder.close()


def others_of(kind: str, arguments: Mapping[str, str], schema: StreamSchema, outlet: Outlet) -> OthersOf:
    """What tells a sink what others write to the same place."""

    def others(standing: Standing) -> Others:
        if kind == FILES:
            return OtherFiles(_folder(arguments, read_only=True), schema, outlet.writer, standing)
        from everview.cdc.kafka import OtherMessages

        codec = _codec(arguments, schema)
        return OtherMessages(_properties(arguments), arguments["topic"], codec, outlet.writer, standing)

    return others


def upkeep_of(
    arguments: Mapping[str, str], schema: StreamSchema, outlet: Outlet, retain_ms: int | None
) -> Upkeep | None:
    """What looks after the folder that a sink writes to; a topic is looked after by its brokers."""
    return Upkeep(_folder(arguments), schema, retain_ms) if isinstance(outlet, FolderOutlet) else None


def bulk_writer_of(
    arguments: Mapping[str, str],
    schema: StreamSchema,
    places: Sequence[int],
    outlet: Outlet,
    session: SparkSession | None,
) -> BulkWriter | None:
    """What writes large ranges of a collection where the data are, if there is Spark and the stream is of files.

    `places` say which columns of the collection the stream has.
    """
    if session is None or not isinstance(outlet, FolderOutlet) or is_confined(arguments):
        return None  # Spark's tasks open files by their names, and look at nothing
    from everview.cdc.spark.writer import SparkWriter

    folder = Folder(arguments["path"])
    return SparkWriter(session, schema, folder, suffix_of(arguments), outlet.writer, places=places).write


def make_place(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> None:
    """Make the folder or the topic that a sink writes to, where it is not there; tell a schema registry its schema."""
    if kind == FILES:
        _folder(arguments).close()
        return
    from everview.cdc.kafka import make_topic

    if "registry" in arguments:
        from everview.cdc.codec.registry import Registry

        Registry(arguments["registry"]).register(arguments["topic"], schema)
    if arguments.get("create_topics", "true").lower() not in ("false", "off"):
        make_topic(_properties(arguments), arguments["topic"])


def inlet_of(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> Inlet:
    """Where a source reads from."""
    if kind == FILES:
        return FolderInlet(folder_of(arguments), schema)
    inlet: Inlet = _topic(arguments, _codec(arguments, schema), poll_s=POLL_S)
    return inlet


def folder_of(arguments: Mapping[str, str]) -> Folder:
    """The folder of a stream, to be read; of its files only those in the format, if it names one."""
    suffixes = (suffix_of(arguments),) if "format" in arguments else SUFFIXES
    return _folder(arguments, read_only=True, suffixes=suffixes)


def _folder(arguments: Mapping[str, str], *, read_only: bool = False, suffixes: tuple[str, ...] = SUFFIXES) -> Folder:
    return Folder(arguments["path"], read_only=read_only, suffixes=suffixes, confined=is_confined(arguments))


def is_confined(arguments: Mapping[str, str]) -> bool:
    """Whether a stream of files has to stay inside of folders that are allowed."""
    return boolean(arguments.get(CONFINED, "false") or "true", CONFINED)


def is_empty(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> bool:
    """Whether nobody has written to a place yet."""
    if kind == FILES:
        return not _folder(arguments, read_only=True).files()
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
        folder = _folder(arguments, read_only=True)
        for info in folder.files():
            yield from folder.items(info.key, schema)
        return
    from everview.cdc.kafka import read_topic, topic_exists

    if not topic_exists(_properties(arguments), arguments["topic"]):
        return
    codec = _codec(arguments, schema)
    for _, item in read_topic(_properties(arguments), arguments["topic"], codec):
        yield item


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
    properties = {"bootstrap.servers": arguments["brokers"], **given}
    check_kafka(properties)
    return properties
