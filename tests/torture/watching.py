"""A client of a durable subscription that is cut off again and again, as its server is."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

import psycopg

from tests.adapter.history.clients import Stage, is_lost
from tests.adapter.history.consumer import Consumer

PAUSE_S = 0.1


class Watcher:
    """Reads one subscription, acknowledges from time to time, and checks that nothing is missing or different."""

    def __init__(self, stage: Stage, rng: random.Random, collection: str) -> None:
        self._stage, self._rng = stage, rng
        self.collection, self.subscription = collection, f"watch_{collection}"
        self.consumer = Consumer()
        self.acknowledgements = 0

    def create(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """Make the subscription."""
        connection.execute(f"CREATE SUBSCRIPTION {self.subscription} FOR {self.collection}")

    def run(self) -> None:
        """Until the stage is stopped."""
        while not self._stage.stopped.is_set():
            try:
                with self._stage.connect() as connection:
                    for _ in range(self._rng.randrange(1, 6)):
                        self._converse(connection, self._rng.choice(("ALL", "ALL", "7", "50")))
            except psycopg.Error as error:
                if not is_lost(error):
                    self.consumer.anomalies.append(f"{self.subscription}: {error.sqlstate} {error}")
            time.sleep(self._rng.random() * PAUSE_S)

    def _converse(self, connection: psycopg.Connection[tuple[Any, ...]], count: str) -> int:
        connection.execute("BEGIN")
        subscribe = f"SUBSCRIBE TO {self.subscription} WITH (PROGRESS, ACKNOWLEDGE = none)"
        connection.execute(f"DECLARE c CURSOR FOR {subscribe}")
        rows = connection.execute(f"FETCH {count} c WITH (timeout = '300ms')").fetchall()
        connection.execute("ROLLBACK")
        progress = self.consumer.hear(rows)
        if self._rng.random() < 0.5 and progress > self.consumer.acknowledged:
            self.consumer.acknowledging(progress)
            connection.execute(f"ALTER SUBSCRIPTION {self.subscription} ACKNOWLEDGE {progress}")
            self.consumer.answered()
            self.acknowledgements += 1
        return progress

    def check(self, connection: psycopg.Connection[tuple[Any, ...]]) -> list[str]:
        """Hear the rest: all that was ever told adds up to what is there."""
        connection.execute("BEGIN")
        ((now,),) = connection.execute("SELECT mz_now()").fetchall()
        rows = connection.execute(f"SELECT * FROM {self.collection}").fetchall()
        connection.execute("COMMIT")
        while self._converse(connection, "ALL") <= int(now):
            pass
        told = self.consumer.contents(int(now))  # what came later, as rows that expire do, is not in the rows
        if told != Counter(rows):
            missing, more = Counter(rows) - told, told - Counter(rows)
            text = f"{self.subscription} adds up to {sum(missing.values())} rows less and {sum(more.values())} more"
            self.consumer.anomalies.append(text)
        return self.consumer.anomalies
