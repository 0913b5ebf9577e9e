"""What a connector is told of a materialization, by the journal of one that is as strict as the public ones."""

from __future__ import annotations

import base64
import json
import sqlite3
import sys
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from everview.compute.ir import types as t
from everview.flow.connector.rows import Truncation
from everview.flow.drivers.command import _validated
from everview.flow.drivers.contract import Constraint, FieldConstraint
from everview.flow.errors import InvalidMaterialization
from everview.flow.materialization import Materialization, Options, State
from everview.flow.recovery_log import RecoveryLog
from tests.flow.conftest import STRICT
from tests.flow.created import created
from tests.flow.ledger import Ledger
from tests.flow.test_drivers import TYPES
from tests.waiting import eventually

QUICK = Options(backoff_s=0.02, backoff_s_max=0.1, stall_s=20, heartbeat_s=0.05)
CODECS = pytest.mark.parametrize("codec", ["json", "proto"])


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path, ("id", t.INT8), ("name", t.TEXT))
    yield made
    made.close()


def settings(path: Path, *, codec: str = "json", log_level: str = "warn", **config: Any) -> dict[str, Any]:
    given = {"path": str(path / "out.db"), "journal": str(path / "journal"), "hardDelete": True, **config}
    command = f"{sys.executable} -S {STRICT}"
    return {"command": command, "codec": codec, "log_level": log_level, "config": given}


def create(ledger: Ledger, config: dict[str, Any], **resource: Any) -> Materialization:
    bound = ledger.binding(["id"], resource={"table": "t", **resource}, title="t")
    return created(ledger.environment, "m", "command", config, [bound], options=QUICK)


def resume(ledger: Ledger, config: dict[str, Any]) -> Materialization:
    bound = ledger.binding(["id"], resource={"table": "t"}, title="t")
    return Materialization.resume(ledger.environment, "m", "command", config, [bound], options=QUICK)


def journal(path: Path, asked: str) -> list[dict[str, Any]]:
    """What the connector was asked, with its environment then."""
    entries = [json.loads(line) for line in (path / "journal").read_text().splitlines()]
    return [each for each in entries if each["asked"] == asked]


def ids(path: Path) -> list[int]:
    with sqlite3.connect(path / "out.db") as db:
        return [id for (id,) in db.execute("SELECT id FROM main__t ORDER BY id").fetchall()]


@CODECS
def test_new_settings_are_applied_as_a_new_version_before_anything_is_delivered(
    ledger: Ledger, tmp_path: Path, codec: str
) -> None:
    old = settings(tmp_path, codec=codec, credentials={"auth_type": "password", "password": "first"})
    new = settings(tmp_path, codec=codec, credentials={"auth_type": "password", "password": "second"})
    sink = create(ledger, old)
    sink.start()
    assert sink.wait(ledger.write((1, (1, "a"))), 20)
    sink.halt()
    sink.change_settings()
    sink = resume(ledger, new)
    sink.start()
    assert sink.wait(ledger.write((1, (2, "b"))), 20), sink.status()
    first, second = (each["said"] for each in journal(tmp_path, "apply"))
    assert "lastMaterialization" not in first
    assert second["version"] != first["version"] == second["lastVersion"]
    assert second["materialization"]["config"] == new["config"]
    assert second["lastMaterialization"]["config"] == old["config"]
    assert second["lastMaterialization"]["bindings"] == first["materialization"]["bindings"]
    assert second["state"] == {"applied": first["version"]}
    last = journal(tmp_path, "open")[-1]["said"]
    assert last["version"] == second["version"] and last["state"]["applied"] == second["version"]
    assert ids(tmp_path) == [1, 2]
    sink.close()
    again = resume(ledger, new)  # and once only
    again.start()
    assert again.wait(ledger.write((1, (3, "c"))), 20)
    assert len(journal(tmp_path, "apply")) == 2 and ids(tmp_path) == [1, 2, 3]
    again.drop()


def test_settings_that_were_not_applied_yet_are_applied_after_a_restart(ledger: Ledger, tmp_path: Path) -> None:
    """And a connector that fails at it shows neither the new secrets nor the old."""
    old, new = (
        settings(tmp_path, credentials={"auth_type": "password", "password": word}) for word in ("first one", "second")
    )
    sink = create(ledger, old)
    sink.start()
    assert sink.wait(ledger.write((1, (1, "a"))), 20)
    sink.halt()
    sink.change_settings()
    program = tmp_path / "fails.py"
    program.write_text(
        STRICT.read_text().replace(
            'note(spec["config"], "apply", said)', 'fail(json.dumps([spec["config"], said["lastMaterialization"]]))'
        )
    )
    failing = resume(ledger, {**new, "command": f"{sys.executable} -S {program}"})
    failing.start()
    eventually(lambda: failing.status().state is State.STALLED)
    error = failing.status().error or ""
    assert "hardDelete" in error and "first one" not in error and "second" not in error
    failing.halt()
    sink = resume(ledger, new)
    sink.start()
    assert sink.wait(ledger.write((1, (2, "b"))), 20)
    applied = journal(tmp_path, "apply")[-1]["said"]
    assert applied["lastMaterialization"]["config"] == old["config"]
    assert RecoveryLog(ledger.environment, "m", shared=True).state() == {"applied": applied["version"]}
    sink.drop()


