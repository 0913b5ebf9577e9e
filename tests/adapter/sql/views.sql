# Views and materialized views, their dependencies and names
> CREATE TABLE bids (auction int, amount numeric(10,2), bidder text)
CREATE TABLE

> INSERT INTO bids VALUES (1, 10, 'ann'), (1, 12, 'bob'), (2, 5, 'ann')
INSERT 0 3

> CREATE VIEW best AS SELECT auction, max(amount) AS top FROM bids GROUP BY auction
CREATE VIEW

> CREATE MATERIALIZED VIEW winners AS SELECT b.auction, b.bidder FROM bids b JOIN best ON b.auction = best.auction AND b.amount = best.top
CREATE MATERIALIZED VIEW

> SELECT * FROM winners ORDER BY 1
auction|bidder
1|bob
2|ann

> INSERT INTO bids VALUES (2, 7, 'cid')
INSERT 0 1

> SELECT * FROM winners ORDER BY 1
auction|bidder
1|bob
2|cid

> DELETE FROM bids WHERE bidder = 'bob'
DELETE 1

> SELECT * FROM winners ORDER BY 1
auction|bidder
1|ann
2|cid

> CREATE MATERIALIZED VIEW counts (who, n) AS SELECT bidder, count(*) FROM bids GROUP BY bidder
CREATE MATERIALIZED VIEW

> SELECT * FROM counts ORDER BY who
who|n
ann|2
cid|1

> CREATE MATERIALIZED VIEW over_counts AS SELECT sum(n) AS total FROM counts
CREATE MATERIALIZED VIEW

> SELECT * FROM over_counts
total
3

> CREATE MATERIALIZED VIEW fixed AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v (n, t)
CREATE MATERIALIZED VIEW

> SELECT * FROM fixed ORDER BY n
n|t
1|a
2|b

> CREATE MATERIALIZED VIEW bad AS SELECT now()
! 0A000 cannot materialize call to now()

> CREATE MATERIALIZED VIEW bad AS SELECT relname FROM pg_class
! 0A000 a materialized view cannot depend on relations of the system

> CREATE MATERIALIZED VIEW bad AS SELECT 1 AS a, 2 AS a
! 42701 column "a" specified more than once

> CREATE VIEW best AS SELECT 1
! 42P07 relation "best" already exists

> DROP VIEW best
! 2BP01 cannot drop view "best" because other objects depend on it

> DROP TABLE best
! 42809 "best" is not a table

> CREATE OR REPLACE VIEW best AS SELECT auction, min(amount) AS top FROM bids GROUP BY auction
! 2BP01 cannot replace view "best"

> CREATE VIEW plain AS SELECT bidder FROM bids
CREATE VIEW

> CREATE VIEW upon AS SELECT upper(bidder) AS loud FROM plain
CREATE VIEW

> CREATE OR REPLACE VIEW plain AS SELECT bidder || '?' AS bidder FROM bids
CREATE VIEW

> SELECT DISTINCT loud FROM upon ORDER BY 1
loud
ANN?
CID?

> CREATE OR REPLACE VIEW plain AS SELECT 1 AS x
! 42P16 cannot change the columns of view "plain"

> CREATE OR REPLACE VIEW plain AS SELECT loud AS bidder FROM upon
! 42P19 view "plain" would depend on itself

> ALTER TABLE bids RENAME TO offers
ALTER TABLE

> SELECT * FROM winners ORDER BY 1
auction|bidder
1|ann
2|cid

> SELECT DISTINCT loud FROM upon ORDER BY 1
loud
ANN?
CID?

> SHOW CREATE VIEW upon
name|create_sql
everview.public.upon|CREATE VIEW everview.public.upon (loud) AS SELECT upper(bidder) AS loud FROM everview.public.plain AS plain

> ALTER TABLE offers RENAME COLUMN bidder TO who
! 2BP01 cannot rename columns of "offers"

> ALTER VIEW upon RENAME TO offers
! 42P07 relation "offers" already exists

> DROP TABLE offers
! 2BP01 cannot drop table "offers" because other objects depend on it

> DROP TABLE offers CASCADE
DROP TABLE

> SELECT name FROM mz_objects WHERE id LIKE 'u%' ORDER BY name
name
fixed

> DROP VIEW IF EXISTS best
DROP VIEW

> DROP VIEW best
! 42P01 relation "best" does not exist

> SELECT event_type, object_type, details->>'name' AS name FROM mz_audit_events WHERE event_type = 'drop' ORDER BY name
event_type|object_type|name
drop|view|everview.public.best
drop|materialized-view|everview.public.counts
drop|table|everview.public.offers
drop|materialized-view|everview.public.over_counts
drop|view|everview.public.plain
drop|view|everview.public.upon
drop|materialized-view|everview.public.winners

# Digits of a second in temporal filters
> CREATE TABLE rounded (id int, at timestamptz(0), d interval(1))
CREATE TABLE

> CREATE MATERIALIZED VIEW recent AS SELECT id FROM rounded WHERE mz_now() <= at + d AND mz_now() >= at
CREATE MATERIALIZED VIEW

> INSERT INTO rounded VALUES (1, '1970-01-02', '1 second'), (2, '9999-01-01', '1 day'), (3, '1970-01-02', '2000000 days')
INSERT 0 3

> SELECT id FROM recent
id
3

> CREATE MATERIALIZED VIEW moved AS SELECT id FROM rounded WHERE mz_now() - d <= at
CREATE MATERIALIZED VIEW

> CREATE MATERIALIZED VIEW cut AS SELECT id FROM rounded WHERE mz_now()::timestamptz(0) <= at
CREATE MATERIALIZED VIEW
