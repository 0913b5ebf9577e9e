"""How entries of the catalog are written down: JSON, with a version, so that a newer catalog is known as such.

Items of all kinds are written in one flat form, that of the first version: every field that any kind has, and in
`source` texts by name, of which some are JSON in turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from everview.adapter.catalog import items
from everview.adapter.catalog.sealed import SealedSettings
from everview.adapter.catalog.specs import Delivered, DriverSink, SinkSpec, StreamSink
from everview.adapter.sealing import Sealer
from everview.adapter.secrets import hold_secrets
from everview.adapter.sources.registry import SOURCES, kind_of
from everview.adapter.stream_locations import LOCATIONS, is_stream
from everview.compute.ir.types import Kind, SqlType
from everview.errors import EverviewError
from everview.sources.contract import OwnTimeline, Spec

T = TypeVar("T")

VERSION = 2
PLACED_VERSION = 3  # of items whose columns have places of their own
SEVERAL_VERSION = 4  # of sinks with several collections, of which an older everview would deliver the first only
CONNECTED_VERSION = 5  # of secrets and connections, and what uses them, of which an older everview knows nothing
SEALED_VERSION = 6  # of sinks whose settings are sealed
KEYLESS = Sealer()
_FLAT: Mapping[str, Any] = {
    **{"id": None, "kind": None, "name": None, "schema": None, "owner": None, "columns": (), "query": None},
    **{"on": None, "keys": (), "depends": (), "retain_ms": None, "reader": None, "writer": None, "source": {}},
    **{"replaces": None, "automatic": False, "guards": {}, "version": 1, "current": None, "history": (), "pins": {}},
    **{"layout": (), "ttl": None},
}


def encode(
    entry: items.Database | items.Schema | items.Role | items.Item | items.Event, sealer: Sealer = KEYLESS
) -> bytes:
    if not isinstance(entry, items.Item):
        return _written(VERSION, asdict(entry))
    found, version = _flat(entry), _version_of(entry)
    if isinstance(entry, items.Sink) and (sealed := _sealed(entry, sealer)) is not None:
        found["source"] |= {_settings_name(entry.spec.kind): "{}", "sealed": sealed}
        version = SEALED_VERSION
    return _written(version, found)


def _sealed(item: items.Sink, sealer: Sealer) -> str | None:
    """The settings of a sink, sealed. None if they hold no secrets, or there is no key at all."""
    settings = settings_of(item.spec)
    if isinstance(settings, SealedSettings):
        return settings.sealed
    if not (sealer.available and hold_secrets(item.spec.kind, settings)):
        return None
    return sealer.seal(json.dumps(settings), item.id)


def settings_of(spec: SinkSpec) -> Mapping[str, Any]:
    """What may hold passwords of a sink."""
    return spec.location.said() if isinstance(spec, StreamSink) else spec.config


def _settings_name(kind: str) -> str:
    return "arguments" if is_stream(kind) else "config"


def in_clear(item: items.Item) -> bool:
    """Whether passwords of a sink were read from the catalog as texts, or would be kept so."""
    if not isinstance(item, items.Sink):
        return False
    settings, spec = settings_of(item.spec), item.spec
    sealed = spec.sealed if isinstance(spec, StreamSink) else isinstance(settings, SealedSettings)
    return not sealed and hold_secrets(spec.kind, settings)


def _version_of(item: items.Item) -> int:
    match item:
        case items.Secret() | items.Connection() | items.Sink(spec=DriverSink(connection=str())):
            return CONNECTED_VERSION
        case items.Source(spec=Spec() as spec) if kind_of(spec).connects or item.paused:
            return CONNECTED_VERSION
        case items.Sink(spec=spec) if len(spec.collections) > 1:
            return SEVERAL_VERSION
        case items.MaterializedView(layout=layout) if layout:
            return PLACED_VERSION
        case _:
            return VERSION


def _written(version: int, found: Mapping[str, Any]) -> bytes:
    return json.dumps([version, found], separators=(",", ":")).encode()


def _flat(item: items.Item) -> dict[str, Any]:
    own = {each.name: getattr(item, each.name) for each in fields(item) if each.name in _FLAT}
    found = {**_FLAT, **own, "kind": item.noun, "columns": _columns_to_json(item.columns)}
    match item:
        case items.MaterializedView(staged=staged):
            found["history"] = [{**asdict(each), "columns": _columns_to_json(each.columns)} for each in item.history]
            found["layout"] = [type_to_json(each) for each in item.layout]
            if staged is not None:
                found |= {"replaces": staged.target, "automatic": staged.automatic, "guards": staged.guards}
        case items.Source(spec=spec):
            found["source"] = _source_to_json(spec) | ({"state": "paused"} if item.paused else {})
        case items.Sink(spec=spec):
            first, *others = spec.collections
            found |= {"on": first.collection, "keys": () if others else first.key}
            found["source"] = _sink_to_json(spec) | ({"state": "paused"} if item.paused else {})
        case items.Subscription(hold_ms=hold_ms, snapshot=snapshot):
            found["source"] = {"hold_ms": str(hold_ms), "snapshot": str(snapshot).lower()}
        case items.Secret(origin=origin, value=value, confined=confined):
            found["source"] = {"kind": origin, "value": value, "confined": str(confined).lower()}
        case items.Connection(to=to, options=options, secrets=secrets):
            found["source"] = {"kind": to, "options": json.dumps(dict(options)), "secrets": json.dumps(dict(secrets))}
    return found


def _fields(data: bytes) -> dict[str, Any]:
    version, found = json.loads(data)
    if version > SEALED_VERSION:
        raise EverviewError(
            "the catalog was written by a newer version of everview", hint="use that version, or a newer one"
        )
    return found  # type: ignore[no-any-return]


def decoder(kind: type[T]) -> Callable[[bytes], T]:
    """What reads entries of a kind: databases, schemas or roles."""
    return lambda data: kind(**_fields(data))


def decode_event(data: bytes) -> items.Event:
    found = _fields(data)
    return items.Event(**{**found, "kind": items.EventKind(found["kind"])})


def decode_item(data: bytes, sealer: Sealer = KEYLESS) -> items.Item:
    found = _fields(data)
    before = found.pop("before", None)  # the query, as it was written when all versions of a view had the same columns
    if unknown := found.keys() - _FLAT.keys():
        raise ValueError(f"an item has no {min(unknown)}")
    kind, said = items.KINDS[found["kind"]], found.get("source", {})
    found["columns"] = _columns_from_json(found["columns"])
    found["layout"] = tuple(map(type_from_json, found.get("layout", ())))
    found["history"] = tuple(map(_version_from_json, found.get("history", ())))
    if before is not None:
        found["history"] = (items.Version(found["id"], found["version"] - 1, found["columns"], before),)
    found |= {name: tuple(found[name]) for name in ("keys", "depends", "ttl") if found.get(name) is not None}
    if kind is items.MaterializedView and found.get("replaces") is not None:
        found["staged"] = items.Staged(found["replaces"], found.get("automatic", False), found.get("guards", {}))
    elif kind is items.Source:
        found |= {"spec": _source_from_json(said), "paused": said.get("state") == "paused"}
    elif kind is items.Sink:
        spec = _sink_from_json(said, found["on"], found["keys"], found["id"], sealer)
        found |= {"spec": spec, "paused": said.get("state") == "paused"}
    elif kind is items.Subscription:
        found |= {"hold_ms": int(said["hold_ms"]), "snapshot": said["snapshot"] == "true"}
    elif kind is items.Secret:
        found |= {"origin": said["kind"], "value": said["value"], "confined": said["confined"] == "true"}
    elif kind is items.Connection:
        found |= {"to": said["kind"], "options": json.loads(said["options"]), "secrets": json.loads(said["secrets"])}
    own = {each.name for each in fields(kind)}
    return kind(**{name: value for name, value in found.items() if name in own})


def _version_from_json(found: dict[str, Any]) -> items.Version:
    columns, depends = _columns_from_json(found["columns"]), tuple(found["depends"])
    return items.Version(**{**found, "columns": columns, "depends": depends})


# Sinks and sources


def _sink_to_json(spec: SinkSpec) -> dict[str, str]:
    shown, options = json.dumps(spec.shown), json.dumps(spec.options)
    settings = settings_of(spec)
    said = "{}" if isinstance(settings, SealedSettings) else json.dumps(settings)
    if isinstance(spec, StreamSink):
        return {"kind": spec.kind, "arguments": said, "options": options, "shown": shown}
    found = {"kind": spec.kind, "name": spec.name, "config": said, "options": options}
    found |= {} if spec.connection is None else {"connection": spec.connection}
    if len(spec.collections) > 1:
        collections = [
            {"id": each.collection, "resource": each.resource, "key": each.key, "delta": each.delta_updates,
             "reduce": each.reductions, "shown": each.shown}
            for each in spec.collections
        ]  # fmt: skip
        return {**found, "collections": json.dumps(collections), "shown": shown}
    (only,) = spec.collections
    found |= {"resource": json.dumps(only.resource), "delta": "true" if only.delta_updates else ""}
    return {**found, "reduce": json.dumps(only.reductions), "shown": shown}


def _sink_from_json(said: Mapping[str, str], on: str, key: tuple[str, ...], id: str, sealer: Sealer) -> SinkSpec:
    def part(name: str) -> Any:
        return json.loads(said.get(name, "{}"))

    sealed = SealedSettings(said["sealed"], id, sealer) if "sealed" in said else None
    if "arguments" in said:  # without the key such a sink is out of reach, for nobody knows where its stream is
        location = LOCATIONS[said["kind"]].of(part("arguments") if sealed is None else sealed)
        return StreamSink(location, on, part("options"), part("shown"), sealed is not None)
    if "collections" in said:
        collections = tuple(
            Delivered(each["id"], each["resource"], tuple(each["key"]), each["delta"], each["reduce"], each["shown"])
            for each in part("collections")
        )
    else:
        collections = (Delivered(on, part("resource"), key, bool(said.get("delta")), part("reduce")),)
    config, connection = part("config") if sealed is None else sealed, said.get("connection")
    return DriverSink(said["kind"], said["name"], config, collections, part("options"), part("shown"), connection)


def _source_to_json(spec: Spec | items.Part) -> dict[str, str]:
    if isinstance(spec, items.Part):
        return {"kind": "subsource", "of": spec.of, "table": spec.table}
    own = spec.timeline
    timeline = {} if own is None else {"timeline": own.name, "timeline_key": own.key}
    return {"kind": spec.kind, **kind_of(spec).to_json(spec), **timeline}


def _source_from_json(said: Mapping[str, str]) -> Spec | items.Part:
    if said["kind"] == "subsource":
        return items.Part(said["of"], said["table"])
    timeline = OwnTimeline(said["timeline"], said["timeline_key"]) if "timeline" in said else None
    spec: Spec = SOURCES[said["kind"]].from_json(said["kind"], said, timeline)
    return spec


# Columns and types


def _columns_to_json(columns: Iterable[items.ColumnInfo]) -> list[Any]:
    return [
        [column.name, type_to_json(column.type), column.nullable, column.default]
        + ([] if column.place is None else [column.place, *([list(column.earlier)] if column.earlier else [])])
        for column in columns
    ]


def _columns_from_json(columns: Iterable[Any]) -> tuple[items.ColumnInfo, ...]:
    found = []
    for name, sql_type, nullable, default, *places in columns:
        place = places[0] if places else None
        earlier = tuple(places[1]) if len(places) > 1 else ()
        found.append(items.ColumnInfo(name, type_from_json(sql_type), nullable, default, place, earlier))
    return tuple(found)


def type_to_json(sql_type: SqlType) -> list[Any]:
    element = None if sql_type.element is None else type_to_json(sql_type.element)
    return [sql_type.kind.name, sql_type.scale, sql_type.precision, sql_type.length, element, sql_type.constrained]


def type_from_json(value: list[Any]) -> SqlType:
    kind, scale, precision, length, element, constrained = value
    inner = None if element is None else type_from_json(element)
    return SqlType(Kind[kind], scale, precision, length, inner, constrained)
