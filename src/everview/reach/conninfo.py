"""PostgreSQL's connection strings, with the addresses of their hosts: connections go where the check looked."""

from __future__ import annotations

from everview.reach.addresses import check_host, resolve


def pinned(conninfo: str) -> str:
    """A connection string or URL with the addresses of its hosts, so that these and no others are connected to.

    OSError if its only host has no address.
    """
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    said = {name: str(value) for name, value in conninfo_to_dict(conninfo).items() if value}
    hosts, ports = said.get("host", "").split(","), said.get("port", "").split(",")
    for each in said.get("hostaddr", "").split(","):
        check_host(each)
    if "hostaddr" in said or not any(hosts):
        return conninfo
    attempts: list[tuple[str, str, str]] = []
    for index, host in enumerate(hosts):
        port = ports[index] if len(ports) == len(hosts) else ports[0]
        if not host or host.startswith(("/", "@")):  # a Unix socket
            attempts.append((host, "", port))
            continue
        try:
            found = resolve(host)
        except OSError as error:
            if len(hosts) > 1:
                continue
            raise OSError(f"{host}: {error}") from None
        attempts += [(host, str(where[0]), port) for _, where in found]
    names, addresses, numbers = (",".join(each) for each in zip(*attempts, strict=True)) if attempts else ("", "", "")
    # Without a port anywhere, the library's own is meant.
    return make_conninfo(conninfo, host=names, hostaddr=addresses, **({"port": numbers} if numbers.strip(",") else {}))
