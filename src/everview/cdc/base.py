"""Contents at one time that stand for the history before it: a file of updates, and one progress statement.

To a reader that starts with it, such a file is an ordinary part of the stream. One that has read further has no use
for it. One that has not, and whose missing history may be gone, takes the contents over and goes on behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from everview.cdc.codec.contract import Bad, Item, Partial
from everview.cdc.contract import Message, Progress, Update, Updates
from everview.cdc.errors import CdcError
from everview.cdc.files import MESSAGE_UPDATES
from everview.cdc.rows import Row
from everview.cdc.times import bound_of
from everview.timely.antichain import Antichain


def base_messages(contents: Mapping[Row, int], time: int) -> Iterator[Message[Row]]:
    """What a stream says that begins with these contents."""
    updates = [(row, time, count) for row, count in contents.items()]
    for at in range(0, len(updates), MESSAGE_UPDATES):
        yield Updates(updates[at : at + MESSAGE_UPDATES])
    counts = ((time, len(updates)),) if updates else ()
    yield Progress(Antichain(0), Antichain(time + 1), counts)


def base_contents(items: Iterable[Item], time: int, name: str) -> dict[Row, int] | None:
    """The contents in a file that stands for the history up to a time; None if the file is gone."""
    rows: dict[Row, int] = {}
    there = read_base(items, time, name, lambda updates: rows.update({row: diff for row, _, diff in updates}))
    return rows if there else None


def read_base(items: Iterable[Item], time: int, name: str, take: Callable[[Sequence[Update[Row]]], None]) -> bool:
    """Hand the contents in such a file over, piece by piece; false if the file is gone."""
    stated: Progress | None = None
    number = 0
    damaged = CdcError(f"the contents at time {time} cannot be read", detail=f"{name} is damaged")
    for item in items:
        match item:
            case Bad() | Partial():
                raise damaged
            case Updates():
                if any(at != time or diff <= 0 for _, at, diff in item.updates):
                    raise damaged
                take(item.updates)
                number += len(item.updates)
            case Progress():
                stated = item
    if stated is None and not number:
        return False
    counts = ((time, number),) if number else ()
    if stated != Progress(Antichain(0), Antichain(time + 1), counts):
        raise damaged
    return True


def message_from(message: Message[Row], start: int) -> Message[Row] | None:
    """What a message says about the times from `start` on; None if it says nothing about them."""
    if isinstance(message, Updates):
        updates = [update for update in message.updates if update[1] >= start]  # type: ignore[operator]
        return Updates(updates) if updates else None
    end = bound_of(message.upper)
    if end is not None and end <= start:
        return None
    lower = bound_of(message.lower)
    counts = tuple(pair for pair in message.counts if pair[0] >= start)  # type: ignore[operator]
    return Progress(message.lower if lower is None or lower > start else Antichain(start), message.upper, counts)
