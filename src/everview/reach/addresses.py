"""Addresses that no connection goes to: link-local ones, and those at which clouds hand out credentials.

Otherwise anyone who may name a destination could have the server ask them. Names are resolved first, their addresses
are checked, and the connection goes to those very addresses: it does not help to change the name's meaning afterwards.
The variable `EVERVIEW_ALLOW_ADDRESS` allows addresses and networks, separated by commas. It is a variable of the
process, so that Spark's workers have it too.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from everview.errors import EverviewError

ALLOWED = "EVERVIEW_ALLOW_ADDRESS"

Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Found: TypeAlias = tuple[socket.AddressFamily, Any]  # an address as sockets take it

_REFUSED = tuple(
    ipaddress.ip_network(each)
    for each in (
        "169.254.0.0/16",
        "fe80::/10",
        # Metadata services at other addresses: AWS, Google, Alibaba, Oracle, Azure.
        "fd00:ec2::/32",
        "fd20:ce::254/128",
        "100.100.100.200/32",
        "192.0.0.192/32",
        "168.63.129.16/32",
    )
)
# IPv6 addresses that stand for an IPv4 address: mapped, compatible and translated ones, with its last bytes.
_EMBEDDING = tuple(ipaddress.ip_network(each) for each in ("::ffff:0:0/96", "::/96", "64:ff9b::/96"))
_SIX_TO_FOUR = ipaddress.ip_network("2002::/16")


class AddressRefused(EverviewError):
    """A connection that must not be made."""


def parse_allowed(entries: Iterable[str]) -> list[Network]:
    """Parse addresses and networks to allow."""
    found = []
    for entry in entries:
        try:
            found.append(ipaddress.ip_network(entry.strip(), strict=False))
        except ValueError:
            message = f'"{entry}" is neither an address nor a network'
            raise EverviewError(message, hint="write 169.254.10.20, or 169.254.10.0/24") from None
    return found


def check_address(address: str, host: str | None = None) -> None:
    """Raise unless a connection to this address is allowed; `host` is the name that was resolved to it."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    candidates = [parsed, *_embedded(parsed)]
    if not any(each in network for each in candidates for network in _REFUSED):
        return
    if any(each in network for each in candidates for network in _allowed(os.environ.get(ALLOWED, ""))):
        return
    shown = address if host in (None, address) else f"{address}, which {host} means"
    raise AddressRefused(
        f"connections to {shown} are not allowed",
        detail="it is link-local, or an address at which clouds hand out credentials",
        hint=f"start the server with --allow-address {address} to allow it",
    )


def resolve(host: str, port: int | str | None = None) -> list[Found]:
    """The addresses of a host, all of them allowed. OSError if it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f'"{host}" is not the name of a host') from error
    for _, _, _, _, where in found:
        check_address(str(where[0]), host)
    return [(family, where) for family, _, _, _, where in found]


def check_host(host: str | None) -> None:
    """Raise if a host has an address that is not allowed. An unknown host is not refused."""
    if host:
        try:
            resolve(host)
        except OSError:
            return


def check_url(url: str) -> None:
    """Raise if the host of a URL has an address that is not allowed."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return  # whoever opens it will say so
    check_host(host)


def check_endpoints(options: Mapping[str, Any]) -> None:
    """Check all URLs among the options of an object store."""
    for value in options.values():
        if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
            check_url(value)


def check_kafka(properties: Mapping[str, Any]) -> None:
    """Check the brokers and other addresses among the settings of a Kafka client.

    Brokers also announce other brokers to their clients; the client library makes those connections unchecked.
    """
    for name in ("bootstrap.servers", "metadata.broker.list"):
        for each in str(properties.get(name, "")).split(","):
            check_url("//" + each.strip().rpartition("://")[2])
    check_endpoints(properties)


def connect(
    where: tuple[str, int], timeout: float | None = None, source: tuple[str, int] | None = None
) -> socket.socket:
    """Connect to a host, at the addresses that were checked."""
    failure: OSError | None = None
    for family, address in resolve(*where):
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            if isinstance(timeout, int | float):
                sock.settimeout(timeout)
            if source:
                sock.bind(source)
            sock.connect(address)
            return sock
        except OSError as error:
            failure = error
            sock.close()
    raise failure or OSError(f"{where[0]} has no address")


def _embedded(address: Ip) -> list[Ip]:
    """The IPv4 addresses that an IPv6 address may stand for."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    if any(address in network for network in _EMBEDDING):
        return [ipaddress.IPv4Address(address.packed[-4:])]
    return [ipaddress.IPv4Address(address.packed[2:6])] if address in _SIX_TO_FOUR else []


@lru_cache(8)
def _allowed(setting: str) -> tuple[Network, ...]:
    return tuple(parse_allowed(each for each in setting.split(",") if each.strip()))
