"""Which account of this machine is at the other end of a connection.

Over a Unix socket the system says it. Over loopback TCP, Linux lists the owner of every socket: the client's socket
has the client's address as its own and ours as its remote one. A row counts only while its socket is established: a
socket that its process has closed is listed with account 0, whoever had it.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = 1
_STATE, _UID, _INODE = 3, 7, 9  # columns of a row
# The system writes the tables while sockets come and go, and may skip a row.
_TRIES = 3
_CREDENTIALS = struct.Struct("iII")  # process, user, group: `struct ucred`
_XUCRED = struct.Struct("II68x")  # version, user: `struct xucred` of BSD and macOS


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a TCP connection."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Peer:
    """A client's end of a connection and the server's; both are None over a Unix socket."""

    client: Endpoint | None
    server: Endpoint | None
    sock: socket.socket | None = None

    @classmethod
    def of(cls, sock: socket.socket | None) -> Peer:
        """The peer of an accepted socket."""
        if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
            return cls(None, None, sock)
        return cls(Endpoint(*sock.getpeername()[:2]), Endpoint(*sock.getsockname()[:2]), sock)

    @property
    def host(self) -> str:
        """The client's address; empty over a Unix socket."""
        return self.client.host if self.client is not None else ""

    @property
    def is_local(self) -> bool:
        """Whether the client is on this machine and no network is between."""
        ends = (self.client, self.server)
        return all(end is None or is_loopback(end.host) for end in ends)

    def owner(self) -> int | None:
        """The account at the other end, of a client on this machine. None if the system does not tell. It may block."""
        if self.sock is None:
            return None
        if self.client is None or self.server is None:
            return unix_owner(self.sock)
        owner = tcp_owner(self.client, self.server)
        return owner if is_established(self.sock) else None


def is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


def unix_owner(sock: socket.socket) -> int | None:
    """The account that has connected to a Unix socket. None if the system does not tell."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            return int(
                _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]
            )
        if hasattr(socket, "LOCAL_PEERCRED"):
            return int(_XUCRED.unpack(sock.getsockopt(0, socket.LOCAL_PEERCRED, _XUCRED.size))[1])
    except (OSError, struct.error):
        pass
    return None


def tcp_owner(client: Endpoint, server: Endpoint, tables: Callable[[], list[bytes]] | None = None) -> int | None:
    """The account that has the client's socket of a loopback connection. None if no table lists the socket."""
    wanted = [f" {one} {other} ".encode() for one, other in zip(_written(client), _written(server), strict=True)]
    for _ in range(_TRIES):
        for table in (tables or _read_tables)():
            for pair in wanted:
                start = table.find(pair)
                if start >= 0:
                    return _owner(table[table.rfind(b"\n", 0, start) + 1 :].split(b"\n", 1)[0].split())
    return None


def is_established(sock: socket.socket) -> bool:
    """Whether a TCP connection still stands, so that its addresses cannot be another connection's by now."""
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _ESTABLISHED
    except (AttributeError, OSError):
        return False


def owners_are_known() -> bool:
    """Whether this system tells whose a loopback connection is: tried with a connection to ourselves."""
    if is_ambiguous(os.geteuid()):
        return False
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
            other, _ = listener.accept()
            with other:
                return Peer.of(other).owner() == os.geteuid()
    except OSError:
        return False


def is_ambiguous(uid: int, proc: Path = Path("/proc")) -> bool:
    """Whether other accounts look like this one: in a user namespace, all from outside have one number."""
    try:
        overflow = int((proc / "sys/kernel/overflowuid").read_text())
        inside = [int(part) for part in (proc / "self/uid_map").read_text().split()]
    except (OSError, ValueError):
        return False
    return uid == overflow and inside != [0, 0, 2**32 - 1]


def _read_tables() -> list[bytes]:
    found = []
    for name in _TABLES:
        try:
            with open(name, "rb") as file:
                found.append(file.read())
        except OSError:  # not Linux, or without IPv6
            continue
    return found


def _owner(row: list[bytes]) -> int | None:
    """The account in a row of a table, if its socket is established and a process has it."""
    try:
        if int(row[_STATE], 16) != _ESTABLISHED or int(row[_INODE]) == 0:
            return None
        return int(row[_UID])
    except (IndexError, ValueError):
        return None


def _written(end: Endpoint) -> list[str]:
    """An end as the tables may write it: of IPv4, and of IPv6, which an IPv4 address may be mapped to."""
    address = ipaddress.ip_address(end.host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    short = address if isinstance(address, ipaddress.IPv4Address) else mapped
    long = ipaddress.IPv6Address(f"::ffff:{short}") if short is not None else address
    # An IPv6 address alone is written twice: then both ways to look are the same.
    return [f"{_hexadecimal((short or long).packed)}:{end.port:04X}", f"{_hexadecimal(long.packed)}:{end.port:04X}"]


def _hexadecimal(packed: bytes) -> str:
    """Words of four bytes, each as a number in this machine's order of bytes."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))
