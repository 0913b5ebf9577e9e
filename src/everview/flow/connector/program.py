"""A program that speaks the protocol on its standard streams: starting it, asking it, and conversing with it.

Its log is what it writes to standard error. Lines of JSON have a level: warnings and errors are kept to be shown. Of
any other text the beginning and the end are kept, for what comes first says most, in a panic. It fails by exiting with
a status other than 0.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everview.flow import protocol
from everview.flow.channel import hand_over
from everview.flow.connector.codec import Codec
from everview.flow.connector.rows import Layout
from everview.flow.documents import from_objects
from everview.flow.errors import DriverFailed, DriverStalled
from everview.flow.wire import checkpoint_json, checkpoint_text, state_update

LOG_LINES = 10
ANSWER_S = 60.0
EXIT_S = 5.0
LOADED_MAX = 1000  # documents that are handed on together
STORED_MAX = 2000  # and that are written together
_SHOWN = {"warn", "warning", "error", "fatal", "panic", "dpanic", "critical"}


@dataclass(frozen=True)
class Launch:
    """How a program is started."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    codec: Codec

    def start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(
                list(self.arguments), stdin=pipe, stdout=pipe, stderr=pipe, env=dict(self.environment)
            )
        except OSError as error:
            raise DriverFailed(f"cannot start {self.arguments[0]}", detail=str(error)) from None

    def ask(self, name: str, question: Mapping[str, Any], answer: str) -> dict[str, Any]:
        """One question, in a process of its own."""
        process = self.start()
        log = ProgramLog(process)
        watch = threading.Timer(ANSWER_S, process.kill)
        watch.start()
        try:
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(self.codec.frame("Request", name, question))
                process.stdin.close()
            except OSError:
                pass  # it is gone: what it left says why
            found = self.codec.read("Response", process.stdout)
            process.stdout.read()
            status = process.wait()
        except DriverFailed as error:
            process.kill()
            error.detail = "\n".join(filter(None, (error.detail, log.text()))) or None
            raise
        finally:
            stalled = not watch.is_alive()
            watch.cancel()
        if stalled:
            raise DriverStalled(f"the program did not answer {name} within {ANSWER_S:g} s", detail=log.text())
        if status != 0 or found is None:
            raise DriverFailed(f"the program failed to answer {name} (status {status})", detail=log.text())
        said, content = found
        if said != answer:
            raise DriverFailed(f"the program answered {name} with {said}")
        return content


