"""How a source fails: by what is upstream, or because something there, or here, is not as it has to be."""

from __future__ import annotations

from everview.errors import EverviewError


class UpstreamUnreachable(EverviewError):
    """What is upstream cannot be reached, or broke off: it is tried again."""


class NotReady(EverviewError):
    """The source cannot be made or cannot go on as things are: someone has to change something."""
