"""From a URL to a Blob or a Consensus: the one place that knows which kinds there are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlunsplit

from everview.reach.files import PlaceRefused
from everview.storage.blob.contract import Blob
from everview.storage.blob.local import LocalBlob
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.contract import Consensus
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.errors import InvalidUsage
from everview.storage.urls import scheme_of, split

CONSENSUS_VARIABLE, BLOB_VARIABLE = "EVERVIEW_CONSENSUS", "EVERVIEW_BLOB"
SCHEMA_PARAMETER = "everview_schema"
_OBJECT_STORES = {"s3", "s3a", "gs", "az", "azure", "abfs", "abfss"}
_DATABASES = {"postgresql", "postgres"}


@dataclass(frozen=True, slots=True)
class StoreAddresses:
    """The URLs of an environment's metadata and data. None stands for the environment's folder."""

    consensus: str | None = None
    blob: str | None = None

    @property
    def shared(self) -> bool:
        """Whether processes on other machines can open the environment as well."""
        return scheme_of(self.consensus) in _DATABASES

    @property
    def blob_is_remote(self) -> bool:
        """Whether the data are in an object store."""
        return scheme_of(self.blob) in _OBJECT_STORES


IN_FOLDER = StoreAddresses()


def conninfo(url: str) -> str:
    """The URL of a PostgreSQL database without what is Everview's own in it."""
    parts = split(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    kept = urlencode([(name, value) for name, value in given if name != SCHEMA_PARAMETER])
    return urlunsplit(parts._replace(query=kept))


def open_blob(url: str, read_only: bool = False, *, confined: bool = False, private: bool = False) -> Blob:
    """The Blob at `url`: a path, `file:///path`, `memory:`, or `s3://bucket/prefix?endpoint=...&region=...&allow_http=true`.

    `gs://` and `az://` work as `s3://` does; what follows "?" are the store's options by obstore's names. With
    `read_only`, opening changes nothing. With `confined`, it has to be a folder that is allowed. With `private`, a
    folder is for its owner alone.
    """
    scheme = scheme_of(url)
    if not url:
        raise InvalidUsage("no place named for blobs", hint="name a folder")
    if scheme is None:
        return LocalBlob(Path(url), read_only, confined=confined, private=private)
    if confined and scheme != "file":
        raise PlaceRefused(f"{url} is not a folder", hint="only folders can be confined")
    if scheme == "memory":
        return MemoryBlob()
    parts = split(url)
    if scheme == "file":
        if parts.netloc not in {"", "localhost"} or not parts.path:
            raise InvalidUsage(f"not a local folder: {url}", hint="write file:///path/to/folder")
        return LocalBlob(Path(unquote(parts.path)), read_only, confined=confined, private=private)
    if scheme in _OBJECT_STORES:
        from everview.storage.blob.object import ObjectBlob

        return ObjectBlob(urlunsplit(parts._replace(query="", fragment="")), dict(parse_qsl(parts.query)))
    raise InvalidUsage(
        f"no blobs can be kept at a URL that starts with {scheme}:",
        hint="use a folder, file://, s3://, gs://, az:// or memory:; a path with a colon in it starts with ./ or /",
    )


def open_consensus(url: str, read_only: bool = False) -> Consensus:
    """The Consensus at `url`: a path, `sqlite:path`, `memory:`, or `postgresql://...?everview_schema=name`.

    One opened with `read_only` refuses commits and changes nothing, so it can look at an environment that runs.
    """
    scheme = scheme_of(url)
    if scheme is None:
        if not url:
            raise InvalidUsage("no place named for metadata", hint="name a file")
        return SqliteConsensus(Path(url), read_only)
    if scheme == "memory":
        return MemoryConsensus()
    parts = split(url)
    if scheme in {"sqlite", "file"}:
        if parts.netloc or not parts.path:
            raise InvalidUsage(f"not a local file: {url}", hint="write sqlite:path/to/file or sqlite:///path/to/file")
        return SqliteConsensus(Path(unquote(parts.path)), read_only)
    if scheme in _DATABASES:
        from everview.storage.consensus.postgres import PostgresConsensus

        schema = dict(parse_qsl(parts.query, keep_blank_values=True)).get(SCHEMA_PARAMETER, "everview")
        return PostgresConsensus(conninfo(url), schema, read_only)
    raise InvalidUsage(
        f"no metadata can be kept at a URL that starts with {scheme}:",
        hint="use a file, sqlite:, postgresql:// or memory:; a path with a colon in it starts with ./ or /",
    )
