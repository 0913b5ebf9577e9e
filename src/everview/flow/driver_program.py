"""A driver of ours as a program: it speaks the protocol on its standard streams, so that others can drive it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, BinaryIO

from everview.flow import protocol, wire
from everview.flow.channel import serve
from everview.flow.connector.codec import Codec, codec_of
from everview.flow.connector.rows import ORDINAL
from everview.flow.contract import Binding, Spec
from everview.flow.documents import objects
from everview.flow.drivers.contract import Driver, Option
from everview.flow.drivers.registry import driver_class
from everview.flow.errors import InvalidMaterialization, ProtocolViolation
from everview.flow.keyrange import KeyRange

BATCH_ROWS = 1000


def serve_streams(name: str, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Answer the requests that come in until they end; `FLOW_RUNTIME_CODEC` says how they are framed."""
    codec = codec_of(os.environ.get("FLOW_RUNTIME_CODEC") or "json")
    while (message := codec.read("Request", incoming)) is not None:
        asked, said = message
        if asked == "open":
            _converse(name, said, codec, incoming, outgoing)
            return
        answers = {"spec": _spec, "validate": _validate, "apply": _apply}
        if asked not in answers:
            raise ProtocolViolation("runtime", "open-first", f"{asked} before open")
        ((answer, content),) = answers[asked](name, said).items()
        outgoing.write(codec.frame("Response", answer, content))
        outgoing.flush()


def _driver(name: str, config: dict[str, Any]) -> Driver:
    return driver_class(name)(config)


def _spec(name: str, said: dict[str, Any]) -> dict[str, Any]:
    kind = driver_class(name)
    resource = _schema(kind.resource_options)
    required = [each.name for each in kind.resource_options if each.required]
    if required:
        resource["properties"][required[0]]["x-collection-name"] = True
    resource["properties"][wire.DELTA_UPDATES] = {"type": "boolean", "x-delta-updates": True}
    schemas = {"configSchema": _schema(kind.options), "resourceConfigSchema": resource}
    return {"spec": {"protocol": wire.PROTOCOL, **schemas, "documentationUrl": ""}}


def _schema(options: tuple[Option, ...]) -> dict[str, Any]:
    types = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object"}
    properties = {
        each.name: {"type": types[each.kind], "description": each.help, **({"secret": True} if each.secret else {})}
        for each in options
    }
    return {"type": "object", "properties": properties, "required": [each.name for each in options if each.required]}


def _validate(name: str, said: dict[str, Any]) -> dict[str, Any]:
    spec = wire.spec_from_json(said, name)
    found = _driver(name, dict(spec.config)).validate(spec)
    bindings = []
    for binding, each in zip(spec.bindings, found, strict=True):
        constraints = {field: {"type": c.kind.value, "reason": c.reason} for field, c in each.constraints.items()}
        if not binding.key:
            constraints[ORDINAL] = {"type": "FIELD_OPTIONAL"}
        path = list(each.path)
        bindings.append({"constraints": constraints, "resourcePath": path, "deltaUpdates": each.delta_updates})
    return {"validated": {"bindings": bindings}}


def _apply(name: str, said: dict[str, Any]) -> dict[str, Any]:
    spec = wire.spec_from_json(said["materialization"], name)
    driver = _driver(name, dict(spec.config))
    if not spec.bindings:
        last = wire.spec_from_json(said.get("lastMaterialization") or {}, name)
        driver.forget(last)
        return {"applied": {"actionDescription": "forgotten"}}
    if _begins_anew(said):
        driver.reset(spec)
        return {"applied": {"actionDescription": "emptied"}}
    return {"applied": {"actionDescription": driver.apply(spec)}}


def _begins_anew(said: Mapping[str, Any]) -> bool:
    """Whether all places are to be filled anew: their counts of backfills are higher than when last applied."""
    last = {json.dumps(each.get("resourcePath")): each for each in _bindings(said.get("lastMaterialization"))}
    anew = []
    for each in _bindings(said["materialization"]):
        before = last.get(json.dumps(each.get("resourcePath")))
        anew.append(before is not None and int(each.get("backfill", 0)) > int(before.get("backfill", 0)))
    if any(anew) and not all(anew):
        raise InvalidMaterialization("this driver fills all its places anew, or none", hint="backfill all bindings")
    return any(anew)


def _bindings(materialization: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    return list((materialization or {}).get("bindings") or ())


def _converse(name: str, said: dict[str, Any], codec: Codec, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    materialization = said["materialization"]
    spec = wire.spec_from_json(materialization, name)
    selections = [each.get("fieldSelection") or {} for each in materialization.get("bindings", ())]
    span = said.get("range", {})
    range = KeyRange(int(span.get("keyBegin", 0)), int(span.get("keyEnd", 0)))
    transactor = _driver(name, dict(spec.config)).open(spec, range, said.get("state") or {})

    def respond(message: protocol.Response) -> None:
        outgoing.write(_framed(message, spec, codec))
        outgoing.flush()

    try:
        respond(protocol.Opened(transactor.checkpoint))
        serve(transactor, _requests(spec, selections, codec, incoming), respond)
    finally:
        transactor.close()


def _framed(message: protocol.Response, spec: Spec, codec: Codec) -> bytes:
    if isinstance(message, protocol.Loaded):
        return codec.loadeds(message.binding, objects(message.documents, spec.bindings[message.binding].fields))
    if isinstance(message, protocol.Opened):
        known = {} if message.checkpoint is None else {"runtimeCheckpoint": wire.checkpoint_json(message.checkpoint)}
        return codec.frame("Response", "opened", known)
    name = {protocol.Acknowledged: "acknowledged", protocol.Flushed: "flushed"}.get(type(message), "startedCommit")
    update = message.state
    state = {} if update is None else {"state": {"updated": update.updated, "mergePatch": update.merge_patch}}
    return codec.frame("Response", name, state)


def _requests(
    spec: Spec, selections: list[Mapping[str, Any]], codec: Codec, incoming: BinaryIO
) -> Iterator[protocol.Request]:
    """Requests, with the documents of consecutive messages in one."""
    asked = ""
    for asked, said in codec.requests(incoming, BATCH_ROWS):
        if asked in ("load", "store"):
            for binding, held in groupby(said, lambda each: int(each.get("binding", 0))):
                yield _batch(asked, binding, spec.bindings[binding], selections[binding], list(held))
        elif asked == "startCommit":
            yield protocol.StartCommit(wire.checkpoint_text(said[0].get("runtimeCheckpoint")) or "")
        elif asked in ("flush", "acknowledge"):
            yield protocol.Flush() if asked == "flush" else protocol.Acknowledge()
        else:
            raise ProtocolViolation("runtime", "open-first", f"{asked} in a conversation")
    if asked in ("load", "store"):
        raise ProtocolViolation("runtime", "end", "the conversation ended in the middle of a transaction")


def _batch(
    kind: str, number: int, binding: Binding, selection: Mapping[str, Any], held: list[dict[str, Any]]
) -> protocol.Request:
    if kind == "load":
        return protocol.Load(number, wire.keys_table([each["key"] for each in held], binding))
    return protocol.Store(number, wire.stored_table(held, binding, selection))
