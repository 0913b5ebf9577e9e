"""Clients that are slow, rude, many or gone: the server stays up, its buffers stay small, others notice nothing."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable

import psycopg
import pytest

from everview.server.pgwire.limits import Limits
from everview.server.run import Running
from tests.server import raw
from tests.server.fake import FakeAdapter
from tests.server.raw import RawClient, kinds, query
from tests.waiting import eventually

MIB = 1024 * 1024


def works(server: Running) -> bool:
    with RawClient(server.pg) as client:
        client.enter()
        return kinds(client.ask(query("select 1"))) == "TDCZ"


def key_of(welcome: list[raw.Message]) -> tuple[int, bytes]:
    (body,) = (each.body for each in welcome if each.kind == "K")
    return struct.unpack("!i", body[:4])[0], body[4:]


def cancel(server: Running, key: tuple[int, bytes]) -> None:
    with RawClient(server.pg) as other:
        other.send(raw.cancel_request(*key))
        assert other.rest() == []


# Slow readers.


def test_a_reader_that_does_not_read_costs_little_memory(server: Running, adapter: FakeAdapter) -> None:
    with RawClient(server.pg) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        client.enter()
        tracemalloc.start()
        try:
            client.send(query("select * from generate_series(1, 1000000, 1000)"))  # a gigabyte
            assert eventually(lambda: adapter.produced > 1_000)
            time.sleep(0.5)
            produced = adapter.produced
            time.sleep(0.5)
            assert adapter.produced == produced < 20_000  # it waits, after some megabytes that the system took
            current, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert current < 8 * MIB
        assert works(server)
        client.socket.settimeout(5)
        assert client.receive().kind == "T"
    assert eventually(lambda: adapter.open_sessions == 0)


def test_without_its_bound_the_test_before_would_fail(serve: Callable[..., Running], adapter: FakeAdapter) -> None:
    server = serve(limits=Limits(outbox_bytes_max=2**40))
    with RawClient(server.pg) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        client.enter()
        client.send(query("select * from generate_series(1, 30000, 1000)"))
        assert eventually(lambda: adapter.produced == 30_000)


def test_a_slow_reader_gets_everything_in_the_end(server: Running) -> None:
    with RawClient(server.pg) as client:
        client.enter()
        client.send(query("select * from generate_series(1, 20000, 500)"))
        time.sleep(0.3)
        found = client.until("Z")
    assert kinds(found) == "T" + "D" * 20_000 + "CZ"


def test_a_blocked_result_can_be_canceled(server: Running, adapter: FakeAdapter) -> None:
    with RawClient(server.pg) as client:
        key = key_of(client.enter())
        client.send(query("select * from generate_series(1, 1000000, 1000)"))
        assert eventually(lambda: adapter.produced > 1_000)
        time.sleep(0.2)
        cancel(server, key)
        found = client.until("Z")
    assert found[-2].kind == "E" and found[-2].fields["C"] == "57014"
    assert adapter.produced < 50_000


def test_a_client_that_sends_without_end_is_not_read_without_end(server: Running) -> None:
    with RawClient(server.pg) as client:
        client.enter()
        client.send(query("select pg_sleep(2)"))
        client.socket.settimeout(0.5)
        sent, chunk = 0, query("select 1") * 1000
        with contextlib.suppress(TimeoutError):
            while sent < 64 * MIB:
                sent += client.socket.send(chunk)
        assert sent < 32 * MIB


# Cancel and time limits.


def test_a_statement_is_canceled_by_key_and_only_by_key(server: Running, adapter: FakeAdapter) -> None:
    with RawClient(server.pg) as client:
        process, secret = key_of(client.enter())
        client.send(query("select pg_sleep(30)"))
        assert eventually(lambda: adapter.sleeps == 1)
        cancel(server, (process, b"nope"))
        cancel(server, (process + 1, secret))
        cancel(server, (process, secret))
        found = client.until("Z")
        assert kinds(found) == "TEZ"
        assert found[1].fields["C"] == "57014"
        assert found[1].fields["M"] == "canceling statement due to user request"
        cancel(server, (process, secret))  # nothing runs: nothing happens
        assert kinds(client.ask(query("select 1"))) == "TDCZ"


def test_longer_keys_for_newer_clients(server: Running, adapter: FakeAdapter) -> None:
    with RawClient(server.pg) as old, RawClient(server.pg) as new:
        assert len(key_of(old.enter())[1]) == 4
        new.send(raw.startup(2))
        key = key_of(new.until("Z"))
        assert len(key[1]) == 32
        new.send(query("select pg_sleep(30)"))
        assert eventually(lambda: adapter.sleeps == 1)
        cancel(server, key)
        assert new.until("Z")[1].fields["C"] == "57014"


def test_copy_in_can_be_canceled_while_it_waits_for_data(server: Running, adapter: FakeAdapter) -> None:
    with RawClient(server.pg) as client:
        key = key_of(client.enter())
        client.ask(query("create table t (a int4)"))
        client.send(query("copy t from stdin"), raw.copy_data(b"1\n"))
        assert client.receive().kind == "G"
        cancel(server, key)
        found = client.until("Z")
        assert kinds(found) == "EZ" and found[0].fields["C"] == "57014"
        assert kinds(client.ask(raw.copy_data(b"2\n"), raw.COPY_DONE, query("select 1"))) == "TDCZ"
    assert adapter.tables["t"].rows == []


# Subscriptions.


def test_a_subscription_is_flushed_promptly_and_can_be_canceled(server: Running, url: str) -> None:
    with RawClient(server.pg) as client, psycopg.connect(url, autocommit=True) as writer:
        key = key_of(client.enter())
        writer.execute("create table t (a int4)")
        client.send(query("copy (subscribe t) to stdout"))
        assert client.receive().kind == "H"
        for n in range(20):
            start = time.monotonic()
            writer.execute("insert into t values (%s)", [n])
            assert client.receive().body.endswith(f"\t{n}\n".encode())
            assert time.monotonic() - start < 1.0
        cancel(server, key)
        assert kinds(client.until("Z")) == "EZ"
        assert kinds(client.ask(query("select 1"))) == "TDCZ"


def test_subscriptions_stream_through_drivers(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as reader, psycopg.connect(url, autocommit=True) as writer:
        writer.execute("create table t (a int4)")
        writer.execute("insert into t values (1)")
        with reader.cursor() as cursor:
            stream = cursor.stream("subscribe t")
            assert next(stream)[1:] == (1, 1)
            writer.execute("insert into t values (2)")
            assert next(stream)[1:] == (1, 2)
            reader.cancel_safe()  # the other way holds the GIL, which the server in this process needs
            with pytest.raises(psycopg.errors.QueryCanceled):
                next(stream)


def test_a_subscription_ends_when_its_client_is_gone(server: Running, adapter: FakeAdapter) -> None:
    client = RawClient(server.pg)
    client.enter()
    client.ask(query("create table t (a int4)"))
    client.send(query("subscribe t"))
    assert client.receive().kind == "T"
    client.close()
    assert eventually(lambda: adapter.open_sessions == 0)


# Clients that vanish.


@pytest.mark.parametrize("rude", [False, True], ids=["close", "reset"])
def test_a_client_that_vanishes_in_the_midst_of_copy_stores_nothing(
    server: Running, adapter: FakeAdapter, rude: bool
) -> None:
    client = RawClient(server.pg)
    client.enter()
    client.ask(query("create table t (a int4)"))
    client.send(query("copy t from stdin"), raw.copy_data(b"1\n2\n"))
    client.until("G")
    if rude:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    assert eventually(lambda: adapter.open_sessions == 0)
    assert adapter.tables["t"].rows == []
    assert works(server)


def test_a_client_that_vanishes_ends_its_statement(server: Running, adapter: FakeAdapter) -> None:
    client = RawClient(server.pg)
    client.enter()
    client.send(query("select pg_sleep(60)"))
    assert eventually(lambda: adapter.sleeps == 1)
    client.close()
    assert eventually(lambda: adapter.open_sessions == 0, 5)


def test_a_transaction_dies_with_its_client(server: Running, adapter: FakeAdapter) -> None:
    client = RawClient(server.pg)
    client.enter()
    client.ask(query("create table t (a int4)"))
    client.ask(query("begin"))
    client.ask(query("insert into t values (1)"))
    client.close()
    assert eventually(lambda: adapter.open_sessions == 0)
    assert adapter.tables["t"].rows == []


def test_clients_that_say_nothing_are_sent_away(serve: Callable[..., Running]) -> None:
    server = serve(limits=Limits(startup_s_max=0.2))
    silent = [RawClient(server.pg) for _ in range(5)]
    silent[0].send(raw.startup()[:-3])
    for client in silent:
        assert client.rest() == []
    assert works(server)


# Too much of everything.


def test_too_many_clients(serve: Callable[..., Running], adapter: FakeAdapter) -> None:
    server = serve(limits=Limits(connections_max=3))
    clients = [RawClient(server.pg) for _ in range(4)]
    key, *_ = [key_of(client.enter()) for client in clients[:3]]
    clients[3].send(raw.startup())
    (refusal,) = clients[3].rest()
    assert (refusal.fields["S"], refusal.fields["C"]) == ("FATAL", "53300")
    clients[0].send(query("select pg_sleep(30)"))
    assert eventually(lambda: adapter.sleeps == 1)
    cancel(server, key)  # room or not, a cancel request is heard
    assert kinds(clients[0].until("Z")) == "TEZ"
    clients[0].close()
    assert eventually(lambda: adapter.open_sessions == 2)
    assert eventually(lambda: works(server))
    for client in clients[1:]:
        client.close()


def test_a_session_that_cannot_be_ended_keeps_its_place(serve: Callable[..., Running], adapter: FakeAdapter) -> None:
    server = serve(limits=Limits(connections_max=1))
    stuck = threading.Event()
    client = RawClient(server.pg)
    client.enter()
    adapter.sessions[0].deaf = stuck
    client.send(query("select pg_sleep(20)"))
    assert eventually(lambda: adapter.sleeps == 1)
    client.close()
    with RawClient(server.pg) as other:
        other.send(raw.startup())
        assert other.rest()[-1].fields["C"] == "53300"
    stuck.set()
    assert eventually(lambda: adapter.open_sessions == 0)
    assert eventually(lambda: works(server))


def test_ten_thousand_connection_attempts(serve: Callable[..., Running]) -> None:
    server = serve(limits=Limits(connections_max=20, startups_max=50))
    left = iter(range(10_000))
    lock = threading.Lock()
    refused = 0

    def attempt(rng: random.Random) -> None:
        nonlocal refused
        while True:
            with lock:
                if next(left, None) is None:
                    return
            with contextlib.suppress(OSError, EOFError), RawClient(server.pg, timeout_s=10) as client:
                action = rng.randrange(4)
                if action == 0:
                    client.send(raw.startup())
                    if client.receive().kind == "E":
                        with lock:
                            refused += 1
                elif action == 1:
                    client.send(os.urandom(rng.randrange(1, 40)))

    with RawClient(server.pg) as bystander:
        bystander.enter()
        seed = int(os.environ["EVERVIEW_SEED"])
        threads = [threading.Thread(target=attempt, args=(random.Random(seed + n),)) for n in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert kinds(bystander.ask(query("select 1"))) == "TDCZ"  # unharmed all the while
            time.sleep(0.05)
    assert eventually(lambda: works(server))


@pytest.mark.parametrize(
    ("data", "sqlstate"),
    [
        (b"Q" + struct.pack("!i", 2**31 - 1), "08P01"),
        (b"S" + struct.pack("!i", 20_000), "08P01"),
        (b"\xff\xff\xff\xff\xff", "08P01"),
        (b"GET / HTTP/1.1\r\n\r\n", "08P01"),
        (raw.message("p", b"secret\0"), "08P01"),
    ],
)
def test_messages_that_cannot_be_end_the_connection(server: Running, data: bytes, sqlstate: str) -> None:
    with RawClient(server.pg) as client:
        client.enter()
        client.send(data)
        (farewell,) = client.rest()
        assert (farewell.fields["S"], farewell.fields["C"]) == ("FATAL", sqlstate)
    assert works(server)


def test_messages_may_be_as_long_as_the_limit(serve: Callable[..., Running]) -> None:
    server = serve(limits=Limits(message_bytes_max=MIB))
    with RawClient(server.pg) as client:
        client.enter()
        text = "select '" + "x" * (MIB - 20) + "'"
        found = client.ask(query(text))
        assert kinds(found) == "TDCZ" and len(found[1].body) > MIB - 30
        client.send(query("x" * MIB))
        assert client.rest()[-1].fields["C"] == "08P01"


def test_long_messages_of_many_clients_have_a_common_limit(serve: Callable[..., Running]) -> None:
    server = serve(limits=Limits(received_bytes_max=4 * MIB, message_bytes_max=2 * MIB))
    clients = [RawClient(server.pg) for _ in range(4)]
    for client in clients:
        client.enter()
    part = b"Q" + struct.pack("!i", 2 * MIB) + b"x" * (3 * MIB // 2)
    for client in clients[:2]:
        client.send(part)
    assert eventually(lambda: b"everview_received_bytes 3" in server.metrics.render())
    with contextlib.suppress(ConnectionError):
        clients[2].send(part)
    assert clients[2].rest()[-1].fields["C"] == "53200"
    clients[3].ask(query("create table t (a text)"))
    data = raw.copy_data(b"x" * 60_000 + b"\n") * 100  # more than the limit, but not at once
    assert kinds(clients[3].ask(query("copy t from stdin"), data, raw.COPY_DONE)) == "GCZ"
    for client in clients:
        client.close()
    assert eventually(lambda: b"everview_received_bytes 0.0" in server.metrics.render())
    assert works(server)


def test_fuzzed_and_truncated_streams(server: Running, adapter: FakeAdapter, rng: random.Random) -> None:
    valid = [
        query("select 1"),
        raw.parse("select $1::int4"),
        raw.bind(b"1"),
        raw.execute(),
        raw.SYNC,
        query("create table t (a int4)"),
        query("copy t from stdin"),
        raw.copy_data(b"1\n"),
        raw.COPY_DONE,
    ]
    for _ in range(300):
        data = bytearray(raw.startup() + b"".join(rng.choices(valid, k=rng.randrange(8))))
        for _ in range(rng.randrange(6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with contextlib.suppress(OSError), RawClient(server.pg) as client:
            client.send(bytes(data[: rng.randrange(len(data) + 1)]))
            client.socket.settimeout(0.02)
            with contextlib.suppress(TimeoutError):
                client.rest()
    assert works(server)
    assert eventually(lambda: adapter.open_sessions == 0)


# Shutdown.


def test_shutdown_tells_everyone(serve: Callable[..., Running], adapter: FakeAdapter) -> None:
    server = serve(limits=Limits(shutdown_s_max=5))
    idle, busy, blocked, copying = (RawClient(server.pg) for _ in range(4))
    for client in (idle, busy, blocked, copying):
        client.enter()
    opening = RawClient(server.pg)
    idle.ask(query("create table t (a int4)"))
    busy.send(query("select pg_sleep(60)"))
    blocked.send(query("select * from generate_series(1, 100000, 1000)"))
    copying.send(query("copy t from stdin"))
    assert eventually(lambda: adapter.produced > 1_000)
    copying.until("G")
    assert eventually(lambda: adapter.sleeps == 1)
    start = time.monotonic()
    closing = threading.Thread(target=server.close)
    closing.start()
    for client in (idle, busy, copying, opening, blocked):
        last = client.rest()[-1]
        assert (last.kind, last.fields["S"], last.fields["C"]) == ("E", "FATAL", "57P01")
    closing.join(10)
    assert time.monotonic() - start < 8
    assert adapter.open_sessions == 0
    assert adapter.tables["t"].rows == []
    with pytest.raises(ConnectionRefusedError):
        RawClient(server.pg)


def test_shutdown_does_not_wait_for_ever(serve: Callable[..., Running], adapter: FakeAdapter) -> None:
    server = serve(limits=Limits(shutdown_s_max=0.3))
    stuck = threading.Event()
    with RawClient(server.pg) as client:
        client.enter()
        adapter.sessions[0].deaf = stuck
        client.send(query("select pg_sleep(20)"))
        assert eventually(lambda: adapter.sleeps == 1)
        start = time.monotonic()
        server.close()
        assert time.monotonic() - start < 3
    stuck.set()
