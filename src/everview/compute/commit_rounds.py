"""Ticks that begin together commit together: one durable write for all, and one look for each who waits.

A tick that has computed its changes waits for the others of its round, but no longer than it took itself, and never
long: whoever is slow, fails or has nothing to commit holds nobody up. What is committed together succeeds or fails
alone all the same: if it fails, each is committed by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from everview.storage.contract import Command, UpdateAndDowngrade
from everview.storage.environment import Environment
from everview.storage.errors import Indeterminate
from everview.storage.staging import Staged

WAIT_S_MAX = 0.05  # for the others of a round

_member: ContextVar[_Member | None] = ContextVar("commit round", default=None)


class _Commit:
    """The commands of one tick, and what became of them."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self.commands = commands
        self.taken = False
        self.over = threading.Event()
        self.error: BaseException | None = None


class CommitRound:
    """The commits of some ticks."""

    def __init__(self, environment: Environment, ticks: int) -> None:
        self._environment = environment
        self._changed = threading.Condition()
        self._running = ticks  # that have neither come to commit nor left
        self._waiting: list[_Commit] = []

    @contextmanager
    def joined(self) -> Iterator[None]:
        """While inside, the tick of this thread belongs to the round."""
        member = _Member(self)
        token = _member.set(member)
        try:
            yield
        finally:
            _member.reset(token)
            member.leave()

    def leave(self) -> None:
        """One of the ticks does not commit with the others."""
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def commit(self, commands: Sequence[Command], wait_s: float) -> None:
        """Commit the commands of one tick, together with other ticks' that come in time."""
        mine = _Commit(commands)
        with self._changed:
            self._running -= 1
            self._waiting.append(mine)
            self._changed.notify_all()
            self._changed.wait_for(lambda: mine.taken or not self._running, wait_s)
            together, self._waiting = ([], self._waiting) if mine.taken else (self._waiting, [])
            for each in together:
                each.taken = True
            self._changed.notify_all()
        if together:
            self._commit(together)
        mine.over.wait()
        if mine.error is not None:
            raise mine.error

    def _commit(self, together: Sequence[_Commit]) -> None:
        error: BaseException | None = None
        try:
            self._environment.commit(*(command for each in together for command in each.commands))
        except Indeterminate as failure:  # all of it may be there
            error = failure
        except Exception as failure:
            if len(together) > 1:
                for each in together:
                    self._commit([each])
                return
            error = failure
        except BaseException as failure:
            error = failure
        for each in together:
            each.error = error
            each.over.set()


class _Member:
    """A tick in its round, which it leaves once: by its commit, or without one."""

    def __init__(self, round: CommitRound) -> None:
        self._round: CommitRound | None = round
        self._began = time.monotonic()

    def leave(self) -> None:
        """Commit nothing with the others."""
        round, self._round = self._round, None
        if round is not None:
            round.leave()

    def commit(self, environment: Environment, commands: Sequence[Command]) -> None:
        """Commit with the others, if it may."""
        round, self._round = self._round, None
        written = any(isinstance(each, UpdateAndDowngrade) and isinstance(each.updates, Staged) for each in commands)
        if round is None or written:  # what executors wrote can be tried once
            if round is not None:
                round.leave()
            environment.commit(*commands)
            return
        round.commit(commands, min(WAIT_S_MAX, time.monotonic() - self._began))


def leave_round() -> None:
    """Let nobody wait for what this thread commits: it does so by itself."""
    member = _member.get()
    if member is not None:
        member.leave()


def commit_together(environment: Environment, commands: Sequence[Command]) -> None:
    """Commit a tick, with the others of its round if it has one."""
    member = _member.get()
    if member is None:
        environment.commit(*commands)
    else:
        member.commit(environment, commands)
