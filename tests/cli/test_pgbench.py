"""pgbench with scripts of one's own against a real environment: several clients at once, in each of its protocols."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from everview.server.run import Running

CLIENTS, TRANSACTIONS = 4, 15
SCRIPT = r"""
\set id random(1, 20)
\set amount random(1, 9)
INSERT INTO moves VALUES (:id, :amount);
SELECT coalesce(sum(amount), 0) AS total, count(*) AS n FROM moves WHERE id = :id \gset
SELECT id, total FROM totals WHERE id = :id;
\if :n > 100
SELECT 1 / 0;
\endif
BEGIN;
INSERT INTO moves VALUES (:id, 0 - :amount);
INSERT INTO moves VALUES (:id + 100, :amount);
COMMIT;
"""


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench(served: Running, psql: Path, tmp_path: Path, mode: str) -> None:
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    with psycopg.connect(f"postgresql://everview@{served.pg}/everview", autocommit=True) as connection:
        connection.execute("CREATE TABLE moves (id int, amount int)")
        connection.execute("CREATE VIEW sums AS SELECT id, sum(amount) AS total FROM moves GROUP BY id")
        connection.execute("CREATE MATERIALIZED VIEW totals AS SELECT * FROM sums")
        connection.execute("CREATE INDEX totals_id ON totals (id)")
        address = ["-h", "127.0.0.1", "-p", str(served.pg.port), "-U", "everview", "everview"]
        load = ["-c", str(CLIENTS), "-j", "2", "-t", str(TRANSACTIONS)]
        ran = subprocess.run(
            [psql.parent / "pgbench", "-n", "-f", script, "-M", mode, *load, *address],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        done = CLIENTS * TRANSACTIONS
        assert f"number of transactions actually processed: {done}/{done}" in ran.stdout
        assert "number of failed transactions: 0" in ran.stdout
        assert connection.execute("SELECT count(*) FROM moves").fetchall() == [(3 * done,)]
        # What was moved is where it was moved to, and the view is what its query says.
        assert connection.execute("SELECT DISTINCT total FROM totals WHERE id <= 20").fetchall() == [(0,)]
        maintained = connection.execute("SELECT id, total FROM totals ORDER BY id").fetchall()
        assert maintained == connection.execute("SELECT id, total FROM sums ORDER BY id").fetchall()
