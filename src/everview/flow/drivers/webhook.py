"""Webhooks: push-only. Each transaction posts its delta updates as JSON, in batches, one after another.

A key is in one batch of a transaction and belongs to one range, so what is posted about it comes in order. A post that
fails is tried again with back-off for as long as the options allow. The recovery log is authoritative and a crash
repeats the transaction, so this is at least once; a batch carries an `Idempotency-Key` that is the same when the same
batch is posted again.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from everview.flow.contract import DELETE, Spec
from everview.flow.documents import chunks, objects
from everview.flow.drivers import contract
from everview.flow.drivers.secrets import secrets_of
from everview.flow.errors import DriverFailed, InvalidMaterialization
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import DriverState
from everview.reach.addresses import check_url
from everview.reach.http import open_url

BACKOFF_S, BACKOFF_S_MAX = 0.2, 30.0
ANSWER_BYTES_MAX = 1 << 16


class WebhookDriver(contract.Driver):
    """An HTTP endpoint that takes JSON."""

    name = "webhook"
    pattern = contract.Pattern.PUSH_ONLY
    guarantee = contract.Guarantee.AT_LEAST_ONCE
    delta_only = shared = True
    options = (
        contract.Option("url", "where to post to", required=True, secret=True, host_only=True),
        contract.Option("headers", "a JSON object of headers to send along", secret=True),
        contract.Option("batch_rows", "documents in a post at most", int, default=500),
        contract.Option("timeout_s", "how long to wait for an answer", float, default=30.0),
        contract.Option("retries", "how often to try a post again", int, default=10),
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        if urllib.parse.urlsplit(self.config["url"]).scheme not in ("http", "https"):
            raise InvalidMaterialization("url of webhook must begin with http:// or https://")
        if self.config["batch_rows"] < 1 or self.config["retries"] < 0 or self.config["timeout_s"] <= 0:
            raise InvalidMaterialization(
                "batch_rows and timeout_s of webhook must be positive, and retries not negative"
            )
        try:
            given = json.loads(self.config.get("headers", "{}"))
            self._headers = {str(name): str(value) for name, value in given.items()}
        except (ValueError, AttributeError):
            raise InvalidMaterialization("headers of webhook must be a JSON object") from None

    @property
    def secrets(self) -> set[str]:
        """All headers, and what comes behind the host: it is often all that keeps strangers out."""
        parts = urllib.parse.urlsplit(self.config["url"])
        behind = {parts.path + (f"?{parts.query}" if parts.query else ""), parts.path, parts.query} - {"", "/"}
        return {*secrets_of(self.config["url"]), *behind, *self._headers.values()}

    def validate(self, spec: Spec) -> list[contract.Validated]:
        check_url(self.config["url"])
        return [
            contract.Validated(contract.plain_constraints(each), (each.collection,), delta_updates=True)
            for each in spec.bindings
        ]

    def apply(self, spec: Spec) -> str:
        return "nothing to do"

    def reset(self, spec: Spec) -> None:
        """There is nothing to empty: all documents are posted again."""

    def open(self, spec: Spec, range: KeyRange, state: DriverState) -> contract.Transactor:
        return WebhookTransactor(self.config, self._headers, spec, range)


class WebhookTransactor(contract.Transactor):
    """One range of keys, posted in order."""

    def __init__(
        self,
        config: Mapping[str, Any],
        headers: Mapping[str, str],
        spec: Spec,
        range: KeyRange,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__()
        self._config, self._headers, self._spec, self._range, self._sleep = config, headers, spec, range, sleep

    def store(self, binding: int, documents: pa.Table) -> None:
        spec = self._spec.bindings[binding]
        keys, values = objects(documents, spec.key_fields), objects(documents, spec.fields)
        delete = documents.column(DELETE).to_pylist()
        rows = [
            f'{{"key":{key},"delete":true}}' if gone else f'{{"key":{key},"document":{value}}}'
            for key, value, gone in zip(keys, values, delete, strict=True)
        ]
        names = {"materialization": self._spec.name, "collection": spec.collection, "range": str(self._range)}
        head = json.dumps(names)[:-1]
        for piece in chunks(rows, self._config["batch_rows"]):
            self._post(f'{head}, "documents": [{",".join(piece)}]}}'.encode())

    def _post(self, body: bytes) -> None:
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": hashlib.sha256(body).hexdigest(),
            **self._headers,
        }
        tries = self._config["retries"] + 1
        for attempt in range(tries):
            failure, wait_s = self._try(body, headers)
            if failure is None:
                self.trouble = None
                return
            if wait_s is None:
                raise DriverFailed("the webhook refused a post", detail=failure)
            if attempt + 1 < tries:
                back_off_s = min(BACKOFF_S_MAX, BACKOFF_S * 2**attempt) * random.uniform(0.5, 1.0)
                pause_s = max(back_off_s, min(wait_s, BACKOFF_S_MAX))
                said = f"the webhook failed {attempt + 1} of {tries} times, and is tried again: {failure}"
                self.trouble = contract.Trouble(said, int((time.time() + pause_s) * 1000))
                self._sleep(pause_s)
        raise DriverFailed(f"the webhook failed {tries} times", detail=failure)

    def _try(self, body: bytes, headers: Mapping[str, str]) -> tuple[str | None, float | None]:
        """What went wrong with a post, if anything, and how long to wait at least; None where waiting will not help."""
        request = urllib.request.Request(self._config["url"], body, dict(headers), method="POST")
        try:
            with open_url(request, self._config["timeout_s"]) as answer:
                answer.read(ANSWER_BYTES_MAX)
            return None, None
        except urllib.error.HTTPError as error:
            said = error.read(200).decode(errors="replace").strip()
            failure = f"status {error.code} {error.reason}" + (f": {said}" if said else "")
            if error.code not in {408, 429} and error.code < 500:
                return failure, None
            after = error.headers.get("Retry-After", "")
            return failure, float(after) if after.isdigit() else 0.0
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}", 0.0

    def start_commit(self, checkpoint: str) -> contract.Started:
        return contract.Started()

    def close(self) -> None:
        return None
