"""A small HTTP server that takes what webhooks post, for the suite to look at."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from everview.flow.check.workload import Row
from everview.flow.connector.described import collection_name
from everview.flow.contract import Binding

Answer = Callable[[int], int]


class Receiver:
    """Keeps every post that it answers with 200; `answer` chooses the status of the nth."""

    def __init__(self, answer: Answer = lambda number: 200) -> None:
        self.posts: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.headers: list[Mapping[str, str]] = []  # of every post, whatever its answer
        self.seen = 0
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            """One post."""

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                with receiver._lock:
                    receiver.seen += 1
                    receiver.headers.append(dict(self.headers))
                    status = answer(receiver.seen)
                    if status == 200:
                        receiver.posts.append(json.loads(body))
                        receiver.keys.append(self.headers.get("Idempotency-Key", ""))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where to post to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def rows(self, binding: Binding) -> list[tuple[Row, bool]]:
        """What was posted of a collection, in order."""
        found = []
        names = (binding.collection, collection_name(binding))  # a driver that is run as a program knows the second
        for post in self.posts:
            if post["collection"] in names:
                for each in post["documents"]:
                    deleted = bool(each.get("delete", False))
                    found.append((each["key"] if deleted else each["document"], deleted))
        return found

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
