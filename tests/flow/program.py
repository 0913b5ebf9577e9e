"""A driver of ours as a program of its own, without the rest of the command line.

With `keep-rows` it keeps a row of checkpoints for every range that there ever was, as public drivers do.
"""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import patch

from everview.flow.checkpoint import START, Checkpoint
from everview.flow.driver_program import serve_streams
from everview.flow.drivers import sql
from everview.flow.fencing import Carved, OwnedRange
from everview.flow.keyrange import KeyRange


def leaves_others(rows: Any, range: KeyRange) -> Carved:
    """As drivers do that keep a row for every range that there ever was: exact if there, else the narrowest around."""
    rows = list(rows)
    around = sorted(
        (row for row in rows if row.range.meet(range) == range), key=lambda row: row.range.end - row.range.begin
    )
    checkpoint = around[0].checkpoint.within(range) if around else Checkpoint.at(range, START)
    mine = OwnedRange(range, max((row.fence for row in rows), default=0) + 1, checkpoint)
    gone = (range,) if any(row.range == range for row in rows) else ()
    return Carved(mine, gone, (mine,))


if __name__ == "__main__":
    if "keep-rows" in sys.argv[2:]:
        patch.object(sql, "carve", leaves_others).start()
    serve_streams(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
