"""A process that maintains a collection and writes it to a stream, until it is killed; `test_kill` starts it again."""

from __future__ import annotations

import sys
from pathlib import Path

from everview.cdc.codec.contract import codec_for
from everview.cdc.files import Folder, FolderOutlet
from everview.cdc.schema import StreamSchema
from everview.cdc.sink import Sink
from tests.cdc.shards import COLUMNS, Writing


def main(folder: Path, stream: str) -> None:
    writing = Writing(folder)
    outlet = FolderOutlet(Folder(stream), codec_for(".jsonl", StreamSchema(COLUMNS)))
    if writing.environment.get("cdc/sink/out") is None:
        sink = Sink.create(writing.environment, "out", writing.reader, outlet)
    else:
        sink = Sink(writing.environment, "out", outlet)
    while True:
        writing.advance(writing.writer.frontier.only + 1)
        sink.step()
        print(f"wrote {writing.writer.frontier.only}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
