"""A materialization as connectors see it: collections with projections, templates of Flow's own, and chosen fields.

A connector says of each field whether it must, may or must not have it. `choose` takes all that it may have. A field
that it does not take is left out where the whole document goes along, and is otherwise an error; so is a key that is
refused. Beside the columns every document has `_meta/op`, which is c, u or d, and a collection without a key gets one:
`_meta/id`, the transaction and the number of the row in it. A connector that has values cut short may take
`_meta/flow_truncated`, which says whether some of the row were.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from everview.compute.ir.types import Kind
from everview.flow.connector.rows import META, OPERATION, ORDINAL, TRUNCATED, Truncation
from everview.flow.connector.schemas import escaped
from everview.flow.contract import Binding, Field, Spec
from everview.flow.drivers.contract import Constraint, FieldConstraint, Validated
from everview.flow.errors import InvalidMaterialization
from everview.flow.wire import type_json

DOCUMENT = "flow_document"
_EVERY = ["array", "boolean", "integer", "null", "number", "object", "string"]
_NO_TOKEN = re.compile(r"[^A-Za-z0-9_.-]")

_TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "boolean",
    Kind.INT2: "integer",
    Kind.INT4: "integer",
    Kind.INT8: "integer",
    Kind.MZ_TIMESTAMP: "integer",
    Kind.FLOAT4: "number",
    Kind.FLOAT8: "number",
    Kind.ARRAY: "array",
}
_STRINGS: dict[Kind, dict[str, str]] = {
    Kind.NUMERIC: {"format": "number"},
    Kind.DATE: {"format": "date"},
    Kind.TIME: {"format": "time"},
    Kind.TIMESTAMPTZ: {"format": "date-time"},
    Kind.UUID: {"format": "uuid"},
    Kind.INTERVAL: {"format": "duration"},
    Kind.BYTEA: {"contentEncoding": "base64"},
}


# Before validation


def proposed_json(binding: Binding, backfill: int = 0) -> dict[str, Any]:
    """A binding that a connector is asked about."""
    return {
        "resourceConfig": dict(binding.resource),
        "collection": collection_json(binding),
        "fieldConfig": {},
        "backfill": backfill,
        "groupBy": list(binding.key) or [ORDINAL],
        "deltaUpdates": binding.delta_updates,
        "columns": binding.names,
    }


def collection_json(binding: Binding) -> dict[str, Any]:
    """A collection: projections are in order of their fields, and those of the key are never NULL."""
    keys = [f"/{escaped(name)}" for name in binding.key] or [f"/{ORDINAL}"]
    projections = [_projection(field, binding) for field in binding.fields]
    projections.append(_plain(OPERATION, ["string"]))
    projections.append(_plain(TRUNCATED, ["boolean"]))
    if not binding.key:
        projections.append({**_plain(ORDINAL, ["string"]), "isPrimaryKey": True})
    root = {"ptr": "", "field": DOCUMENT, "inference": {"types": ["object"], "exists": "MUST"}}
    name = collection_name(binding)
    properties: dict[str, Any] = {META: {"type": "object"}}
    for each in binding.fields:
        inference = _projection(each, binding)["inference"]
        properties[each.name] = {"type": inference["types"], **(inference.get("string") or {})}
    return {
        "name": name,
        "key": keys,
        "uuidPtr": "/_meta/uuid",
        "projections": sorted([*projections, root], key=lambda each: str(each["field"])),
        "writeSchema": {"type": "object", "properties": properties, "required": [*binding.key]},
        "ackTemplate": {"_meta": {"ack": True, "uuid": "DocUUIDPlaceholder-329Bb50aa48EAa9ef"}},
        "partitionTemplate": _journal(name),
    }


def collection_name(binding: Binding) -> str:
    """The collection's name in the characters that Flow allows."""
    title = binding.title or binding.collection
    safe = _NO_TOKEN.sub("_", title)
    return f"everview/{safe}" if safe == title else f"everview/{safe}-{binding.collection}"


def _plain(field: str, types: list[str]) -> dict[str, Any]:
    inference = {"types": types, "exists": "MUST", **({"string": {}} if types == ["string"] else {})}
    return {"ptr": f"/{field}", "field": field, "inference": inference}


def _projection(field: Field, binding: Binding) -> dict[str, Any]:
    is_key = field.name in binding.key
    kind = field.type.kind
    inference: dict[str, Any] = {"exists": "MUST"}
    if kind is Kind.JSONB:
        inference |= {"types": _EVERY, "string": {}}
    else:
        name = _TYPES.get(kind, "string")
        inference["types"] = [name] if is_key else sorted([name, "null"])
        if name == "string":
            inference["string"] = dict(_STRINGS.get(kind, {}))
    said = {
        "ptr": f"/{escaped(field.name)}",
        "field": field.name,
        "inference": inference,
        "sqlType": type_json(field.type),
        "reduce": field.reduction.to_json(),
    }
    return {**said, "isPrimaryKey": True} if is_key else said


def _labels(**values: str) -> dict[str, Any]:
    return {"labels": [{"name": f"estuary.dev/{name}", "value": value} for name, value in sorted(values.items())]}


def _journal(name: str) -> dict[str, Any]:
    """A journal as Flow's own runtime would have one. Nobody writes it: connectors only look whether it is there."""
    fragment = {
        "length": "536870912",
        "compressionCodec": "GZIP",
        "refreshInterval": "300s",
        "flushInterval": "172800s",
    }
    return {"name": name, "replication": 1, "labels": _labels(collection=name), "fragment": fragment, "flags": 4}


