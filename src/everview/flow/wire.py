"""The protocol as lines of JSON: how it is spoken with programs, ours or a stranger's, over their standard streams.

Every line is an object with one member, named after the message; names are in camel case, what has its default value
is left out, 64-bit integers are strings, bytes are base64, documents are embedded as they are. A table of documents
becomes a line for each. Our checkpoints take the form of the public ones: a source for each range, read up to its
frontier, so a program may parse them or not.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from everview.compute.ir.types import NUMERIC_SCALE, Kind, SqlType
from everview.flow.checkpoint import Checkpoint
from everview.flow.contract import DELETE, EXISTS, Binding, Field, Spec
from everview.flow.documents import arrays, from_json, from_objects, loads, objects
from everview.flow.errors import DriverFailed
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import (
    Acknowledge,
    Acknowledged,
    Flush,
    Flushed,
    Load,
    Loaded,
    Message,
    Open,
    Opened,
    StartCommit,
    StartedCommit,
    StateUpdate,
    Store,
)
from everview.flow.reduction import Reduction
from everview.flow.tuples import pack

PROTOCOL = 3032023

_JSON_TYPES: dict[Kind, tuple[str, str | None]] = {
    Kind.BOOLEAN: ("boolean", None),
    Kind.INT2: ("integer", None),
    Kind.INT4: ("integer", None),
    Kind.INT8: ("integer", None),
    Kind.MZ_TIMESTAMP: ("integer", None),
    Kind.FLOAT4: ("number", None),
    Kind.FLOAT8: ("number", None),
    Kind.NUMERIC: ("string", "number"),
    Kind.DATE: ("string", "date"),
    Kind.TIME: ("string", "time"),
    Kind.TIMESTAMPTZ: ("string", "date-time"),
    Kind.UUID: ("string", "uuid"),
    Kind.JSONB: ("object", None),
    Kind.ARRAY: ("array", None),
}


def lines(message: Message, spec: Spec) -> Iterator[str]:
    """A message as lines, without their ends."""
    if isinstance(message, Open):
        span = {"keyBegin": message.range.begin, "keyEnd": message.range.end, "rClockBegin": 0, "rClockEnd": 2**32 - 1}
        yield _line("open", {"materialization": spec_json(spec), "version": "1", "range": span, "state": message.state})
    elif isinstance(message, Load):
        binding = spec.bindings[message.binding]
        for key in arrays(message.keys, binding.key_fields):
            yield f'{{"load":{{{_binding(message.binding)}"key":{key},"keyPacked":"{_packed(key)}"}}}}'
    elif isinstance(message, Store):
        yield from _stores(message, spec.bindings[message.binding])
    elif isinstance(message, StartCommit):
        yield _line("startCommit", {"runtimeCheckpoint": checkpoint_json(message.checkpoint)})
    elif isinstance(message, Opened):
        known = {} if message.checkpoint is None else {"runtimeCheckpoint": checkpoint_json(message.checkpoint)}
        yield _line("opened", known)
    elif isinstance(message, Loaded):
        for document in objects(message.documents, spec.bindings[message.binding].fields):
            yield f'{{"loaded":{{{_binding(message.binding)}"doc":{document}}}}}'
    elif isinstance(message, Acknowledge | Flush):
        yield _line("acknowledge" if isinstance(message, Acknowledge) else "flush", {})
    else:
        name = {Acknowledged: "acknowledged", Flushed: "flushed", StartedCommit: "startedCommit"}[type(message)]
        update = message.state
        state = {} if update is None else {"state": {"updated": update.updated, "mergePatch": update.merge_patch}}
        yield _line(name, state)


def _stores(message: Store, binding: Binding) -> Iterator[str]:
    rows = message.documents
    values = sorted(binding.value_fields, key=lambda field: field.name)
    flags = zip(rows.column(EXISTS).to_pylist(), rows.column(DELETE).to_pylist(), strict=True)
    columns = arrays(rows, binding.key_fields), arrays(rows, values), objects(rows, binding.fields), flags
    for key, value, document, (exists, delete) in zip(*columns, strict=True):
        more = (',"exists":true' if exists else "") + (',"delete":true' if delete else "")
        yield (
            f'{{"store":{{{_binding(message.binding)}"key":{key},"keyPacked":"{_packed(key)}",'
            f'"values":{value},"valuesPacked":"{_packed(value)}","doc":{document}{more}}}}}'
        )


def _line(name: str, value: Mapping[str, Any]) -> str:
    return json.dumps({name: value}, separators=(",", ":"))


def _binding(number: int) -> str:
    return f'"binding":{number},' if number else ""


def _packed(array: str) -> str:
    values = [
        json.dumps(each, default=float).encode()
        if isinstance(each, list | dict)
        else float(each)
        if isinstance(each, Decimal)
        else each
        for each in loads(array)
    ]
    return base64.b64encode(pack(values)).decode()


# Reading

Parsed = tuple[str, dict[str, Any]]


def parse_line(line: str | bytes) -> Parsed:
    """The name of a message and what it says."""
    try:
        value = loads(line)
    except ValueError as error:
        raise DriverFailed("the program wrote a line that is not JSON", detail=repr(line[:200])) from error
    if not isinstance(value, dict) or len(value) != 1:
        raise DriverFailed("the program wrote a line that is not one message", detail=repr(line[:200]))
    ((name, said),) = value.items()
    return name, said or {}


def state_update(said: Mapping[str, Any]) -> StateUpdate | None:
    """The change of state that comes with a response."""
    state = said.get("state")
    if not state:
        return None
    return StateUpdate(state.get("updated") or {}, bool(state.get("mergePatch", False)))


def loaded_table(documents: list[Any], binding: Binding) -> pa.Table:
    """Documents that a program loaded."""
    return from_objects(documents, binding)


def keys_table(keys: list[list[Any]], binding: Binding) -> pa.Table:
    """Keys that a runtime loads."""
    columns = [
        pa.array([from_json(key[at], field) for key in keys], type_)
        for at, (field, type_) in enumerate(zip(binding.key_fields, binding.key_schema.types, strict=True))
    ]
    return pa.table(columns, schema=binding.key_schema)


def stored_table(stores: list[dict[str, Any]], binding: Binding) -> pa.Table:
    """Documents that a runtime stores."""
    documents = from_objects([store["doc"] for store in stores], binding)
    for name, member in ((EXISTS, "exists"), (DELETE, "delete")):
        flags = pa.array([bool(store.get(member, False)) for store in stores], pa.bool_())
        documents = documents.append_column(pa.field(name, pa.bool_()), flags)
    return documents


def checkpoint_json(text: str) -> dict[str, Any]:
    """Our checkpoint in the public form."""
    pieces = Checkpoint.decode(text).pieces
    return {"sources": {f"everview/{range}": {"readThrough": str(frontier)} for range, frontier in pieces}}


def checkpoint_text(said: Mapping[str, Any] | None) -> str | None:
    """And back; one without sources is none."""
    sources = (said or {}).get("sources") or {}
    if not sources:
        return None
    try:
        pieces = [
            (KeyRange.parse(name.removeprefix("everview/")), int(source.get("readThrough", 0)))
            for name, source in sources.items()
        ]
    except (ValueError, AttributeError) as error:
        raise DriverFailed("the program returned a checkpoint that is not ours", detail=str(said)[:200]) from error
    return Checkpoint(tuple(sorted(pieces))).encode()


# Specifications


def spec_json(spec: Spec) -> dict[str, Any]:
    """A materialization as programs see it."""
    return {
        "name": spec.name,
        "connectorType": "LOCAL",
        "config": dict(spec.config),
        "bindings": [binding_json(each) for each in spec.bindings],
    }


def binding_json(binding: Binding) -> dict[str, Any]:
    """A binding as programs see it: projections are in order of their fields, and those of the key are never NULL."""
    projections = [_projection(field, binding) for field in sorted(binding.fields, key=lambda field: field.name)]
    return {
        "resourceConfig": dict(binding.resource),
        "resourcePath": [str(value) for value in binding.resource.values()],
        "collection": {
            "name": binding.collection,
            "key": [f"/{name}" for name in binding.key],
            "projections": projections,
        },
        "fieldSelection": {
            "keys": list(binding.key),
            "values": sorted(field.name for field in binding.value_fields),
            "document": "",
        },
        "columns": binding.names,
        "deltaUpdates": binding.delta_updates,
    }


def _projection(field: Field, binding: Binding) -> dict[str, Any]:
    kind, form = _JSON_TYPES.get(field.type.kind, ("string", None))
    is_key = field.name in binding.key
    inference: dict[str, Any] = {"types": [kind] if is_key else [kind, "null"], "exists": "MUST"}
    if form is not None:
        inference["string"] = {"format": form}
    return {
        "ptr": f"/{field.name}",
        "field": field.name,
        "isPrimaryKey": is_key,
        "inference": inference,
        "sqlType": type_json(field.type),
        "reduce": field.reduction.to_json(),
    }


def spec_from_json(said: Mapping[str, Any], driver: str) -> Spec:
    """A materialization that a runtime tells us of."""
    bindings = tuple(binding_from_json(each) for each in said.get("bindings", ()))
    return Spec(str(said.get("name", "")), driver, bindings, dict(said.get("config", {})))


def binding_from_json(said: Mapping[str, Any]) -> Binding:
    """A binding that a runtime tells us of."""
    collection = said.get("collection", {})
    fields = {each["field"]: _field(each) for each in collection.get("projections", ())}
    selection = said.get("fieldSelection") or {}
    chosen = [*selection.get("keys", ()), *selection.get("values", ())] or list(fields)
    names = said.get("columns") or [name for name in fields if name in chosen]
    key = selection.get("keys") or [pointer.removeprefix("/") for pointer in collection.get("key", ())]
    return Binding(
        str(collection.get("name", "")),
        tuple(fields[name] for name in names),
        tuple(key),
        dict(said.get("resourceConfig", {})),
        bool(said.get("deltaUpdates", False)),
    )


def _field(said: Mapping[str, Any]) -> Field:
    reduction = Reduction.parse(said.get("reduce") or "lastWriteWins")
    if "sqlType" in said:
        return Field(said["field"], type_from_json(said["sqlType"]), reduction)
    inference = said.get("inference", {})
    types = [each for each in inference.get("types", ()) if each != "null"]
    form = (inference.get("string") or {}).get("format") or ""
    kinds = {
        "boolean": Kind.BOOLEAN,
        "integer": Kind.INT8,
        "number": Kind.FLOAT8,
        "object": Kind.JSONB,
        "array": Kind.JSONB,
    }
    kind = kinds.get(types[0], Kind.TEXT) if len(types) == 1 else Kind.JSONB
    if kind is Kind.TEXT:
        kind = {"date": Kind.DATE, "date-time": Kind.TIMESTAMPTZ, "uuid": Kind.UUID}.get(form, Kind.TEXT)
    return Field(said["field"], SqlType(kind), reduction)


def type_json(sql_type: SqlType) -> dict[str, Any]:
    """A type with its modifiers."""
    said: dict[str, Any] = {"name": sql_type.kind.value}
    if sql_type.kind is Kind.NUMERIC:
        said |= {"precision": sql_type.precision, "scale": sql_type.scale, "constrained": sql_type.constrained}
    if sql_type.length is not None:
        said["length"] = sql_type.length
    if sql_type.element is not None:
        said["element"] = type_json(sql_type.element)
    return said


def type_from_json(said: Mapping[str, Any]) -> SqlType:
    """And back."""
    kind = Kind(said["name"])
    if kind is Kind.NUMERIC:
        scale = int(said.get("scale", NUMERIC_SCALE))
        return SqlType(kind, scale, int(said.get("precision", 38)), constrained=bool(said.get("constrained", True)))
    element = said.get("element")
    return SqlType(kind, length=said.get("length"), element=None if element is None else type_from_json(element))
