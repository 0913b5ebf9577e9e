# Definitions and savepoints in transaction blocks: one step at COMMIT, and nothing after ROLLBACK
> BEGIN
BEGIN

> CREATE TABLE parent (id int NOT NULL, name text)
CREATE TABLE

> CREATE SCHEMA side
CREATE SCHEMA

> CREATE TABLE side.child (id int, parent int)
CREATE TABLE

> CREATE INDEX parent_id ON parent (id)
CREATE INDEX

> CREATE VIEW named AS SELECT name, c.id FROM parent JOIN side.child AS c ON c.parent = parent.id
CREATE VIEW

> COMMENT ON TABLE parent IS 'made in a block'
COMMENT

> ALTER TABLE parent RENAME TO elder
ALTER TABLE

> SELECT relname, obj_description(oid) FROM pg_class WHERE relname IN ('elder', 'parent', 'child')
relname|obj_description
child|NULL
elder|made in a block

> SELECT * FROM elder
id|name

> ROLLBACK
ROLLBACK

> SELECT * FROM named
! 42P01 relation "named" does not exist

> BEGIN
BEGIN

> CREATE TABLE parent (id int NOT NULL, name text)
CREATE TABLE

> CREATE VIEW named AS SELECT name FROM parent
CREATE VIEW

> CREATE INDEX parent_id ON parent (id)
CREATE INDEX

> COMMIT
COMMIT

> INSERT INTO parent VALUES (1, 'a'), (2, 'b')
INSERT 0 2

> SELECT * FROM named
name
a
b

> SELECT name FROM parent WHERE id = 2
name
b

> BEGIN
BEGIN

> CREATE TABLE parent (id int)
! 42P07 relation "parent" already exists

> COMMIT
ROLLBACK

> BEGIN
BEGIN

> INSERT INTO parent VALUES (3, 'c')
INSERT 0 1

> CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM parent
! 25000 a transaction that has written cannot have such definitions

> ROLLBACK
ROLLBACK

> BEGIN
BEGIN

> CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM parent
CREATE MATERIALIZED VIEW

> INSERT INTO parent VALUES (3, 'c')
! 25000 a transaction that has such definitions cannot write

> ROLLBACK
ROLLBACK

> BEGIN READ ONLY
BEGIN

> CREATE TABLE other (a int)
! 25006 cannot define anything in a read-only transaction

> ROLLBACK
ROLLBACK

> BEGIN
BEGIN

> CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM parent
CREATE MATERIALIZED VIEW

> CREATE TABLE other (a int)
! 0A000 these definitions cannot be made in one transaction

> ROLLBACK
ROLLBACK

> BEGIN
BEGIN

> CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM parent
CREATE MATERIALIZED VIEW

> COMMIT
COMMIT

> SELECT n FROM counted
n
2

> BEGIN
BEGIN

> CREATE TABLE one (a int)
CREATE TABLE

> SAVEPOINT s
SAVEPOINT

> CREATE TABLE two (a int)
CREATE TABLE

> CREATE TABLE one (a int)
! 42P07 relation "one" already exists

> ROLLBACK TO SAVEPOINT s
ROLLBACK

> CREATE TABLE three (a int)
CREATE TABLE

> COMMIT
COMMIT

> SELECT relname FROM pg_class WHERE relname IN ('one', 'two', 'three') ORDER BY relname
relname
one
three

> BEGIN
BEGIN

> DROP TABLE one
DROP TABLE

> DROP TABLE three
DROP TABLE

> SELECT count(*) FROM pg_class WHERE relname IN ('one', 'three')
count
0

> ROLLBACK
ROLLBACK

> SELECT count(*) FROM one, three
count
0

> BEGIN
BEGIN

> DROP TABLE one
DROP TABLE

> DROP TABLE three
DROP TABLE

> DROP TABLE parent
! 2BP01 cannot drop table "parent" because other objects depend on it

> ROLLBACK
ROLLBACK

> BEGIN
BEGIN

> DROP TABLE one
DROP TABLE

> DROP TABLE three
DROP TABLE

> COMMIT
COMMIT

> SELECT count(*) FROM pg_class WHERE relname IN ('one', 'three')
count
0

> BEGIN
BEGIN

> INSERT INTO parent VALUES (10, 'kept')
INSERT 0 1

> SAVEPOINT a
SAVEPOINT

> INSERT INTO parent VALUES (11, 'gone')
INSERT 0 1

> SELECT 1 / 0
! 22012 division by zero

> SELECT 1
! 25P02 current transaction is aborted, commands ignored until end of transaction block

> ROLLBACK TO a
ROLLBACK

> INSERT INTO parent VALUES (12, 'kept too')
INSERT 0 1

> SAVEPOINT b
SAVEPOINT

> RELEASE SAVEPOINT b
RELEASE

> ROLLBACK TO b
! 3B001 savepoint "b" does not exist

> ROLLBACK TO a
ROLLBACK

> SET application_name = 'other'
SET

> ROLLBACK TO a
ROLLBACK

> SHOW application_name
application_name


> COMMIT
COMMIT

> SELECT id FROM parent WHERE id >= 10
id
10

> SAVEPOINT outside
! 25P01 SAVEPOINT can only be used in transaction blocks
