# Definitions and writes in one block, as tools that migrate schemas send them: one step at COMMIT, or nothing
> CREATE TABLE version (num varchar(32) NOT NULL)
CREATE TABLE

> CREATE TABLE kept (a int, b text DEFAULT 'none')
CREATE TABLE

> INSERT INTO version VALUES ('1')
INSERT 0 1

> BEGIN
BEGIN

> CREATE TABLE account (id int NOT NULL, name varchar(5), at timestamp(0) DEFAULT '2020-01-01')
CREATE TABLE

> INSERT INTO account (id, name) VALUES (1, 'one'), (2, 'two') RETURNING id, at
id|at
1|2020-01-01 00:00:00
2|2020-01-01 00:00:00

> CREATE INDEX account_id ON account (id)
CREATE INDEX

> CREATE VIEW names AS SELECT name FROM account
CREATE VIEW

> INSERT INTO kept (a) VALUES (7)
INSERT 0 1

> UPDATE version SET num = '2' WHERE version.num = '1'
UPDATE 1

@b
> SELECT num FROM version
num
1

> SELECT * FROM account
! 42P01 relation "account" does not exist

> SELECT * FROM kept
a|b

@main
> ALTER TABLE account RENAME TO accounts
ALTER TABLE

> INSERT INTO accounts VALUES (3, 'three')
INSERT 0 1

> COMMIT
COMMIT

@b
> SELECT id, name, at FROM accounts ORDER BY id
id|name|at
1|one|2020-01-01 00:00:00
2|two|2020-01-01 00:00:00
3|three|2020-01-01 00:00:00

> SELECT name FROM names ORDER BY name
name
one
three
two

> SELECT name FROM accounts WHERE id = 2
name
two

> SELECT num, a, b FROM version, kept
num|a|b
2|7|none

@main
> INSERT INTO accounts VALUES (4, 'four', '2020-01-01 10:00:00.7')
INSERT 0 1

> SELECT id, at FROM accounts WHERE id > 2
id|at
3|2020-01-01 00:00:00
4|2020-01-01 10:00:01

# Nothing is left of a block that is rolled back, or fails
> BEGIN
BEGIN

> CREATE TABLE gone (a int)
CREATE TABLE

> INSERT INTO gone VALUES (1)
INSERT 0 1

> DELETE FROM kept
DELETE 1

> ROLLBACK
ROLLBACK

> SELECT a FROM kept
a
7

> SELECT a FROM gone
! 42P01 relation "gone" does not exist

> BEGIN
BEGIN

> CREATE TABLE gone (a int)
CREATE TABLE

> INSERT INTO kept VALUES (8)
INSERT 0 1

> INSERT INTO gone VALUES ('x')
! 22P02 invalid input syntax for type integer: "x"

> COMMIT
ROLLBACK

> SELECT a FROM kept
a
7

# A savepoint holds both
> BEGIN
BEGIN

> CREATE TABLE first (a int)
CREATE TABLE

> INSERT INTO first VALUES (1)
INSERT 0 1

> SAVEPOINT s
SAVEPOINT

> CREATE TABLE second (a int)
CREATE TABLE

> INSERT INTO second VALUES (2)
INSERT 0 1

> INSERT INTO first VALUES (3)
INSERT 0 1

> ROLLBACK TO s
ROLLBACK

> CREATE TABLE third (a int)
CREATE TABLE

> INSERT INTO third VALUES (4)
INSERT 0 1

> COMMIT
COMMIT

> SELECT first.a, third.a AS b FROM first, third
a|b
1|4

> SELECT a FROM second
! 42P01 relation "second" does not exist

# What is written into a table of another's is refused if that one changes meanwhile
> BEGIN
BEGIN

> CREATE TABLE IF NOT EXISTS raced (a int)
CREATE TABLE

> INSERT INTO raced VALUES (1)
INSERT 0 1

@b
> CREATE TABLE raced (a text)
CREATE TABLE

@main
> COMMIT
! 40001 table "raced" is not what it was when it was written to

> BEGIN
BEGIN

> CREATE TABLE other (a int)
CREATE TABLE

> INSERT INTO first VALUES (5)
INSERT 0 1

@b
> DROP TABLE first
DROP TABLE

@main
> COMMIT
! 40001 table "first" is not what it was when it was written to

> SELECT a FROM other
! 42P01 relation "other" does not exist

# What a block has read must still be so
> BEGIN
BEGIN

> CREATE TABLE other (a int)
CREATE TABLE

> UPDATE version SET num = '3' WHERE num = '2'
UPDATE 1

@b
> UPDATE version SET num = '9'
UPDATE 1

@main
> COMMIT
! 40001 could not serialize access due to concurrent update

> SELECT num FROM version
num
9

> SELECT a FROM other
! 42P01 relation "other" does not exist

# DROPs take more steps
> BEGIN
BEGIN

> DROP TABLE third
DROP TABLE

> INSERT INTO kept VALUES (1)
! 25000 a transaction that has such definitions cannot write

> ROLLBACK
ROLLBACK

> BEGIN
BEGIN

> INSERT INTO kept VALUES (1)
INSERT 0 1

> DROP TABLE third
! 25000 a transaction that has written cannot have such definitions

> ROLLBACK
ROLLBACK
