"""Addresses that no connection goes to, in every form, by names that change, by redirects, by each kind of sink."""

from __future__ import annotations

import http.server
import ipaddress
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.errors import sqlstate_of
from everview.errors import EverviewError
from everview.flow.drivers.redis import _client
from everview.reach import addresses
from everview.reach.addresses import ALLOWED, AddressRefused, check_address, check_host, check_kafka, parse_allowed
from everview.reach.conninfo import pinned
from everview.reach.http import open_url
from tests.adapter.scripts import SessionClient

METADATA = "169.254.169.254"


@pytest.mark.parametrize(
    "address",
    [
        METADATA,
        "169.254.0.1",
        "100.100.100.200",
        "192.0.0.192",
        "fe80::1",
        "fe80::1%lo",
        "fd00:ec2::254",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
    ],
)
def test_addresses_that_are_refused(address: str) -> None:
    with pytest.raises(AddressRefused, match="are not allowed"):
        check_address(address)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "8.8.8.8", "fd00::1", "2001:db8::1"]
)
def test_other_addresses_are_not(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.16689662", METADATA])
def test_every_way_to_write_an_address(host: str) -> None:
    """Wherever the system takes it for that address."""
    try:
        found = socket.getaddrinfo(host, 80)[0][4][0]
    except OSError:
        pytest.skip("no address for this system")
    assert found == METADATA
    with pytest.raises(AddressRefused):
        check_host(host)


def test_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOWED, f"{METADATA}, fe80::/64")
    check_address(METADATA)
    check_address(f"::ffff:{METADATA}")
    check_address("fe80::1")
    with pytest.raises(AddressRefused, match=r"connections to 169\.254\.1\.1 are not allowed"):
        check_address("169.254.1.1")
    with pytest.raises(EverviewError, match="neither an address nor a network"):
        parse_allowed(["metadata.google.internal"])


Answers = dict[str, list[str]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Names that mean one address after another, the last one for good."""
    answers: Answers = {}
    original = socket.getaddrinfo

    def resolve(host: str, *args: object, **options: object) -> object:
        if host in answers:
            left = answers[host]
            host = left.pop(0) if len(left) > 1 else left[0]
        return original(host, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return answers


@pytest.fixture
def web() -> Iterator[tuple[int, list[str], dict[str, str]]]:
    """A web server: its port, the paths that were asked for, and where it redirects paths to."""
    asked: list[str] = []
    redirects: dict[str, str] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            target = redirects.get(self.path)
            self.send_response(200 if target is None else 302)
            if target is not None:
                self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], asked, redirects
        server.shutdown()


def test_http_goes_to_the_address_that_was_looked_at(
    web: tuple[int, list[str], dict[str, str]], names: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, asked, redirects = web
    monkeypatch.setenv("no_proxy", "*")
    open_url(Request(f"http://127.0.0.1:{port}/plain"), 10).close()
    names["changing.test"] = ["127.0.0.1", METADATA]
    with pytest.raises(AddressRefused, match=f"{METADATA}, which changing.test means"):
        open_url(Request(f"http://changing.test:{port}/changed"), 10)
    for target in (
        f"http://{METADATA}/latest",
        "http://2852039166/",
        f"http://[::ffff:{METADATA}]/",
        "ftp://127.0.0.1/x",
    ):
        redirects["/away"] = target
        with pytest.raises((AddressRefused, OSError)):
            open_url(Request(f"http://127.0.0.1:{port}/away", b"{}", method="POST"), 10)
    for target in ("https://169.254.169.254/", "http://metadata.test/"):
        names["metadata.test"] = [METADATA]
        with pytest.raises(AddressRefused):
            open_url(Request(target), 10)
    assert set(asked) == {"/plain", "/away"}
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
    with pytest.raises(AddressRefused):
        open_url(Request(f"http://{METADATA}/through-a-proxy"), 10)
    assert set(asked) == {"/plain", "/away"}


def test_postgresql_connects_to_the_addresses_that_were_looked_at(names: Answers) -> None:
    names["db.test"] = ["127.0.0.1", METADATA]
    assert "hostaddr=127.0.0.1" in pinned("postgresql://me@db.test:5433/x")
    with pytest.raises(AddressRefused):
        pinned("postgresql://me@db.test/x")
    for url in (f"postgresql://{METADATA}/x", f"host=127.0.0.1,{METADATA}", f"hostaddr={METADATA} host=any"):
        with pytest.raises(AddressRefused):
            pinned(url)
    for url in ("postgresql:///x?host=/tmp", "dbname=x", "hostaddr=127.0.0.1 host=any"):
        assert "169" not in pinned(url)
    both = pinned("host=127.0.0.1,/tmp port=1,2 dbname=x")
    assert "host=127.0.0.1,/tmp" in both and "port=1,2" in both


def test_redis_looks_at_where_it_has_got_to(names: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AddressRefused):
        _client(f"redis://{METADATA}:6379/0")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        client = _client(f"redis://127.0.0.1:{port}/0")
        monkeypatch.setattr(addresses, "_REFUSED", (ipaddress.ip_network("127.0.0.0/8"),))
        with pytest.raises(AddressRefused):  # as if the name meant another address by now
            client.ping()
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.recv(100) == b""  # nothing was said


def test_brokers() -> None:
    check_kafka({"bootstrap.servers": "127.0.0.1:9092,[::1]:9092"})
    for brokers in (f"127.0.0.1:9092,{METADATA}:9092", f"PLAINTEXT://{METADATA}:1", "[fe80::1]:9092", METADATA):
        with pytest.raises(AddressRefused):
            check_kafka({"bootstrap.servers": brokers})


def test_statements_are_refused(tmp_path: Path) -> None:
    with Coordinator.open(tmp_path / "data", ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (a int)")
        for statement in (
            f"CREATE SINK s FROM t INTO WEBHOOK (URL 'http://{METADATA}/latest/meta-data') KEY (a)",
            "CREATE SINK s FROM t INTO WEBHOOK (URL 'http://2852039166/') KEY (a)",
            f"CREATE SINK s FROM t INTO POSTGRES (CONNECTION 'postgresql://{METADATA}/x', TABLE 't') KEY (a)",
            f"CREATE SINK s FROM t INTO REDIS (URL 'redis://{METADATA}', PREFIX 't') KEY (a)",
            f"CREATE SINK s FROM t INTO KAFKA (BROKERS '{METADATA}:9092', TOPIC 't') KEY (a)",
            f"CREATE SINK s FROM t INTO CDC KAFKA (BROKERS '{METADATA}:9092', TOPIC 't')",
            f"CREATE SINK s FROM t INTO CDC FILES 's3://b/x?endpoint=http://{METADATA}&allow_http=true'",
            f"CREATE SOURCE s (a int) FROM CDC KAFKA (BROKERS '{METADATA}:9092', TOPIC 't')",
        ):
            (said, *_) = sql(statement)
            assert said.startswith(f"! 42501 connections to {METADATA}"), (statement, said)


def test_the_error_says_what_to_do() -> None:
    with pytest.raises(AddressRefused) as caught:
        check_address(METADATA)
    assert sqlstate_of(caught.value) == "42501"
    assert caught.value.hint == f"start the server with --allow-address {METADATA} to allow it"
