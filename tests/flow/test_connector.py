"""Public connectors, by one that is as strict as they are: settings, fields, secrets, deletes, and what heals."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.compute.ir import types as t
from everview.flow.connector import protobuf, schemas
from everview.flow.connector.description import described
from everview.flow.connector.rows import duration, encoded
from everview.flow.contract import Binding, Field, Spec
from everview.flow.documents import json_texts
from everview.flow.drivers.registry import open_driver
from everview.flow.errors import DriverFailed, InvalidMaterialization
from everview.flow.materialization import Materialization, Options, State
from everview.flow.recovery_log import RecoveryLog
from everview.storage.contract import Put
from tests.flow.conftest import PROGRAM, STRICT
from tests.flow.created import created
from tests.flow.ledger import Ledger
from tests.flow.strict import CONFIG, unpacked
from tests.flow.test_drivers import TYPES
from tests.waiting import eventually

COLUMNS = (("id", t.INT8), ("a/b~c", t.TEXT), ("doc", t.JSONB))
QUICK = Options(backoff_s=0.02, backoff_s_max=0.1, stall_s=20, heartbeat_s=0.05)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path, *COLUMNS)
    yield made
    made.close()


def settings(path: Path, *, codec: str = "json", **config: Any) -> dict[str, Any]:
    given = {"path": str(path / "strict.db"), "hardDelete": True, **config}
    return {"command": f"{sys.executable} -S {STRICT}", "codec": codec, "config": given}


def create(
    ledger: Ledger, path: Path, key: list[str], resource: dict[str, Any], *, codec: str = "json", **more: Any
) -> Materialization:
    config = settings(path, codec=codec, **more.pop("config", {}))
    bound = ledger.binding(key, resource=resource, title="orders", **more)
    return created(ledger.environment, "m", "command", config, [bound], options=QUICK)


def rows(path: Path, table: str) -> list[dict[str, Any]]:
    with sqlite3.connect(path / "strict.db") as db:
        db.row_factory = sqlite3.Row
        return [dict(each) for each in db.execute(f'SELECT * FROM "{table}" ORDER BY 1').fetchall()]


# Settings


@pytest.mark.parametrize(
    ("config", "place", "why"),
    [
        ({"pathh": "x"}, "/pathh", "is no setting of it; did you mean path?"),
        ({"credentials": 7}, "/credentials", "must be object, and is integer"),
        ({"credentials": {"auth_type": "password"}}, "/credentials/password", "is missing"),
        ({"credentials": {"auth_type": "none", "pasword": "x"}}, "/credentials/pasword", "is no setting of it"),
        ({"hardDelete": "yes"}, "/hardDelete", "must be boolean, and is string"),
    ],
)
def test_a_slip_in_config_is_told_with_its_place(
    ledger: Ledger, tmp_path: Path, config: dict[str, Any], place: str, why: str
) -> None:
    with pytest.raises(InvalidMaterialization, match="CONFIG is not what the connector takes") as raised:
        create(ledger, tmp_path, ["id"], {"table": "t"}, config=config)
    assert f'"{place}" {why}' in (raised.value.detail or "")
    assert not (tmp_path / "strict.db").exists()


def test_a_slip_in_resource_is_told_with_its_place(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InvalidMaterialization, match="RESOURCE is not what") as raised:
        create(ledger, tmp_path, ["id"], {"tabel": "t"})
    assert raised.value.detail == '"/tabel" is no setting of it; did you mean table?'


SCHEMA: dict[str, Any] = {
    "$defs": {"secret": {"type": "string", "secret": True}},
    "properties": {
        "a": {"$ref": "#/$defs/secret"},
        "b": {"type": "object", "properties": {"c~/d": {"allOf": [{"secret": True}]}, "open": {"type": "string"}}},
        "keys": {"type": "array", "items": {"$ref": "#/$defs/secret"}},
        "more": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 3}},
        "free": {"type": "object", "additionalProperties": True, "properties": {"x": {}}},
    },
}


def test_secrets_are_found_wherever_they_are() -> None:
    value = {"a": "one", "b": {"c~/d": "two", "open": "postgres"}, "keys": ["three", "four"]}
    assert schemas.secrets(value, SCHEMA) == {"one", "two", "three", "four"}
    given = {"path": "x", "credentials": {"auth_type": "password", "password": "topsecret"}}
    assert schemas.secrets(given, CONFIG) == {"topsecret"}


BRANCHES: dict[str, Any] = {
    "$defs": {"again": {"anyOf": [{"$ref": "#/$defs/again"}, {"oneOf": [{"secret": True}, {"type": "null"}]}]}},
    "properties": {
        "any": {"type": "object", "additionalProperties": {"secret": True}, "properties": {"open": {}}},
        "named": {"patternProperties": {"^pass": {"secret": True}, "^\\p{L}key$": {"secret": True}}},
        "when": {
            "if": {"properties": {"kind": {"const": "key"}}},
            "then": {"properties": {"pem": {"secret": True}}},
            "else": {"allOf": [{"properties": {"word": {"airbyte_secret": True}}}]},
            "dependentSchemas": {"user": {"properties": {"pin": {"secret": True}}}},
        },
        "pair": {"type": "array", "items": [{}, {"secret": True}]},
        "first": {"type": "array", "prefixItems": [{"secret": True}], "items": {}},
        "again": {"$ref": "#/$defs/again"},
    },
}


def test_secrets_are_found_in_every_branch_of_a_schema() -> None:
    value = {
        "any": {"x": "s1", "open": "o1"},
        "named": {"password": "s2"},
        "when": {"kind": "key", "pem": "s3", "word": "s4", "pin": 5555},
        "pair": ["o2", "s6"],
        "first": ["s7", "o3"],
        "again": "s8",
        "other": "o4",
    }
    assert schemas.secrets(value, BRANCHES) == {"s1", "s2", "s3", "s4", "5555", "s6", "s7", "s8"}


def test_a_pattern_of_another_dialect_is_left_to_the_connector() -> None:
    schema = {"properties": {}, "patternProperties": {"^\\p{L}+$": {"type": "string"}}}
    schemas.check("X", {"ä": "x"}, schema)


def test_a_secret_of_several_lines_is_hidden_line_by_line(tmp_path: Path) -> None:
    body = ["MIIEvQIBADANBgkqhkiG9w0BAQEF", "AASCBKcwggSjAgEAAoIBAQC7VJTU", "t9Us8cKj"]
    pem = "\n".join(["-----BEGIN KEY-----", *body, "-----END KEY-----", ""])
    account = json.dumps({"type": "x", "private_key": pem, "deep": [{"id": "inner-value", "n": 1, "pin": 98765}]})
    for word in (pem, account):
        driver = open_driver("command", settings(tmp_path, credentials={"auth_type": "password", "password": word}))
        for said in (*body, pem, pem.strip(), json.dumps(pem)[1:-1], "\r\n".join(body)):
            assert not any(line in driver.hide(f"failed: {said} of 1 x") for line in body)
        assert driver.hide("1 line") == "1 line"
    assert driver.hide("inner-value, 98765") == "***, ***"


def test_what_fits_a_schema() -> None:
    schemas.check("X", {"more": {"any": 3}, "free": {"y": 1}}, SCHEMA)
    with pytest.raises(InvalidMaterialization) as raised:
        schemas.check("X", {"more": {"any": 2}, "b": {"c~/d": "x", "opne": "y"}}, SCHEMA)
    detail = raised.value.detail or ""
    assert '"/more/any" must be at least 3' in detail and '"/b/opne" is no setting of it; did you mean open?' in detail


def test_secrets_are_hidden_exactly(tmp_path: Path) -> None:
    word = 'pä"ss wörd'
    driver = open_driver("command", settings(tmp_path, credentials={"auth_type": "password", "password": word}))
    text = f"postgres said {word}, {json.dumps(word)}, p%C3%A4%22ss%20w%C3%B6rd; auth_type password; path {tmp_path}"
    shown = driver.hide(text)
    assert "rd" not in shown.replace("password", "") and "postgres said ***" in shown and str(tmp_path) in shown
    assert json.loads(driver.shown("config", "") or "")["credentials"] == {"auth_type": "password", "password": "***"}


def test_secrets_of_a_program_that_does_not_answer_are_all_hidden() -> None:
    driver = open_driver("command", {"command": "/nothing/there", "config": {"x": {"y": "hidden one"}}})
    assert driver.hide("it said hidden one") == "it said ***"


def test_errors_show_what_matters_and_no_secrets(ledger: Ledger, tmp_path: Path) -> None:
    code = (
        "import sys, json; said = json.loads(sys.stdin.readline())\n"
        "if 'spec' in said: print(json.dumps({'spec': {'configSchema': {'properties': {'credentials': {'properties': "
        "{'password': {'secret': True}}}}}}})); sys.exit(0)\n"
        "for level, msg in (('info', 'starting'), ('error', 'login with topsecret123 failed')):\n"
        "    print(json.dumps({'level': level, 'msg': msg}), file=sys.stderr)\n"
        "sys.exit(1)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(code)
    config = {"command": f"{sys.executable} {program}", "config": {"credentials": {"password": "topsecret123"}}}
    with pytest.raises(DriverFailed, match="failed to answer validate") as raised:
        Materialization.validate(ledger.environment, "m", "command", config, [ledger.binding(["id"])])
    assert raised.value.detail == "login with *** failed"


# Fields


@pytest.mark.parametrize("codec", ["json", "proto"])
@pytest.mark.parametrize(
    ("resource", "kept"), [({"case": True}, "amount"), ({"fold": 3}, "Amo"), ({"fold": 3, "case": True}, "Amo")]
)
def test_columns_that_the_connector_would_keep_under_one_name_are_refused(
    tmp_path: Path, codec: str, resource: dict[str, Any], kept: str
) -> None:
    other = "amount" if "fold" not in resource else "Amortised"
    ledger = Ledger(tmp_path, ("id", t.INT8), ("Amount", t.INT8), (other, t.INT8))
    with pytest.raises(InvalidMaterialization, match="cannot take collection u1") as raised:
        create(ledger, tmp_path, ["id"], {"table": "t", **resource}, codec=codec)
    assert raised.value.detail == f'it would keep "Amount" and "{other}" both as "{kept}"'
    ledger.close()
    apart = Ledger(tmp_path / "apart", ("id", t.INT8), ("Amount", t.INT8), ("total", t.INT8))
    create(apart, tmp_path, ["id"], {"table": "t", **resource}, codec=codec).drop()
    apart.close()


@pytest.mark.parametrize("codec", ["json", "proto"])
def test_updates_and_deletes_arrive_under_any_name_and_schema(ledger: Ledger, tmp_path: Path, codec: str) -> None:
    sink = create(ledger, tmp_path, ["id"], {"table": "gp", "schema": "s2"}, codec=codec)
    sink.start()
    ledger.write((1, (1, "a", '{"x":1}')), (1, (2, "b", "[1]")), (1, (3, None, None)))
    ledger.write((-1, (1, "a", '{"x":1}')), (1, (1, "ü\x00", "true")), (-1, (2, "b", "[1]")))
    assert sink.wait(ledger.upper, 20)
    found = rows(tmp_path, "s2__gp")
    assert [(each["id"], each["a/b~c"], each["doc"]) for each in found] == [(1, "ü\x00", b"true"), (3, None, None)]
    document = json.loads(found[0]["flow_document"])
    assert document == {"id": 1, "a/b~c": "ü\x00", "doc": True, "_meta": {"op": document["_meta"]["op"]}}
    sink.close()


def test_rows_that_the_connector_keeps_say_that_they_are_deleted(ledger: Ledger, tmp_path: Path) -> None:
    sink = create(ledger, tmp_path, ["id"], {"table": "t"}, config={"hardDelete": False})
    sink.start()
    assert sink.wait(ledger.write((1, (1, "a", None))), 20)
    assert [each["_meta/op"] for each in rows(tmp_path, "main__t")] == ["c"]
    assert sink.wait(ledger.write((-1, (1, "a", None)), (1, (1, "b", None))), 20)
    assert [each["_meta/op"] for each in rows(tmp_path, "main__t")] == ["u"]
    assert sink.wait(ledger.write((-1, (1, "b", None))), 20)
    assert [each["_meta/op"] for each in rows(tmp_path, "main__t")] == ["d"]
    assert sink.wait(ledger.write((1, (1, "c", None))), 20)  # and comes back
    assert [(each["a/b~c"], each["_meta/op"]) for each in rows(tmp_path, "main__t")] == [("c", "u")]
    sink.close()


def test_a_connector_of_whole_documents(ledger: Ledger, tmp_path: Path) -> None:
    sink = create(ledger, tmp_path, ["id"], {"table": "t", "documents": True})
    sink.start()
    assert sink.wait(ledger.write((1, (1, "a", '"text"'))), 20)
    (found,) = rows(tmp_path, "main__t")
    assert set(found) == {"id", "flow_document"}
    assert json.loads(found["flow_document"]) == {"id": 1, "a/b~c": "a", "doc": "text", "_meta": {"op": "c"}}
    sink.close()


@pytest.mark.parametrize("codec", ["json", "proto"])
def test_rows_without_a_key_get_one(ledger: Ledger, tmp_path: Path, codec: str) -> None:
    sink = create(ledger, tmp_path, [], {}, delta_updates=True, codec=codec)  # named after the collection
    sink.start()
    ledger.write((2, (1, "a", None)))
    assert sink.wait(ledger.upper, 20)
    assert sink.wait(ledger.write((1, (1, "a", None))), 20)
    found = rows(tmp_path, "main__orders")
    assert len(found) == 3 and len({each["_meta/id"] for each in found}) == 3
    sink.close()


def test_delta_updates_follow_the_sink(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InvalidMaterialization, match="RESOURCE says false at /delta_updates, and the sink says"):
        create(ledger, tmp_path, ["id"], {"table": "t", "delta_updates": False}, delta_updates=True)
    with pytest.raises(InvalidMaterialization, match="does not say DELTA UPDATES"):
        create(ledger, tmp_path, ["id"], {"table": "t", "delta_updates": True})
    sink = create(ledger, tmp_path, ["id"], {"table": "t"}, delta_updates=True)
    sink.start()
    ledger.write((1, (1, "a", None)))
    assert sink.wait(ledger.upper, 20)
    assert sink.wait(ledger.write((-1, (1, "a", None)), (1, (1, "b", None))), 20)
    assert [each["a/b~c"] for each in rows(tmp_path, "main__t")] == ["a", "b"]
    sink.close()


def test_a_program_that_takes_no_delta_updates_is_held_to_it(ledger: Ledger, tmp_path: Path) -> None:
    code = STRICT.read_text().replace('"delta_updates": {"type": "boolean", "x-delta-updates": True},', "")
    program = tmp_path / "other.py"
    program.write_text(code)
    config = {**settings(tmp_path), "command": f"{sys.executable} -S {program}"}
    bound = ledger.binding(["id"], resource={"table": "t"}, delta_updates=True)
    with pytest.raises(InvalidMaterialization, match="takes no delta updates there"):
        created(ledger.environment, "m", "command", config, [bound])


def test_names_that_connectors_use_themselves_are_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, ("id", t.INT8), ("flow_document", t.TEXT))
    with pytest.raises(InvalidMaterialization) as raised:
        create(ledger, tmp_path, ["id"], {"table": "t"})
    assert '"flow_document": connectors use this name themselves' in (raised.value.detail or "")
    ledger.close()


# What heals, and what is kept


def test_a_row_that_the_connector_refuses_is_healed_by_later_data(ledger: Ledger, tmp_path: Path) -> None:
    sink = create(ledger, tmp_path, ["id"], {"table": "t"})
    with sqlite3.connect(tmp_path / "strict.db") as db:
        db.execute(
            """CREATE TRIGGER poison BEFORE INSERT ON "main__t" WHEN new."a/b~c" = 'poison'
            BEGIN SELECT RAISE(ABORT, 'invalid input syntax'); END"""
        )
    sink.start()
    ledger.write((1, (1, "poison", None)))
    eventually(lambda: sink.status().state is State.STALLED)
    ledger.write((-1, (1, "poison", None)), (1, (1, "cure", None)))
    assert sink.wait(ledger.upper, 20)
    assert [each["a/b~c"] for each in rows(tmp_path, "main__t")] == ["cure"]
    sink.close()


def test_the_state_of_apply_and_the_description_outlive_the_process(ledger: Ledger, tmp_path: Path) -> None:
    sink = create(ledger, tmp_path, ["id"], {"table": "t"})
    assert RecoveryLog(ledger.environment, "m").state() == {"applied": "0000000000000001"}
    sink.close()
    bound = ledger.binding(["id"], resource={"table": "t"}, title="orders")
    config = settings(tmp_path)
    again = Materialization.resume(ledger.environment, "m", "command", config, [bound], options=QUICK)
    again.start()
    assert again.wait(ledger.write((1, (1, "a", None))), 20)
    again.split(3)
    assert again.wait(ledger.write((1, (2, "b", None)), (1, (3, "c", None))), 20)
    assert [each["id"] for each in rows(tmp_path, "main__t")] == [1, 2, 3]
    again.drop()


def test_sinks_of_before_connectors_chose_their_fields_go_on(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, ("id", t.INT8), ("name", t.TEXT))
    config = {"command": f"{sys.executable} {PROGRAM} sqlite", "config": {"path": str(tmp_path / "p.db")}}
    bound = ledger.binding(["id"], resource={"table": "t"})
    sink = created(ledger.environment, "m", "command", config, [bound], options=QUICK)
    sink.start()
    assert sink.wait(ledger.write((1, (1, "a"))), 20)
    sink.close()
    key = "flow/m/materialization"
    note = json.loads(ledger.environment.get(key) or b"")
    old = {name: note[name] for name in ("tokens", "ranges")}
    ledger.environment.commit(Put(key, json.dumps(old).encode()))
    again = Materialization.resume(ledger.environment, "m", "command", config, [bound], options=QUICK)
    again.start()
    assert again.wait(ledger.write((-1, (1, "a")), (1, (1, "b")), (1, (2, "c"))), 20)
    with sqlite3.connect(tmp_path / "p.db") as db:
        assert sorted(db.execute("SELECT * FROM t").fetchall()) == [(1, "b"), (2, "c")]
    again.close()
    ledger.close()


def test_images_are_run_by_a_configured_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InvalidMaterialization, match="nothing says how the image acme/strict:v1 is run"):
        open_driver("connector", {"connector": "acme/strict:v1"})
    monkeypatch.setenv("EVERVIEW_CONNECTOR_COMMAND", f"{sys.executable} -S {STRICT} {{image}} {{codec}}")
    driver = open_driver("connector", {"connector": "acme/strict:v1", "codec": "proto", "config": {"path": "x"}})
    assert driver.about["protocol"] == 3032023  # type: ignore[attr-defined]
    with pytest.raises(InvalidMaterialization, match='there is no codec "xml"'):
        open_driver("connector", {"connector": "/bin/true", "codec": "xml"})


# The wire


def test_every_type_is_packed_as_it_is_in_json() -> None:
    for sql_type, *values in TYPES:
        column = pa.chunked_array([pa.array([*values, None], t.outside_type(sql_type))])
        texts, packed = encoded(column, sql_type)
        if sql_type.kind is not t.Kind.INTERVAL:
            assert [json.loads(each) for each in texts] == [json.loads(each) for each in json_texts(column, sql_type)]
        for text, content in zip(texts, packed, strict=True):
            (found,) = unpacked(content)
            assert (json.loads(found) if isinstance(found, bytes) else found) == json.loads(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (t.Interval(14, 3, 14_706_500_000), "P14M3DT14706.5S"),
        (t.Interval(0, 0, 0), "P0M0DT0S"),
        (t.Interval(-1, 3, -4_500_000), "P-1M3DT-4.5S"),
    ],
)
def test_intervals_are_durations(value: t.Interval, text: str) -> None:
    from everview.compute.functions.input import from_text

    assert duration(value) == text and from_text(text, t.INTERVAL) == value


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3))


@given(st.text(), JSON, st.integers(0, 2**32 - 1), st.integers(-(2**63), 2**63 - 1), st.booleans())
def test_messages_survive_protocol_buffers(text: str, value: Any, number: int, big: int, flag: bool) -> None:
    said: dict[str, Any] = {"startCommit": {"runtimeCheckpoint": {"sources": {text: {"readThrough": str(big)}}}}}
    if big == 0:
        said["startCommit"]["runtimeCheckpoint"]["sources"][text] = {}
    assert protobuf.decode("Request", protobuf.encode("Request", said)) == said
    store: dict[str, Any] = {
        "binding": number or 1,
        "key": [value],
        "values": [],
        "doc": {"a": value},
        "keyPacked": "AAE=",
    }
    if flag:
        store["delete"] = True
    assert protobuf.decode("Store", protobuf.encode("Store", store)) == store


def test_a_whole_materialization_survives_protocol_buffers() -> None:
    spec = Spec("m", "x", (Binding("u1", (Field("id", t.INT8), Field("n", t.numeric())), ("id",), {"table": "t"}),))
    choice = {
        "resourceConfig": {"table": "t"},
        "resourcePath": ["a/b", "t"],
        "fieldSelection": {"keys": ["id"], "values": ["n"], "document": "flow_document"},
    }
    told = described(spec, [choice], backfills={0: 2})
    back = protobuf.decode("Materialization", protobuf.encode("Materialization", told))
    (binding,) = back["bindings"]
    assert binding["stateKey"] == "a%2Fb%2Ft.v2" and binding["backfill"] == 2
    assert back["shardTemplate"]["maxTxnDuration"] == "300s"
    assert binding["collection"]["partitionTemplate"] == told["bindings"][0]["collection"]["partitionTemplate"]
    projections = {each["field"]: each for each in binding["collection"]["projections"]}
    assert projections["n"]["inference"]["string"]["format"] == "number"


@pytest.mark.parametrize("content", [b"\xff", b"\x0a\x05ab", b"\x0b", b"\x12\x80"])
def test_broken_protocol_buffers_are_told(content: bytes) -> None:
    with pytest.raises(DriverFailed):
        protobuf.decode("Response", content)