# After validation


def described(
    spec: Spec, chosen: list[dict[str, Any]], *, backfills: Mapping[int, int] | None = None
) -> dict[str, Any]:
    """The materialization without its settings, which may be secret; `chosen` are the answers of `choose`."""
    name = f"everview/{_NO_TOKEN.sub('_', spec.name)}"
    shard = {
        "id": f"materialize/{name}/0000000000000000",
        "recoveryLogPrefix": "recovery",
        "hintPrefix": "/everview/hints",
        "hintBackups": 2,
        "maxTxnDuration": "300s",
        "minTxnDuration": "0s",
        "labels": _labels(**{"task-name": name, "task-type": "materialization"}),
    }
    bindings = []
    for at, (binding, answer) in enumerate(zip(spec.bindings, chosen, strict=True)):
        backfill = (backfills or {}).get(at, 0)
        collection = collection_json(binding)
        path = [str(each) for each in answer["resourcePath"]]
        key = "%2F".join(quote(each, safe="") for each in path) + (f".v{backfill}" if backfill else "")
        bindings.append(
            {
                "resourceConfig": answer["resourceConfig"],
                "resourcePath": path,
                "collection": collection,
                "fieldSelection": answer["fieldSelection"],
                "deltaUpdates": binding.delta_updates,
                "partitionSelector": {"include": _labels(collection=collection["name"]), "exclude": {}},
                "journalReadSuffix": f"materialize/{name}/{key}",
                "backfill": backfill,
                "stateKey": key,
                **({"serPolicy": answer["serPolicy"]} if answer.get("serPolicy") else {}),
                "columns": binding.names,
            }
        )
    return {
        "name": spec.name,
        "connectorType": "LOCAL",
        "bindings": bindings,
        "shardTemplate": shard,
        "recoveryLogTemplate": _journal(f"recovery/materialize/{name}"),
    }


def choose(binding: Binding, validated: Validated) -> dict[str, Any]:
    """The fields that a connector gets of a binding, by its constraints. An error if they cannot be met."""
    constraints = validated.constraints
    wrong: list[str] = []
    for name in (META, DOCUMENT):
        if name in binding.names:
            wrong.append(f'"{name}": connectors use this name themselves; rename the column in a view')
    document = _taken(constraints.get(DOCUMENT))
    values = []
    for field in binding.fields:
        constraint = constraints.get(field.name)
        if constraint is not None and constraint.kind is Constraint.INCOMPATIBLE:
            wrong.append(f'"{field.name}": {constraint.reason or "it does not fit what is there"}')
        elif _taken(constraint):
            values.append(field.name)
        elif field.name in binding.key or not document:
            reason = constraint.reason if constraint is not None else "the connector says nothing of it"
            wrong.append(f'"{field.name}": it cannot be part of the sink. {reason}'.strip())
    ours = {*binding.names, DOCUMENT, OPERATION, TRUNCATED, *(() if binding.key else (ORDINAL,))}
    wrong += [
        f'"{name}": it is required and not a column of the sink. {each.reason}'.strip()
        for name, each in constraints.items()
        if each.kind is Constraint.REQUIRED and name not in ours
    ]
    if not binding.key and not _taken(constraints.get(ORDINAL)):
        wrong.append("it needs a key, and does not take one that is made for it")
    if wrong:
        raise InvalidMaterialization(
            f"the connector cannot take collection {binding.collection}", detail="; ".join(wrong)
        )
    keys = list(binding.key) or [ORDINAL]
    if _taken(constraints.get(OPERATION)):
        values.append(OPERATION)
    truncated = constraints.get(TRUNCATED)
    if truncated is not None and (
        truncated.kind is Constraint.REQUIRED or (_taken(truncated) and Truncation.of(validated.ser_policy) is not None)
    ):
        values.append(TRUNCATED)
    _check_apart(binding, validated, [*dict.fromkeys([*keys, *values]), *([DOCUMENT] if document else [])])
    selection = {
        "keys": keys,
        "values": sorted(name for name in values if name not in keys),
        "document": DOCUMENT if document else "",
    }
    return {
        "resourceConfig": dict(binding.resource),
        "resourcePath": list(validated.path),
        "fieldSelection": selection,
        "serPolicy": dict(validated.ser_policy),
    }


def _check_apart(binding: Binding, validated: Validated, names: list[str]) -> None:
    """An error if the connector would keep two fields under one name."""
    kept: dict[str, str] = {}
    for name in names:
        other = kept.setdefault(validated.folded(name), name)
        if other != name:
            raise InvalidMaterialization(
                f"the connector cannot take collection {binding.collection}",
                detail=f'it would keep "{other}" and "{name}" both as "{validated.folded(name)}"',
                hint="rename one of them in a view",
            )


def chosen_before(binding: Binding) -> dict[str, Any]:
    """What programs got before connectors chose: every column, and no document."""
    return {
        "resourceConfig": dict(binding.resource),
        "resourcePath": [str(value) for value in binding.resource.values()],
        "fieldSelection": {
            "keys": list(binding.key),
            "values": sorted(field.name for field in binding.value_fields),
            "document": "",
        },
    }


def _taken(constraint: FieldConstraint | None) -> bool:
    return constraint is not None and constraint.kind in (
        Constraint.REQUIRED,
        Constraint.RECOMMENDED,
        Constraint.OPTIONAL,
    )
