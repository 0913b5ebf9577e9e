"""What a client says after it is in, and what it is answered: simple and extended protocol, errors, transactions.

It runs on the session's thread and does no I/O of its own. An error in the extended protocol makes it skip all until
the next Sync; in a simple query it ends the query. Every error of ours fails the session's transaction as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from everview.adapter.contract import Done, IdleLimit, Prepared, Session
from everview.adapter.errors import QUERY_CANCELED
from everview.compute.sql.errors import SqlError, unsupported
from everview.server.errors import ConnectionEnd, Report, is_defect, report_of
from everview.server.log import log
from everview.server.metrics import Metrics
from everview.server.pgwire import backend, frontend, results
from everview.server.pgwire.canceling import Key
from everview.server.pgwire.extended import Extended
from everview.server.pgwire.framing import Frame
from everview.server.pgwire.frontend import Bind, Close, Describe, Execute, Flush, FunctionCall, Parse, Query, Sync
from everview.server.pgwire.limits import Limits
from everview.server.pgwire.lookups import Lookups
from everview.server.pgwire.values import TEXT
from everview.server.pgwire.wire import Cancelable, Wire

_BETWEEN = (frontend.CLOSE, frontend.FLUSH)  # messages that say nothing about what follows


class Conversation:
    """One client's, from the first ReadyForQuery on."""

    def __init__(self, session: Session, wire: Wire, canceler: Cancelable, *, limits: Limits, metrics: Metrics) -> None:
        self._session = session
        self._wire = wire
        self._canceler = canceler
        self._metrics = metrics
        self._extended = Extended(session, wire, limits, self._tell)
        self._lookups = Lookups(session, self._extended, metrics)
        self._told: dict[str, str] = {}
        self._skipping = False

    def welcome(self, key: Key) -> None:
        self._tell()
        self._tell_parameters()
        self._wire.send(backend.backend_key_data(key.process, key.secret))
        self._ready()

    def look_up(self, data: bytes) -> bytes | None:
        """The answer to a whole cycle of messages, if it can be given without waiting; else nothing is done.

        It may come from the event loop, while no thread is at work on this conversation.
        """
        return None if self._skipping else self._lookups.answer(data)

    def handle(self, frame: Frame) -> bool:
        """Answer one message; False if it was the last one. ConnectionEnd goes through to the caller."""
        kind = frame.kind
        if kind == frontend.TERMINATE:
            return False
        # Data of a COPY that has failed meanwhile mean nothing; the client did not know yet.
        if kind in frontend.COPYING or (self._skipping and kind != frontend.SYNC):
            return True
        if kind == frontend.QUERY:
            self._cycle(partial(self._query, frame))
        elif kind == frontend.FUNCTION_CALL:
            self._cycle(partial(self._dispatch, frame))
        elif kind == frontend.SYNC:
            self._skipping = False
            self._cycle(partial(self._dispatch, frame))
        else:
            self._skipping = not self._attempt(partial(self._dispatch, frame))
        return True

    @property
    def idle_limit(self) -> IdleLimit | None:
        return self._session.idle_limit

    def close(self) -> None:
        """The client is gone, or about to be told to go."""
        try:
            self._extended.end_transaction()
        finally:
            self._session.close()

    def _cycle(self, step: Callable[[], None]) -> None:
        """A step that ends the implicit transaction and answers with ReadyForQuery."""
        if not self._attempt(step):
            self._attempt(self._session.sync)
        if self._session.status == "I":
            self._extended.end_transaction()
        self._ready()

    def _attempt(self, step: Callable[[], None]) -> bool:
        """Do something that may fail, and say so if it does; whether it did not."""
        self._canceler.begin()
        failure: Exception | None = None
        try:
            step()
        except ConnectionEnd:
            raise
        except Exception as error:
            failure = error
        finally:
            reason = self._canceler.finish()
        if failure is None:
            return True
        self._wire.check()  # whatever the error: nobody is left to hear it if the connection is over
        report = report_of(failure)
        if reason is not None and report.sqlstate == QUERY_CANCELED:
            report = replace(report, message=reason)
        if is_defect(failure):
            log.error("a statement failed in a way that nobody foresaw", exc_info=failure)
        self._metrics.failure(report.sqlstate)
        try:
            self._extended.end_transaction()
            self._session.fail()
        except Exception:
            log.exception("a session could not be told that its transaction failed")
        self._tell()
        self._wire.send(backend.error_response(report))
        # At once: all until the next Sync is skipped, a Flush too, and clients wait for the error before they send one.
        self._wire.flush()
        return False

    def _dispatch(self, frame: Frame) -> None:
        message = frontend.decode(*frame)
        match message:
            case Parse():
                self._extended.parse(message)
                self._tell()
            case Bind():
                self._extended.bind(message)
            case Describe():
                self._extended.describe(message)
            case Execute():
                # Without a Sync behind it, it is one of several statements that are to be one transaction.
                self._session.together = self._wire.next_kind(_BETWEEN) != frontend.SYNC
                self._timed(partial(self._extended.execute, message))
            case Close():
                self._extended.close(message)
            case Flush():
                self._wire.flush()
            case Sync():
                self._session.sync()
                self._tell()
            case FunctionCall():
                raise unsupported("calling functions by the function call message", hint="use SELECT")
            case _:
                raise AssertionError(message)

    def _query(self, frame: Frame) -> None:
        message = frontend.decode(*frame)
        assert isinstance(message, Query)
        self._extended.forget_unnamed()
        self._session.together = False
        statements = self._session.split(message.text)
        if not statements:
            self._session.sync()
            self._wire.send(backend.EMPTY_QUERY)
        for at, text in enumerate(statements, 1):
            self._timed(partial(self._simple, text, last=at == len(statements)))

    def _simple(self, text: str, *, last: bool) -> str:
        """One statement of a simple query; gives its tag."""
        prepared = self._session.prepare(text)
        if prepared.parameters:
            raise SqlError("42P02", "there is no parameter $1")
        tag = self._result(prepared)
        if last:
            # What was done is durable before the client hears that it was done.
            self._session.sync()
        self._tell()
        self._wire.send(backend.EMPTY_QUERY if tag is None else backend.command_complete(tag))
        return tag or ""

    def _result(self, prepared: Prepared) -> str | None:
        if prepared.cursor is not None:
            self._extended.begin(prepared.cursor)
        result = results.run(self._session, prepared, (), self._wire, self._tell)
        if isinstance(result, Done):
            return result.tag
        formats = (TEXT,) * len(result.columns)
        stream = results.result_stream(result, formats, self._wire, self._tell)
        try:
            self._wire.send(backend.row_description(result.columns, formats))
            with self._session.sending() as check:
                return result.tag(stream.send(check=check).rows)
        finally:
            stream.close()

    def _timed(self, step: Callable[[], str | None]) -> None:
        """Run a statement, and measure its time."""
        start = time.monotonic()
        tag = step()
        if tag is not None:
            self._metrics.statement(tag, time.monotonic() - start)

    def _tell(self) -> None:
        for notice in self._session.notices():
            report = Report(notice.severity, notice.sqlstate, notice.message, notice.detail, notice.hint)
            self._wire.send(backend.notice_response(report))

    def _tell_parameters(self) -> None:
        for name, value in self._session.parameters.items():
            if self._told.get(name) != value:
                self._told[name] = value
                self._wire.send(backend.parameter_status(name, value))

    def _ready(self) -> None:
        self._tell_parameters()
        self._wire.send(backend.ready_for_query(self._session.status))
        self._wire.end_cycle()
