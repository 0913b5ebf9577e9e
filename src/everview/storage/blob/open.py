"""From a URL to a Blob: one place that knows which kinds there are."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from everview.reach.files import PlaceRefused
from everview.storage.blob.contract import Blob
from everview.storage.blob.local import LocalBlob
from everview.storage.blob.memory import MemoryBlob
from everview.storage.errors import InvalidUsage

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_OBJECT_STORES = {"s3", "s3a", "gs", "az", "azure", "abfs", "abfss"}


def open_blob(url: str, read_only: bool = False, *, confined: bool = False, private: bool = False) -> Blob:
    """The Blob at `url`: a path, `file:///path`, `memory:`, or `s3://bucket/prefix?endpoint=...&region=...&allow_http=true`.

    `gs://` and `az://` work as `s3://` does; what follows "?" are the store's options by obstore's names. With
    `read_only`, opening changes nothing. With `confined`, it has to be a folder that is allowed. With `private`, a
    folder is for its owner alone.
    """
    named = _SCHEME.match(url)
    if named is None:
        if not url:
            raise InvalidUsage("no place named for blobs", hint="name a folder")
        return LocalBlob(Path(url), read_only, confined=confined, private=private)
    scheme = named[1].lower()
    if confined and scheme != "file":
        raise PlaceRefused(f"{url} is not a folder", hint="only folders can be confined")
    if scheme == "memory":
        return MemoryBlob()
    parts = urlsplit(url)
    if scheme == "file":
        if parts.netloc not in {"", "localhost"} or not parts.path:
            raise InvalidUsage(f"not a local folder: {url}", hint="write file:///path/to/folder")
        return LocalBlob(Path(unquote(parts.path)), read_only, confined=confined, private=private)
    if scheme in _OBJECT_STORES:
        from everview.storage.blob.object import ObjectBlob

        return ObjectBlob(urlunsplit(parts._replace(query="", fragment="")), dict(parse_qsl(parts.query)))
    raise InvalidUsage(
        f"no blobs can be kept at a URL that starts with {scheme}:",
        hint="use a folder, file://, s3://, gs://, az:// or memory:; a folder of that name is ./" + url,
    )
