"""Guesses of passwords: how long they wait, that honest users come in, that nothing grows without bound."""

from __future__ import annotations

import random
from collections.abc import Callable

import psycopg
import pytest

from everview.server.errors import ConnectionEnd
from everview.server.pgwire.throttle import FORGET_S, WAIT_S_MAX, Throttle, guesser
from everview.server.run import Running
from tests.server.fake import FakeAdapter


class Clock:
    """A clock that goes where it is told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def guess(throttle: Throttle, clock: Clock, address: str, role: str) -> float:
    """A wrong guess, after its wait."""
    waited = throttle.wait_s(address, role)
    clock.now += waited
    throttle.failed(address, role)
    return waited


def test_the_time_between_guesses_grows_and_is_bounded() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    waits = [guess(throttle, clock, "10.0.0.1", "ann") for _ in range(14)]
    assert waits[:5] == [0, 0, 0, 0, 0.25] and waits == sorted(waits) and waits[-1] == 10
    assert throttle.wait_s("10.0.0.2", "ann") == 0 and throttle.wait_s("10.0.0.1", "bob") == 0


def test_many_guesses_at_once_gain_nothing() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    for _ in range(12):
        guess(throttle, clock, "10.0.0.1", "ann")
    waits, refused = [], 0
    for _ in range(100):
        try:
            waits.append(throttle.wait_s("10.0.0.1", "ann"))
        except ConnectionEnd as error:
            assert error.hint is not None and "try again in" in error.hint
            refused += 1
    assert waits == [10.0] and refused == 99
    clock.now += 10
    assert throttle.wait_s("10.0.0.1", "ann") == pytest.approx(10.0)


def test_an_honest_user_comes_in() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    for _ in range(100):
        try:
            guess(throttle, clock, "10.0.0.1", "ann")
        except ConnectionEnd:
            clock.now += 10
    clock.now += WAIT_S_MAX
    assert throttle.wait_s("10.0.0.1", "ann") <= WAIT_S_MAX  # never for ever, and never refused for long
    throttle.succeeded("10.0.0.1", "ann")
    assert throttle.wait_s("10.0.0.1", "ann") == 0
    for _ in range(10):
        guess(throttle, clock, "10.0.0.1", "ann")
    clock.now += FORGET_S + 1
    assert throttle.wait_s("10.0.0.1", "ann") == 0


def test_guesses_over_many_roles_are_slowed_but_not_who_came_in_before() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    throttle.succeeded("10.0.0.1", "honest")
    waits = [guess(throttle, clock, "10.0.0.1", f"role{n}") for n in range(60)]
    assert waits[:20] == [0] * 20 and waits[-1] == 1.0
    assert throttle.wait_s("10.0.0.1", "honest") == 0


def test_what_is_remembered_is_bounded() -> None:
    clock = Clock()
    throttle = Throttle(clock, entries_max=50)
    rng = random.Random(1)
    for n in range(2_000):
        throttle.failed(f"10.0.{n % 256}.{rng.randrange(256)}", f"role{n}")
        throttle.succeeded(f"10.1.{n % 256}.{rng.randrange(256)}", f"role{n}")
    assert throttle.entries <= 150


@pytest.mark.parametrize(
    ("host", "account", "who"),
    [
        ("10.0.0.1", None, "10.0.0.1"),
        ("::ffff:10.0.0.1", None, "10.0.0.1"),
        ("2001:db8::1", None, "2001:db8::/64"),
        ("fe80::1%eth0", None, "fe80::/64"),
        ("", None, "this machine"),
        ("127.0.0.1", 1000, "account 1000"),
        ("", 1000, "account 1000"),
    ],
)
def test_whom_guesses_are_counted_for(host: str, account: int | None, who: str) -> None:
    assert guesser(host, account) == who


def test_guesses_over_the_wire_are_slowed(serve: Callable[..., Running], adapter: FakeAdapter) -> None:
    """80 wrong passwords in a row took no longer than 80 right ones."""
    adapter.set_password("everview", "right")
    server = serve(auth="password")
    where = {"host": server.pg.host, "port": server.pg.port, "dbname": "everview"}

    def throttled() -> float:
        return server.metrics.registry.get_sample_value("everview_throttled_logins_total") or 0

    for user in ("everview", "nobody"):  # whether a role exists makes no difference
        before, guesses = throttled(), 0
        while throttled() == before:  # on a slow machine the first waits may be over before the next guess
            guesses += 1
            assert guesses < 12
            with pytest.raises(psycopg.OperationalError, match=f'password authentication failed for user "{user}"'):
                psycopg.connect(**where, user=user, password=str(guesses))  # type: ignore[arg-type]
        assert guesses > 4
    psycopg.connect(**where, user="everview", password="right").close()  # type: ignore[arg-type]
