"""What others write to a stream that a sink writes as well, held against what the sink is about to write.

Two writers of one stream must tell of the same history. One that is about to contradict what is there already, for its
data or its times are different after all, is stopped before it does: of two writers, the second. If both write at the
same instant, they see one another right after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from everview.cdc.codec.contract import Item
from everview.cdc.compaction import is_ours
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import CdcError, SchemaDiffers
from everview.cdc.files import MERGED, Folder, base_time
from everview.cdc.inspect import Stream, contents_before
from everview.cdc.joining import Digest
from everview.cdc.reader import Reader
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema
from everview.timely.antichain import Antichain
from everview.timely.lattice import Time

KEPT_UPDATES = 1_000_000  # of one's own, to be held against what others say after them
RECENT_UPDATES = 10_000  # so few are kept for a while, for what others say late
RECENT_S = 10.0
BOTH_THE_SAME = "both must read the same data at the same times; drop the sink that should not write it"


class Contradicted(CdcError):
    """Another writer of the stream says otherwise."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a sink stands that begins to look at what others write."""

    time: int  # what others say of earlier times does not matter any more
    shared: bool = False  # whether others were seen before
    writers: Sequence[str] | None = None  # the names of the sink in its earlier lives; None: not known
    place: Mapping[str, int] | None = None  # up to where it has looked already; None: not known


class Others(Protocol):
    """What others have written."""

    seen: bool  # whether there are any others

    def look(self) -> Iterator[Item]:
        """What is new."""

    def contents(self, before: int) -> tuple[int, Digest]:
        """What the stream tells of the contents just before a time, or before a later one if it has forgotten it."""

    def place(self, frontier: int) -> dict[str, int]:
        """From where to look after a restart, if times before `frontier` do not matter any more."""

    def close(self) -> None:
        """Let go of the stream."""


class OtherFiles:
    """Files of a folder that another has written.

    While nobody else was seen, files that are there already matter only if another life wrote them, and all of them is
    about times that this sink has not written: the folder may hold much, and all of it may be the sink's own.
    """

    def __init__(self, folder: Folder, schema: StreamSchema, own: str, standing: Standing) -> None:
        self._folder, self._schema, self._own = folder, schema, f"-{own}-"
        self._listing = folder.listing()
        self.seen = standing.shared
        self._there: list[str] = []
        if not standing.shared:
            there = [info.key for info in self._listing.look().fresh]
            self._there = [name for name in there if _is_ahead(name, standing)]

    def look(self) -> Iterator[Item]:
        names, self._there = [*self._there, *(info.key for info in self._listing.look().fresh)], []
        for name in names:
            merged = f"-{MERGED}-" in name and not self.seen  # perhaps of nothing but our own files
            if merged or self._own in name or base_time(name) is not None:
                continue
            self.seen = True
            try:
                yield from self._folder.items(name, self._schema)
            except SchemaDiffers as error:
                raise Contradicted("another writer of the stream has other columns", detail=str(error)) from error

    def contents(self, before: int) -> tuple[int, Digest]:
        return contents_before(Stream(self._folder, self._schema), before)

    def place(self, frontier: int) -> dict[str, int]:
        return {}  # files are known by their names

    def close(self) -> None:
        self._folder.close()


def _is_ahead(name: str, standing: Standing) -> bool:
    """Whether another sink wrote the file, about times that this sink has not written."""
    if standing.writers is None or not is_ours(name):
        return False
    time, writer, _ = name.split("-")
    return int(time) >= standing.time and writer not in standing.writers


class Watch:
    """Watches others from a time on.

    What was written here is kept to be compared with what others say next. Of more than `KEPT_UPDATES` only those are
    kept that others speak of already: at other times there is nothing to compare, unless they speak of them meanwhile.
    Another may be slow: what it says shows when this sink has gone on already. So a little is kept for a while longer.
    """

    def __init__(self, others: Others, start: int) -> None:
        self._others = others
        self._reader: Reader[Row] = Reader(Antichain(start))
        self._told: set[Time] = set()  # the times of updates of others
        self._forgotten_s, self._recent = monotonic(), start  # when something was forgotten, and where it stood then
        self.partial = False  # whether not all that was checked is kept
        self._checked = False  # whether what was written last is among what is kept

    @property
    def shared(self) -> bool:
        """Whether others write the stream too."""
        return self._others.seen

    def look(self) -> None:
        """See what others have written; raises Contradicted if it is not what was written here."""
        for item in self._others.look():
            if isinstance(item, Updates):
                self._told.update(time for _, time, _ in item.updates)
            if isinstance(item, Updates | Progress):
                self._reader.take(item)
        self._judge()

    def check(self, messages: Iterable[Message[Row]]) -> None:
        """Raise Contradicted if messages that are to be written contradict what is there."""
        for message in messages:
            self._reader.take(self._kept(message) if self._reader.open_updates >= KEPT_UPDATES else message)
        self._checked = True
        self._judge()

    def _kept(self, message: Message[Row]) -> Message[Row]:
        if isinstance(message, Progress):
            return message
        kept = [update for update in message.updates if update[1] in self._told]
        self.partial = self.partial or len(kept) < len(message.updates)
        return Updates(kept)

    def place(self, frontier: int) -> dict[str, int]:
        """Where to look on from after a restart, if all before a time is written here."""
        return self._others.place(frontier)

    def close(self) -> None:
        self._others.close()

    def contents(self, before: int) -> tuple[int, Digest]:
        """What the stream tells of the contents just before a time, or before a later one."""
        return self._others.contents(before)

    def forget(self, frontier: int) -> None:
        """Forget what was before a time, if it is much or a while ago. Later times are still to be compared."""
        now = monotonic()
        whole, self._checked = self._checked and not self.partial, False
        if whole and self._reader.open_updates <= RECENT_UPDATES:
            if now < self._forgotten_s + RECENT_S:
                return
            self._recent, frontier = frontier, self._recent
        else:
            self._recent = frontier
        self._forgotten_s = now
        known = self._reader.checkpoint().messages
        self._reader = Reader(Antichain(frontier))
        for message in known:
            self._reader.take(message)
        self._told = {time for time in self._told if time >= frontier}  # type: ignore[operator]
        self.partial = False

    def _judge(self) -> None:
        found = self._reader.contradiction()
        if found is not None:
            detail = "; ".join(text for text in (found.message, found.detail) if text)
            raise Contradicted("another writer of the stream says otherwise", detail=detail, hint=BOTH_THE_SAME)
