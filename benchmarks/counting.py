"""A connector that only counts: how fast a program can be told of rows, whatever it does with them."""

from __future__ import annotations

import json
import os
import struct
import sys
from typing import Any

JSON = os.environ.get("FLOW_RUNTIME_CODEC") == "json"
# The numbers of the messages of the protocol, as protocol buffers have them.
REQUESTS = {1: "spec", 2: "validate", 3: "apply", 4: "open", 5: "load", 6: "flush", 7: "store", 8: "startCommit"}
FIELDS = ("id", "group", "price", "name")


def field(number: int, content: bytes | str | int) -> bytes:
    if isinstance(content, int):
        return bytes((number << 3, content))
    content = content.encode() if isinstance(content, str) else content
    size = len(content)
    return bytes((number << 3 | 2, *((size,) if size < 128 else (size & 127 | 128, size >> 7)))) + content


def answer(name: str, number: int, said: dict[str, Any], content: bytes) -> None:
    out = sys.stdout.buffer
    if JSON:
        out.write(json.dumps({name: said}).encode() + b"\n")
    else:
        framed = field(number, content)
        out.write(struct.pack("<I", len(framed)) + framed)
    out.flush()


def requests() -> Any:
    """The names of the requests; nothing else of them is looked at."""
    stdin = sys.stdin.buffer
    if JSON:
        for line in stdin:
            yield "store" if line.startswith(b'{"store"') else line[2 : line.index(b'"', 2)].decode()
    while head := stdin.read(4):
        yield REQUESTS.get(stdin.read(struct.unpack("<I", head)[0])[0] >> 3, "acknowledge")


def main() -> None:
    told = False
    for name in requests():
        if name == "spec":
            answer("spec", 1, {"configSchema": {}, "resourceConfigSchema": {}}, b"")
        elif name == "validate":
            constraints = {each: {"type": "FIELD_OPTIONAL"} for each in FIELDS}
            entries = b"".join(field(1, field(1, each) + field(2, field(2, 4))) for each in FIELDS)
            said = {"bindings": [{"constraints": constraints, "resourcePath": ["t"], "deltaUpdates": False}]}
            answer("validated", 2, said, field(1, entries + field(2, "t")))
        elif name == "apply":
            answer("applied", 3, {}, b"")
        elif name == "open":
            answer("opened", 4, {}, b"")
        elif name == "flush":
            answer("flushed", 6, {}, b"")
        elif name == "startCommit":
            answer("startedCommit", 7, {}, b"")
            answer("acknowledged", 8, {}, b"")
            told = True
        elif name == "acknowledge":
            if not told:
                answer("acknowledged", 8, {}, b"")
            told = False


if __name__ == "__main__":
    main()
