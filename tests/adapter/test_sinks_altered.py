"""ALTER SINK … SET: rotated passwords and tokens, other addresses, and what a sink is asked before it is changed."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from everview.adapter.catalog.items import Sink
from everview.adapter.catalog.specs import StreamSink
from everview.adapter.coordinator import Coordinator
from everview.adapter.stream_locations import TopicLocation
from everview.flow.check.endpoints import Receiver
from tests.adapter.delivery import delivered, id_of, in_postgres, ok, rows, until_state
from tests.adapter.scripts import SessionClient
from tests.adapter.test_cdc_sources import brokers, read_so_far  # noqa: F401 (a fixture)
from tests.adapter.test_sinks import prepare
from tests.waiting import eventually


def connects(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def role_with_password(url: str, role: str) -> Iterator[Callable[[str], str]]:
    """A role that the server asks for its password; what is given sets one, and gives the URL that has it."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'none'")
        (place,) = db.execute("SHOW hba_file").fetchone() or ("",)
        rules = Path(place)
        before = rules.read_text()
        asked = f"local all {role} scram-sha-256\nhost all {role} all scram-sha-256\n"
        with rules.open("r+") as file:  # which stays the server's own
            file.write(asked + before)
        db.execute("SELECT pg_reload_conf()")
        base = f"{url}{'&' if '?' in url else '?'}user={role}&password="

        def change(password: str) -> str:
            db.execute(f"ALTER ROLE {role} PASSWORD '{password}'")
            return base + password

        try:
            eventually(lambda: not connects(f"{base}wrong"))
            yield change
        finally:
            with rules.open("r+") as file:
                file.write(before)
                file.truncate()
            db.execute("SELECT pg_reload_conf()")


def test_a_password_is_changed_in_place(
    sql: SessionClient, coordinator: Coordinator, postgres_url: str, rng: random.Random
) -> None:
    table, role = f"altered_{rng.randrange(10**9)}", f"role_{rng.randrange(10**9)}"
    prepare(sql)
    with role_with_password(postgres_url, role) as change:
        url = change("first")
        ok(sql, f"CREATE SINK s FROM totals INTO POSTGRES (CONNECTION '{url}', TABLE '{table}') KEY (account)")
        delivered(coordinator, "s")
        url = change("second")
        ok(sql, "ALTER SINK s PAUSE", "ALTER SINK s RESUME", "INSERT INTO payments VALUES (7, 7, 7)")
        error = until_state(coordinator, "s", "stalled") or ""
        assert "password authentication failed" in error and "first" not in error
        assert sql("ALTER SINK s SET (TABLE 'other')") == ["! 22023 TABLE of a sink cannot be changed"]
        assert sql("ALTER SINK s SET (NOPE 1)")[0].startswith('! 22023 postgres has no option "nope"')
        for wrong in (url.replace("second", "third"), "postgresql://nobody@127.0.0.1:1/x"):
            assert sql(f"ALTER SINK s SET (CONNECTION '{wrong}')")[0].startswith("! 08006")
        ok(sql, f"ALTER SINK s SET (CONNECTION '{url}', INTERVAL_MS 10, SPLITS 2)")
        delivered(coordinator, "s")
        assert in_postgres(postgres_url, table)[1] == rows(ok(sql, "SELECT * FROM totals"))
        shown = "\n".join(ok(sql, "SHOW CREATE SINK s"))
        assert "second" not in shown and "first" not in shown and "INTERVAL_MS" in shown.upper()
        assert len(rows(ok(sql, "SELECT split FROM mz_internal.mz_sink_statistics"))) == 2
        ok(sql, "DROP SINK s")


