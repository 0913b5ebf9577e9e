"""Drivers one by one: every type there and back, and what is particular to each."""

from __future__ import annotations

import importlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from everview.compute.ir import types as t
from everview.compute.ir.infinite import Infinite, as_numbers, to_python
from everview.flow.check.endpoints import Receiver
from everview.flow.check.harness import Endpoint
from everview.flow.checkpoint import Checkpoint
from everview.flow.connector.description import chosen_before, described
from everview.flow.connector.rows import pack_bytes, pack_float, pack_integer, pack_text
from everview.flow.contract import DELETE, EXISTS, Binding, Field, Spec
from everview.flow.drivers.contract import Driver
from everview.flow.drivers.registry import DRIVERS, open_driver
from everview.flow.drivers.webhook import WebhookTransactor
from everview.flow.errors import DriverFailed, DriverStalled, InvalidMaterialization, MissingLibrary
from everview.flow.keyrange import WHOLE
from everview.flow.protocol import Acknowledge, Flush, Flushed, Load, Loaded, Open, Opened, StartCommit, Store
from everview.flow.wire import spec_from_json
from tests.flow.conftest import PROGRAM

TYPES = [
    (t.INT8, 2**62 + 1, -1),
    (t.BOOLEAN, True, False),
    (t.INT2, -32768, 7),
    (t.INT4, 2**31 - 1, 0),
    (t.FLOAT4, 0.5, -1.5e10),
    (t.FLOAT8, 0.1, float("inf")),
    (t.numeric(38, 4), Decimal("1234567890123456789012345678901234.5678"), Decimal("-0.0001")),
    (t.numeric(), Decimal("0.000000000000000001"), Decimal("1.000000000000000000")),
    (t.TEXT, "ünï\n\t\"quoted\", 'too' \\ %s", ""),
    (t.BYTEA, b"\x00\xff\x80bytes", b""),
    (t.DATE, date(1969, 12, 31), date(9999, 12, 31)),
    (t.TIME, 86_399_999_999, 0),
    (t.TIMESTAMP, datetime(2024, 2, 29, 23, 59, 59, 999_999), datetime(1, 1, 1)),
    (t.TIMESTAMPTZ, datetime(2024, 7, 1, 12, 0, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)),
    (t.INTERVAL, {"months": 14, "days": -3, "micros": 4_000_001}, {"months": 0, "days": 0, "micros": 0}),
    (t.UUID, "123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000"),
    (t.JSONB, '{"a": [1, 2.50000000000000000001, null], "b": "ü"}', "[]"),
    (t.array_of(t.INT8), [1, None, 3], []),
    (t.array_of(t.TEXT), ["a,b", 'q"', "", None], ["NULL"]),
]
FIELDS = tuple(Field(f"f {at}" if at else "id", kind) for at, (kind, _, _) in enumerate(TYPES))
STANDARD = ("sqlite", "postgres", "delta", "redis", "command")


def pack(values: list[Any]) -> bytes:
    """Pack JSON scalars."""
    return b"".join(map(_packed, values))


def _packed(value: Any) -> bytes:
    match value:
        case None:
            return b"\x00"
        case bool():
            return b"\x27" if value else b"\x26"
        case int():
            return pack_integer(value)
        case float():
            return pack_float(value)
        case bytes():
            return pack_bytes(value)
        case _:
            return pack_text(value)


def rows(binding: Binding) -> pa.Table:
    """Two rows of values and one of NULLs."""
    columns = [
        pa.array([first, second, 3 if at == 0 else None], field.type)
        for at, ((_, first, second), field) in enumerate(zip(TYPES, binding.schema, strict=True))
    ]
    return pa.table(columns, schema=binding.schema)


def flagged(table: pa.Table, *, exists: bool = False, delete: bool = False) -> pa.Table:
    for name, flag in ((EXISTS, exists), (DELETE, delete)):
        table = table.append_column(name, pa.array([flag] * table.num_rows))
    return table


