"""What the messages of programs say, in the form that they have in JSON.

A message is an object with one member, named after it; names are in camel case, what has its default value is left
out, 64-bit integers are strings, bytes are base64, documents are embedded as they are. Our checkpoints take the form of
the public ones: a source for each range, read up to its frontier, so a program may parse them or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from everview.compute.ir.types import NUMERIC_SCALE, Kind, SqlType
from everview.flow.checkpoint import Checkpoint
from everview.flow.contract import DELETE, EXISTS, Binding, Field, Spec
from everview.flow.documents import column_from_json, from_objects, loads
from everview.flow.errors import DriverFailed
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import StateUpdate
from everview.flow.reduction import Reduction

PROTOCOL = 3032023
DELTA_UPDATES = "delta_updates"  # the switch in the resources of our own drivers as programs

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


def keys_table(keys: list[list[Any]], binding: Binding) -> pa.Table:
    """Keys that a runtime loads."""
    columns = [
        column_from_json(values, field, type_)
        for values, field, type_ in zip(
            zip(*keys, strict=True), binding.key_fields, binding.key_schema.types, strict=True
        )
    ]
    return pa.table(columns, schema=binding.key_schema)


def stored_table(stores: list[dict[str, Any]], binding: Binding, selection: Mapping[str, Any]) -> pa.Table:
    """Documents that a runtime stores. Each is put together from key and values, unless it comes as a whole."""
    keys, values = selection.get("keys") or (), selection.get("values") or ()
    if all("values" in store for store in stores):
        rows = [(*store["key"], *store["values"]) for store in stores]
        columns = dict(zip((*keys, *values), zip(*rows, strict=True), strict=True))
        nothing = (None,) * len(stores)
        documents = pa.table(
            [
                column_from_json(columns.get(each.name, nothing), each, type_)
                for each, type_ in zip(binding.fields, binding.schema.types, strict=True)
            ],
            schema=binding.schema,
        )
    else:
        documents = from_objects([store["doc"] for store in stores], binding)
    for name, member in ((EXISTS, "exists"), (DELETE, "delete")):
        flags = pa.array([bool(store.get(member, False)) for store in stores], pa.bool_())
        documents = documents.append_column(pa.field(name, pa.bool_()), flags)
    return documents


def checkpoint_json(text: str) -> dict[str, Any]:
    """Our checkpoint in the public form."""
    checkpoint = Checkpoint.decode(text)
    by = "".join(f";{each}" for each in sorted(checkpoint.lineages))
    return {"sources": {f"everview/{range}{by}": {"readThrough": str(each)} for range, each in checkpoint.pieces}}


def checkpoint_text(said: Mapping[str, Any] | None) -> str | None:
    """Read a checkpoint in the public form; None if it has no sources."""
    sources = (said or {}).get("sources") or {}
    if not sources:
        return None
    try:
        lineages: set[str] = set()
        pieces = []
        for name, source in sources.items():
            range, *by = name.removeprefix("everview/").split(";")
            pieces.append((KeyRange.parse(range), int(source.get("readThrough", 0))))
            lineages.update(by)
    except (ValueError, AttributeError) as error:
        raise DriverFailed("the program returned a checkpoint that is not ours", detail=str(said)[:200]) from error
    return Checkpoint(tuple(sorted(pieces)), frozenset(lineages)).encode()


def spec_from_json(said: Mapping[str, Any], driver: str) -> Spec:
    """A materialization that a runtime tells us of."""
    bindings = tuple(binding_from_json(each) for each in said.get("bindings", ()))
    return Spec(str(said.get("name", "")), driver, bindings, dict(said.get("config", {})))


def binding_from_json(said: Mapping[str, Any]) -> Binding:
    """A binding that a runtime tells us of, reduced to its columns."""
    collection = said.get("collection", {})
    # The others are all of the document, or a part of a member.
    members = [each for each in collection.get("projections", ()) if str(each.get("ptr", "")).count("/") == 1]
    fields = {each["field"]: _field(each) for each in members}
    selection = said.get("fieldSelection") or {}
    chosen = [*selection.get("keys", ()), *selection.get("values", ())] or list(fields)
    names = said.get("columns") or [name for name in fields if name in chosen]
    key = selection.get("keys") or [_name(pointer) for pointer in collection.get("key", ())]
    resource = dict(said.get("resourceConfig") or {})
    delta = bool(resource.pop(DELTA_UPDATES, False)) or bool(said.get("deltaUpdates", False))
    return Binding(
        str(collection.get("name", "")),
        tuple(fields[name] for name in names),
        tuple(name for name in key if name in fields),
        resource,
        delta,
    )


def _name(pointer: str) -> str:
    return pointer.removeprefix("/").replace("~1", "/").replace("~0", "~")


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
    kind = Kind(said["name"])
    if kind is Kind.NUMERIC:
        scale = int(said.get("scale", NUMERIC_SCALE))
        return SqlType(kind, scale, int(said.get("precision", 38)), constrained=bool(said.get("constrained", True)))
    element = said.get("element")
    return SqlType(kind, length=said.get("length"), element=None if element is None else type_from_json(element))
