"""What can be wrong with a stream: contradictions in it, bytes that are no messages, and more than fits."""

from __future__ import annotations

from everview.errors import EverviewError
from everview.timely.lattice import Time


class CdcError(EverviewError):
    """The base of every error of change data capture."""


class InvalidStatement(CdcError):
    """A message that no history can make true: a count outside its interval, a diff of zero."""


class Contradiction(CdcError):
    """Messages that cannot all be true of one history; `time` stays open."""

    def __init__(self, message: str, time: Time, **more: str | None) -> None:
        super().__init__(message, **more)
        self.time = time


class ConflictingDiffs(Contradiction):
    """Two updates of the same data at the same time that differ in their diff."""


class ConflictingCounts(Contradiction):
    """Two progress statements that cover a time and count its updates differently."""


class SurplusUpdates(Contradiction):
    """More updates at a time than progress statements count."""


class ImpossibleMultiplicity(Contradiction):
    """A row that would occur fewer than zero times at a time, or more often than can be counted."""


class TooMuchOpen(CdcError):
    """More updates or statements wait for times to close than the reader may hold."""


class Undecodable(CdcError):
    """Bytes that are not a message of the stream's codec and schema."""


class SchemaDiffers(CdcError):
    """A file or writer whose data have another schema than the stream's."""


class StreamMoved(CdcError):
    """Files of a stream were compacted while they were read; what they said is elsewhere."""


class InvalidUse(CdcError):
    """The caller asked for something that a writer, sink or source cannot do."""


class TransportFailed(CdcError):
    """The place that a stream is written to or read from does not answer."""