def converse(driver: Driver, spec: Spec, stored: list[pa.Table], load: pa.Table) -> tuple[list[dict[str, Any]], Any]:
    """Store some batches, each in a transaction of its own, then load; gives the documents and the checkpoint."""
    channel = driver.connect(Open(spec, WHOLE, {}))
    state: Any = None

    def receive(kind: type) -> Any:
        response = channel.receive(30)
        assert isinstance(response, kind), response
        return response

    try:
        opened = receive(Opened)
        for number, batch in enumerate(stored):
            channel.send(Acknowledge(), 10)
            wait_for_acknowledged(channel)
            channel.send(Flush(), 10)
            receive(Flushed)
            channel.send(Store(0, batch), 10)
            channel.send(StartCommit(f'[["00000000-ffffffff",{number + 1}]]'), 10)
            state = channel.receive(30)
        channel.send(Acknowledge(), 10)
        wait_for_acknowledged(channel)
        channel.send(Load(0, load), 10)
        channel.send(Flush(), 10)
        found: list[dict[str, Any]] = []
        while isinstance(response := channel.receive(30), Loaded):
            found += documents_of(response.documents)
        assert isinstance(response, Flushed), (response, state)
        return found, opened.checkpoint
    finally:
        channel.close()


def wait_for_acknowledged(channel: Any) -> None:
    from everview.flow.protocol import Acknowledged

    assert isinstance(channel.receive(30), Acknowledged)


def spec_for(name: str, endpoint: Endpoint) -> Spec:
    binding = Binding("u1", FIELDS, ("id",), dict(endpoint.resources["view"]))
    return Spec(f"types-{name}", name, (binding,), endpoint.driver.config)


@pytest.mark.parametrize("name", STANDARD)
def test_every_type_there_and_back(name: str, endpoint: Callable[[str], Endpoint]) -> None:
    made = endpoint(name)
    spec = spec_for(name, made)
    made.driver.validate(spec)
    made.driver.apply(spec)
    binding = spec.bindings[0]
    table = rows(binding)
    keys = pa.table({"id": pa.array([2**62 + 1, -1, 3, 404], pa.int64())})
    found, _ = converse(made.driver, spec, [flagged(table)], keys)
    assert by_id(found) == by_id(table.to_pylist())
    made.driver.validate(spec)  # what is there now fits

    # Two rows trade their values and one goes.
    changed = table.set_column(0, binding.schema.field(0), pa.array([-1, 2**62 + 1, 3], pa.int64()))
    steps = [flagged(changed.slice(0, 2), exists=True), flagged(table.slice(2), exists=True, delete=True)]
    found, checkpoint = converse(made.driver, spec, steps, keys)
    if name in ("sqlite", "postgres", "command"):
        assert checkpoint == '[["00000000-ffffffff",1]]'
    assert by_id(found) == by_id(changed.slice(0, 2).to_pylist())


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
def test_columns_of_odd_names(name: str, endpoint: Callable[[str], Endpoint]) -> None:
    made = endpoint(name)
    fields = (Field("50 %", t.INT8), Field('a"b', t.TEXT), Field("%s?", t.TEXT))
    binding = Binding("u1", fields, ("50 %",), dict(made.resources["view"]))
    spec = Spec(f"names-{name}", name, (binding,), made.driver.config)
    made.driver.apply(spec)
    table = pa.table([pa.array([1, 2], pa.int64()), ["x", "y"], ["'", "%"]], schema=binding.schema)
    changed = pa.table([pa.array([1], pa.int64()), ["z"], [None]], schema=binding.schema)
    steps = [flagged(table), flagged(changed, exists=True), flagged(table.slice(1), exists=True, delete=True)]
    found, _ = converse(made.driver, spec, steps, table.select(["50 %"]))
    assert found == changed.to_pylist()


def documents_of(table: pa.Table) -> list[dict[str, Any]]:
    columns = zip(*(to_python(column) for column in table.columns), strict=True)
    return [dict(zip(table.column_names, row, strict=True)) for row in columns]