def test_settings_that_lead_to_another_place_are_refused(ledger: Ledger, tmp_path: Path) -> None:
    sink = create(ledger, settings(tmp_path))
    sink.close()
    program = tmp_path / "elsewhere.py"
    program.write_text(STRICT.read_text().replace('or "main"', 'or "other"'))
    other = {**settings(tmp_path), "command": f"{sys.executable} -S {program}"}
    bound = [ledger.binding(["id"], resource={"table": "t"}, title="t")]
    with pytest.raises(InvalidMaterialization, match="would deliver to another place") as raised:
        Materialization.check_reach(ledger.environment, "m", "command", other, bound)
    assert "('main', 't')" in (raised.value.detail or "")


@CODECS
def test_dropping_applies_a_materialization_without_bindings(ledger: Ledger, tmp_path: Path, codec: str) -> None:
    sink = create(ledger, settings(tmp_path, codec=codec))
    sink.start()
    assert sink.wait(ledger.write((1, (1, "a"))), 20)
    sink.drop()
    first, last = (each["said"] for each in journal(tmp_path, "apply"))
    assert not last["materialization"].get("bindings") and len(last["lastMaterialization"]["bindings"]) == 1
    assert last["version"] > first["version"] == last["lastVersion"]
    assert ids(tmp_path) == [1], "what was delivered stays"


@CODECS
def test_every_key_is_loaded_for_a_connector_that_wants_it(ledger: Ledger, tmp_path: Path, codec: str) -> None:
    """It fails where a document is stored whose key was not loaded, which is how a first transaction goes else."""
    sink = create(ledger, settings(tmp_path, codec=codec, loadAll=True))
    sink.start()
    assert sink.wait(ledger.write((1, (1, "a")), (1, (2, "b"))), 20), sink.status()
    sink.split(2)
    assert sink.wait(ledger.write((1, (3, "c")), (-1, (1, "a"))), 20), sink.status()
    assert ids(tmp_path) == [2, 3] and sink.status().error is None
    sink.drop()


@CODECS
def test_the_environment_of_a_program(ledger: Ledger, tmp_path: Path, codec: str) -> None:
    sink = create(ledger, settings(tmp_path, codec=codec, log_level="debug"))
    sink.start()
    assert sink.wait(ledger.write((1, (1, "a"))), 20)
    sink.drop()
    wanted = {"FLOW_RUNTIME_CODEC": codec, "LOG_FORMAT": "json", "LOG_LEVEL": "debug"}
    seen = [each["environment"] for asked in ("apply", "open") for each in journal(tmp_path, asked)]
    assert len(seen) >= 3 and all(each == wanted for each in seen)


@CODECS
def test_values_are_of_the_types_that_are_declared(tmp_path: Path, codec: str) -> None:
    """The connector refuses any that is not, a text that should be base64 and is none among them."""
    ledger = Ledger(tmp_path, *((f"f{at}" if at else "id", kind) for at, (kind, *_) in enumerate(TYPES)))
    sink = create(ledger, settings(tmp_path, codec=codec))
    sink.start()
    stored = [[values[at] for _, *values in TYPES] for at in (0, 1)]
    stored.append([3, *[None] * (len(TYPES) - 1)])
    scalars = ['"text"', "true", "7", "1.5", "null", '{"a": [1]}']  # all that jsonb may be
    at_json = [kind for kind, *_ in TYPES].index(t.JSONB)
    for id, scalar in enumerate(scalars, 10):
        stored.append([id, *(scalar if at == at_json else None for at in range(1, len(TYPES)))])
    assert sink.wait(ledger.write(*((1, row) for row in stored)), 20), sink.status()
    assert len(ids(tmp_path)) == len(stored)
    (binding,) = journal(tmp_path, "apply")[0]["said"]["materialization"]["bindings"]
    declared = {each["field"]: each["inference"] for each in binding["collection"]["projections"]}
    by_type = {kind: declared[f"f{at}"] for at, (kind, *_) in enumerate(TYPES) if at}
    assert set(by_type[t.JSONB]["types"]) == {"array", "boolean", "integer", "null", "number", "object", "string"}
    assert by_type[t.BYTEA]["string"] == {"contentEncoding": "base64"}
    assert set(by_type[t.BYTEA]["types"]) == {"string", "null"} and declared["id"]["types"] == ["integer"]
    sink.drop()
    ledger.close()


# Values that are cut short


