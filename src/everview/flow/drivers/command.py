"""Any program that speaks the protocol in lines of JSON on its standard streams.

It is started once for each question and once for each conversation, with `FLOW_RUNTIME_CODEC=json`. Its log is what
it writes to standard error, and it fails by exiting with a status other than 0; the last lines of its log are then the
detail of the error. What it guarantees is its own affair: the runtime keeps its checkpoints if it has none.
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from everview.flow.channel import Channel
from everview.flow.contract import Spec
from everview.flow.drivers.contract import (
    Constraint,
    Driver,
    FieldConstraint,
    Guarantee,
    Keys,
    Option,
    Pattern,
    Transactor,
    Validated,
)
from everview.flow.errors import DriverFailed, DriverStalled, InvalidMaterialization
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import (
    Acknowledged,
    Flushed,
    Loaded,
    Open,
    Opened,
    Request,
    Response,
    StartedCommit,
    State,
)
from everview.flow.wire import binding_json, checkpoint_text, lines, loaded_table, parse_line, spec_json, state_update

LOG_LINES = 20
LINE_BYTES_MAX = 64 << 20
ANSWER_S = 60.0
EXIT_S = 5.0
LOADED_MAX = 1000  # documents that are handed on together


class CommandDriver(Driver):
    """A program."""

    name = "command"
    pattern = Pattern.NON_TRANSACTIONAL
    guarantee = Guarantee.AT_LEAST_ONCE
    keys = Keys.LOADED
    options = (
        Option("command", "the program and its arguments", required=True),
        Option("config", "the program's own settings", dict, secret=True, default={}),
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._arguments = shlex.split(self.config["command"])
        if not self._arguments:
            raise InvalidMaterialization("the command is empty")

    def hide(self, text: str) -> str:
        for value in self.config["config"].values():
            if isinstance(value, str) and len(value) >= 4:
                text = text.replace(value, "***")
        return text

    def about(self) -> dict[str, Any]:
        """What the program says of itself."""
        return self._ask("spec", {"connectorType": "LOCAL", "config": self.config["config"]}, "spec")

    def validate(self, spec: Spec) -> list[Validated]:
        question = {
            "name": spec.name,
            "connectorType": "LOCAL",
            "config": self.config["config"],
            "bindings": [binding_json(each) for each in spec.bindings],
        }
        answer = self._ask("validate", question, "validated")
        bindings = answer.get("bindings", [])
        if len(bindings) != len(spec.bindings):
            raise DriverFailed("the program validated another number of bindings than there are")
        return [_validated(each) for each in bindings]

    def apply(self, spec: Spec) -> str:
        question = {"materialization": spec_json(self._own(spec)), "version": "1"}
        return str(self._ask("apply", question, "applied").get("actionDescription", ""))

    def open(self, spec: Spec, range: KeyRange, state: State) -> Transactor:
        raise NotImplementedError("a program is connected to, not opened")

    def connect(self, request: Open) -> Channel:
        return ProgramChannel(self._start(), Open(self._own(request.spec), request.range, request.state))

    def _own(self, spec: Spec) -> Spec:
        """The materialization with the program's settings for its configuration."""
        return Spec(spec.name, spec.driver, spec.bindings, self.config["config"])

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "FLOW_RUNTIME_CODEC": "json"}
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(self._arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        except OSError as error:
            raise DriverFailed(f"cannot start {self._arguments[0]}", detail=str(error)) from None

    def _ask(self, name: str, question: Mapping[str, Any], answer: str) -> dict[str, Any]:
        process = self._start()
        try:
            out, log = process.communicate(json.dumps({name: question}).encode() + b"\n", ANSWER_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise DriverStalled(f"the program did not answer {name} within {ANSWER_S:g} s") from None
        if process.returncode != 0 or not out.strip():
            detail = "\n".join(log.decode(errors="replace").splitlines()[-LOG_LINES:])
            raise DriverFailed(f"the program failed to answer {name} (status {process.returncode})", detail=detail)
        said, content = parse_line(out.splitlines()[0])
        if said != answer:
            raise DriverFailed(f"the program answered {name} with {said}")
        return content


class ProgramChannel:
    """A conversation with a running program."""

    def __init__(self, process: subprocess.Popen[bytes], request: Open) -> None:
        self._process, self._spec = process, request.spec
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._outgoing: queue.Queue[Request | None] = queue.Queue(64)
        self._responses: queue.SimpleQueue[Response | BaseException] = queue.SimpleQueue()
        for work in (self._write, self._read, self._listen):
            threading.Thread(target=work, name=f"program {request.range}", daemon=True).start()
        self.send(request, ANSWER_S)

    def send(self, request: Request, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return self._outgoing.put(request, timeout=0.2)
            except queue.Full:
                if self._process.poll() is not None:
                    return  # why it ended is the next response
                if time.monotonic() > deadline:
                    raise DriverStalled(f"the program took no request within {timeout_s:g} s") from None

    def receive(self, timeout_s: float) -> Response | None:
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

    def _write(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            while (request := self._outgoing.get()) is not None:
                for line in lines(request, self._spec):
                    stdin.write(line.encode() + b"\n")
                stdin.flush()
            stdin.close()
        except OSError:
            pass  # it is gone: the reader knows, and says why
        except Exception as error:
            self._responses.put(error)

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line.decode(errors="replace").rstrip()[:500])

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        held: list[Any] = []  # documents of one binding that are handed on together
        held_of = 0

        def hand_on() -> None:
            nonlocal held
            if held:
                documents, held = held, []
                self._responses.put(Loaded(held_of, loaded_table(documents, self._spec.bindings[held_of])))

        try:
            while line := stdout.readline(LINE_BYTES_MAX):
                name, said = parse_line(line)
                if name == "loaded":
                    binding = int(said.get("binding", 0))
                    if binding != held_of or len(held) >= LOADED_MAX:
                        hand_on()
                    held_of = binding
                    held.append(said.get("doc"))
                    continue
                hand_on()
                self._responses.put(_response(name, said))
            hand_on()
            status = self._process.wait()
            detail = "\n".join(self._log) or None
            self._responses.put(DriverFailed(f"the program ended with status {status}", detail=detail))
        except Exception as error:
            self._responses.put(error if isinstance(error, DriverFailed) else DriverFailed(str(error)))


def _response(name: str, said: Mapping[str, Any]) -> Response:
    if name == "opened":
        return Opened(checkpoint_text(said.get("runtimeCheckpoint")), bool(said.get("disableLoadOptimization", False)))
    if name == "acknowledged":
        return Acknowledged(state_update(said))
    if name == "flushed":
        return Flushed(state_update(said))
    if name == "startedCommit":
        return StartedCommit(state_update(said))
    raise DriverFailed(f"the program sent a message that is unknown: {name}")


def _validated(said: Mapping[str, Any]) -> Validated:
    given: dict[str, Any] = dict(said.get("constraints") or {})
    for each in said.get("projectionConstraints") or ():
        given[each["field"]] = each.get("constraint", each)
    known = {constraint.value: constraint for constraint in Constraint} | {
        "LOCATION_REQUIRED": Constraint.REQUIRED,
        "UNSATISFIABLE": Constraint.INCOMPATIBLE,
    }
    constraints = {
        name: FieldConstraint(known.get(each.get("type", ""), Constraint.FORBIDDEN), each.get("reason", ""))
        for name, each in given.items()
    }
    return Validated(constraints, tuple(said.get("resourcePath", ())), bool(said.get("deltaUpdates", False)))