class ProgramLog:
    """What a program writes to standard error, as far as it is worth showing."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=LOG_LINES)
        self._told: deque[str] = deque(maxlen=LOG_LINES)  # by level
        self._thread = threading.Thread(target=self._listen, name="program log", daemon=True)
        self._thread.start()

    def text(self) -> str | None:
        """Warnings and errors, then lines that are not JSON; None if the log is empty."""
        if self._process.poll() is not None:
            self._thread.join(1.0)
        return "\n".join([*self._told, *self._first, *self._last]) or None

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for raw in self._process.stderr:
            line = raw.decode(errors="replace").rstrip()[:1000]
            level, text = _entry(line)
            if level is None and line:
                if len(self._first) < LOG_LINES:
                    self._first.append(text)
                else:
                    self._last.append(text)
            elif level in _SHOWN:
                self._told.append(text)


def _entry(line: str) -> tuple[str | None, str]:
    """The level and the text of a log line. The level is None if the line is not JSON."""
    try:
        said = json.loads(line) if line.startswith("{") else None
    except ValueError:
        said = None
    if not isinstance(said, dict):
        return None, line
    text = str(said.get("msg") or said.get("message") or "")
    cause = said.get("error") or said.get("err")
    return str(said.get("level", "info")).lower(), f"{text}: {cause}" if cause and text else str(cause or text)


class ProgramChannel:
    """A conversation with a running program."""

    def __init__(
        self, launch: Launch, request: protocol.Open, opening: Mapping[str, Any], layouts: Sequence[Layout]
    ) -> None:
        """Start it; `opening` is the request to open, as the program is told of it."""
        self._codec, self._layouts, self._spec = launch.codec, layouts, request.spec
        self._process = launch.start()
        self._log = ProgramLog(self._process)
        self._ordinals: dict[int, int] = {}
        self._outgoing: queue.Queue[protocol.Request | bytes | None] = queue.Queue(64)
        self._responses: queue.SimpleQueue[protocol.Response | BaseException] = queue.SimpleQueue()
        for work in (self._write, self._read):
            threading.Thread(target=work, name=f"program {request.range}", daemon=True).start()
        self.send(self._codec.frame("Request", "open", opening), ANSWER_S)

    def send(self, request: protocol.Request | bytes, timeout_s: float) -> None:
        hand_over(self._outgoing, request, timeout_s, lambda: self._process.poll() is None, "program")

    def receive(self, timeout_s: float) -> protocol.Response | None:
        try:
            response = self._responses.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(response, BaseException):
            raise response
        return response

    def end(self) -> None:
        try:
            self._outgoing.put(None, timeout=EXIT_S)
            self._process.wait(EXIT_S)
        except (queue.Full, subprocess.TimeoutExpired):
            pass
        self.close()

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    # Requests

    def _write(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            while (request := self._outgoing.get()) is not None:
                if isinstance(request, bytes):
                    stdin.write(request)
                else:
                    self._frame(request, stdin)
                stdin.flush()
            stdin.close()
        except OSError:
            pass  # it is gone: the reader knows, and says why
        except Exception as error:
            self._responses.put(error)

    def _frame(self, request: protocol.Request, stdin: Any) -> None:
        codec = self._codec
        if isinstance(request, protocol.Load):
            layout = self._layouts[request.binding]
            for start in range(0, request.keys.num_rows, STORED_MAX):
                stdin.write(codec.loads(request.binding, layout.loads(request.keys.slice(start, STORED_MAX))))
        elif isinstance(request, protocol.Store):
            layout = self._layouts[request.binding]
            for start in range(0, request.documents.num_rows, STORED_MAX):
                rows = request.documents.slice(start, STORED_MAX)
                first = self._ordinals.get(request.binding, 0)
                stdin.write(codec.stores(request.binding, layout.stores(rows, request.transaction, first)))
                self._ordinals[request.binding] = first + rows.num_rows
        elif isinstance(request, protocol.StartCommit):
            self._ordinals = {}
            said = {"runtimeCheckpoint": checkpoint_json(request.checkpoint)}
            stdin.write(codec.frame("Request", "startCommit", _patched(said, request.patches)))
        elif isinstance(request, protocol.Flush | protocol.Acknowledge):
            name = "flush" if isinstance(request, protocol.Flush) else "acknowledge"
            stdin.write(codec.frame("Request", name, _patched({}, request.patches)))

    # Responses

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        held: list[Any] = []  # documents of one binding that are handed on together
        held_of = 0

        def hand_on() -> None:
            nonlocal held
            if held:
                documents, held = held, []
                self._responses.put(protocol.Loaded(held_of, from_objects(documents, self._spec.bindings[held_of])))

        try:
            while (message := self._codec.read("Response", stdout)) is not None:
                name, said = message
                if name == "loaded":
                    binding = int(said.get("binding", 0))
                    if not 0 <= binding < len(self._spec.bindings):
                        raise DriverFailed(f"the program loaded a document of binding {binding}, which is none")
                    if binding != held_of or len(held) >= LOADED_MAX:
                        hand_on()
                    held_of = binding
                    held.append(said.get("doc"))
                    continue
                hand_on()
                self._responses.put(self._response(name, said))
            hand_on()
            status = self._process.wait()
            self._responses.put(DriverFailed(f"the program ended with status {status}", detail=self._log.text()))
        except Exception as error:
            self._responses.put(error if isinstance(error, DriverFailed) else DriverFailed(str(error)))

    def _response(self, name: str, said: Mapping[str, Any]) -> protocol.Response:
        if name == "opened":
            checkpoint = checkpoint_text(said.get("runtimeCheckpoint"))
            return protocol.Opened(checkpoint, bool(said.get("disableLoadOptimization", False)))
        update = state_update(said)
        if name == "acknowledged":
            return protocol.Acknowledged(update)
        if name == "flushed":
            return protocol.Flushed(update)
        if name == "startedCommit":
            return protocol.StartedCommit(update)
        raise DriverFailed(f"the program sent a message that is unknown: {name}")


def _patched(said: dict[str, Any], patches: protocol.Patches) -> dict[str, Any]:
    return {**said, "statePatches": list(patches)} if patches else said