@CODECS
def test_values_are_cut_where_a_connector_asks_for_it(tmp_path: Path, codec: str) -> None:
    ledger = Ledger(tmp_path, ("id", t.TEXT), ("name", t.TEXT), ("doc", t.JSONB), ("raw", t.BYTEA), ("n", t.numeric()))
    sink = create(ledger, settings(tmp_path, codec=codec), cut=6)
    sink.start()
    long = {str(at): list(range(9)) for at in range(8)}
    rows = [
        ("a key that is long", "äöüß", json.dumps(long), b"0123456789", Decimal("12345678.900000000000000000")),
        ("b", "123456", '{"a": ["1234567", 1.10]}', b"012", None),
        ("c", None, '"12345é"', None, None),
        ("d", "short", "[1, 2]", b"", None),
    ]
    assert sink.wait(ledger.write(*((1, row) for row in rows)), 20), sink.status()
    with sqlite3.connect(tmp_path / "out.db") as db:
        db.row_factory = sqlite3.Row
        found = [dict(each) for each in db.execute("SELECT * FROM main__t ORDER BY id").fetchall()]
    cut = {str(at): list(range(6)) for at in range(6)}
    expected = [
        (rows[0][0], "äöü", cut, base64.b64encode(b"012").decode(), "12345678.9", 1),
        ("b", "123456", {"a": ["123456", 1.1]}, base64.b64encode(b"012").decode(), None, 1),
        ("c", None, "12345", None, None, 1),
        ("d", "short", [1, 2], "", None, 0),
    ]
    names = ("id", "name", "doc", "raw", "n")
    for row, (*values, truncated) in zip(found, expected, strict=True):
        document = json.loads(row["flow_document"])
        assert [document[name] for name in names] == values
        assert [json.loads(row["doc"]) if name == "doc" else row[name] for name in names] == values
        assert row["_meta/flow_truncated"] == truncated
    assert sink.wait(ledger.write((-1, rows[0]), (1, (rows[0][0], "x", "{}", None, None))), 20), sink.status()
    sink.drop()
    ledger.close()


def test_nothing_is_cut_without_a_limit(ledger: Ledger, tmp_path: Path) -> None:
    assert Truncation.of({}) is None and Truncation.of({"strTruncateAfter": 0}) is None
    only = Truncation.of({"arrayTruncateAfter": 2})
    assert only == Truncation(None, 2, None)
    cut = [False]
    texts, packed = only.column(t.Kind.JSONB, ['{"a": "long enough", "b": [1, 2.5, 3]}'], [b""], cut)
    assert texts == ['{"a": "long enough", "b": [1, 2.5]}'] and cut == [True]
    assert packed == [b"\x01" + texts[0].encode() + b"\x00"]
    same = ['"a long text"']
    assert only.column(t.Kind.TEXT, same, [b"x"], cut) == (same, [b"x"])
    sink = create(ledger, settings(tmp_path))
    selected = (sink._spec.described or {})["bindings"][0]["fieldSelection"]["values"]
    assert selected == ["_meta/op", "name"], "what is never cut need not say so"
    sink.close()


# Constraints


def test_of_several_constraints_the_strictest_counts() -> None:
    """In both forms in which they may come, and in any order."""
    kinds = ["FIELD_OPTIONAL", "LOCATION_RECOMMENDED", "FIELD_REQUIRED", "FIELD_FORBIDDEN", "INCOMPATIBLE"]
    wanted = [
        Constraint.OPTIONAL,
        Constraint.RECOMMENDED,
        Constraint.REQUIRED,
        Constraint.FORBIDDEN,
        Constraint.INCOMPATIBLE,
    ]
    for (at, one), (other_at, other) in product(enumerate(kinds), repeat=2):
        listed = [{"field": "a", "constraint": {"type": each, "reason": each}} for each in (one, other)]
        both = {"constraints": {"a": {"type": one}}, "projectionConstraints": [{"field": "a", "type": other}]}
        for said in ({"projectionConstraints": listed}, both):
            (found,) = _validated({**said, "resourcePath": ["t"]}).constraints.values()
            assert found.kind is wanted[max(at, other_at)], said
    aliases = {"LOCATION_REQUIRED": Constraint.REQUIRED, "UNSATISFIABLE": Constraint.INCOMPATIBLE}
    for name, kind in {**aliases, "SOMETHING_NEW": Constraint.FORBIDDEN}.items():
        found = _validated({"constraints": {"a": {"type": name, "reason": "why"}}}).constraints["a"]
        assert found == FieldConstraint(kind, "why")


@pytest.mark.parametrize(
    ("strictest", "message"),
    [("INCOMPATIBLE", '"name": it is another type there'), ("FIELD_REQUIRED", None)],
)
def test_constraints_as_a_list_of_projections(
    ledger: Ledger, tmp_path: Path, strictest: str, message: str | None
) -> None:
    """A connector that says two things of a field, and the stricter one first."""
    listed = f"""[{{"field": field, "constraint": each}} for field, said in constraints.items() for each in (
        [{{"type": "{strictest}", "reason": "it is another type there"}}, said] if field == "name" else [said])]"""
    code = STRICT.read_text().replace('{"constraints": constraints,', f'{{"projectionConstraints": {listed},')
    program = tmp_path / "listed.py"
    program.write_text(code)
    config = {**settings(tmp_path), "command": f"{sys.executable} -S {program}"}
    if message is None:
        create(ledger, config).close()
        return
    with pytest.raises(InvalidMaterialization) as raised:
        create(ledger, config)
    assert raised.value.detail == message
