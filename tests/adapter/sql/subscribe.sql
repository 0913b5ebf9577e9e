# Subscriptions that end by themselves: UP TO, and cursors with a timeout
> CREATE TABLE t (k int, v text) WITH (RETAIN HISTORY FOR '1h')
CREATE TABLE

> INSERT INTO t VALUES (1, 'a'), (2, 'b')
INSERT 0 2

> BEGIN
BEGIN

> DECLARE c CURSOR FOR SUBSCRIBE TO t WITH (PROGRESS = false)
DECLARE CURSOR

> FETCH 1 c
?

> FETCH ALL c WITH (timeout = '50ms')
?

> FETCH ALL c WITH (timeout = '10ms')
mz_timestamp|mz_diff|k|v

> CLOSE c
CLOSE CURSOR

> COMMIT
COMMIT

> DECLARE c CURSOR FOR SELECT 1
! 25P01 DECLARE CURSOR can only be used in transaction blocks

> BEGIN
BEGIN

> DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 5) AS g ORDER BY 1
DECLARE CURSOR

> FETCH 2 FROM c -- order by g
g
1
2

> FETCH FORWARD ALL FROM c -- order by g
g
3
4
5

> FETCH c
g

> FETCH x
! 34000 cursor "x" does not exist

> ROLLBACK
ROLLBACK

> SUBSCRIBE TO nope
! 42P01 relation "nope" does not exist

> SUBSCRIBE TO t AS OF 5
! 55000 could not find a valid timestamp for the query

> SUBSCRIBE TO t ENVELOPE UPSERT (KEY (nope))
! 42703 no column named "nope" in the subscription

> SUBSCRIBE TO t WITH (WRONG)
! 22023 unknown option of SUBSCRIBE: WRONG

> SELECT * FROM t AS OF 1
! 55000 could not find a valid timestamp for the query

> SELECT mz_now() AS OF 1
mz_now
1
