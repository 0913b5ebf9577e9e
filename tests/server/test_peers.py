"""Who is at the other end: owners of sockets, by the system's tables and by other accounts that really try."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from everview.server.addresses import CannotListen
from everview.server.errors import ConnectionEnd
from everview.server.pgwire import authentication, peers
from everview.server.pgwire.authentication import Policy
from everview.server.pgwire.peers import Endpoint, Peer, is_ambiguous, is_loopback, tcp_owner
from everview.server.run import Options, Running, start
from everview.server.unix_sockets import bind_unix
from tests.server.conftest import LOCAL
from tests.server.fake import FakeAdapter

NOBODY = 65_534
# One socket of account 1000 on each way, and a closed one, which the system lists with account 0.
TABLE = b"""\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1ADB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1061 1 0 100 0 0 10 0
   1: 0100007F:1ADB 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 1062 1 0 20 4 30 10 -1
   2: 0100007F:C350 0100007F:1ADB 01 00000000:00000000 00:00000000 00000000  1000        0 1063 1 0 20 4 30 10 -1
   3: 0100007F:C351 0100007F:1ADB 05 00000000:00000000 00:00000000 00000000     0        0 1064 1 0 20 4 30 10 -1
   4: 0100007F:C352 0100007F:1ADB 06 00000000:00000000 03:00001770 00000000     0        0 0 3 0
   5: 0100007F:C353 0100007F:1ADB 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
