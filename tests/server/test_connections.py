"""Many connections: silent ones take no place, superusers get in, a thousand sessions are held, probes are heard."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from everview.server.addresses import Address
from everview.server.http import server as http_server
from everview.server.pgwire.limits import Limits
from everview.server.run import Running
from tests.server import raw
from tests.server.fake import FakeAdapter
from tests.server.raw import RawClient, kinds, query
from tests.server.test_faults import works
from tests.server.test_run import ANY, get
from tests.waiting import eventually


@pytest.fixture
def many_files() -> Iterator[None]:
    """Room for a few thousand sockets in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4_096:
        pytest.skip(f"the system allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4_096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_silent_connections_keep_nobody_out(serve: Callable[..., Running], many_files: None) -> None:
    """230 of them kept everyone out for half a minute. Half of a packet is no better than silence."""
    server = serve(limits=Limits(silent_s_max=100, startup_s_max=100))
    with ExitStack() as stack:
        silent = [stack.enter_context(RawClient(server.pg)) for _ in range(400)]
        for client in silent[::3]:
            client.send(raw.startup()[:-3])
        for client in silent[1::3]:
            client.send(raw.SSL_REQUEST)
        for _ in range(3):
            assert works(server)
        psycopg.connect(f"postgresql://everview@{server.pg}/everview").close()
        # The oldest had to go, and were told why.
        (refusal,) = silent[2].rest()
        assert (refusal.fields["S"], refusal.fields["C"]) == ("FATAL", "53300")
        assert refusal.fields["M"] == "too many clients are connecting"


def test_who_is_silent_is_sent_away_before_who_is_slow(serve: Callable[..., Running], adapter: FakeAdapter) -> None:
    adapter.set_password("everview", "pw")
    server = serve(auth="password", limits=Limits(silent_s_max=2))
    with RawClient(server.pg) as silent, RawClient(server.pg) as slow:
        slow.send(raw.startup())
        assert slow.receive().kind == "R"
        assert silent.rest() == []
        slow.send(raw.TERMINATE)
        assert slow.rest()[-1].fields["C"] == "08P01"  # it was still listened to


def test_places_for_superusers(serve: Callable[..., Running]) -> None:
    server = serve(limits=Limits(connections_max=5, connections_reserved=2))
    with ExitStack() as stack:

        def enter(user: str) -> str | None:
            client = stack.enter_context(RawClient(server.pg))
            client.send(raw.startup(user=user))
            first = client.receive()
            return first.fields["M"] if first.kind == "E" else None

        assert [enter("ann") for _ in range(3)] == [None] * 3
        reserved = "remaining connection slots are reserved for roles with the SUPERUSER attribute"
        assert enter("ann") == reserved
        assert [enter("everview") for _ in range(2)] == [None] * 2
        assert enter("everview") == "sorry, too many clients already"
        assert enter("ann") == "sorry, too many clients already"


def test_a_thousand_sessions(serve: Callable[..., Running], adapter: FakeAdapter, many_files: None) -> None:
    """There were 200, and the documents said 1,000."""
    server = serve()
    with ExitStack() as stack:
        clients = []
        for n in range(1_000):
            clients.append(stack.enter_context(RawClient(server.pg, timeout_s=100)))
            clients[-1].enter(user="ann" if n < 997 else "everview")
        with RawClient(server.pg) as late:
            late.send(raw.startup())
            assert late.rest()[-1].fields["C"] == "53300"
        for client in clients[::50]:
            assert kinds(client.ask(query("select 1"))) == "TDCZ"
    assert eventually(lambda: adapter.open_sessions == 0)
    assert works(server)


HALF = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
BODY = b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"


def connect(address: Address | None) -> socket.socket:
    assert address is not None
    return socket.create_connection((address.host, address.port), timeout=60)


def test_half_requests_keep_no_probe_from_its_answer(serve: Callable[..., Running], many_files: None) -> None:
    """300 of them made /healthz answer 503."""
    server = serve(http=ANY)
    with ExitStack() as stack:
        for n in range(300):
            client = stack.enter_context(connect(server.http))
            client.sendall((HALF, BODY, b"", b"G")[n % 4])
        for path in ("/healthz", "/readyz", "/metrics"):
            assert get(server.http, path)[0] == 200


def test_a_request_has_a_time_limit(
    serve: Callable[..., Running], monkeypatch: pytest.MonkeyPatch, adapter: FakeAdapter
) -> None:
    defaults = http_server.HttpServer.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "request_s_max", 0.3)
    server = serve(http=ANY)
    for data in (HALF, b"", BODY):
        with connect(server.http) as client:
            client.sendall(data)
            while client.recv(1_000):  # until the server ends it
                pass
    original = adapter.ready

    def slow() -> bool:
        time.sleep(1)  # longer than a client may take; a page may take what it needs
        return original()

    adapter.ready = slow  # type: ignore[method-assign]

    def answered() -> bool:
        with contextlib.suppress(OSError):  # this client may have been slow itself
            return get(server.http, "/readyz") == (200, "ready\n")
        return False

    assert eventually(answered)
