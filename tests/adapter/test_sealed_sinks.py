"""What sinks hold in clear is sealed: that of new ones, and that of those which were made before there was a key."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.adapter import secrets
from everview.adapter.catalog import codec
from everview.adapter.catalog.items import Sink
from everview.adapter.catalog.sealed import SealedSettings
from everview.adapter.catalog.specs import Delivered, DriverSink, SinkSpec, StreamSink
from everview.adapter.coordinator import Coordinator
from everview.adapter.sealing import KEY_VARIABLE, KeyTrouble, Sealer
from everview.adapter.stream_locations import FolderLocation, TopicLocation
from everview.flow.check.endpoints import Receiver
from tests.adapter.delivery import delivered, ok
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually

HUSH = "hush-hush-4711"
HEADERS = json.dumps({"Authorization": HUSH})


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver(lambda number: 200 if found.headers[-1].get("Authorization") == HUSH else 401)
    yield found
    found.close()


def make(sql: SessionClient, receiver: Receiver) -> None:
    ok(sql, "CREATE TABLE t (id int, d int)", "INSERT INTO t VALUES (1, 1)")
    into = f"WEBHOOK (URL '{receiver.url}', HEADERS '{HEADERS}')"
    ok(sql, f"CREATE SINK s FROM t INTO {into} KEY (id) DELTA UPDATES")


def ids(receiver: Receiver) -> list[int]:
    return [each["document"]["id"] for post in receiver.posts for each in post["documents"]]


def test_what_a_new_sink_holds_is_sealed(tmp_path: Path, receiver: Receiver) -> None:
    with Coordinator.open(tmp_path / "data") as coordinator:
        sql = SessionClient(coordinator)
        make(sql, receiver)
        delivered(coordinator, "s")
        ok(sql, "ALTER SINK s PAUSE", "ALTER SINK s RESUME")
    assert HUSH.encode() not in all_bytes(tmp_path / "data")
    with Coordinator.open(tmp_path / "data") as coordinator:
        sql = SessionClient(coordinator)
        ok(sql, "INSERT INTO t VALUES (2, 2)")
        delivered(coordinator, "s")
        ok(sql, f"ALTER SINK s SET (URL '{receiver.url}')", "INSERT INTO t VALUES (3, 3)")
        delivered(coordinator, "s")
    assert ids(receiver) == [1, 2, 3] and HUSH.encode() not in all_bytes(tmp_path / "data")


def test_what_was_in_clear_is_sealed_when_the_environment_is_opened(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with Coordinator.open(tmp_path / "data", sealer=Sealer()) as coordinator:
        make(SessionClient(coordinator), receiver)
        delivered(coordinator, "s")
        assert any("passwords of sink" in each and "in clear" in each for each in coordinator.warnings())
    assert HUSH.encode() in all_bytes(tmp_path / "data")
    with Coordinator.open(tmp_path / "data") as coordinator:
        assert coordinator.warnings() == []
        SessionClient(coordinator)("INSERT INTO t VALUES (2, 2)")
        delivered(coordinator, "s")
    assert HUSH.encode() not in all_bytes(tmp_path / "data") and (tmp_path / "data.key").exists()
    with Coordinator.open(tmp_path / "data") as coordinator:
        SessionClient(coordinator)("INSERT INTO t VALUES (3, 3)")
        delivered(coordinator, "s")
    assert ids(receiver) == [1, 2, 3]


def test_without_its_key_a_sink_says_so_and_the_others_go_on(tmp_path: Path, receiver: Receiver) -> None:
    with Coordinator.open(tmp_path / "data") as coordinator:
        make(SessionClient(coordinator), receiver)
        delivered(coordinator, "s")
    (tmp_path / "data.key").rename(tmp_path / "elsewhere")
    with Coordinator.open(tmp_path / "data") as coordinator:
        sql = SessionClient(coordinator)
        (found,) = ok(sql, "SELECT status, error FROM mz_internal.mz_sink_statuses")[1:]
        assert found.startswith("stalled|there is no key to open secrets with"), found
        ok(sql, "INSERT INTO t VALUES (2, 2)", "SHOW CREATE SINK s")
    (tmp_path / "elsewhere").rename(tmp_path / "data.key")
    with Coordinator.open(tmp_path / "data") as coordinator:
        delivered(coordinator, "s")
        assert ok(SessionClient(coordinator), "DROP SINK s") == ["DROP SINK"]
    assert ids(receiver) == [1, 2]


def test_settings_are_written_sealed_where_they_hold_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, base64.b64encode(b"k" * 32).decode())
    sealer = Sealer()
    spec = DriverSink("postgres", "n", {"connection": f"postgresql://u:{HUSH}@h/d"}, (Delivered("u1"),))
    data, found = written_and_read(spec, sealer)
    assert isinstance(codec.settings_of(found.spec), SealedSettings)
    assert codec.encode(found, Sealer()) == data, "what stays sealed needs no key"
    moved = codec.decode_item(data.replace(b'"id":"u7"', b'"id":"u8"'), sealer)
    assert isinstance(moved, Sink)
    with pytest.raises(KeyTrouble, match="belongs to another object"):
        dict(codec.settings_of(moved.spec))


def test_the_place_of_a_stream_is_written_sealed_where_it_holds_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, base64.b64encode(b"k" * 32).decode())
    sealer = Sealer()
    topic = TopicLocation("b", "t", properties={"sasl.password": HUSH})
    data, found = written_and_read(StreamSink(topic, "u1"), sealer)
    assert not codec.in_clear(found)
    clear = Sink("u7", "s", "n1", "o", depends=("u1",), spec=StreamSink(topic, "u1"))
    assert codec.in_clear(clear)
    with pytest.raises(KeyTrouble, match="belongs to another object"):
        codec.decode_item(data.replace(b'"id":"u7"', b'"id":"u8"'), sealer)
    plain = Sink("u7", "s", "n1", "o", depends=("u1",), spec=StreamSink(FolderLocation("/x"), "u1"))
    assert json.loads(codec.encode(plain, sealer))[0] == codec.VERSION


def written_and_read(spec: SinkSpec, sealer: Sealer) -> tuple[bytes, Sink]:
    """A sink as the catalog keeps it, and as it is read again: nothing secret is in the former."""
    item = Sink("u7", "s", "n1", "o", depends=("u1",), spec=spec)
    data = codec.encode(item, sealer)
    assert HUSH.encode() not in data and json.loads(data)[0] == codec.SEALED_VERSION
    found = codec.decode_item(data, sealer)
    assert isinstance(found, Sink) and found == item and HUSH not in repr(found)
    return data, found


def test_without_its_key_a_stream_is_out_of_reach_and_the_rest_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = "CDC FILES"
    monkeypatch.setattr(secrets, "_OBJECTS", (*secrets._OBJECTS, "path"))  # so that a folder counts as a secret
    with Coordinator.open(tmp_path / "data") as coordinator:
        sql = SessionClient(coordinator)
        ok(sql, "CREATE TABLE t (id int, d int)", "INSERT INTO t VALUES (1, 1)")
        ok(sql, f"CREATE SINK s FROM t INTO {stream} '{tmp_path / 'stream'}'")
    (tmp_path / "data.key").rename(tmp_path / "elsewhere")
    with Coordinator.open(tmp_path / "data") as coordinator:
        sql = SessionClient(coordinator)
        assert any(each.startswith(('sink "s" cannot be read: there is no key',)) for each in coordinator.warnings()), (
            coordinator.warnings()
        )
        ok(sql, "INSERT INTO t VALUES (2, 2)")
    (tmp_path / "elsewhere").rename(tmp_path / "data.key")
    with Coordinator.open(tmp_path / "data") as coordinator:
        assert coordinator.warnings() == []
        sql = SessionClient(coordinator)
        written = lambda: "".join(each.read_text() for each in (tmp_path / "stream").glob("*.jsonl"))  # noqa: E731
        eventually(lambda: '"id":2' in written().replace(" ", ""))
        assert ok(sql, "DROP SINK s") == ["DROP SINK"]
