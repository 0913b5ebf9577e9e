"""What psql's describing commands show, of one of each object, by the psql of two versions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from everview.server.run import Running

OBJECTS = """
CREATE SCHEMA shop;
CREATE TABLE items (id int NOT NULL, name text DEFAULT 'none', price numeric(8,2), tags text[]);
COMMENT ON TABLE items IS 'what is sold';
COMMENT ON COLUMN items.price IS 'in euros';
CREATE VIEW cheap AS SELECT id, name FROM items WHERE price < 10;
COMMENT ON VIEW cheap IS 'below ten';
CREATE MATERIALIZED VIEW totals AS SELECT name, sum(price) AS total FROM items GROUP BY name;
CREATE INDEX items_id ON items (id);
CREATE INDEX cheap_name ON cheap (name, upper(name));
CREATE SOURCE ticks FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1h');
CREATE TABLE shop.stock (item int, at timestamptz);
CREATE ROLE ann NOLOGIN;
ALTER TABLE shop.stock OWNER TO ann;
"""
# Everything that psql can be asked without naming what PostgreSQL alone has.
COMMANDS = r"""
\d, \d+, \dS, \d items, \d+ items, \d cheap, \d+ cheap, \d totals, \d+ totals, \d items_id, \d+ items_id,
\d cheap_name, \d ticks, \d+ ticks, \d shop.stock, \d pg_class, \d public.*, \dt, \dt+, \dt *.*, \dtS, \dv, \dv+, \dm,
\dm+, \di, \di+, \dn, \dn+, \dn sh*, \l, \l+, \du, \du+, \dg, \dT, \dT+, \dTS, \df, \df+, \da, \dp, \z, \dx,
\dx+, \db, \db+, \des, \des+, \dew, \dew+, \det, \deu, \dC, \dC+, \do, \dE, \ds, \sv cheap, \sv+ cheap, \dconfig,
\dconfig+, \dconfig *, \conninfo, \encoding, \dA, \dA+, \dAc, \dAf, \dAo, \dAp, \dc, \dd, \dD, \ddp, \dF, \dFd,
\dFp, \dFt, \dL, \dL+, \dl, \dO, \dP, \drds, \dRp, \dRs, \dX, \dy
"""
SHOWN = {
    r"\d": """
               List of relations
 Schema |  Name  |       Type        |  Owner
--------+--------+-------------------+----------
 public | cheap  | view              | everview
 public | items  | table             | everview
 public | ticks  | table             | everview
 public | totals | materialized view | everview
(4 rows)
""",
    r"\d items": """
                  Table "public.items"
 Column |     Type     | Collation | Nullable | Default
--------+--------------+-----------+----------+---------
 id     | integer      |           | not null |
 name   | text         |           |          | 'none'
 price  | numeric(8,2) |           |          |
 tags   | text[]       |           |          |
Indexes:
    "items_id" btree (id)
""",
    r"\d+ items": """
                                             Table "public.items"
 Column |     Type     | Collation | Nullable | Default | Storage  | Compression | Stats target | Description
--------+--------------+-----------+----------+---------+----------+-------------+--------------+-------------
 id     | integer      |           | not null |         | plain    |             |              |
 name   | text         |           |          | 'none'  | extended |             |              |
 price  | numeric(8,2) |           |          |         | main     |             |              | in euros
 tags   | text[]       |           |          |         | extended |             |              |
Indexes:
    "items_id" btree (id)
Access method: heap
""",
    r"\d+ cheap": """
                            View "public.cheap"
 Column |  Type   | Collation | Nullable | Default | Storage  | Description
--------+---------+-----------+----------+---------+----------+-------------
 id     | integer |           |          |         | plain    |
 name   | text    |           |          |         | extended |
View definition:
 SELECT id, name FROM everview.public.items AS items WHERE price < 10;
""",
    r"\d+ totals": """
                                       Materialized view "public.totals"
 Column |     Type      | Collation | Nullable | Default | Storage  | Compression | Stats target | Description
--------+---------------+-----------+----------+---------+----------+-------------+--------------+-------------
 name   | text          |           |          |         | extended |             |              |
 total  | numeric(38,2) |           |          |         | main     |             |              |
View definition:
 SELECT name, sum(price) AS total FROM everview.public.items AS items GROUP BY name;
Access method: heap
""",
    r"\d cheap_name": """
     Index "public.cheap_name"
 Column | Type | Key? | Definition
--------+------+------+-------------
 name   | text | yes  | name
 expr   | text | yes  | upper(name)
btree, for table "public.cheap"
""",
    r"\d ticks": """
               Table "public.ticks"
 Column  |  Type  | Collation | Nullable | Default
---------+--------+-----------+----------+---------
 counter | bigint |           |          |
""",
    r"\di": """
 Schema |    Name    | Type  |  Owner   | Table
--------+------------+-------+----------+-------
 public | cheap_name | index | everview | cheap
 public | items_id   | index | everview | items
(2 rows)
""",
    r"\dn sh*": """
 List of schemas
 Name |  Owner
------+----------
 shop | everview
(1 row)
""",
    r"\du": """
                       List of roles
 Role name |                  Attributes
-----------+-----------------------------------------------
 ann       | Cannot login
 everview  | Superuser, Create role, Create DB, Bypass RLS
""",
    r"\sv cheap": """
CREATE OR REPLACE VIEW public.cheap AS
 SELECT id, name FROM everview.public.items AS items WHERE price < 10
""",
}
HELD = {  # a line that must be there, whatever the version shows around it
    r"\dv+": "below ten",
    r"\dt+": "what is sold",
    r"\dt *.*": " shop   | stock | table | ann",
    r"\l+": " everview | everview | UTF8 ",
    r"\dconfig *": " search_path ",
    r"\conninfo": "everview",
    r"\encoding": "UTF8",
    r"\dTS": "| mz_timestamp",
    r"\d pg_class": " relname ",
}


@pytest.fixture(scope="session", params=["pginstall", "pginstall18"])
def either_psql(request: pytest.FixtureRequest, psql: Path) -> Path:
    found = psql.parents[2] / request.param / "bin" / "psql"
    if not found.exists():
        pytest.skip(f"{request.param} is not part of this PostgreSQL")
    return found


def test_describing_one_of_each(served: Running, either_psql: Path) -> None:
    commands = [each.strip() for each in COMMANDS.split(",")]
    script = OBJECTS + "".join(f"\\echo '=== {each[1:]}'\n{each}\n" for each in commands)
    address = ["-h", "127.0.0.1", "-p", str(served.pg.port), "-U", "everview", "everview"]
    ran = subprocess.run(
        [either_psql, "-Xq", *address], input=script, capture_output=True, text=True, timeout=100, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    sections = [each.partition("\n") for each in ran.stdout.split("=== ")[1:]]
    shown = {name: "\n".join(line.rstrip() for line in body.splitlines()).strip("\n") for name, _, body in sections}
    assert list(shown) == [each.removeprefix("\\") for each in commands]
    for command, text in SHOWN.items():
        found = shown[command[1:]]
        # Versions differ in the title of this one.
        assert (found.partition("\n")[2] if command == r"\di" else found) == text.strip("\n"), command
    for command, line in HELD.items():
        assert line in shown[command[1:]], command
