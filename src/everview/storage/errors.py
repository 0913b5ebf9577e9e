"""What can go wrong in storage: whose fault it is, and whether the change may have happened.

* `InvalidUsage`: the caller's fault; nothing happened, and retrying the same call cannot help.
* `UpperMismatch`: the caller lost a race or retried; nothing happened; carries the current frontier.
* `Determinate`: the world's fault; it certainly did not happen; retrying may help.
* `Indeterminate`: the world's fault; it may or may not have happened; look before retrying.
* `Fenced`: a newer process owns the environment; nothing happened, and nothing will from here.
* `Corruption`: stored bytes are not the bytes that were written; never answered with wrong data.
"""

from __future__ import annotations

from everview.errors import EverviewError
from everview.timely.antichain import Antichain


class StorageError(EverviewError):
    """The base of every storage error."""


class InvalidUsage(StorageError):
    """The caller broke a rule of the contract."""


class NoEnvironment(InvalidUsage):
    """There is no environment in these stores yet."""


class IdReused(InvalidUsage):
    """A GlobalId that was used before, even if its collection is gone."""


class UnknownId(InvalidUsage):
    """A GlobalId that no collection has, or whose collection is gone."""


class TimesOutOfRange(InvalidUsage):
    """Updates at times outside `[frontier, new_frontier)`, or a frontier that would move back."""


class NotReadable(InvalidUsage):
    """A read at a time that is not beyond `since`, or at one that is not yet complete."""


class SchemaMismatch(InvalidUsage):
    """Updates whose columns are not the collection's, or a schema that cannot be stored."""


class DiffOverflow(InvalidUsage):
    """Updates with which the diffs of some row might no longer sum to 64 bits."""


class CapabilityInvalid(InvalidUsage):
    """A capability that is unknown, dropped, of the wrong kind, or not held as stated."""


class CapabilityExpired(CapabilityInvalid):
    """A capability whose lease ran out."""


class UpperMismatch(StorageError):
    """A write stated a frontier that the capability does not have; `current` is the one it has."""

    def __init__(self, message: str, current: Antichain[int], **more: str | None) -> None:
        super().__init__(message, **more)
        self.current = current


class Fenced(StorageError):
    """A newer process opened this environment, so this one may no longer write."""


class InUse(StorageError):
    """A process that lives has the environment open, and it was not asked to be fenced off."""


class Overtaken(StorageError):
    """The environment was to be taken from one owner, and another process has taken it before."""


class Determinate(StorageError):
    """The operation failed and certainly had no effect."""


class StorageFull(Determinate):
    """No space is left where the data live."""


class StorageReadOnly(Determinate):
    """The place where the data live refuses writes."""


class BlobMissing(Determinate):
    """No blob has this key."""


class BlobExists(Determinate):
    """A different blob already has this key; blobs are immutable."""


class Indeterminate(StorageError):
    """The operation failed, and whether it had an effect is not known."""


class Corruption(StorageError):
    """Bytes that fail their checksum or do not decode, with the shard and part they belong to."""


class NewerFormat(StorageError):
    """An environment written by a newer version of Everview."""


class Canceled(StorageError):
    """A blocking read was canceled by its owner or because the environment closed."""
