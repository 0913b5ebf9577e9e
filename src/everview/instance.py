"""An environment that this process has open for SQL: a locked folder, Spark, and the coordinator.

The server, the shell, the Python API and the demo all start here. Spark starts in the background, so whatever does not
need it works at once. A Spark that was started here ends with the instance; one that was given stays as it is.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from everview.adapter.coordinator import Coordinator
from everview.adapter.sealing import Sealer
from everview.adapter.wall_clock import JUMP_MAX_MS
from everview.closing import Closing
from everview.compute.engine.contract import Engine
from everview.compute.engine.java import JavaUnavailable, find_java
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark.bulk import said
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.reach import Unreachable, check_reach
from everview.compute.engine.spark.scratch import Scratch
from everview.compute.engine.spark.service import SparkService
from everview.compute.engine.spark.session import CONNECT, LOCAL, Spark, profiles
from everview.compute.engine.spark.store_settings import store_settings
from everview.compute.maintenance import ScheduledDataflows
from everview.compute.scheduler import Status
from everview.errors import EverviewError
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import Overtaken
from everview.storage.opening import open_stores
from everview.storage.standby import TAKE_OVER_AFTER_MS, Standby, wait_for_turn, wait_until_free
from everview.storage.stores import IN_FOLDER, StoreAddresses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK = "lock"
WARM_POLL_S = 0.05

_log = structlog.get_logger()


class FolderInUse(EverviewError):
    """Another process has the folder open."""


class Folder(Closing):
    """A folder that only this process has open, created if missing. The lock ends with the process."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EverviewError(
                f"cannot use the folder {self.path}: {(error.strerror or str(error)).lower()}"
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(file, 32, 0).decode(errors="replace").strip()
            os.close(file)
            who = f"process {owner}" if owner else "another process"
            message = f"{self.path} is open in {who}: connect to that process, stop it, or name another folder"
            raise FolderInUse(message) from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file: int | None = file

    def close(self) -> None:
        """Unlock the folder; safe more than once."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


@dataclass(frozen=True, slots=True)
class StandingBy:
    """That the environment is opened once its owner is gone, unless `stop` is set before."""

    stop: threading.Event
    take_over_after_ms: int = TAKE_OVER_AFTER_MS
    told: Callable[[str], None] = lambda line: None  # what is going on, in a line


class StoppedStandingBy(Exception):
    """The process was told to stop while it stood by."""


class Instance(Closing):
    """One open environment. The caller closes the folder afterwards.

    `spark` is the address of a Spark to start or connect to, a session, or None: then this process computes everything.
    `stores` says where metadata and data are, if not in the folder. With `standby` this waits for the owner to go, with
    Spark started; it raises `StoppedStandingBy` if it is told to stop before. Without, it raises `InUse` if a process
    that lives has the environment open, which is fenced off with `take_over`.
    """

    def __init__(
        self,
        folder: Folder,
        *,
        stores: StoreAddresses = IN_FOLDER,
        spark: str | SparkSession | None = LOCAL,
        conf: Mapping[str, str] | None = None,
        max_clock_jump_ms: int = JUMP_MAX_MS,
        key_file: Path | None = None,
        standby: StandingBy | None = None,
        take_over: bool = False,
    ) -> None:
        self.path = folder.path
        # A key beside this machine's folder would not be there for the next machine.
        sealer = Sealer(None if stores.shared else folder.path, key_file)
        self._closed = False
        self._scratch = Scratch()
        self._service: SparkService | None = None
        self._given: Spark | None = None  # sessions of a Spark that was given
        self.turn_at: float | None = None  # on the monotonic clock: since when this process no longer stands by
        self.unreachable: EverviewError | None = None  # why Spark's executors do not reach the store of data
        try:
            engine, self._started = self._engine(spark, {**store_settings(stores.blob), **(conf or {})})
            environment = self._open(stores, standby, take_over)
            try:
                if self._started is not None and (stores.blob_is_remote or not _is_local(spark)):
                    threading.Thread(
                        target=self._check_reach, args=(environment,), name="everview-reach", daemon=True
                    ).start()
                self._views = ScheduledDataflows(environment, engine)
                spoken_to = None if self._started is None else engine
                self.coordinator = Coordinator(
                    environment,
                    spark=self._started,
                    engine=spoken_to,
                    maintenance=self._views,
                    max_clock_jump_ms=max_clock_jump_ms,
                    sealer=sealer,
                )
            except BaseException:
                environment.close()
                raise
        except BaseException:
            self._let_go()
            raise

    def _open(self, stores: StoreAddresses, standby: StandingBy | None, take_over: bool) -> Environment:
        while True:
            consensus, blob = open_stores(self.path, stores.consensus, stores.blob)
            try:
                taken_from = None
                if standby is not None:
                    waiting = Standby(consensus, take_over_after_ms=standby.take_over_after_ms)
                    turn = wait_for_turn(waiting, standby.stop, standby.told)
                    if turn is None:
                        raise StoppedStandingBy
                    taken_from, self.turn_at = turn.taken_from, time.monotonic()
                    standby.told(f"taking over: {turn.reason}")
                elif stores.consensus is not None and not take_over:  # else the folder's lock is enough
                    taken_from = wait_until_free(Standby(consensus))
                return Environment(consensus, blob, self.path, shared=stores.shared, taken_from=taken_from)
            except BaseException as error:
                consensus.close()
                blob.close()
                if not isinstance(error, Overtaken) or standby is None:
                    raise
                standby.told("another process was faster")

    def _check_reach(self, environment: Environment) -> None:
        """Once Spark is there, try whether its executors reach the store of data."""
        assert self._started is not None
        try:
            spark = self._started.result()
        except BaseException as error:  # which `spark_error` tells
            _log.debug("reach is not checked: spark did not start", detail=str(error))
            return
        try:
            reached = check_reach(spark.bulk, environment.blob_folder())
        except EverviewError as error:
            found = error
        except Exception as error:
            message = "it was not found out whether spark's executors reach the blob store"
            found = Unreachable(message, detail=said(error))
        else:
            if reached.running is not None and len(reached.executors) < reached.running:
                _log.warning("busy executors were not tried", tried=len(reached.executors), running=reached.running)
            return
        if not self._closed:
            self.unreachable = found

    def _engine(self, spark: str | SparkSession | None, conf: Mapping[str, str]) -> tuple[Engine, Future[Spark] | None]:
        """The engine that maintains views, and the Spark for large reads; this waits for neither."""
        if spark is None:
            return LocalEngine(), None
        if not isinstance(spark, str):
            given: Future[Spark] = Future()
            self._given = profiles(spark)
            given.set_result(self._given)
            return SparkEngine.of(self._given), given
        self._service = service = SparkService(spark, scratch=self._scratch.path, options=conf)
        warm: Future[Spark] = Future()

        def wait() -> None:
            try:
                found = service.spark()
                while not service.ready and not self._closed:
                    time.sleep(WARM_POLL_S)
                warm.set_result(found)
            except BaseException as error:
                warm.set_exception(error)

        threading.Thread(target=wait, name="everview-spark-warm", daemon=True).start()
        return service, warm

    @property
    def ready(self) -> bool:
        """Whether Spark is warm, or the instance has no Spark."""
        return self.coordinator.ready()

    @property
    def fenced(self) -> EverviewError | None:
        """The error to raise once another process has taken the environment over; None before."""
        return self.coordinator.environment.fenced

    @property
    def spark_error(self) -> BaseException | None:
        """Why Spark could not be started; None unless it failed."""
        return None if self._service is None else self._service.error

    def spark(self) -> Spark:
        """The sessions of Spark; waits until Spark has started."""
        if self._started is None:
            raise EverviewError("this environment was opened without Spark", hint="open it with an address of Spark")
        return self._started.result()

    def statuses(self) -> dict[GlobalId, Status]:
        """The status of each maintained view, by the id of its collection."""
        return self._views.statuses()

    def close(self) -> None:
        """Release everything; safe more than once."""
        if self._closed:
            return
        self._closed = True
        try:
            self.coordinator.close()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._service is not None:
            # Its Java process may be gone already: a signal to the process group ends it as well.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    self._service.close()
                except Exception as error:
                    _log.debug("stopping spark", detail=str(error))
        if self._given is not None:
            try:
                self._given.release()
            except Exception as error:  # its server may be gone
                _log.debug("releasing sessions of spark", detail=str(error))
        self._scratch.close()


def _is_local(spark: str | SparkSession | None) -> bool:
    return isinstance(spark, str) and spark.startswith("local")


def check_java(spark: str | None) -> None:
    """Raise, with a message of one line, if Spark at this address needs Java on this machine and there is none."""
    if spark is None or spark.startswith(CONNECT):
        return
    try:
        find_java()
    except JavaUnavailable as error:
        raise JavaUnavailable(f"{error.message}: {error.hint} ({error.detail})") from None
