"""Messages as JSON, one in a line: `{"updates": [...]}` or `{"progress": {...}}`; files start with `{"schema": ...}`.

A line is a message or is kept as it is and reported, whole: no part of a line that is not understood is believed. So
every object has the members that it should have, each once, and no others. A last line without an end that makes no
sense is one that is still being written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

import pyarrow as pa

from everview.cdc.codec.contract import RECORD_BYTES_MAX, Bad, Item, Partial, progress_json
from everview.cdc.codec.values import JsonColumn, has_members, unexpected
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import InvalidStatement, Undecodable
from everview.cdc.reader import check_progress
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema, message_schema, stream_schema
from everview.cdc.times import from_wire, frontier_from_wire, to_wire
from everview.timely.lattice import TIME_MAX, Time

_READ_BYTES = 1 << 20
_BLOCK_BYTES = 4 << 20
_DIFF_MAX = 2**63
_UPDATE, _PROGRESS, _COUNT = frozenset(("data", "time", "diff")), ("lower", "upper", "counts"), ("time", "count")
_SPACED_MEMBER = re.compile(rb'"[ \t\r\n]+:')


class JsonCodec:
    suffix = ".jsonl"

    def __init__(self, schema: StreamSchema) -> None:
        message_schema(schema)  # raises if data of some type cannot be written
        self.schema = schema
        self._columns = [JsonColumn(field) for field in schema.data]
        self._names = schema.data.names
        self._members = frozenset(self._names)
        # How many members an update has in all; None where structs have some of their own.
        self._width = None if any(map(has_members, schema.data.types)) else len(_UPDATE) + len(self._names)
        data = ",".join(_dump(name).decode().replace("%", "%%") + ":%s" for name in self._names)
        self._update = f'{{"data":{{{data}}},"time":%s,"diff":%s}}'

    def encode(self, message: Message[Row]) -> bytes:
        if isinstance(message, Progress):
            return _dump({"progress": progress_json(message)})
        columns = zip(*(update[0] for update in message.updates), strict=True)
        texts = [each.texts(values) for each, values in zip(self._columns, columns, strict=False)]
        times = [update[1] for update in message.updates]
        wires = times if self.schema.shape == 0 else [_dump(to_wire(time)).decode() for time in times]
        diffs = [update[2] for update in message.updates]
        # Text made of text: a dictionary for each update, to be turned into text, would take several times as long.
        updates = map(self._update.__mod__, zip(*texts, wires, diffs, strict=True))
        return f'{{"updates":[{",".join(updates)}]}}'.encode()

    def decode(self, data: bytes) -> Message[Row]:
        try:
            message = self._message(data)
        except (ValueError, RecursionError, InvalidStatement) as error:
            raise Undecodable("not a message of this stream", detail=str(error).split("\n")[0]) from error
        if isinstance(message, StreamSchema):
            raise Undecodable("a schema where a message should be")
        return message

    def encode_file(self, messages: Iterable[Message[Row]]) -> bytes:
        header = _dump({"schema": message_schema(self.schema)})
        return b"\n".join([header, *map(self.encode, messages), b""])

    def decode_file(self, file: pa.NativeFile, where: str) -> Iterator[Item]:
        for position, line, ended in lines(file):
            if not line.strip():
                continue
            try:
                message = self._message(line)
            except (ValueError, RecursionError, InvalidStatement) as error:
                yield Bad(position, line, str(error).split("\n")[0]) if ended else Partial(position, line)
                continue
            if isinstance(message, StreamSchema):
                self.schema.check(message, where)
            else:
                yield message

    def _message(self, data: bytes) -> Message[Row] | StreamSchema:
        value = json.loads(data, parse_constant=_no_constant)
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError("not an object with one member, updates or progress")
        ((kind, said),) = value.items()
        if kind == "updates" and isinstance(said, list):
            if not self._surely_unrepeated(data, len(said)):
                _load_strictly(data)
            return self._updates(said)
        _load_strictly(data)
        if kind == "progress" and isinstance(said, dict):
            return self._progress(said)
        if kind == "schema" and isinstance(said, list):
            return stream_schema(said)
        raise ValueError("neither updates nor progress")

    def _surely_unrepeated(self, data: bytes, updates: int) -> bool:
        """Whether the members of a line, counted, leave no room for a repeated name. Cheaper than to look."""
        if self._width is None or _SPACED_MEMBER.search(data):
            return False
        return data.count(b'":') == 1 + updates * self._width

    def _updates(self, updates: list[Any]) -> Updates[Row]:
        if not updates:
            return Updates(())
        try:
            data, times, diffs = (list(map(itemgetter(name), updates)) for name in ("data", "time", "diff"))
        except (KeyError, TypeError):
            raise ValueError("an update is not an object with data, time and diff") from None
        if set(map(len, updates)) != {len(_UPDATE)}:
            raise ValueError(next(unexpected(update, _UPDATE, "an update") for update in updates if len(update) > 3))
        if set(map(type, data)) != {dict} or set(map(type, diffs)) != {int}:
            raise ValueError("data of an update are not an object, or its diff is not a number")
        if 0 in diffs or not -_DIFF_MAX <= min(diffs) <= max(diffs) < _DIFF_MAX:
            raise ValueError("a diff is 0 or too large")
        for row in data:
            if row.keys() != self._members:
                raise ValueError(unexpected(row, self._members, "a row"))
        columns = [
            each.decode(list(map(itemgetter(name), data)))
            for name, each in zip(self._names, self._columns, strict=True)
        ]
        rows: Iterable[Row] = zip(*columns, strict=True) if columns else [()] * len(data)
        return Updates(list(zip(rows, self._times(times), diffs, strict=True)))

    def _times(self, times: list[Any]) -> list[Time]:
        if self.schema.shape == 0:
            if set(map(type, times)) != {int} or min(times) < 0 or max(times) > TIME_MAX:
                raise ValueError("the time of an update is not a time")
            return times
        return [from_wire(time, self.schema.shape) for time in times]

    def _progress(self, value: dict[str, Any]) -> Progress:
        shape = self.schema.shape
        if value.keys() != set(_PROGRESS):
            raise ValueError(unexpected(value, _PROGRESS, "a progress statement"))
        lower, upper = (frontier_from_wire(value[name], shape) for name in ("lower", "upper"))
        counts = value["counts"]
        if not isinstance(counts, list) or not all(isinstance(each, dict) for each in counts):
            raise ValueError("counts are not a list of objects")
        for each in counts:
            if each.keys() != set(_COUNT):
                raise ValueError(unexpected(each, _COUNT, "a count"))
        if not all(type(each["count"]) is int for each in counts):
            raise ValueError("a count is not a number")
        pairs = tuple((from_wire(each["time"], shape), each["count"]) for each in counts)
        check_progress(Progress(lower, upper, pairs), shape)
        return Progress(lower, upper, tuple(pair for pair in pairs if pair[1]))


def lines(file: pa.NativeFile) -> Iterator[tuple[int, bytes, bool]]:
    """The lines of a file with their positions, and whether each has an end.

    Of a line that is longer than any message the start is given, and the rest is passed over.
    """
    position = size = 0
    pieces: list[bytes] = []  # of a line whose end has not come yet
    while block := file.read(_READ_BYTES):
        *ends, rest = block.split(b"\n")
        for end in ends:
            yield position, b"".join([*pieces, end]), True
            position += size + len(end) + 1
            pieces, size = [], 0
        size += len(rest)
        if rest and size <= RECORD_BYTES_MAX:
            pieces.append(rest)
    if size:
        yield position, b"".join(pieces), size > RECORD_BYTES_MAX


def blocks(file: pa.NativeFile) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, many at a time, with the position of the first; the last may have no end.

    Of a line that is longer than any message the start is given, with an end.
    """
    position = size = 0
    pieces: list[bytes] = []  # of lines whose end has not come yet
    while piece := file.read(_BLOCK_BYTES):
        end = piece.rfind(b"\n") + 1
        if end:
            yield position, b"".join([*pieces, b"\n" if size > RECORD_BYTES_MAX else b"", piece[:end]])
            position += size + end
            pieces, size, piece = [], 0, piece[end:]
        if piece and size <= RECORD_BYTES_MAX:
            pieces.append(piece)
        size += len(piece)
    if size:
        yield position, b"".join([*pieces, b"\n" if size > RECORD_BYTES_MAX else b""])


def header_of(file: pa.NativeFile) -> StreamSchema | None:
    for _, line, _ in lines(file):
        try:
            value = json.loads(line)
        except ValueError:
            return None
        return stream_schema(value["schema"]) if isinstance(value, dict) and "schema" in value else None
    return None


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _load_strictly(data: bytes) -> None:
    """Raise ValueError if any object has two members of one name."""
    json.loads(data, parse_constant=_no_constant, object_pairs_hook=_once_each)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"member {next(name for name in names if names.count(name) > 1)} comes twice")
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