def test_the_address_and_the_headers_of_a_webhook(sql: SessionClient, coordinator: Coordinator) -> None:
    """A token is rotated: the sink waits, and goes on with the new one, at the new address."""
    token = "hunter1"

    def answer(number: int) -> int:
        return 200 if receiver.headers[-1].get("Authorization") == token else 401

    receiver, other = Receiver(answer), Receiver()
    ok(sql, "CREATE TABLE t (id int, d int)", "INSERT INTO t VALUES (1, 1)")
    headers = f"HEADERS '{json.dumps({'Authorization': 'hunter1'})}'"
    ok(sql, f"CREATE SINK s FROM t INTO WEBHOOK (URL '{receiver.url}', {headers}) KEY (id) DELTA UPDATES")
    delivered(coordinator, "s")
    token = "hunter2"
    ok(sql, "INSERT INTO t VALUES (2, 2)")
    assert "status 401" in (until_state(coordinator, "s", "stalled") or "")
    assert sql("ALTER SINK s SET (HEADERS 'none')") == ["! 22023 headers of webhook must be a JSON object"]
    assert sql("ALTER SINK s SET (URL 'ftp://h/')")[0].startswith("! 22023 url of webhook must begin with")
    assert (until_state(coordinator, "s", "stalled") or "") != "", "it is as it was"
    ok(sql, f"ALTER SINK s SET ({headers.replace('hunter1', 'hunter2')})")
    delivered(coordinator, "s")
    assert [each["document"]["id"] for post in receiver.posts for each in post["documents"]] == [1, 2]
    ok(sql, f"ALTER SINK s SET (URL '{other.url}?t=hunter3')", "INSERT INTO t VALUES (3, 3)")
    delivered(coordinator, "s")
    assert [each["document"]["id"] for post in other.posts for each in post["documents"]] == [3]
    assert other.headers[-1]["Authorization"] == "hunter2", "what was not set stays"
    shown = "\n".join([*ok(sql, "SHOW CREATE SINK s"), *ok(sql, "SELECT * FROM mz_audit_events")])
    assert "hunter" not in shown and "/***" in shown
    receiver.close()
    other.close()


def test_how_a_topic_of_changes_is_reached(
    sql: SessionClient,
    coordinator: Coordinator,
    brokers: str,  # noqa: F811 (the fixture)
) -> None:
    import confluent_kafka

    topic = f"t-{uuid.uuid4()}"
    ok(sql, "CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
    place = f"CDC KAFKA (BROKERS '{brokers}', TOPIC '{topic}', CREATE_TOPICS false)"
    ok(sql, f"CREATE SINK s FROM t INTO {place}")
    delivered(coordinator, "s")
    for refused in ("TOPIC 'other'", "FORMAT 'avro'", "CREATE_TOPICS true", "REGISTRY 'http://127.0.0.1:1'"):
        answer = sql(f"ALTER SINK s SET ({refused})")
        assert answer == [f"! 22023 {refused.split()[0]} of a sink cannot be changed"]
    assert sql("ALTER SINK s SET (PROPERTIES 'none')")[0].startswith("! 22023 PROPERTIES must be a JSON object")
    elsewhere = confluent_kafka.Producer({"bootstrap.servers": "ignored", "test.mock.num.brokers": 1})
    (broker,) = elsewhere.list_topics(topic, timeout=10).brokers.values()
    refusal = sql(f"ALTER SINK s SET (BROKERS '{broker.host}:{broker.port}')")
    assert refusal == [f"! 22023 topic {topic} has nothing of the stream there"]
    again = f"{brokers},{brokers}"
    properties = json.dumps({"client.id": "rotated", "ssl.key.password": "topsecret"})
    ok(sql, f"ALTER SINK s SET (BROKERS '{again}', PROPERTIES '{properties}', HEARTBEAT_S 7)")
    ok(sql, "INSERT INTO t VALUES (2)")
    frontier = delivered(coordinator, "s")
    item = coordinator.catalog.state.items[id_of(coordinator, "s")]
    assert isinstance(item, Sink) and isinstance(item.spec, StreamSink)
    location = item.spec.location
    assert isinstance(location, TopicLocation)
    assert location.brokers == again and location.properties["ssl.key.password"] == "topsecret"
    shown = "\n".join(ok(sql, "SHOW CREATE SINK s"))
    assert again in shown and "rotated" in shown and "topsecret" not in shown and "7" in shown
    ok(sql, f"CREATE SOURCE c (id int) FROM {place}")
    eventually(lambda: read_so_far(coordinator, "c") >= frontier)
    assert rows(ok(sql, "SELECT * FROM c")) == ["1", "2"]
