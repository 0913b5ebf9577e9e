"""What goes along with updates through Spark: what is none, and from which files an update came.

What is no update is a text with one letter in front that says what it is. A file is one bit of a
number, by the hash of its name, so that files can be told apart at no cost; some share a bit.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence

import pyarrow as pa

from everview.cdc.codec.contract import Bad, Partial
from everview.timely.hashing import hash_rows

STATEMENT, BAD, PARTIAL = "p", "b", "c"
MARKS = 63
BAD_BYTES_KEPT = 4096


def text_of(item: Bad | Partial, name: str) -> str:
    """The text for what cannot be decoded in a file: enough of it to know it by."""
    kind, reason = (BAD, item.reason) if isinstance(item, Bad) else (PARTIAL, "")
    return kind + json.dumps([name, item.position, b64encode(item.raw[:BAD_BYTES_KEPT]).decode(), reason])


def undecodable(text: str) -> Bad | Partial:
    """What such a text is about."""
    _, position, held, reason = json.loads(text[1:])
    raw = b64decode(held)
    return Bad(position, raw, reason) if text[0] == BAD else Partial(position, raw)


def marks_of(names: Sequence[str]) -> list[int]:
    """The bit of each file, by its name without folders."""
    hashes = hash_rows([pa.array([name.rpartition("/")[2] for name in names], pa.string())], len(names))
    return [1 << int(value) for value in hashes % MARKS]
