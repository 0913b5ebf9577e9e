"""Kafka with a real broker: what a crash leaves open is aborted, and readers of committed records see none of it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.flow.check.endpoints import make_endpoint
from everview.flow.check.scenarios import SCENARIOS, Scenario
from everview.flow.check.suite import not_for, run_scenario
from tests.flow import broker
from tests.flow.test_matrix import KILLS_LONG, kill_and_compare, program_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert request.config.cache is not None
    lib = broker.jars(request.config.cache.mkdir(f"kafka-{broker.VERSION}"))
    with broker.running(lib, tmp_path_factory.mktemp("kafka")) as found:
        yield found


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenario_at_a_real_broker(scenario: Scenario, address: str, tmp_path: Path) -> None:
    endpoint = make_endpoint("kafka", {"brokers": address}, tmp_path)
    try:
        assert endpoint.aborts and not_for(scenario, endpoint) is None
        run_scenario(scenario, endpoint, tmp_path, seed=int(os.environ["EVERVIEW_SEED"]))
    finally:
        endpoint.clean()


@pytest.mark.parametrize("codec", ["json", "proto"])
@pytest.mark.parametrize("name", ["transactions", "crash_between_the_commits", "ranges_and_crashes_at_random"])
def test_scenario_of_a_program_at_a_real_broker(name: str, codec: str, address: str, tmp_path: Path) -> None:
    (scenario,) = (each for each in SCENARIOS if each.name == name)
    endpoint = program_of(make_endpoint("kafka", {"brokers": address}, tmp_path), codec)
    run_scenario(scenario, endpoint, tmp_path, seed=int(os.environ["EVERVIEW_SEED"]))


@pytest.mark.parametrize("codec", ["here", "json", "proto"])
def test_processes_that_are_killed(codec: str, address: str, tmp_path: Path, rng: random.Random) -> None:
    endpoint = make_endpoint("kafka", {"brokers": address}, tmp_path)
    kill_and_compare(endpoint if codec == "here" else program_of(endpoint, codec), tmp_path, rng, KILLS_LONG)


def test_what_is_aborted_is_not_read(address: str) -> None:
    """What the mock broker does not do, and the scenarios rest on."""
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": address, "transactional.id": "aborts", "log_level": 0})
    producer.init_transactions(60)
    for end in ("abort", "commit"):
        producer.begin_transaction()
        producer.produce("aborts", value=end)
        producer.flush(60)
        (producer.abort_transaction if end == "abort" else producer.commit_transaction)(60)
    seen = {}
    for isolation in ("read_uncommitted", "read_committed"):
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": isolation,
                "isolation.level": isolation,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        consumer.subscribe(["aborts"])
        found: list[bytes | None] = []
        while (message := consumer.poll(60)) is not None and message.error() is None:
            found.append(message.value())
        seen[isolation] = found
        consumer.close()
    assert seen == {"read_uncommitted": [b"abort", b"commit"], "read_committed": [b"commit"]}
