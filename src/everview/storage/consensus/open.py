"""From a URL to a Consensus: one place that knows which kinds there are."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from everview.storage.consensus.contract import Consensus
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.errors import InvalidUsage

SCHEMA_PARAMETER = "everview_schema"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def open_consensus(url: str, read_only: bool = False) -> Consensus:
    """The Consensus at `url`: a path, `sqlite:path`, `memory:`, or `postgresql://...?everview_schema=name`.

    One opened with `read_only` refuses commits and changes nothing, so it can look at an environment that runs.
    """
    named = _SCHEME.match(url)
    if named is None:
        if not url:
            raise InvalidUsage("no place named for metadata", hint="name a file")
        return SqliteConsensus(Path(url), read_only)
    scheme = named[1].lower()
    if scheme == "memory":
        return MemoryConsensus()
    parts = urlsplit(url)
    if scheme in {"sqlite", "file"}:
        if parts.netloc or not parts.path:
            raise InvalidUsage(f"not a local file: {url}", hint="write sqlite:path/to/file or sqlite:///path/to/file")
        return SqliteConsensus(Path(unquote(parts.path)), read_only)
    if scheme in {"postgresql", "postgres"}:
        from everview.storage.consensus.postgres import PostgresConsensus

        given = parse_qsl(parts.query, keep_blank_values=True)
        kept = urlencode([(name, value) for name, value in given if name != SCHEMA_PARAMETER])
        schema = dict(given).get(SCHEMA_PARAMETER, "everview")
        return PostgresConsensus(urlunsplit(parts._replace(query=kept)), schema, read_only)
    raise InvalidUsage(
        f"no metadata can be kept at a URL that starts with {scheme}:",
        hint="use a file, sqlite:, postgresql:// or memory:; a file of that name is ./" + url,
    )
