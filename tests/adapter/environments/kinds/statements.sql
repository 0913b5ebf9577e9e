-- objects of every kind, a statement on each line; {place} is a folder
CREATE ROLE keeper LOGIN PASSWORD 'of the keys'
CREATE ROLE nobody NOLOGIN
CREATE DATABASE second
CREATE SCHEMA shop AUTHORIZATION keeper
COMMENT ON SCHEMA shop IS 'what is sold'
CREATE TABLE customer (id int NOT NULL, name text DEFAULT 'no' || 'body', since date, tags text[], credit numeric(12, 2))
INSERT INTO customer VALUES (1, 'Ann', '2026-01-02', '{a,b}', 10.50), (2, 'Bob', '2026-02-03', '{}', 0), (3, DEFAULT, NULL, NULL, -1)
COMMENT ON TABLE customer IS 'who buys'
COMMENT ON COLUMN customer.name IS 'in full'
CREATE TABLE shop.orders (id bigint, customer int, total numeric, placed timestamptz, doc jsonb) WITH (RETAIN HISTORY FOR '2 hours')
INSERT INTO shop.orders SELECT g, g % 3 + 1, g, '2026-03-04 05:06:07+00', '{"n": 1}' FROM generate_series(1, 20) AS g
CREATE TABLE due (k int, at timestamptz) WITH (TTL '30 days' ON at)
INSERT INTO due VALUES (1, now()), (2, now())
CREATE VIEW buyers AS SELECT c.name, o.total FROM customer c JOIN shop.orders o ON o.customer = c.id
CREATE VIEW renamed (a, "B b") AS SELECT id, name FROM customer
CREATE MATERIALIZED VIEW spent WITH (RETAIN HISTORY FOR '1 hour') AS SELECT name, sum(total) AS total FROM buyers GROUP BY name
CREATE MATERIALIZED VIEW versions AS SELECT id, name FROM customer
CREATE MATERIALIZED VIEW reads_first AS SELECT count(*) AS n FROM versions
CREATE MATERIALIZED VIEW next REPLACING versions AS SELECT id, name, since FROM customer
ALTER MATERIALIZED VIEW versions APPLY REPLACEMENT next
CREATE MATERIALIZED VIEW next REPLACING versions AS SELECT id, name FROM customer WHERE id > 0
ALTER MATERIALIZED VIEW versions APPLY REPLACEMENT next
CREATE MATERIALIZED VIEW next REPLACING versions AS SELECT id::bigint AS id, name, tags FROM customer
ALTER MATERIALIZED VIEW versions APPLY REPLACEMENT next
CREATE MATERIALIZED VIEW staged REPLACING spent AS SELECT name, max(total) AS total FROM buyers GROUP BY name
CREATE MATERIALIZED VIEW waits REPLACING reads_first WITH (APPLY WHEN HYDRATED, MAX ROWS 1) AS SELECT sum(id)::bigint AS n FROM customer
CREATE INDEX ON customer (id, upper(name))
CREATE INDEX by_name ON buyers (name)
CREATE DEFAULT INDEX ON spent
CREATE SOURCE numbers FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1h', MAX CARDINALITY 3) WITH (RETAIN HISTORY FOR '1 hour')
CREATE SOURCE shop.house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '1h', SEED 7, BIDS PER TICK 2, START AT '2023-11-14 20:00:00')
CREATE SINK stream FROM customer INTO CDC FILES '{place}/stream' FORMAT AVRO WITH (INTERVAL_MS 0, HEARTBEAT_S 0.5, RETAIN HISTORY FOR '1 day')
CREATE SINK plain_stream FROM due INTO CDC FILES '{place}/plain'
CREATE SINK one FROM spent INTO SQLITE (PATH '{place}/one.db', TABLE 'spent') KEY (name) WITH (SPLITS 2, INTERVAL_MS 5, HEARTBEAT_S 20.0)
CREATE SINK several FROM customer (TABLE 'c') KEY (id) REDUCE (credit BY sum, name BY lastWriteWins), spent (TABLE 's') KEY (name), shop.orders (TABLE 'o') DELTA UPDATES INTO SQLITE (PATH '{place}/several.db') WITH (STALL_S 9)
CREATE SINK deltas FROM due INTO SQLITE (PATH '{place}/deltas.db', TABLE 'due') KEY (k) DELTA UPDATES REDUCE (at BY maximize)
CREATE SINK files FROM shop.orders INTO PARQUET (PATH '{place}/files') DELTA UPDATES
CREATE SINK posted FROM customer INTO WEBHOOK (URL 'http://user:word@127.0.0.1:9/secret?token=1', HEADERS '{"Authorization": "me"}', RETRIES 3) KEY (id) DELTA UPDATES
ALTER SINK posted PAUSE
ALTER SINK files PAUSE
ALTER SINK one SET (HEARTBEAT_S 10.0)
CREATE SUBSCRIPTION told FOR spent
CREATE SUBSCRIPTION changes FOR customer WITH (HOLD FOR 'infinity', SNAPSHOT = false)
COMMENT ON SINK one IS 'the first'
ALTER TABLE due OWNER TO keeper

