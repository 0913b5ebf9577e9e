# Transactions: one time for all reads, all writes together, and what may follow what
> CREATE TABLE a (x int)
CREATE TABLE

> CREATE TABLE b (y int)
CREATE TABLE

> BEGIN
BEGIN

> INSERT INTO a VALUES (1)
INSERT 0 1

> INSERT INTO b VALUES (2)
INSERT 0 1

@other
> SELECT count(*) FROM a
count
0

@main
> SELECT * FROM a
x
1

> SELECT a.x / 0 FROM a
! 22012 division by zero

> SELECT 1
! 25P02 current transaction is aborted, commands ignored until end of transaction block

> COMMIT
ROLLBACK

> SELECT (SELECT count(*) FROM a) AS a, (SELECT count(*) FROM b) AS b
a|b
0|0

> BEGIN; INSERT INTO a VALUES (1); INSERT INTO b VALUES (2); COMMIT
BEGIN
INSERT 0 1
INSERT 0 1
COMMIT

> SELECT x, y FROM a, b
x|y
1|2

# Reads of a block are at one time
> BEGIN
BEGIN

> SELECT * FROM a
x
1

@other
> INSERT INTO a VALUES (10)
INSERT 0 1

> INSERT INTO b VALUES (20)
INSERT 0 1

@main
> SELECT * FROM a
x
1

> SELECT * FROM b
y
2

> COMMIT
COMMIT

> SELECT * FROM a ORDER BY x
x
1
10

# What was read must still be so when the block writes
> BEGIN
BEGIN

> UPDATE a SET x = x + 1 WHERE x = 1
UPDATE 1

@other
> INSERT INTO a VALUES (100)
INSERT 0 1

@main
> COMMIT
! 40001 could not serialize access due to concurrent update

> SELECT * FROM a ORDER BY x
x
1
10
100

> BEGIN
BEGIN

> SELECT max(x) FROM a
max
100

> INSERT INTO b VALUES (3)
INSERT 0 1

@other
> INSERT INTO b VALUES (4)
INSERT 0 1

@main
> COMMIT
COMMIT

> SELECT * FROM b ORDER BY y
y
2
3
4
20

> BEGIN READ ONLY
BEGIN

> INSERT INTO b VALUES (3)
! 25006 cannot write in a read-only transaction

> ROLLBACK
ROLLBACK

> BEGIN
BEGIN

> CREATE TABLE c (z int)
CREATE TABLE

> SELECT count(*) FROM pg_class WHERE relname = 'c'
count
1

> ROLLBACK
ROLLBACK

> SELECT count(*) FROM pg_class WHERE relname = 'c'
count
0

> BEGIN
BEGIN

> DELETE FROM b
DELETE 4

> ROLLBACK
ROLLBACK

> SELECT count(*) FROM b
count
4

# Several statements sent together are one transaction
> INSERT INTO a VALUES (7); SELECT 1 / 0
! 22012 division by zero

> SELECT count(*) FROM a WHERE x = 7
count
0

> SHOW transaction_isolation
transaction_isolation
strict serializable

> SET transaction_isolation = 'serializable'
SET

> SELECT count(*) FROM a
count
3

> BEGIN ISOLATION LEVEL STRICT SERIALIZABLE
BEGIN

> SHOW TRANSACTION ISOLATION LEVEL
transaction_isolation
strict serializable

> COMMIT
COMMIT

> ROLLBACK
ROLLBACK

> SAVEPOINT x
! 25P01 SAVEPOINT can only be used in transaction blocks