"""
TABLE6 = b"""\
  sl  local_address                         remote_address                        st tx rx tr tm uid timeout inode
   0: 00000000000000000000000001000000:C350 00000000000000000000000001000000:1ADB 01 0:0 00:0 0  1001        0 2001 1 0
   1: 0000000000000000FFFF00000100007F:C354 0000000000000000FFFF00000100007F:1ADB 01 0:0 00:0 0  1002        0 2002 1 0
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the owners of sockets")


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a path that is short enough for a Unix socket."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def other_account() -> None:
    """Skip where no process of another account can be started."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("another account can be tried by root alone, with setpriv")


def as_nobody(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script of Python's standard library as another account."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("no Python that other accounts may run")
    account = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    command = [*account, python, "-I", "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/")


@pytest.mark.skipif(sys.byteorder != "little", reason="the table is of a machine with little-endian numbers")
@pytest.mark.parametrize(
    ("client", "server", "owner"),
    [
        (("127.0.0.1", 50_000), ("127.0.0.1", 6875), 1000),
        (("::ffff:127.0.0.1", 50_000), ("127.0.0.1", 6875), 1000),
        (("::1", 50_000), ("::1", 6875), 1001),
        (("127.0.0.1", 50_004), ("127.0.0.1", 6875), 1002),  # a client with a socket of both families
        (("127.0.0.1", 50_001), ("127.0.0.1", 6875), None),  # closed by its process
        (("127.0.0.1", 50_002), ("127.0.0.1", 6875), None),
        (("127.0.0.1", 50_003), ("127.0.0.1", 6875), None),  # nobody's
        (("127.0.0.1", 6875), ("127.0.0.1", 6875), None),
        (("127.0.0.2", 50_000), ("127.0.0.1", 6875), None),
    ],
)
def test_owners_in_the_systems_tables(client: tuple[str, int], server: tuple[str, int], owner: int | None) -> None:
    assert tcp_owner(Endpoint(*client), Endpoint(*server), lambda: [TABLE, TABLE6]) == owner


def test_a_row_that_the_system_skips_is_looked_for_again() -> None:
    reads = iter([[], [TABLE]])
    assert tcp_owner(Endpoint("127.0.0.1", 50_000), Endpoint("127.0.0.1", 6875), lambda: next(reads)) == 1000
    for table in (b"", b"\n", TABLE[:200], b" 0100007F:C350 0100007F:1ADB ", b"x: 0100007F:C350 0100007F:1ADB 01 \n"):
        assert tcp_owner(Endpoint("127.0.0.1", 50_000), Endpoint("127.0.0.1", 6875), lambda t=table: [t]) is None  # type: ignore[misc]


def pair(host: str, family: socket.AddressFamily) -> Iterator[socket.socket]:
    with (
        socket.create_server((host, 0), family=family) as listener,
        socket.create_connection(listener.getsockname()[:2]) as client,
    ):
        accepted, _ = listener.accept()
        with accepted:
            yield accepted
            client.close()
            yield accepted


@linux
@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_the_owner_of_a_real_connection(host: str, family: socket.AddressFamily) -> None:
    try:
        accepted = pair(host, family)
        peer = Peer.of(next(accepted))
    except OSError:
        pytest.skip(f"{host} cannot be listened on")
    assert peer.is_local and peer.owner() == os.geteuid()
    next(accepted)  # the client has closed its socket, which is nobody's from then on
    assert peer.owner() is None
    assert peers.owners_are_known()


def test_accounts_that_look_alike_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "self").mkdir()
    (tmp_path / "sys/kernel/overflowuid").write_text("65534\n")
    for text, ambiguous in (("         0          0 4294967295\n", False), ("0 100000 65536\n", True)):
        (tmp_path / "self/uid_map").write_text(text)
        assert is_ambiguous(NOBODY, tmp_path) is ambiguous
        assert not is_ambiguous(1000, tmp_path)
    assert not is_ambiguous(NOBODY, tmp_path / "none")


def test_who_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    def peer(client: str, server: str) -> Peer:
        return Peer(Endpoint(client, 50_000), Endpoint(server, 6875))

    near = peer("127.0.0.1", "127.0.0.1")
    monkeypatch.setattr(Peer, "owner", lambda _: 1000)
    assert Policy(account=1000).trust(near).granted and Policy(account=1000).trust(peer("::1", "::1")).granted
    assert not Policy(account=1000).trust(peer("10.0.0.1", "127.0.0.1")).granted
    assert not Policy(account=1000).trust(peer("127.0.0.1", "10.0.0.1")).granted
    refused = Policy(account=0).trust(near)
    assert not refused.granted and refused.hint is not None and "you are account 1000" in refused.hint
    assert Policy(auth="trust", account=0).trust(near).granted
    assert not Policy(auth="trust").trust(peer("10.0.0.1", "10.0.0.2")).granted
    assert not Policy(auth="password", account=1000).trust(near).granted
    monkeypatch.setattr(Peer, "owner", lambda _: None)
    assert Policy(account=1000).trust(near) == authentication.Trust(False, authentication.UNKNOWN_OWNER)
    assert is_loopback("::ffff:127.0.0.1") and not is_loopback("") and not is_loopback("localhost.example")


def test_encryption_is_needed_from_elsewhere() -> None:
    far = Peer(Endpoint("10.0.0.1", 1), Endpoint("10.0.0.2", 2))
    Policy().check(far, encrypted=True)
    Policy(insecure=True).check(far, encrypted=False)
    Policy().check(Peer(None, None), encrypted=False)
    with pytest.raises(ConnectionEnd, match="must use TLS"):
        Policy().check(far, encrypted=False)


ENTER = """
import socket, struct, sys
where = sys.argv[1]
if where.startswith("/"):
    sock = socket.socket(socket.AF_UNIX); sock.connect(where)
else:
    sock = socket.create_connection(("127.0.0.1", int(where)))
body = struct.pack("!i", 3 << 16) + b"user\\0everview\\0\\0"
sock.sendall(struct.pack("!i", len(body) + 4) + body)
answer = b""
while len(answer) < 9:
    answer += sock.recv(100)
