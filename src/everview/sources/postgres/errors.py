"""What fails about a PostgreSQL server that a source reads, by whose fault it is and whether it can pass."""

from __future__ import annotations

from everview.errors import EverviewError


class UpstreamFailed(EverviewError):
    """The server cannot be reached, or broke off: it is tried again."""


class UpstreamUnfit(EverviewError):
    """The server, the role or a publication is not set up for a source."""


class SourceLost(EverviewError):
    """What the source was reading is gone upstream: it cannot go on, and has to be made anew."""


class TableStopped(EverviewError):
    """A table cannot be kept exact any longer; the others go on."""
