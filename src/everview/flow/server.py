"""A driver of ours as a program: it speaks the protocol in lines of JSON, so that other runtimes can drive it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from everview.flow.channel import serve
from everview.flow.contract import Binding, Spec
from everview.flow.drivers.contract import Driver, Option
from everview.flow.drivers.registry import driver_class
from everview.flow.errors import ProtocolViolation
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import Acknowledge, Flush, Load, Message, Opened, Request, StartCommit, Store
from everview.flow.wire import PROTOCOL, checkpoint_text, keys_table, lines, parse_line, spec_from_json, stored_table

BATCH_ROWS = 1000


def serve_streams(name: str, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Answer the requests that come in until they end."""
    for line in iter(incoming.readline, b""):
        asked, said = parse_line(line)
        if asked == "open":
            _converse(name, said, incoming, outgoing)
            return
        answers = {"spec": _spec, "validate": _validate, "apply": _apply}
        if asked not in answers:
            raise ProtocolViolation("runtime", "open-first", f"{asked} before open")
        _write(outgoing, json.dumps(answers[asked](name, said)))


def _driver(name: str, config: dict[str, Any]) -> Driver:
    return driver_class(name)(config)


def _spec(name: str, said: dict[str, Any]) -> dict[str, Any]:
    kind = driver_class(name)
    schemas = {"configSchema": _schema(kind.options), "resourceConfigSchema": _schema(kind.resource_options)}
    return {"spec": {"protocol": PROTOCOL, **schemas, "documentationUrl": ""}}


def _schema(options: tuple[Option, ...]) -> dict[str, Any]:
    types = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object"}
    properties = {
        each.name: {"type": types[each.kind], "description": each.help, **({"secret": True} if each.secret else {})}
        for each in options
    }
    return {"type": "object", "properties": properties, "required": [each.name for each in options if each.required]}


def _validate(name: str, said: dict[str, Any]) -> dict[str, Any]:
    spec = spec_from_json(said, name)
    found = _driver(name, dict(spec.config)).validate(spec)
    bindings = [
        {
            "constraints": {field: {"type": c.kind.value, "reason": c.reason} for field, c in each.constraints.items()},
            "resourcePath": list(each.path),
            "deltaUpdates": each.delta_updates,
        }
        for each in found
    ]
    return {"validated": {"bindings": bindings}}


def _apply(name: str, said: dict[str, Any]) -> dict[str, Any]:
    spec = spec_from_json(said["materialization"], name)
    return {"applied": {"actionDescription": _driver(name, dict(spec.config)).apply(spec)}}


def _converse(name: str, said: dict[str, Any], incoming: BinaryIO, outgoing: BinaryIO) -> None:
    spec = spec_from_json(said["materialization"], name)
    span = said.get("range", {})
    range = KeyRange(int(span.get("keyBegin", 0)), int(span.get("keyEnd", 0)))
    transactor = _driver(name, dict(spec.config)).open(spec, range, said.get("state") or {})

    def respond(message: Message) -> None:
        for line in lines(message, spec):
            _write(outgoing, line, flush=False)
        outgoing.flush()

    try:
        respond(Opened(transactor.checkpoint))
        serve(transactor, _requests(spec, incoming), respond)
    finally:
        transactor.close()


def _requests(spec: Spec, incoming: BinaryIO) -> Iterator[Request]:
    """Requests, with the documents of consecutive lines in one."""
    held: list[dict[str, Any]] = []
    kind, binding = "", 0
    for line in iter(incoming.readline, b""):
        asked, said = parse_line(line)
        if held and (asked != kind or int(said.get("binding", 0)) != binding or len(held) >= BATCH_ROWS):
            yield _batch(kind, binding, spec.bindings[binding], held)
            held = []
        if asked in ("load", "store"):
            kind, binding = asked, int(said.get("binding", 0))
            held.append(said)
        elif asked == "startCommit":
            yield StartCommit(checkpoint_text(said.get("runtimeCheckpoint")) or "")
        elif asked in ("flush", "acknowledge"):
            yield Flush() if asked == "flush" else Acknowledge()
        else:
            raise ProtocolViolation("runtime", "open-first", f"{asked} in a conversation")
    if held:
        raise ProtocolViolation("runtime", "end", "the conversation ended in the middle of a transaction")


def _batch(kind: str, number: int, binding: Binding, held: list[dict[str, Any]]) -> Request:
    if kind == "load":
        return Load(number, keys_table([each["key"] for each in held], binding))
    return Store(number, stored_table(held, binding))


def _write(outgoing: BinaryIO, line: str, *, flush: bool = True) -> None:
    outgoing.write(line.encode() + b"\n")
    if flush:
        outgoing.flush()
