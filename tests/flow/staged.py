"""A connector as strangers write them for warehouses: every range stages, and the first applies what all have staged.

It shares one state among its ranges, as the protocol has it: what is staged and not applied is in it, by range. It
learns of what the others staged from the patches that come with Acknowledge, and from the state when it is opened. It
fails where the runtime breaks that: a flush before everything staged is applied, or patches that are missing.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.flow import strict
else:
    import strict  # a program by itself, which finds what lies beside it

NOTHING: dict[str, Any] = {}


def apply(said: dict[str, Any]) -> None:
    db = sqlite3.connect(said["materialization"]["config"]["path"], timeout=30)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE IF NOT EXISTS staged (file TEXT, at INTEGER, content TEXT)")
    db.execute("CREATE TABLE IF NOT EXISTS applied (file TEXT PRIMARY KEY)")
    db.commit()
    db.close()
    strict.apply(said)


def answer(name: str, patch: dict[str, Any]) -> None:
    said = {"state": {"updated": patch, "mergePatch": True}} if patch else NOTHING
    strict.send(name, said, strict.part(1, strict.part(1, json.dumps(patch)) + strict.part(2, 1)) if patch else b"")


def pending_in(state: dict[str, Any]) -> dict[str, set[str]]:
    """The files that are staged and not applied, by range."""
    return {span: {file for file, there in files.items() if there} for span, files in state.get("ranges", {}).items()}


def run(db: sqlite3.Connection, bindings: list[Any], file: str) -> None:
    """Apply a staged file, once."""
    db.execute("BEGIN IMMEDIATE")
    if db.execute("INSERT OR IGNORE INTO applied VALUES (?)", [file]).rowcount:
        for at, content in db.execute("SELECT at, content FROM staged WHERE file = ?", [file]).fetchall():
            said = json.loads(content)
            for field in ("keyPacked", "valuesPacked"):
                said[field] = base64.b64decode(said[field])
            strict.store(db, bindings[at], said, True)
        db.execute("DELETE FROM staged WHERE file = ?", [file])
    db.execute("COMMIT")


def run_all(db: sqlite3.Connection, bindings: list[Any], pending: dict[str, set[str]]) -> dict[str, Any]:
    """Apply what is pending; gives the change of state that says so."""
    cleared: dict[str, Any] = {}
    for span, files in sorted(pending.items()):
        for file in sorted(files):
            run(db, bindings, file)
            cleared.setdefault(span, {})[file] = None
    return cleared


def stage(db: sqlite3.Connection, file: str, stores: list[tuple[int, dict[str, Any]]]) -> None:
    rows = []
    for at, said in stores:
        packed = {name: base64.b64encode(said.get(name) or b"").decode() for name in ("keyPacked", "valuesPacked")}
        rows.append((file, at, json.dumps({**said, **packed})))
    db.execute("BEGIN IMMEDIATE")
    db.executemany("INSERT INTO staged VALUES (?, ?, ?)", rows)
    db.execute("COMMIT")


def converse(said: dict[str, Any]) -> None:
    spec = strict.check_materialization(said)
    state = said.get("state") or {}
    if not state.get("applied"):
        strict.fail("the state of apply was lost")
    span = said["range"]
    mine = f"{span.get('keyBegin', 0):08x}-{span.get('keyEnd', 0):08x}"
    first = not span.get("keyBegin", 0)
    db = strict.database(spec)
    bindings = spec["bindings"]
    pending = pending_in(state)
    loads: list[tuple[int, list[Any]]] = []
    stores: list[tuple[int, dict[str, Any]]] = []
    staged: str | None = None
    committed: str | None = None
    number = 0
    strict.send("opened", NOTHING, b"")
    while (message := strict.receive()) is not None:
        name, said = message
        patches = said.get("statePatches") or []
        if name == "acknowledge":
            if staged is not None and not any(staged in each for p in patches for each in pending_in(p).values()):
                strict.fail("the patch of this range is not among those that came with acknowledge")
            committed, staged = staged or committed, None
            for patch in patches:
                for each, files in pending_in(patch).items():
                    pending.setdefault(each, set()).update(files)
            cleared = run_all(db, bindings, pending) if first else {}
            pending = {}
            answer("acknowledged", {"ranges": cleared} if cleared else {})
        elif name == "load":
            loads.append((said.get("binding", 0), strict.unpacked(said["keyPacked"])))
        elif name == "flush":
            if committed and not db.execute("SELECT 1 FROM applied WHERE file = ?", [committed]).fetchone():
                strict.fail(f"flushed before {committed} was applied")
            for at, key in loads:
                strict.load(db, at, bindings[at], key)
            loads = []
            strict.send("flushed", NOTHING, b"")
        elif name == "store":
            stores.append((said.get("binding", 0), said))
        elif name == "startCommit":
            change: dict[str, Any] = {}
            if stores:
                number += 1
                staged = f"{mine} {os.getpid()} {number}"
                stage(db, staged, stores)
                change = {"ranges": {mine: {staged: True}}}
            stores = []
            answer("startedCommit", change)
        else:
            strict.fail(f"unexpected request {name}")


if __name__ == "__main__":
    while (asked := strict.receive()) is not None:
        kind, question = asked
        if kind == "apply":
            apply(question)
        elif kind == "open":
            converse(question)
            break
        elif kind == "validate":
            strict.validate(question)
        else:
            about = {"protocol": 3032023, "configSchema": strict.CONFIG, "resourceConfigSchema": strict.RESOURCE}
            encoded = strict.part(1, 3032023) + strict.part(2, json.dumps(strict.CONFIG))
            strict.send("spec", about, encoded + strict.part(3, json.dumps(strict.RESOURCE)))
