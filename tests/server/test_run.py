"""Starting and stopping: addresses, what is refused, HTTP beside it, figures, and errors in one place."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from everview.adapter.errors import sqlstate_of
from everview.adapter.passwords import make_verifier
from everview.compute.cancel import Ended
from everview.compute.engine.contract import EngineError, EvaluationFailed, NotSupported, PlanRefused, RunFailed
from everview.compute.functions.contract import Failure
from everview.compute.sql.errors import SqlError
from everview.errors import EverviewError
from everview.server.addresses import Address, CannotListen
from everview.server.errors import ClientGone, is_defect, report_of
from everview.server.metrics import Metrics
from everview.server.run import Options, Running, Tls, start
from everview.storage import errors as storage
from everview.timely.antichain import Antichain
from tests.server.conftest import LOCAL
from tests.server.fake import FakeAdapter

ANY = Address("127.0.0.1", 0)


def get(address: Address | None, path: str) -> tuple[int, str]:
    assert address is not None
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_http(serve: Callable[..., Running], adapter: FakeAdapter) -> None:
    server = serve(http=ANY)
    assert get(server.http, "/healthz") == (200, "ok\n")
    assert get(server.http, "/readyz") == (200, "ready\n")
    adapter.told = ["the wall clock is wrong"]
    assert get(server.http, "/readyz") == (200, "ready\nwarning: the wall clock is wrong\n")
    adapter.told = []
    adapter.is_ready = False
    assert get(server.http, "/readyz") == (503, "not ready\n")
    assert get(server.http, "/other")[0] == 404
    ages = {"v": 0.25}
    server.metrics.gauge("everview_view_freshness_seconds", "how far each view is behind", ("view",), ages.items)
    server.metrics.counter("everview_ticks", "ticks", ("view", "outcome"), lambda: [(("v", "ok"), 3)])
    empty: dict[str, str] = {}
    server.metrics.gauge("everview_broken", "fails", (), lambda: [(empty["no"], 1.0)])
    with psycopg.connect(f"postgresql://everview@{server.pg}/everview", autocommit=True) as connection:
        connection.execute("select 1")
        connection.execute("create table t (a int4)")
        status, text = get(server.http, "/metrics")
    assert status == 200
    for line in (
        'everview_connections{state="session"} 1.0',
        'everview_connection_attempts_total{outcome="accepted"} 1.0',
        'everview_statements_total{sqlstate="00000"} 2.0',
        'everview_statement_seconds_count{command="CREATE TABLE"} 1.0',
        'everview_view_freshness_seconds{view="v"} 0.25',
        'everview_ticks_total{outcome="ok",view="v"} 3.0',
    ):
        assert line in text, line
    assert 'everview_unreadable_figures_total{name="everview_broken"} 1.0' in get(server.http, "/metrics")[1]


def test_http_is_optional_and_stops_with_the_server(adapter: FakeAdapter) -> None:
    with start(adapter, LOCAL) as running:
        assert running.http is None
    with start(adapter, Options(pg=ANY, http=ANY)) as running:
        http = running.http
    with pytest.raises(urllib.error.URLError):
        get(http, "/healthz")
    running.close()
    assert running.wait(0)


def test_a_port_that_is_taken_is_told_in_one_line(adapter: FakeAdapter, server: Running) -> None:
    for options, option in (
        (Options(pg=server.pg, http=None), "--pg-port"),
        (Options(pg=ANY, http=server.pg), "--http-port"),
    ):
        with pytest.raises(CannotListen) as caught:
            start(adapter, options)
        text = str(caught.value)
        assert text == f"port {server.pg.port} is taken on 127.0.0.1: stop what listens there, or use {option}"


def test_addresses_that_cannot_be(adapter: FakeAdapter) -> None:
    for host, text in (("192.0.2.1", "is not an address of this machine"), ("host.invalid", "cannot resolve the host")):
        adapter.set_password("everview", "x")
        with pytest.raises(CannotListen, match=text):
            start(adapter, Options(pg=Address(host, 0), http=None, insecure=True))
    for port in (-1, 70_000):
        with pytest.raises(CannotListen, match=f"there is no port {port}"):
            start(adapter, Options(pg=Address("127.0.0.1", port), http=None))


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::"])
def test_other_machines_need_tls_and_a_password(adapter: FakeAdapter, host: str) -> None:
    public = Address(host, 0)
    with pytest.raises(CannotListen, match="there is no TLS"):
        start(adapter, Options(pg=public, http=None))
    with pytest.raises(CannotListen, match='the role "everview" has no password'):
        start(adapter, Options(pg=public, http=None, insecure=True))
    with pytest.raises(CannotListen, match="there is no TLS"):
        start(adapter, Options(pg=ANY, http=public))
    adapter.passwords["everview"] = make_verifier("pw")
    with start(adapter, Options(pg=public, http=None, insecure=True)) as running:
        near = "[::1]" if host == "::" else "127.0.0.1"
        connection = psycopg.connect(f"postgresql://everview@{near}:{running.pg.port}/everview")
        connection.close()  # from this machine, no password is needed


def test_connections_from_elsewhere_need_a_password(adapter: FakeAdapter) -> None:
    found = [address for each in psutil.net_if_addrs().values() for address in each]
    candidates = (each.address for each in found if each.family == socket.AF_INET)
    own = next((address for address in candidates if not address.startswith("127.")), None)
    if own is None:
        pytest.skip("this machine has no address but its loopback")
    adapter.passwords["everview"] = make_verifier("pw")
    with start(adapter, Options(pg=Address("0.0.0.0", 0), http=None, insecure=True)) as running:
        place = f"{own}:{running.pg.port}/everview"
        psycopg.connect(f"postgresql://everview:pw@{place}").close()
        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            psycopg.connect(f"postgresql://everview@{place}")


def test_localhost_is_every_loopback(adapter: FakeAdapter) -> None:
    with start(adapter, Options(pg=Address("localhost", 0), http=None)) as running:
        psycopg.connect(f"postgresql://everview@localhost:{running.pg.port}/everview").close()


def test_options_without_files(adapter: FakeAdapter) -> None:
    with pytest.raises(EverviewError, match="cannot use the TLS certificate"):
        start(adapter, Options(pg=ANY, http=None, tls=Tls(Path("none"), Path("none"))))


@pytest.mark.parametrize(
    ("error", "sqlstate"),
    [
        (SqlError("42P01", "x"), "42P01"),
        (Failure("22012", "x"), "22012"),
        (storage.StorageFull("x"), "53100"),
        (storage.StorageReadOnly("x"), "58030"),
        (storage.Determinate("x"), "58030"),
        (storage.BlobMissing("x"), "58030"),
        (storage.Indeterminate("x"), "08007"),
        (storage.UpperMismatch("x", Antichain(0)), "40001"),
        (storage.Fenced("x"), "57P01"),
        (storage.Corruption("x"), "XX001"),
        (storage.Canceled("x"), "57P01"),
        (storage.UnknownId("x"), "42704"),
        (storage.SchemaMismatch("x"), "XX000"),
        (storage.NotReadable("x"), "55000"),
        (storage.NewerFormat("x"), "0A000"),
        (NotSupported("x"), "0A000"),
        (PlanRefused("x"), "XX000"),
        (EvaluationFailed("x", sqlstate="22012"), "22012"),
        (Ended(), "57014"),
        (RunFailed("x"), "58000"),
        (EngineError("x"), "58000"),
        (EverviewError("x"), "XX000"),
        (MemoryError(), "53200"),
        (RecursionError(), "54001"),
        (ValueError("x"), "XX000"),
        (ClientGone(), "08006"),
    ],
)
def test_every_kind_of_error_has_a_sqlstate(error: Exception, sqlstate: str) -> None:
    assert sqlstate_of(error) == sqlstate
    report = report_of(error)
    assert report.sqlstate == sqlstate and report.message and not report.message.endswith(".")
    assert report.severity == ("FATAL" if isinstance(error, ClientGone) else "ERROR")
    assert is_defect(error) == isinstance(error, ValueError)


def test_errors_keep_detail_and_hint() -> None:
    report = report_of(storage.StorageFull("full", detail="disk", hint="delete"))
    assert (report.message, report.detail, report.hint) == ("full", "disk", "delete")


def test_commands_are_named_by_their_tags() -> None:
    metrics = Metrics()
    for tag in ("INSERT 0 1", "CREATE MATERIALIZED VIEW", "", "SELECT 5"):
        metrics.statement(tag, 0.1)
    text = metrics.render().decode()
    for command in ("INSERT", "CREATE MATERIALIZED VIEW", "", "SELECT"):
        assert f'everview_statement_seconds_count{{command="{command}"}} 1.0' in text