@pytest.mark.parametrize("name", STANDARD)
def test_infinities_there_and_back(name: str, endpoint: Callable[[str], Endpoint]) -> None:
    fields = (Field("key", t.DATE), *(Field(str(each), each) for each in (t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ)))
    made = endpoint(name)
    binding = Binding("u1", fields, ("key",), dict(made.resources["view"]))
    spec = Spec(f"infinities-{name}", name, (binding,), made.driver.config)
    made.driver.validate(spec)
    made.driver.apply(spec)
    rows = [[each, *[each] * 3] for each in Infinite]
    columns = [
        pa.array(as_numbers(values, field.type), field.type)
        for values, field in zip(zip(*rows, strict=True), binding.schema, strict=True)
    ]
    table = pa.table(columns, schema=binding.schema)
    if name == "delta":
        with pytest.raises(DriverFailed, match="of collection u1 is infinite"):
            converse(made.driver, spec, [flagged(table)], table.select(["key"]))
        return
    for stored in ([flagged(table)], [flagged(table, exists=True)]):
        found, _ = converse(made.driver, spec, stored, table.select(["key"]))
        assert sorted(each["key"] for each in found) == sorted(Infinite)
        assert all(set(each.values()) == {each["key"]} for each in found)


def by_id(found: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {each["id"]: each for each in found}


def test_postgres_has_postgres_types(endpoint: Callable[[str], Endpoint], postgres_url: str) -> None:
    made = endpoint("postgres")
    spec = spec_for("postgres", made)
    made.driver.apply(spec)
    table = rows(spec.bindings[0])
    converse(made.driver, spec, [flagged(table)], table.select(["id"]))
    with psycopg.connect(postgres_url) as db:
        found = db.execute(f'SELECT * FROM "{spec.bindings[0].resource["table"]}" ORDER BY id DESC LIMIT 1').fetchone()
    assert found is not None
    assert found[0] == 2**62 + 1 and found[6] == Decimal("1234567890123456789012345678901234.5678")
    assert found[9] == b"\x00\xff\x80bytes" and found[16]["b"] == "ü" and found[17] == [1, None, 3]


def test_postgres_shows_a_numeric_as_the_view_does(endpoint: Callable[[str], Endpoint], postgres_url: str) -> None:
    made = endpoint("postgres")
    place = dict(made.resources["view"])
    numeric = Field("n", t.numeric())
    spec = Spec("m", "postgres", (Binding("u1", (Field("id", t.INT8), numeric), ("id",), place),))
    made.driver.apply(spec)
    values = ["37934", "0", "1.50", "0.000000000000000001", "-12.000000000000000010", None]
    column = pa.array([None if each is None else Decimal(each) for each in values], pa.decimal128(38, 18))
    table = pa.table({"id": pa.array(range(6), pa.int64()), "n": column})
    transactor = made.driver.open(spec, WHOLE, {})
    transactor.store(0, flagged(table))
    started = transactor.start_commit(Checkpoint.at(WHOLE, 1).encode())
    assert started.commit is not None
    started.commit()
    transactor.close()
    with psycopg.connect(postgres_url) as db:
        found = db.execute(f'SELECT n::text FROM "{place["table"]}" ORDER BY id').fetchall()
    shown = ["37934", "0", "1.5", "0.000000000000000001", "-12.00000000000000001", None]
    assert [each for (each,) in found] == shown


def test_an_existing_postgres_table_must_fit(endpoint: Callable[[str], Endpoint], postgres_url: str) -> None:
    made = endpoint("postgres")
    spec = spec_for("postgres", made)
    with psycopg.connect(postgres_url) as db:
        db.execute(f'CREATE TABLE "{spec.bindings[0].resource["table"]}" (id int PRIMARY KEY)')
    with pytest.raises(InvalidMaterialization, match="exists and cannot hold the sink") as raised:
        made.driver.validate(spec)
    assert '"id" is integer, and must be bigint' in (raised.value.detail or "")


@pytest.mark.parametrize("name", ["delta", "parquet"])
def test_existing_files_must_fit(name: str, endpoint: Callable[[str], Endpoint]) -> None:
    made = endpoint(name)
    place = dict(made.resources["view"])
    spec = Spec("m", name, (Binding("u1", FIELDS[:2], ("id",), place, delta_updates=True),))
    made.driver.apply(spec)
    table = pa.table({"id": pa.array([1]), "f 1": pa.array([True])})
    transactor = made.driver.open(spec, WHOLE, {})
    transactor.store(0, flagged(table))
    transactor.start_commit("c")
    transactor.acknowledge()
    transactor.close()
    other = Spec("m", name, (Binding("u1", FIELDS[:3], ("id",), place, delta_updates=True),))
    with pytest.raises(InvalidMaterialization):
        made.driver.validate(other)


WEBHOOK_ROW = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "f 1": pa.array([True, None, False])})
WEBHOOK_SPEC = Spec("hook", "webhook", (Binding("u1", FIELDS[:2], ("id",), delta_updates=True),))


