"""What can go wrong when a collection is delivered: whose fault it is, and whether trying again can help."""

from __future__ import annotations

from typing import Literal

from everview.errors import EverviewError

Party = Literal["runtime", "driver"]


class FlowError(EverviewError):
    """The base of every error of a materialization."""

    retryable = False


class InvalidMaterialization(FlowError):
    """A materialization that cannot be, found before anything was written."""


class ProtocolViolation(FlowError):
    """A message that the protocol does not allow where it came."""

    def __init__(self, party: Party, rule: str, message: str, *, detail: str | None = None) -> None:
        super().__init__(message, detail=detail)
        self.party, self.rule = party, rule


class NullKey(FlowError):
    """A row of the collection has no value in its key, so it cannot be found again."""


class DuplicateKey(FlowError):
    """Two rows of the collection have the same key, and nothing says how to reduce them to one."""


class Retracted(FlowError):
    """A row was taken away where only additions can be delivered."""


class ReductionFailed(FlowError):
    """Two values of a field that its reduction cannot make one of."""


class HistoryLost(FlowError):
    """The endpoint is at a time that the collection no longer knows the changes since."""


class FencedOff(FlowError):
    """Another instance opened the same keys since, so this one may no longer commit."""


class TakenOver(FencedOff):
    """What the endpoint holds was delivered by another copy of the environment."""


class Drifted(FlowError):
    """The endpoint does not hold what was delivered to it."""


class DriverFailed(FlowError):
    """The endpoint or its driver failed; what was not committed is delivered again."""

    retryable = True


class DriverStalled(DriverFailed):
    """No answer within the time that the conversation allows."""


class Stopped(FlowError):
    """The worker is to stop, and has not opened its ranges yet."""


class MissingLibrary(FlowError):
    """A connector's library is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"the {extra} connector needs the package {package}",
            hint=f"pip install 'everview[{extra}]', or pip install {package}",
        )
