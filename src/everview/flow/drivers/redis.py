"""Redis: the recovery log is authoritative and the store has no transactions, so this is at least once.

A document is a JSON string under `prefix:key`. A transaction that fails half way is repeated, and repeating it writes
the same documents again: a view, whose documents are whole, ends up right whatever happened. A sum would count twice,
so reductions are refused unless the user says that this is fine. A hash of nonces, one for each range, is watched by
every batch, so that a zombie's stale documents are refused. Beside it a mark says who has delivered last: a transaction
signs it before anything else.
"""

from __future__ import annotations

import re
import secrets
import urllib.parse
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from everview.compute.ir.infinite import to_python
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import DELETE, Binding, Spec
from everview.flow.documents import chunks, from_objects, loads, objects
from everview.flow.drivers import contract
from everview.flow.errors import DriverFailed, FencedOff, InvalidMaterialization
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.lineage import Owner, mark_after
from everview.flow.protocol import DriverState, Open
from everview.reach.addresses import check_address, check_url

COMMANDS_MAX = 1000  # in one round trip
TIMEOUT_S = 30.0


class RedisDriver(contract.Driver):
    """Documents in a Redis database."""

    name = "redis"
    pattern = contract.Pattern.NON_TRANSACTIONAL
    guarantee = contract.Guarantee.AT_LEAST_ONCE
    options = (
        contract.Option("url", "redis://user:password@host:6379/0", required=True, secret=True),
        contract.Option("at_least_once", "allow reductions that count twice after a failure", bool, default=False),
    )
    resource_options = (contract.Option("prefix", "in front of every key", required=True),)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        contract.library("redis", "redis", "redis")

    def validate(self, spec: Spec) -> list[contract.Validated]:
        with _client(self.config["url"]) as client:
            _call(client.ping)
        result = []
        for binding in spec.bindings:
            if not binding.key:
                raise InvalidMaterialization(
                    "a sink into Redis needs a KEY", hint="documents are kept under their keys"
                )
            constraints = contract.plain_constraints(binding)
            for each in binding.fields:
                if each.reduction.strategy != "lastWriteWins" and not self.config["at_least_once"]:
                    constraints[each.name] = contract.FieldConstraint(
                        contract.Constraint.INCOMPATIBLE,
                        f"Redis is at least once: {each.reduction.strategy} would be applied twice after a failure; "
                        "aggregate in a view, or set at_least_once = true",
                    )
            result.append(contract.Validated(constraints, (str(binding.resource["prefix"]),)))
        return result

    def apply(self, spec: Spec) -> str:
        return "nothing to do"

    def open(self, spec: Spec, range: KeyRange, state: DriverState, owner: Owner | None = None) -> contract.Transactor:
        return RedisTransactor(_client(self.config["url"]), spec, range, owner)

    def opened(self, request: Open) -> contract.Transactor:
        return self.open(request.spec, request.range, request.state, request.owner)

    def reset(self, spec: Spec) -> None:
        with _client(self.config["url"]) as client:
            RedisTransactor(client, spec, WHOLE)  # takes all keys over
            # A mark of nobody: whoever delivers anew passes it over, and nobody else does.
            nobody = Checkpoint.at(WHOLE, START).by(secrets.token_hex(6))
            _call(lambda: client.set(_mark(spec), nobody.encode()))
            for binding in spec.bindings:
                prefix = re.sub(r"([*?\[\]\\])", r"\\\1", str(binding.resource["prefix"]))
                found = _call(lambda prefix=prefix: list(client.scan_iter(match=f"{prefix}:*", count=COMMANDS_MAX)))
                for piece in chunks(found, COMMANDS_MAX):
                    _call(lambda piece=piece: client.delete(*piece))

    def forget(self, spec: Spec, owner: Owner | None = None) -> None:
        with _client(self.config["url"]) as client:
            if owner is not None:
                owner.check(_read_mark(client, spec))
            _call(lambda: client.delete(_fences(spec), _mark(spec)))


