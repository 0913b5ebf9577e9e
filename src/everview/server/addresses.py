"""Where to listen: resolves and binds addresses, and explains failures."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from everview.errors import EverviewError
from everview.server.pgwire.peers import is_loopback


class CannotListen(EverviewError):
    """The server cannot, or must not, listen on this address."""


@dataclass(frozen=True, slots=True)
class Address:
    """A host, by name or number, and a port; port 0 is any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Place:
    family: socket.AddressFamily
    host: str
    port: int


def resolve(address: Address, option: str) -> list[Place]:
    """Resolve an address; `option` is the command-line option for its host."""
    if not 0 <= address.port <= 65_535:
        raise CannotListen(f"there is no port {address.port}: ports are 1 to 65535, and 0 is any free one")
    try:
        found = socket.getaddrinfo(address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError) as error:
        raise CannotListen(
            f'cannot resolve the host "{address.host}"', detail=str(error), hint=f"give another with {option}"
        ) from None
    places = {Place(family, str(at[0]), address.port): None for family, _, _, _, at in found}
    return list(places)


def is_private(places: Sequence[Place]) -> bool:
    """Whether only this machine can reach these addresses."""
    return all(is_loopback(place.host) for place in places)


def bind(places: Sequence[Place], option: str) -> list[socket.socket]:
    """Bind a socket for each address, all with the same port; `option` is the command-line option for the port."""
    sockets: list[socket.socket] = []
    try:
        for place in places:
            port = place.port or (sockets[0].getsockname()[1] if sockets else 0)
            sockets.append(_bind(place, port, option))
    except CannotListen:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _bind(place: Place, port: int, option: str) -> socket.socket:
    sock = socket.socket(place.family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if place.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((place.host, port))
        # Only listening finds out whether another listens there already, on some systems.
        sock.listen()
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise _explained(error, Address(place.host, port), option) from None
    return sock


def _explained(error: OSError, address: Address, option: str) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        return CannotListen(f"port {address.port} is taken on {address.host}: stop what listens there, or use {option}")
    if error.errno == errno.EACCES:
        return CannotListen(f"port {address.port} may not be used by this user: choose one above 1023 with {option}")
    if error.errno == errno.EADDRNOTAVAIL:
        return CannotListen(f"{address.host} is not an address of this machine: choose another host")
    return CannotListen(f"cannot listen on {address}", detail=str(error))


def bound(sock: socket.socket) -> Address:
    host, port = sock.getsockname()[:2]
    return Address(str(host), int(port))