@pytest.fixture
def receiving() -> Iterator[Callable[..., Receiver]]:
    made: list[Receiver] = []

    def make(answer: Callable[[int], int]) -> Receiver:
        made.append(Receiver(answer))
        return made[-1]

    yield make
    for each in made:
        each.close()


def webhook(receiver: Receiver, slept: list[float], **more: Any) -> WebhookTransactor:
    driver = open_driver("webhook", {"url": receiver.url, "batch_rows": 2, **more})
    return WebhookTransactor(driver.config, {"X-Token": "s3cret"}, WEBHOOK_SPEC, WHOLE, slept.append)


def test_webhook_tries_again_with_back_off(receiving: Callable[..., Receiver]) -> None:
    receiver = receiving(lambda number: 200 if number in (4, 5) else [503, 429, 500][number % 3])
    slept: list[float] = []
    webhook(receiver, slept).store(0, flagged(WEBHOOK_ROW))
    assert [len(post["documents"]) for post in receiver.posts] == [2, 1] and len(slept) == 3
    assert slept == sorted(slept) and slept[0] >= 0.1
    assert len(set(receiver.keys)) == 2
    documents = [each for post in receiver.posts for each in post["documents"]]
    assert documents[1] == {"key": {"id": 2}, "document": {"id": 2, "f 1": None}}


def test_webhook_gives_up(receiving: Callable[..., Receiver]) -> None:
    slept: list[float] = []
    with pytest.raises(DriverFailed, match="failed 3 times"):
        webhook(receiving(lambda number: 500), slept, retries=2).store(0, flagged(WEBHOOK_ROW))
    assert len(slept) == 2
    with pytest.raises(DriverFailed, match="refused a post"):
        webhook(receiving(lambda number: 404), slept).store(0, flagged(WEBHOOK_ROW))
    assert len(slept) == 2


def test_webhook_posts_the_same_batch_under_the_same_key(receiving: Callable[..., Receiver]) -> None:
    receiver = receiving(lambda number: 200)
    for _ in range(2):
        webhook(receiver, []).store(0, flagged(WEBHOOK_ROW, delete=True, exists=True))
    assert receiver.keys[:2] == receiver.keys[2:]
    assert receiver.posts[0]["documents"][0] == {"key": {"id": 1}, "delete": True}


def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    code = "import sys; sys.stdin.readline(); print('no such place', file=sys.stderr); sys.exit(3)"
    driver = open_driver("command", {"command": f'{sys.executable} -c "{code}"'})
    spec = Spec("m", "command", (Binding("u1", FIELDS[:2], ("id",)),))
    with pytest.raises(DriverFailed, match="status 3") as raised:
        driver.validate(spec)
    assert "no such place" in (raised.value.detail or "")
    channel = driver.connect(Open(spec, WHOLE, {}))
    with pytest.raises(DriverFailed, match="ended with status 3") as raised:
        channel.receive(30)
    channel.close()
    with pytest.raises(DriverFailed, match="cannot start"):
        open_driver("command", {"command": str(tmp_path / "nothing")}).validate(spec)


@pytest.mark.parametrize("said", ["nonsense", '{"opened": {}, "flushed": {}}', '{"what": {}}'])
def test_a_program_that_talks_nonsense(said: str) -> None:
    code = f"import sys; sys.stdin.readline(); print({said!r})".replace('"', '\\"')
    driver = open_driver("command", {"command": f'{sys.executable} -c "{code}"'})
    channel = driver.connect(Open(Spec("m", "command", (Binding("u1", FIELDS[:2], ("id",)),)), WHOLE, {}))
    with pytest.raises(DriverFailed):
        channel.receive(30)
    channel.close()


def test_a_driver_as_a_program_describes_itself(tmp_path: Path) -> None:
    asked = json.dumps({"spec": {}}) + "\n"
    out = subprocess.run(
        [sys.executable, str(PROGRAM), "sqlite"], input=asked, capture_output=True, text=True, check=True, timeout=60
    )
    said = json.loads(out.stdout)["spec"]
    assert said["protocol"] == 3032023 and said["configSchema"]["required"] == ["path"]
    driver = open_driver("command", {"command": f"{sys.executable} {PROGRAM} sqlite", "config": {"path": "x"}})
    assert driver.about["protocol"] == 3032023  # type: ignore[attr-defined]


