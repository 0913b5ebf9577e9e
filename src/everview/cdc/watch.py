"""What others write to a stream that a sink writes as well, held against what the sink is about to write.

Two writers of one stream must tell of the same history. One that is about to contradict what is there already, for its
data or its times are different after all, is stopped before it does: of two writers, the second. If both write at the
same instant, they see one another right after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from everview.cdc.codec.contract import Codec, Item, codec_for
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import CdcError, SchemaDiffers
from everview.cdc.files import MERGED, Folder, Inlet, base_time
from everview.cdc.reader import Reader
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema
from everview.cdc.times import bound_of
from everview.timely.antichain import Antichain


class Contradicted(CdcError):
    """Another writer of the stream says otherwise."""


class Others(Protocol):
    """What others have written."""

    seen: bool  # whether there are any others

    def look(self, frontier: int | None) -> Iterator[Item]:
        """What is new; times before `frontier` do not matter any more."""
        ...


class OtherFiles:
    """Files of a folder that another has written; those that are there already only if asked for."""

    def __init__(self, folder: Folder, schema: StreamSchema, own: str, *, from_the_start: bool) -> None:
        self._folder, self._schema, self._own = folder, schema, f"-{own}-"
        self._codecs: dict[str, Codec] = {}
        self._listing = folder.listing()
        self.seen = from_the_start
        if not from_the_start:
            self._listing.look()

    def look(self, frontier: int | None) -> Iterator[Item]:
        for info in self._listing.look().fresh:
            merged = f"-{MERGED}-" in info.key and not self.seen  # perhaps of nothing but our own files
            if merged or self._own in info.key or base_time(info.key) is not None:
                continue
            self.seen = True
            suffix = "." + info.key.rpartition(".")[2]
            if suffix not in self._codecs:
                self._codecs[suffix] = codec_for(suffix, self._schema)
            try:
                yield from self._folder.items(info.key, self._codecs[suffix])
            except SchemaDiffers as error:
                raise Contradicted("another writer of the stream has other columns", detail=str(error)) from error


class OtherMessages:
    """Messages of a topic; one's own are among them, and say nothing new."""

    def __init__(self, inlet: Inlet) -> None:
        self._inlet = inlet
        inlet.restore({})
        self.seen = True

    def look(self, frontier: int | None) -> Iterator[Item]:
        for piece in self._inlet.pieces():
            for item in piece.items:
                if isinstance(item, Progress):
                    piece.needed_until = bound_of(item.upper)
                yield item
            self._inlet.finish(piece)
        self._inlet.spend(frontier)


class Watch:
    """Watches others from a time on."""

    def __init__(self, others: Others, start: int) -> None:
        self._others = others
        self._reader: Reader[Row] = Reader(Antichain(start))

    @property
    def shared(self) -> bool:
        """Whether others write the stream too."""
        return self._others.seen

    def look(self) -> None:
        """See what others have written; raises Contradicted if it is not what was written here."""
        for item in self._others.look(bound_of(self._reader.frontier)):
            if isinstance(item, Updates | Progress):
                self._reader.take(item)
        self._judge()

    def check(self, messages: Iterable[Message[Row]]) -> None:
        """Raise Contradicted if messages that are to be written contradict what is there."""
        for message in messages:
            self._reader.take(message)
        self._judge()

    def forget(self, frontier: int) -> None:
        """Forget all before a time; what comes at later times is still to be compared, complete or not."""
        known = self._reader.checkpoint().messages
        self._reader = Reader(Antichain(frontier))
        for message in known:
            self._reader.take(message)

    def _judge(self) -> None:
        found = self._reader.contradiction()
        if found is not None:
            detail = "; ".join(text for text in (found.message, found.detail) if text)
            hint = "both must read the same data at the same times; drop the sink that should not write it"
            raise Contradicted("another writer of the stream says otherwise", detail=detail, hint=hint)
