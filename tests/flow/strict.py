"""A connector as strangers write them, from the protocol's documents alone: it stands in for the public ones.

It keeps tables in an SQLite file and is authoritative. It is as strict as they are: it panics where a template, the
root document or the order of projections is not what they rely on, reads packed tuples only, takes resource paths for
what it said they are, refuses values that are not of the types that were declared, and keeps a row of checkpoints for
every range that there ever was. Nothing of Everview is used, not even to read protocol buffers. With `journal` in its
settings it notes what it is asked, and its environment, in a file.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import struct
import sys
from typing import Any, NoReturn

CODEC = os.environ.get("FLOW_RUNTIME_CODEC") or "proto"
JSON_TYPES: dict[type, str | None] = {
    **{type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string"},
    **{list: "array", dict: "object", bytes: None},
}
NOT_FINITE = ("NaN", "Infinity", "-Infinity")  # numbers that JSON has none for
KINDS = ("INVALID", "FIELD_REQUIRED", "LOCATION_REQUIRED", "LOCATION_RECOMMENDED", "FIELD_OPTIONAL", "FIELD_FORBIDDEN")
# Of each message: the number of a field, its name, and how it is read: s(tring), j(son), b(ytes), v(arint), m(essage).
FIELDS: dict[str, dict[int, tuple[str, str]]] = {
    "Request": {
        1: ("spec", "mSpec"),
        2: ("validate", "mValidate"),
        3: ("apply", "mApply"),
        4: ("open", "mOpen"),
        5: ("load", "mLoad"),
        6: ("flush", "mPatches"),
        7: ("store", "mStore"),
        8: ("startCommit", "mStartCommit"),
        9: ("acknowledge", "mPatches"),
    },
    "Patches": {1: ("statePatches", "j")},
    "Spec": {1: ("connectorType", "v"), 2: ("config", "j")},
    "Validate": {
        1: ("name", "s"),
        2: ("connectorType", "v"),
        3: ("config", "j"),
        4: ("bindings", "*mProposed"),
        5: ("lastMaterialization", "mMaterialization"),
        6: ("lastVersion", "s"),
    },
    "Proposed": {
        1: ("resourceConfig", "j"),
        2: ("collection", "mCollection"),
        4: ("backfill", "v"),
        5: ("groupBy", "*s"),
    },
    "Apply": {
        1: ("materialization", "mMaterialization"),
        2: ("version", "s"),
        4: ("lastMaterialization", "mMaterialization"),
        5: ("lastVersion", "s"),
        6: ("state", "j"),
    },
    "Open": {
        1: ("materialization", "mMaterialization"),
        2: ("version", "s"),
        3: ("range", "mRange"),
        4: ("state", "j"),
    },
    "Range": {2: ("keyBegin", "v"), 3: ("keyEnd", "v"), 4: ("rClockBegin", "v"), 5: ("rClockEnd", "v")},
    "Load": {1: ("binding", "v"), 2: ("key", "j"), 3: ("keyPacked", "b")},
    "Store": {
        1: ("binding", "v"),
        2: ("key", "j"),
        3: ("keyPacked", "b"),
        4: ("values", "j"),
        5: ("valuesPacked", "b"),
        6: ("doc", "j"),
        7: ("exists", "v"),
        8: ("delete", "v"),
    },
    "StartCommit": {1: ("runtimeCheckpoint", "b"), 2: ("statePatches", "j")},
    "Materialization": {
        1: ("name", "s"),
        2: ("connectorType", "v"),
        3: ("config", "j"),
        4: ("bindings", "*mBinding"),
        5: ("shardTemplate", "mAny"),
        6: ("recoveryLogTemplate", "mAny"),
    },
    "Binding": {
        1: ("resourceConfig", "j"),
        2: ("resourcePath", "*s"),
        3: ("collection", "mCollection"),
        4: ("fieldSelection", "mFieldSelection"),
        5: ("deltaUpdates", "v"),
        12: ("backfill", "v"),
        13: ("stateKey", "s"),
    },
    "FieldSelection": {1: ("keys", "*s"), 2: ("values", "*s"), 3: ("document", "s")},
    "Collection": {
        1: ("name", "s"),
        3: ("key", "*s"),
        6: ("projections", "*mProjection"),
        9: ("partitionTemplate", "mAny"),
    },
    "Projection": {1: ("ptr", "s"), 2: ("field", "s"), 5: ("isPrimaryKey", "v"), 6: ("inference", "mInference")},
    "Inference": {1: ("types", "*s"), 3: ("string", "mString"), 8: ("exists", "v")},
    "String": {4: ("format", "s"), 7: ("contentEncoding", "s")},
    "Any": {1: ("name", "s")},
}


def panic(why: str) -> NoReturn:
    sys.stderr.write(f"panic: {why}\n\ngoroutine 1 [running]:\n")
    sys.stderr.flush()
    os._exit(2)


def fail(why: str) -> NoReturn:
    sys.stderr.write(json.dumps({"level": "fatal", "msg": "connector failed", "error": why}) + "\n")
    sys.stderr.flush()
    os._exit(1)


# Messages


def number(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def parsed(name: str, content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    at = 0
    while at < len(content):
        head, at = number(content, at)
        raw: Any
        if head & 7 == 0:
            raw, at = number(content, at)
        elif head & 7 == 2:
            size, at = number(content, at)
            raw, at = content[at : at + size], at + size
        elif head & 7 == 5:
            raw, at = struct.unpack_from("<I", content, at)[0], at + 4
        else:
            panic(f"proto: illegal wireType {head & 7}")
        if head >> 3 not in FIELDS[name]:
            continue
        field, how = FIELDS[name][head >> 3]
        many, how = how.startswith("*"), how.lstrip("*")
        value: Any = raw
        if how == "s":
            value = raw.decode()
        elif how == "j":
            value = json.loads(raw)
        elif how.startswith("m"):
            value = parsed(how[1:], raw)
        if many:
            found.setdefault(field, []).append(value)
        else:
            found[field] = value
    return found


def receive() -> tuple[str, dict[str, Any]] | None:
    stdin = sys.stdin.buffer
    if CODEC == "json":
        line = stdin.readline()
        if not line:
            return None
        ((name, said),) = json.loads(line).items()
        for field in ("keyPacked", "valuesPacked"):
            if field in said:
                said[field] = base64.b64decode(said[field])
        return name, said
    head = stdin.read(4)
    if not head:
        return None
    ((name, said),) = parsed("Request", stdin.read(struct.unpack("<I", head)[0])).items()
    return name, said


def varint(value: int) -> bytes:
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value])


def part(at: int, content: bytes | int | str) -> bytes:
    if isinstance(content, int):
        return varint(at << 3) + varint(content) if content else b""
    content = content.encode() if isinstance(content, str) else content
    return varint(at << 3 | 2) + varint(len(content)) + content


def send(name: str, said: dict[str, Any], encoded: bytes) -> None:
    out = sys.stdout.buffer
    if CODEC == "json":
        out.write(json.dumps({name: said}).encode() + b"\n")
    else:
        at = ["", "spec", "validated", "applied", "opened", "loaded", "flushed", "startedCommit", "acknowledged"].index(
            name
        )
        content = part(at, encoded)
        out.write(struct.pack("<I", len(content)) + content)
    if name != "loaded":
        out.flush()


def unpacked(content: bytes) -> list[Any]:
    """The parts of a packed tuple."""
    found: list[Any] = []
    at = 0
    while at < len(content):
        code, at = content[at], at + 1
        if code == 0:
            found.append(None)
        elif code in (1, 2):
            end = at
            while content[end] or content[end + 1 : end + 2] == b"\xff":
                end += 1 if content[end] else 2
            raw = content[at:end].replace(b"\x00\xff", b"\x00")
            found.append(raw if code == 1 else raw.decode())
            at = end + 1
        elif 0x0C <= code <= 0x1C:
            size = abs(code - 0x14)
            value = int.from_bytes(content[at : at + size], "big")
            found.append(value if code >= 0x14 else value - (1 << 8 * size) + 1)
            at += size
        elif code == 0x21:
            bits = int.from_bytes(content[at : at + 8], "big")
            bits ^= 1 << 63 if bits >> 63 else (1 << 64) - 1
            found.append(struct.unpack(">d", bits.to_bytes(8, "big"))[0])
            at += 8
        elif code in (0x26, 0x27):
            found.append(code == 0x27)
        else:
            panic(f"unexpected tuple element code {code:#x}")
    return found


# The connector


CONFIG = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "title": "Database"},
        "credentials": {
            "type": "object",
            "oneOf": [
                {
                    "properties": {
                        "auth_type": {"const": "password"},
                        "password": {"type": "string", "secret": True},
                    },
                    "required": ["auth_type", "password"],
                },
                {"properties": {"auth_type": {"const": "none"}}, "required": ["auth_type"]},
            ],
        },
        "hardDelete": {"type": "boolean", "default": False},
        "journal": {"type": "string"},
        "loadAll": {"type": "boolean", "description": "be asked for every key before it is stored"},
    },
    "required": ["path"],
}
RESOURCE = {
    "type": "object",
    "properties": {
        "table": {"type": "string", "x-collection-name": True},
        "schema": {"type": "string", "x-schema-name": True},
        "delta_updates": {"type": "boolean", "x-delta-updates": True},
        "documents": {"type": "boolean", "description": "take whole documents only"},
        "cut": {"type": "integer", "description": "the most of a text, an array or an object"},
        "access": {"type": "string", "secret": True},
        "case": {"type": "boolean", "description": "keep names of columns without regard to case"},
        "fold": {"type": "integer", "description": "keep this many characters of a column's name"},
    },
    "required": ["table"],
}


def path_of(resource: dict[str, Any]) -> list[str]:
    return [resource.get("schema") or "main", resource["table"]]


def table_of(path: list[str]) -> str:
    return '"' + "__".join(path).replace('"', '""') + '"'


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def check_collection(collection: dict[str, Any] | None) -> dict[str, Any]:
    if not collection:
        panic("runtime error: invalid memory address or nil pointer dereference")
    if not (collection.get("partitionTemplate") or {}).get("name"):
        panic("runtime error: invalid memory address or nil pointer dereference (partition template)")
    if not collection.get("key"):
        fail("key pointers are empty")
    fields = [each["field"] for each in collection.get("projections", [])]
    if fields != sorted(fields):
        fail("projections are not in order")
    by_pointer: dict[str, Any] = {}
    for each in collection["projections"]:
        by_pointer[each.get("ptr", "")] = each
        if each.get("ptr", "") and any(
            mark not in "01" for mark in (p[0] if p else "" for p in each["ptr"].split("~")[1:])
        ):
            fail(f"invalid pointer {each['ptr']}")
    for pointer in collection["key"]:
        found = by_pointer.get(pointer) or fail(f"no projection of key {pointer}")
        if "null" in found["inference"]["types"] or not found.get("isPrimaryKey"):
            fail(f"key {pointer} may be null")
    return collection


def validate(said: dict[str, Any]) -> None:
    answers, encoded = [], b""
    for binding in said.get("bindings", []):
        collection = check_collection(binding.get("collection"))
        resource = binding["resourceConfig"]
        whole = bool(resource.get("documents"))
        constraints: dict[str, Any] = {}
        for each in collection["projections"]:
            kind = "FIELD_FORBIDDEN" if whole else "LOCATION_RECOMMENDED"
            if each.get("isPrimaryKey") or not each.get("ptr"):
                kind = "LOCATION_REQUIRED"
            constraints[each["field"]] = {"type": kind, "reason": "of the strict connector"}
            if resource.get("fold"):
                constraints[each["field"]]["foldedField"] = each["field"][: resource["fold"]]
        path, delta, cut = path_of(resource), bool(resource.get("delta_updates")), resource.get("cut", 0)
        policy = {"strTruncateAfter": cut, "nestedObjTruncateAfter": cut, "arrayTruncateAfter": cut} if cut else {}
        answer = {"constraints": constraints, "resourcePath": path, "deltaUpdates": delta, "serPolicy": policy}
        answers.append({**answer, "caseInsensitiveFields": bool(resource.get("case"))})
        case = part(5, int(bool(resource.get("case"))))
        content = b"".join(
            part(1, part(1, field) + part(2, encoded_constraint(each))) for field, each in constraints.items()
        )
        limits = part(4, b"".join(part(at, cut) for at in (1, 2, 3))) if cut else b""
        encoded += part(1, content + b"".join(part(2, each) for each in path) + part(3, int(delta)) + limits + case)
    send("validated", {"bindings": answers}, encoded)


def encoded_constraint(said: dict[str, Any]) -> bytes:
    folded = part(4, said["foldedField"]) if "foldedField" in said else b""
    return part(2, KINDS.index(said["type"])) + part(3, said["reason"]) + folded


def check_materialization(said: dict[str, Any]) -> dict[str, Any]:
    spec = said.get("materialization") or panic("nil materialization")
    if not (spec.get("shardTemplate") or {}) or not (spec.get("recoveryLogTemplate") or {}):
        panic("runtime error: invalid memory address or nil pointer dereference (shard template)")
    if not said.get("version"):
        fail("expected a version")
    for binding in spec.get("bindings", []):
        check_collection(binding.get("collection"))
        if binding.get("resourcePath") != path_of(binding["resourceConfig"]):
            panic(f"runtime error: index out of range: resource path {binding.get('resourcePath')}")
        selection = binding.get("fieldSelection") or {}
        if not selection.get("keys") or (not selection.get("document") and not binding.get("deltaUpdates")):
            fail("a standard binding must have keys and the root document")
        if selection.get("values", []) != sorted(selection.get("values", [])):
            fail("values are not in order")
        if not binding.get("stateKey"):
            fail("expected a state key")
    return spec


def database(spec: dict[str, Any]) -> sqlite3.Connection:
    db = sqlite3.connect(spec["config"]["path"], timeout=30, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = OFF")
    return db


def columns_of(binding: dict[str, Any]) -> list[str]:
    selection = binding["fieldSelection"]
    document = selection.get("document")
    return [*selection["keys"], *selection.get("values", []), *([document] if document else [])]


def apply(said: dict[str, Any]) -> None:
    spec = check_materialization(said)
    note(spec["config"], "apply", said)
    last = {
        tuple(each["resourcePath"]): each.get("backfill", 0)
        for each in (said.get("lastMaterialization") or {}).get("bindings", [])
    }
    if last and not said.get("lastVersion"):
        fail("expected the last version")
    db = database(spec)
    db.execute("BEGIN IMMEDIATE")
    db.execute(
        "CREATE TABLE IF NOT EXISTS flow_checkpoints (materialization TEXT, key_begin INTEGER, key_end INTEGER, "
        "fence INTEGER, checkpoint BLOB, PRIMARY KEY (materialization, key_begin, key_end))"
    )
    for binding in spec.get("bindings", []):
        table = table_of(binding["resourcePath"])
        before = last.get(tuple(binding["resourcePath"]))
        if before is not None and binding.get("backfill", 0) > before:
            db.execute(f"DROP TABLE IF EXISTS {table}")
        keys = binding["fieldSelection"]["keys"]
        columns = [quoted(each) for each in columns_of(binding)]
        if not binding.get("deltaUpdates"):
            columns.append(f"PRIMARY KEY ({', '.join(map(quoted, keys))})")
        db.execute(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)})")
    db.execute("COMMIT")
    state = {"applied": said["version"]}
    send(
        "applied",
        {"actionDescription": "made tables", "state": {"updated": state, "mergePatch": True}},
        part(1, "made tables") + part(2, part(1, json.dumps(state)) + part(2, 1)),
    )


def fence(db: sqlite3.Connection, name: str, begin: int, end: int) -> tuple[int, bytes]:
    """Take a range over, as public drivers do: other rows keep the checkpoints that they had."""
    db.execute("BEGIN IMMEDIATE")
    db.execute(
        "UPDATE flow_checkpoints SET fence = fence + 1 WHERE materialization = ? AND key_end >= ? AND key_begin <= ?",
        [name, begin, end],
    )
    found = db.execute(
        "SELECT key_begin, key_end, fence, checkpoint FROM flow_checkpoints "
        "WHERE materialization = ? AND key_begin <= ? AND key_end >= ? ORDER BY key_end - key_begin LIMIT 1",
        [name, begin, end],
    ).fetchone()
    was_begin, was_end, number_, checkpoint = found or (None, None, 1, b"")
    if (was_begin, was_end) != (begin, end):
        db.execute("INSERT INTO flow_checkpoints VALUES (?, ?, ?, ?, ?)", [name, begin, end, number_, checkpoint])
    db.execute("COMMIT")
    return number_, checkpoint


def opened(db: sqlite3.Connection, name: str, begin: int, end: int, every: bool) -> int:
    """Take a range over, and say so; gives the number of the fence."""
    mine, checkpoint = fence(db, name, begin, end)
    known = {"runtimeCheckpoint": json.loads(checkpoint)} if checkpoint and CODEC == "json" else {}
    encoded = part(1, checkpoint) if checkpoint and CODEC != "json" else b""
    send("opened", {**known, "disableLoadOptimization": every}, encoded + part(2, int(every)))
    return mine


def converse(said: dict[str, Any]) -> None:
    spec = check_materialization(said)
    if not (said.get("state") or {}).get("applied"):
        fail("the state of apply was lost")
    note(spec["config"], "open", said)
    span = said.get("range") or panic("nil range")
    begin, end = span.get("keyBegin", 0), span.get("keyEnd", 0)
    db = database(spec)
    every = bool(spec["config"].get("loadAll"))
    mine = opened(db, spec["name"], begin, end, every)
    bindings, hard = spec["bindings"], bool(spec["config"].get("hardDelete"))
    asked: list[tuple[int, list[Any]]] = []
    loads: list[tuple[int, list[Any]]] = []
    stores: list[tuple[int, dict[str, Any]]] = []
    told = False
    while (message := receive()) is not None:
        name, said = message
        if name == "acknowledge":
            if not told:
                send("acknowledged", {}, b"")
            told = False
        elif name == "load":
            binding = bindings[said.get("binding", 0)]
            if binding.get("deltaUpdates"):
                fail("a load of a delta-updates binding")
            loads.append((said.get("binding", 0), unpacked(said["keyPacked"])))
        elif name == "flush":
            for at, key in loads:
                load(db, at, bindings[at], key)
            asked, loads = loads, []
            send("flushed", {}, b"")
        elif name == "store":
            at = said.get("binding", 0)
            if every and (at, unpacked(said["keyPacked"])) not in asked:
                fail("a document is stored under a key that was not loaded")
            stores.append((at, said))
        elif name == "startCommit":
            db.execute("BEGIN IMMEDIATE")
            for at, each in stores:
                store(db, bindings[at], each, hard)
            stores = []
            raw = said.get("runtimeCheckpoint") or panic("nil checkpoint")
            send("startedCommit", {}, b"")
            done = db.execute(
                "UPDATE flow_checkpoints SET checkpoint = ? "
                "WHERE materialization = ? AND key_begin = ? AND key_end = ? AND fence = ?",
                [json.dumps(raw).encode() if CODEC == "json" else raw, spec["name"], begin, end, mine],
            )
            if done.rowcount != 1:
                fail("this instance was fenced off by another")
            db.execute("COMMIT")
            send("acknowledged", {}, b"")
            told = True
        else:
            fail(f"unexpected request {name}")
    if loads or stores:
        fail("unexpected EOF")


def load(db: sqlite3.Connection, at: int, binding: dict[str, Any], key: list[Any]) -> None:
    keys, document = binding["fieldSelection"]["keys"], binding["fieldSelection"]["document"]
    if len(keys) != len(key):
        panic(f"expected {len(keys)} key parts, got {len(key)}")
    where = " AND ".join(f"{quoted(each)} = ?" for each in keys)
    query = f"SELECT {quoted(document)} FROM {table_of(binding['resourcePath'])} WHERE {where}"
    for (found,) in db.execute(query, key):
        send("loaded", {"binding": at, "doc": json.loads(found)}, part(1, at) + part(2, found))


def store(db: sqlite3.Connection, binding: dict[str, Any], said: dict[str, Any], hard: bool) -> None:
    selection, table = binding["fieldSelection"], table_of(binding["resourcePath"])
    keys, values = selection["keys"], selection.get("values", [])
    key = unpacked(said.get("keyPacked") or b"")
    given = unpacked(said.get("valuesPacked") or b"")
    if len(key) != len(keys) or len(given) != len(values):
        panic(f"expected {len(keys)} and {len(values)} parts, got {len(key)} and {len(given)}")
    document = selection.get("document")
    if document:
        if not isinstance(said.get("doc"), dict):
            panic("the document is missing")
        given.append(json.dumps(said["doc"]))
        values = [*values, document]
    check_types(binding, dict(zip((*keys, *values), (*key, *given), strict=True)))
    where = " AND ".join(f"{quoted(each)} = ?" for each in keys)
    if binding.get("deltaUpdates"):
        columns = ", ".join(map(quoted, (*keys, *values)))
        places = ", ".join("?" * (len(key) + len(given)))
        db.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", [*key, *given])
        return
    if said.get("delete") and hard:
        if said.get("exists") and db.execute(f"DELETE FROM {table} WHERE {where}", key).rowcount != 1:
            fail("a document to delete is not there")
    elif said.get("exists"):
        changes = ", ".join(f"{quoted(each)} = ?" for each in values)
        if db.execute(f"UPDATE {table} SET {changes} WHERE {where}", [*given, *key]).rowcount != 1:
            fail("a document to update is not there")
    elif not said.get("delete"):
        columns = ", ".join(map(quoted, (*keys, *values)))
        places = ", ".join("?" * (len(key) + len(given)))
        try:
            db.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", [*key, *given])
        except sqlite3.IntegrityError as error:
            fail(f"duplicate key value violates unique constraint: {error}")


def check_types(binding: dict[str, Any], row: dict[str, Any]) -> None:
    """Whether values are of the types that their projections declare: as a table with such columns would have it."""
    for each in binding["collection"]["projections"]:
        if each["field"] not in row or not each.get("ptr"):
            continue
        inference, value = each["inference"], row[each["field"]]
        kind = JSON_TYPES[type(value)]
        if kind is None:  # packed as the bytes of its JSON
            value = json.loads(value)
            kind = JSON_TYPES[type(value)] or "object"
        fits = {kind, "number" if kind == "integer" or value in NOT_FINITE else kind}
        if not fits & set(inference["types"]):
            fail(f"{each['field']} is declared as {inference['types']}, and {value!r} is not")
        if kind == "string" and (inference.get("string") or {}).get("contentEncoding") == "base64":
            base64.b64decode(value, validate=True)


def note(config: dict[str, Any], name: str, said: dict[str, Any]) -> None:
    if config.get("journal"):
        about = {each: os.environ.get(each) for each in ("FLOW_RUNTIME_CODEC", "LOG_FORMAT", "LOG_LEVEL")}
        with open(config["journal"], "a") as journal:
            journal.write(json.dumps({"asked": name, "said": said, "environment": about}) + "\n")


def main() -> None:
    while (message := receive()) is not None:
        name, said = message
        if name == "spec":
            schemas = {"protocol": 3032023, "configSchema": CONFIG, "resourceConfigSchema": RESOURCE}
            content = part(1, 3032023) + part(2, json.dumps(CONFIG)) + part(3, json.dumps(RESOURCE))
            send(
                "spec", {**schemas, "documentationUrl": "https://example.com"}, content + part(4, "https://example.com")
            )
        elif name == "validate":
            validate(said)
        elif name == "apply":
            apply(said)
        elif name == "open":
            converse(said)
            return
        else:
            panic(f"unexpected request {name}")


if __name__ == "__main__":
    main()