class RedisTransactor(contract.Transactor):
    """One range of keys in a Redis database."""

    def __init__(self, client: Any, spec: Spec, range: KeyRange, owner: Owner | None = None) -> None:
        super().__init__()
        self._client, self._spec, self._range, self._owner = client, spec, range, owner
        self._nonce = secrets.token_hex(8)
        self._to_sign: Checkpoint | None = None  # where the transaction ends, until it is signed
        _call(self._take_over)

    def _take_over(self) -> None:
        """Put our nonce in place of those of all ranges that overlap ours, in one step."""

        def change(pipeline: Any) -> None:
            self._check_mark(pipeline)
            known = [KeyRange.parse(name.decode()) for name in pipeline.hkeys(_fences(self._spec))]
            pipeline.multi()
            for each in known:
                if each.overlaps(self._range):
                    pipeline.hdel(_fences(self._spec), str(each))
            pipeline.hset(_fences(self._spec), str(self._range), self._nonce)

        self._client.transaction(change, _fences(self._spec), _mark(self._spec))

    def _check_mark(self, pipeline: Any) -> Checkpoint | None:
        """TakenOver if another copy of the environment has delivered last. Gives the mark."""
        mark = _read_mark(pipeline, self._spec)
        if self._owner is not None:
            self._owner.check(mark)
        return mark

    def begin_stores(self, checkpoint: str) -> None:
        self._to_sign = Checkpoint.decode(checkpoint) if checkpoint and self._owner is not None else None

    def _sign(self) -> None:
        if self._to_sign is not None:
            _call(lambda: self._client.transaction(self._write_mark, _fences(self._spec), _mark(self._spec)))
            self._to_sign = None

    def _write_mark(self, pipeline: Any) -> None:
        assert self._to_sign is not None
        self._check_nonce(pipeline)
        mark = mark_after(self._check_mark(pipeline), self._to_sign)
        pipeline.multi()
        pipeline.set(_mark(self._spec), mark.encode())

    def find(self, binding: int, keys: pa.Table) -> pa.Table:
        spec = self._spec.bindings[binding]
        found = []
        for piece in chunks(key_names(spec, keys), COMMANDS_MAX):
            found += [text for text in _call(lambda piece=piece: self._client.mget(piece)) if text is not None]
        return from_objects(map(loads, found), spec)

    def store(self, binding: int, documents: pa.Table) -> None:
        self._sign()
        spec = self._spec.bindings[binding]
        delete = documents.column(DELETE).to_pylist()
        rows = list(zip(key_names(spec, documents), objects(documents, spec.fields), delete, strict=True))
        for piece in chunks(rows, COMMANDS_MAX):
            _call(lambda piece=piece: self._client.transaction(partial(self._write, piece), _fences(self._spec)))

    def _check_nonce(self, pipeline: Any) -> None:
        found = pipeline.hget(_fences(self._spec), str(self._range))
        if found is None or found.decode() != self._nonce:
            raise FencedOff(f"the keys {self._range} of {self._spec.name} were taken over")

    def _write(self, piece: Sequence[tuple[str, str, bool]], pipeline: Any) -> None:
        self._check_nonce(pipeline)
        pipeline.multi()
        for key, text, gone in piece:
            if gone:
                pipeline.delete(key)
            else:
                pipeline.set(key, text)

    def start_commit(self, checkpoint: str) -> contract.Started:
        self._sign()
        return contract.Started()

    def close(self) -> None:
        self._client.close()


def key_names(binding: Binding, rows: pa.Table) -> list[str]:
    """The Redis keys of rows: the prefix and the values of the key, with anything that could be confused escaped."""
    prefix = str(binding.resource["prefix"])
    columns = [to_python(rows.column(name)) for name in binding.key]
    return [
        ":".join([prefix, *(urllib.parse.quote(str(value), safe="") for value in row)])
        for row in zip(*columns, strict=True)
    ]


def _fences(spec: Spec) -> str:
    return f"everview:fences:{spec.name}"


def _mark(spec: Spec) -> str:
    return f"everview:mark:{spec.name}"


def _read_mark(client: Any, spec: Spec) -> Checkpoint | None:
    found = _call(lambda: client.get(_mark(spec)))
    return None if found is None else Checkpoint.decode(found.decode())


def _client(url: str) -> Any:
    module = contract.library("redis", "redis", "redis")
    check_url(url)
    how: dict[str, Any] = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
    try:
        pool = module.ConnectionPool.from_url(url, **how)
        if "host" in pool.connection_kwargs:
            pool.connection_class = _checked(pool.connection_class)
        return module.Redis.from_pool(pool)
    except ValueError as error:
        raise DriverFailed("not the URL of a Redis server", detail=str(error)) from None


@lru_cache(8)
def _checked(kind: type) -> type:
    """A kind of connection that looks at where it has got to, before anything is said."""

    class Checked(kind):  # type: ignore[misc]
        def _connect(self) -> Any:
            sock = super()._connect()
            try:
                check_address(str(sock.getpeername()[0]), self.host)
            except BaseException:
                sock.close()
                raise
            return sock

    return Checked


def _call(work: Any) -> Any:
    module = contract.library("redis", "redis", "redis")
    try:
        return work()
    except module.RedisError as error:
        raise DriverFailed("Redis failed", detail=f"{type(error).__name__}: {error}") from None
