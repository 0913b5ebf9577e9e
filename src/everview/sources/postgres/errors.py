"""What fails about a PostgreSQL server that a source reads, by whose fault it is and whether it can pass."""

from __future__ import annotations

from everview.sources.errors import NotReady, UpstreamUnreachable


class UpstreamFailed(UpstreamUnreachable):
    """The server cannot be reached, or broke off: it is tried again."""


class UpstreamUnfit(NotReady):
    """The server, the role or a publication is not set up for a source."""


class SourceLost(NotReady):
    """What the source was reading is gone upstream: it cannot go on, and has to be made anew."""


class TableStopped(NotReady):
    """A table cannot be kept exact any longer; the others go on."""