print(answer[:1].decode(), struct.unpack("!i", answer[5:9])[0])
"""
OK, SASL = "R 0\n", "R 10\n"


@linux
def test_another_account_needs_a_password(serve: Callable[..., Running], short: Path) -> None:
    """Every local account was a superuser, without a password."""
    other_account()
    short.chmod(0o755)
    server = serve(socket_dirs=[short])
    try:
        assert as_nobody(ENTER, str(server.pg.port)).stdout == SASL
        assert as_nobody(ENTER, str(server.unix[0])).stdout == SASL
        trusting = serve(auth="trust")
        assert as_nobody(ENTER, str(trusting.pg.port)).stdout == OK
    finally:
        server.close()
    assert not server.unix[0].exists()


CLOSED = """
import socket, struct, sys
body = struct.pack("!i", 3 << 16) + b"user\\0everview\\0\\0"
text = b"create table taken (a int4)\\0"
for _ in range(100):
    sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    sock.sendall(struct.pack("!i", len(body) + 4) + body + b"Q" + struct.pack("!i", len(text) + 4) + text)
    sock.close()
"""


@linux
def test_a_connection_that_is_closed_at_once_is_not_roots(serve: Callable[..., Running], adapter: FakeAdapter) -> None:
    """The system lists a closed socket with account 0: a client that sends all and leaves must not be taken for it."""
    other_account()
    server = serve()
    assert as_nobody(CLOSED, str(server.pg.port)).returncode == 0
    assert psycopg.connect(f"postgresql://everview@{server.pg}/everview").info.backend_pid  # the server goes on
    assert "taken" not in adapter.tables


@linux
def test_the_servers_account_needs_none(serve: Callable[..., Running], short: Path) -> None:
    server = serve(socket_dirs=[short])
    assert not server.notices
    for host in ("127.0.0.1", str(short)):
        with psycopg.connect(host=host, port=server.pg.port, user="everview", dbname="everview") as connection:
            assert connection.execute("select 1").fetchone() == (1,)


def test_a_password_for_everyone(serve: Callable[..., Running], adapter: FakeAdapter, short: Path) -> None:
    with pytest.raises(CannotListen, match='everyone needs a password, and the role "everview" has none'):
        serve(auth="password")
    adapter.set_password("everview", "pw")
    server = serve(auth="password", socket_dirs=[short])
    for host in ("127.0.0.1", str(short)):
        where = {"host": host, "port": server.pg.port, "user": "everview", "dbname": "everview"}
        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            psycopg.connect(**where)  # type: ignore[arg-type]
        psycopg.connect(**where, password="pw").close()  # type: ignore[arg-type]


def test_an_owner_that_is_not_known_is_told(adapter: FakeAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_read_tables", list)
    with start(adapter, LOCAL) as server:
        assert len(server.notices) == 1 and "does not tell which account" in server.notices[0]
        with pytest.raises(psycopg.OperationalError, match="cannot tell which account this connection belongs to"):
            psycopg.connect(f"postgresql://everview:guess@{server.pg}/everview")


def test_socket_files(adapter: FakeAdapter, short: Path) -> None:
    stale = bind_unix(short, 6875)
    stale.sock.close()  # as a killed server leaves it
    live = bind_unix(short, 6875)
    assert live.path == short / ".s.PGSQL.6875" and live.path.stat().st_mode & 0o777 == 0o777
    with pytest.raises(CannotListen, match="another server listens there"):
        bind_unix(short, 6875)
    stale.remove()  # the file is not its own any more
    assert live.path.exists()
    live.remove()
    live.sock.close()
    assert not live.path.exists()
    live.path.write_text("mine")
    with pytest.raises(CannotListen, match="is not a socket of this account"):
        bind_unix(short, 6875)
    assert live.path.read_text() == "mine"
    with pytest.raises(CannotListen, match="no such file or directory"):
        bind_unix(short / "none", 6875)
    with pytest.raises(CannotListen, match="too long"):
        bind_unix(short / ("x" * 100), 6875)
    options = Options(pg=LOCAL.pg, http=None, socket_dirs=[short / "none"], sockets_needed=False)
    with start(adapter, options) as server:
        assert server.unix == [] and "no such file" in server.notices[0]
    with pytest.raises(CannotListen, match="no such file"):
        start(adapter, Options(pg=LOCAL.pg, http=None, socket_dirs=[short / "none"]))
