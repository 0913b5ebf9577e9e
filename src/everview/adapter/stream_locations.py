"""Where change streams are: folders and topics, which are opened to be written or to be read.

A kind of place is one class, and one line in `LOCATIONS`. Statements and the catalog say where a stream is by texts by
name; `parse` and `of` make a value of them, and `said` gives them back.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import pyarrow as pa

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

    from everview.adapter.catalog.items import ColumnInfo
    from everview.cdc.codec.registry import Registry

# Spark's session for much at once, once there is one.
SparkWhenThere: TypeAlias = "Callable[[], SparkSession | None]"

CONFINED = "confined"
POLL_S = 0.02  # how long a poll waits for a topic's next message; more are fetched meanwhile, whoever waits
_SUFFIX = {"json": ".jsonl", "avro": ".avro"}


@dataclass(frozen=True, slots=True)
class StreamLocation(ABC):
    """Where a change stream is, and in which format."""

    kind: ClassVar[str]  # the words after INTO and FROM
    arguments: ClassVar[tuple[str, ...]]  # all that a statement can say
    required: ClassVar[tuple[str, ...]]
    leading: ClassVar[str | None] = None  # the argument that stands in a statement without its name
    altered: ClassVar[tuple[str, ...]] = ()  # what can be changed, for the stream stays the same one
    interval_ms: ClassVar[int] = 0  # how often a sink writes, unless it says so itself

    @property
    def confined(self) -> bool:
        """Whether it has to stay inside of folders that are allowed."""
        return False

    @classmethod
    def parse(cls, arguments: Mapping[str, str]) -> Self:
        """The place that a statement names; an error unless its arguments say where a stream is."""
        for name in arguments:
            if name not in cls.arguments:
                raise InvalidUse(
                    f'{cls.kind.upper()} has no option "{name}"', hint=f"one of {', '.join(cls.arguments)}"
                )
        missing = [name for name in cls.required if not arguments.get(name)]
        if missing:
            raise InvalidUse(f"{cls.kind.upper()} needs {missing[0].upper()}")
        found = cls.of(arguments)
        found.check()
        return found

    def changed(self, given: Mapping[str, str]) -> Self:
        """The same stream, reached in another way."""
        for name in given:
            if name not in self.altered:
                hint = "create another sink, and drop this one"
                raise InvalidUse(f"{name.upper()} of a sink cannot be changed", hint=hint)
        return self.parse({**self.said(), **given})

    @classmethod
    @abstractmethod
    def of(cls, arguments: Mapping[str, str]) -> Self:
        """The place that texts by name say, as the catalog keeps them."""

    @abstractmethod
    def said(self) -> dict[str, str]:
        """The place as texts by name."""

    def check(self) -> None:
        """Raise unless it may be reached, and its arguments go together."""
        return None

    def check_forgets(self) -> None:
        """Raise unless it is for a sink to say how much of the past is kept."""
        return None

    @property
    @abstractmethod
    def title(self) -> str:
        """The place as messages name it."""

    @property
    @abstractmethod
    def says_schema(self) -> bool:
        """Whether the stream says its schema once anything is written to it."""

    @abstractmethod
    def schema(self) -> StreamSchema | None:
        """The schema that the stream says it has; None if it says none."""

    def begins(self) -> int:
        """The first time of the stream whose contents are known: what happened before may be forgotten."""
        return 0

    @abstractmethod
    def is_empty(self, schema: StreamSchema) -> bool:
        """Whether nobody has written to the place yet."""

    @abstractmethod
    def items(self, schema: StreamSchema) -> Iterator[Item]:
        """What is written there already."""

    def told(self, schema: StreamSchema) -> Frontier:
        """How far the statements that are there already reach."""
        tracker = Tracker(START)
        for item in self.items(schema):
            if isinstance(item, Progress):
                tracker.hear(item)
        return tracker.covered

    @abstractmethod
    def make(self, schema: StreamSchema) -> None:
        """Make the place for a sink, where it is not there; tell a schema registry its schema."""

    @abstractmethod
    def outlet(self, schema: StreamSchema) -> Outlet:
        """Where a sink writes to."""

    @abstractmethod
    def inlet(self, schema: StreamSchema) -> Inlet:
        """Where a source reads from."""

    @abstractmethod
    def others(self, schema: StreamSchema, outlet: Outlet) -> OthersOf:
        """What tells a sink what others write to the same place."""

    def upkeep(self, schema: StreamSchema, retain_ms: int | None) -> Upkeep | None:
        """What looks after the past of the stream; None if it is not for a sink to do so."""
        return None

    def bulk_writer(
        self, schema: StreamSchema, places: Sequence[int], outlet: Outlet, session: SparkSession | None
    ) -> BulkWriter | None:
        """What writes large ranges of a collection where the data are, if there is Spark and the stream is of files.

        `places` say which columns of the collection the stream has.
        """
        return None


@dataclass(frozen=True, slots=True)
class FolderLocation(StreamLocation):
    """CDC FILES: a folder, here or in an object store."""

    kind = "cdc files"
    arguments = ("path", "format", CONFINED)
    required = ("path",)
    leading = "path"
    interval_ms = 1_000

    path: str
    format: str | None = None  # None: a source reads files of all formats, and a sink writes JSON
    confined: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> Self:
        return cls(
            arguments["path"],
            arguments.get("format"),
            confined=boolean(arguments.get(CONFINED, "false") or "true", CONFINED),
        )

    def said(self) -> dict[str, str]:
        found = {"path": self.path, "format": self.format, CONFINED: "true" if self.confined else None}
        return {name: text for name, text in found.items() if text is not None}

    @property
    def title(self) -> str:
        return f"folder {self.path}"

    @property
    def says_schema(self) -> bool:
        return True

    def schema(self) -> StreamSchema | None:
        folder = self._to_read()
        try:
            return folder.schema()
        finally:
            folder.close()

    def begins(self) -> int:
        folder = self._to_read()
        try:
            return max((time for info in folder.files() if (time := base_time(info.key)) is not None), default=0)
        finally:
            folder.close()

    def is_empty(self, schema: StreamSchema) -> bool:
        return not self._folder(read_only=True).files()

    def items(self, schema: StreamSchema) -> Iterator[Item]:
        folder = self._folder(read_only=True)
        for info in folder.files():
            yield from folder.items(info.key, schema)

    def make(self, schema: StreamSchema) -> None:
        self._folder().close()

    def outlet(self, schema: StreamSchema) -> Outlet:
        return FolderOutlet(self._folder(), codec_for(self._suffix, schema))

    def inlet(self, schema: StreamSchema) -> Inlet:
        return FolderInlet(self._to_read(), schema)

    def others(self, schema: StreamSchema, outlet: Outlet) -> OthersOf:
        return lambda standing: OtherFiles(self._folder(read_only=True), schema, outlet.writer, standing)

    def upkeep(self, schema: StreamSchema, retain_ms: int | None) -> Upkeep:
        return Upkeep(self._folder(), schema, retain_ms)

    def bulk_writer(
        self, schema: StreamSchema, places: Sequence[int], outlet: Outlet, session: SparkSession | None
    ) -> BulkWriter | None:
        if session is None or self.confined:
            return None  # Spark's tasks open files by their names, and look at nothing
        from everview.cdc.spark.writer import SparkWriter

        return SparkWriter(session, schema, Folder(self.path), self._suffix, outlet.writer, places=places).write

    @property
    def _suffix(self) -> str:
        """How files end that a sink writes."""
        return _SUFFIX[self.format or "json"]

    def _to_read(self) -> Folder:
        """The folder; of its files only those in the format, if it names one."""
        return self._folder(read_only=True, suffixes=SUFFIXES if self.format is None else (self._suffix,))

    def _folder(self, *, read_only: bool = False, suffixes: tuple[str, ...] = SUFFIXES) -> Folder:
        return Folder(self.path, read_only=read_only, suffixes=suffixes, confined=self.confined)


@dataclass(frozen=True, slots=True)
class TopicLocation(StreamLocation):
    """CDC KAFKA: a topic; `registry` is the address of its schema registry, if it has one."""

    kind = "cdc kafka"
    arguments = ("brokers", "topic", "registry", "properties", "create_topics", "format")
    required = ("brokers", "topic")
    altered = ("brokers", "properties", "registry")

    brokers: str
    topic: str
    registry: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)  # librdkafka's settings
    creates: bool = True  # the topic, if it is not there
    format: str | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> Self:
        try:
            properties = json.loads(arguments.get("properties", "{}"))
        except ValueError:
            properties = None
        if not isinstance(properties, dict):
            raise InvalidUse("PROPERTIES must be a JSON object of librdkafka's settings")
        creates = arguments.get("create_topics", "true").lower() not in ("false", "off")
        brokers, topic, registry = arguments["brokers"], arguments["topic"], arguments.get("registry")
        return cls(brokers, topic, registry, properties, creates, arguments.get("format"))

    def said(self) -> dict[str, str]:
        found = {
            "brokers": self.brokers,
            "topic": self.topic,
            "registry": self.registry,
            "properties": json.dumps(self.properties) if self.properties else None,
            "create_topics": None if self.creates else "false",
            "format": self.format,
        }
        return {name: text for name, text in found.items() if text is not None}

    def changed(self, given: Mapping[str, str]) -> Self:
        if "registry" in given and self.registry is None:
            hint = "create another sink, and drop this one"  # a registry frames all messages
            raise InvalidUse("REGISTRY of a sink cannot be changed", hint=hint)
        return StreamLocation.changed(self, given)

    def check(self) -> None:
        self._settings()
        check_url(self.registry or "")
        if self.registry is not None and self.format not in (None, "avro"):
            raise InvalidUse("a schema registry is for FORMAT AVRO")
        import everview.cdc.kafka  # noqa: F401  raises where its library is missing

    def check_forgets(self) -> None:
        raise InvalidUse("RETAIN HISTORY is for CDC FILES", hint="what a topic keeps is a setting of the topic")

    @property
    def title(self) -> str:
        return f"topic {self.topic}"

    @property
    def says_schema(self) -> bool:
        return self.registry is not None

    def schema(self) -> StreamSchema | None:
        registry = self._registry()
        return None if registry is None else registry.latest(self.topic)

    def is_empty(self, schema: StreamSchema) -> bool:
        return next(self.items(schema), None) is None

    def items(self, schema: StreamSchema) -> Iterator[Item]:
        from everview.cdc.kafka import read_topic, topic_exists

        if topic_exists(self._settings(), self.topic):
            for _, item in read_topic(self._settings(), self.topic, self._codec(schema)):
                yield item

    def make(self, schema: StreamSchema) -> None:
        from everview.cdc.kafka import make_topic

        if (registry := self._registry()) is not None:
            registry.register(self.topic, schema)
        if self.creates:
            make_topic(self._settings(), self.topic)

    def outlet(self, schema: StreamSchema) -> Outlet:
        from everview.cdc.kafka import KafkaOutlet

        return KafkaOutlet(self._settings(), self.topic, self._codec(schema))

    def inlet(self, schema: StreamSchema) -> Inlet:
        from everview.cdc.kafka import KafkaInlet

        return KafkaInlet(self._settings(), self.topic, self._codec(schema), poll_s=POLL_S)

    def others(self, schema: StreamSchema, outlet: Outlet) -> OthersOf:
        def others(standing: Standing) -> Others:
            from everview.cdc.kafka import OtherMessages

            return OtherMessages(self._settings(), self.topic, self._codec(schema), outlet.writer, standing)

        return others

    def _codec(self, schema: StreamSchema) -> Codec:
        """How messages are written: in the format, and framed if there is a schema registry."""
        if (registry := self._registry()) is None:
            return codec_for(_SUFFIX[self.format or "json"], schema)
        from everview.cdc.codec.registry import RegistryCodec

        return RegistryCodec(registry, self.topic, schema)

    def _registry(self) -> Registry | None:
        from everview.cdc.codec.registry import Registry

        return None if self.registry is None else Registry(self.registry)

    def _settings(self) -> dict[str, Any]:
        """The settings of a client, whose addresses are looked at each time."""
        settings = {"bootstrap.servers": self.brokers, **self.properties}
        check_kafka(settings)
        return settings


LOCATIONS: Mapping[str, type[StreamLocation]] = {each.kind: each for each in (FolderLocation, TopicLocation)}


def is_stream(kind: str) -> bool:
    """Whether a sink or source of this kind is a change stream."""
    return kind in LOCATIONS


def absolute(arguments: Mapping[str, str]) -> dict[str, str]:
    """Where something is, whatever folder the server is started from next; addresses stay what they are."""
    found = dict(arguments)
    path = found.get("path")
    if path and "://" not in path and not path.startswith(("file:", "memory:")):
        found["path"] = os.path.abspath(path)
    return found


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
    for each in stream.data:
        sql_type = declared(each) or sql_type_for(each.type)
        if sql_type is None or not declared_type(sql_type).equals(_with_digits(each.type, sql_type)):
            hint = "name the columns that the source is to have"
            raise InvalidUse(f'column "{each.name}" of the stream has no type of SQL: {each.type}', hint=hint)
        found.append(Column(each.name, sql_type, each.nullable))
    return tuple(found)


def _with_digits(dtype: pa.DataType, sql_type: SqlType) -> pa.DataType:
    """A stream's decimals have all digits; how many each has is declared by the SQL type."""
    if pa.types.is_decimal128(dtype):
        return pa.decimal128(declared_type(sql_type).precision, dtype.scale)
    if pa.types.is_list(dtype) and sql_type.element is not None:
        return pa.list_(_with_digits(dtype.value_type, sql_type.element))
    return dtype