def test_specifications_as_json() -> None:
    spec = Spec(
        "m", "x", (Binding("u1", FIELDS, ("id",), {"table": "t"}), Binding("u2", FIELDS[:2], (), {}, True)), {"a": 1}
    )
    told = described(spec, [chosen_before(each) for each in spec.bindings])
    again = spec_from_json(json.loads(json.dumps({**told, "config": spec.config})), "x")
    assert [each.fields for each in again.bindings] == [each.fields for each in spec.bindings]
    named = tuple(replace(each, collection=f"everview/{each.collection}") for each in spec.bindings)
    assert again == replace(spec, bindings=named)
    projections = told["bindings"][0]["collection"]["projections"]
    assert [each["field"] for each in projections] == sorted(each["field"] for each in projections)


@pytest.mark.parametrize(
    ("values", "packed"),
    [
        ([None, True, False], b"\x00\x27\x26"),
        ([0, 1, -1, 256, -256], b"\x14\x15\x01\x13\xfe\x16\x01\x00\x12\xfe\xff"),
        (["a\x00b"], b"\x02a\x00\xffb\x00"),
        ([1.0], b"\x21\xbf\xf0\x00\x00\x00\x00\x00\x00"),
        ([-1.0], b"\x21\x40\x0f\xff\xff\xff\xff\xff\xff"),
    ],
)
def test_packed_keys(values: list[Any], packed: bytes) -> None:
    assert pack(values) == packed


def test_packed_keys_are_in_order() -> None:
    numbers = [-(2**63), -70000, -256, -255, -1, 0, 1, 255, 256, 70000, 2**63]
    assert sorted(numbers, key=lambda each: pack([each])) == numbers


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    for name, config in {
        "postgres": {"connection": "x"},
        "redis": {"url": "x"},
        "delta": {},
        "kafka": {"brokers": "x"},
    }.items():
        with pytest.raises(MissingLibrary) as raised:
            open_driver(name, config)
        assert f"pip install 'everview[{name}]'" in (raised.value.hint or "")


def test_drivers_hide_their_secrets() -> None:
    driver = open_driver("webhook", {"url": "https://x/token-abc", "headers": '{"Authorization": "Bearer qwerty"}'})
    shown = driver.hide("failed: https://x/token-abc said Bearer qwerty")
    assert "token-abc" not in shown and "qwerty" not in shown
    assert "token-abc" not in repr(driver) and "token-abc" not in repr(Spec("m", "webhook", (), driver.config))
    kafka = open_driver("kafka", {"brokers": "x", "properties": '{"sasl.password": "pw12"}'})
    assert kafka.hide("auth pw12 of x failed") == "auth *** of x failed"
    delta = open_driver("delta", {"storage_options": '{"AWS_SECRET_ACCESS_KEY": "abcdef", "AWS_REGION": "eu-west"}'})
    assert delta.hide("abcdef is refused in eu-west") == "*** is refused in eu-west"
    address = "postgresql://db_user:p%40ss:w@host/postgres?sslmode=require&sslpassword=hunter2"
    postgres = open_driver("postgres", {"connection": address})
    assert postgres.hide(f"{address}: db_user at host") == (
        "postgresql://db_user:***@host/postgres?sslmode=require&sslpassword=***: db_user at host"
    )
    assert postgres.hide("password p@ss:w of db_user is wrong") == "password *** of db_user is wrong"
    plain = open_driver("postgres", {"connection": "host=h user=u password='a b c'"})
    assert plain.hide('password="a b c" of u') == 'password="***" of u'
    redis = open_driver("redis", {"url": "redis://:k@h:6379/0"})
    assert redis.hide("k is wrong, key lost, redis://:k@h") == "*** is wrong, key lost, redis://:***@h"


def test_all_drivers_are_known() -> None:
    assert set(DRIVERS) == {
        "sqlite",
        "postgres",
        "delta",
        "parquet",
        "redis",
        "webhook",
        "kafka",
        "command",
        "connector",
    }
    assert sqlite3.sqlite_version_info >= (3, 37)  # STRICT tables
    assert issubclass(DriverStalled, DriverFailed)