-- what reads the change streams of these
CREATE SOURCE copy FROM CDC FILES '{place}/stream' WITH (POLL_MS 100, RETAIN HISTORY FOR '1 hour')
CREATE SOURCE named (id int NOT NULL, name text, since date, tags text[], credit numeric(12, 2)) FROM CDC FILES '{place}/stream' FORMAT AVRO
CREATE SOURCE timely FROM CDC FILES '{place}/stream' WITH (TIMELINE 'of the stream')
CREATE MATERIALIZED VIEW over_timely AS SELECT count(*) AS n FROM timely

-- what an environment says of its objects
SELECT id, oid, schema_id, name, type, owner_id FROM mz_objects WHERE id LIKE 'u%' ORDER BY oid
SELECT id, name, position, nullable, type, "default" FROM mz_columns WHERE id LIKE 'u%' ORDER BY id, position
SELECT id, name, create_sql, ttl_column, ttl_ms FROM mz_tables WHERE id LIKE 'u%' ORDER BY oid
SELECT id, name, definition, create_sql FROM mz_views WHERE id LIKE 'u%' ORDER BY oid
SELECT id, name, definition, create_sql FROM mz_materialized_views ORDER BY oid
SELECT * FROM mz_internal.mz_materialized_view_versions ORDER BY 1, 2
SELECT id, name, on_id, key FROM mz_indexes ORDER BY oid
SELECT id, name, type, create_sql FROM mz_sources ORDER BY oid
SELECT id, name, type, create_sql, on_id, key, delta_updates FROM mz_sinks ORDER BY oid
SELECT id, position, collection_id, collection, key, delta_updates FROM mz_internal.mz_sink_collections ORDER BY 1, 2
SELECT id, name, on_id, status, acknowledged_before, held_ms_max FROM mz_internal.mz_subscription_statuses ORDER BY 1
SELECT * FROM mz_internal.mz_object_dependencies ORDER BY 1, 2
SELECT * FROM mz_internal.mz_comments ORDER BY 1, 2
SELECT name, database_id, owner_id FROM mz_schemas WHERE id LIKE 'n%' ORDER BY 1
SELECT rolname, rolcanlogin, rolsuper FROM pg_roles ORDER BY 1
SELECT relname, relkind, relnatts, relhasindex FROM pg_class WHERE oid >= 20000 ORDER BY oid
SELECT indexrelid, indrelid, indkey FROM pg_index ORDER BY 1
SELECT table_name, table_type FROM information_schema.tables WHERE table_schema IN ('public', 'shop') ORDER BY 1
SHOW CREATE SUBSCRIPTION told
SHOW CREATE SUBSCRIPTION changes
SHOW CREATE INDEX by_name
