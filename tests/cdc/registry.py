"""A schema registry that answers as the public ones do, in a thread."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def schema_registry(login: str | None = None) -> Iterator[str]:
    """Gives its address. With a login, `name:password`, it answers only who gives that by basic authentication."""
    wanted = None if login is None else f"Basic {base64.b64encode(login.encode()).decode()}"
    schemas: list[str] = []
    subjects: dict[str, list[int]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self._refused():
                return
            words = self.path.strip("/").split("/")
            if words[:2] == ["schemas", "ids"] and int(words[2]) <= len(schemas):
                self._answer(200, {"schema": schemas[int(words[2]) - 1]})
            elif words[0] == "subjects" and words[1] in subjects:
                number = subjects[words[1]][-1]
                self._answer(200, {"subject": words[1], "id": number, "schema": schemas[number - 1]})
            else:
                self._answer(404, {"error_code": 40403, "message": "not found"})

        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
            if self._refused():
                return
            if said not in schemas:
                schemas.append(said)
            number = schemas.index(said) + 1
            subjects.setdefault(self.path.strip("/").split("/")[1], []).append(number)
            self._answer(200, {"id": number})

        def _refused(self) -> bool:
            refused = wanted is not None and self.headers.get("Authorization") != wanted
            if refused:
                self._answer(401, {"error_code": 40101, "message": "User cannot access the resource."})
            return refused

        def _answer(self, code: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
