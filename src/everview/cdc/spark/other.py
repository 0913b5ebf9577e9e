"""What goes along with updates through Spark: lines that hold none, and from which files an update came.

A line that is no batch of updates is a text with one letter in front that says what it is. A file is one bit of a
number, by the hash of its name, so that files can be told apart at no cost; some share a bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from everview.timely.hashing import hash_rows

STATEMENT, BAD, PARTIAL = "p", "b", "c"
MARKS = 63


def marks_of(names: Sequence[str]) -> list[int]:
    """The bit of each file, by its name without folders."""
    hashes = hash_rows([pa.array([name.rpartition("/")[2] for name in names], pa.string())], len(names))
    return [1 << int(value) for value in hashes % MARKS]
