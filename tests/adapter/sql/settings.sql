# Settings, prepared statements, DISCARD
> SHOW search_path
search_path
public

> SET search_path TO 'a', "B"
SET

> SHOW search_path
search_path
a, "B"

> RESET search_path
RESET

> SET nope = 1
! 42704 unrecognized configuration parameter "nope"

> SET TIME ZONE 'Europe/Berlin'
! 22023 invalid value for parameter "TimeZone": "Europe/Berlin"

> SET TIME ZONE 'utc'
SET

> SHOW timezone
timezone
UTC

> SET TIME ZONE 'nowhere'
! 22023 invalid value for parameter "TimeZone": "nowhere"

> SET statement_timeout = '2s'
SET

> SHOW statement_timeout
statement_timeout
2000

> SET server_version = '1'
! 55P02 parameter "server_version" cannot be changed

> BEGIN
BEGIN

> SET LOCAL application_name = 'inside'
SET

> SHOW application_name
application_name
inside

> SET extra_float_digits = 3
SET

> ROLLBACK
ROLLBACK

> SHOW application_name
application_name

> SHOW extra_float_digits
extra_float_digits
1

> SET transaction_isolation TO serializable
SET

> SHOW transaction_isolation
transaction_isolation
serializable

> SELECT set_config('application_name', 'mine', false), current_setting('jit')
set_config|current_setting
mine|off

> SHOW application_name
application_name
mine

> PREPARE add (int, int) AS SELECT $1 + $2 AS sum
PREPARE

> EXECUTE add(1, 2 * 3)
sum
7

> EXECUTE add(1)
! 42601 wrong number of parameters for prepared statement "add"

> PREPARE add AS SELECT 1
! 42P05 prepared statement "add" already exists

> DEALLOCATE add
DEALLOCATE

> EXECUTE add(1, 2)
! 26000 prepared statement "add" does not exist

> DISCARD ALL
DISCARD ALL

> SHOW transaction_isolation
transaction_isolation
strict serializable

> EXPLAIN SELECT 1 + 1
Plan
Constant (2)
Engine: rows, in the server

> FROBNICATE
! 42601 syntax error at or near "FROBNICATE"

> SELECT FROM WHERE
! 42601 syntax error at or near "WHERE"

> SELECT 'open
! 42601 unterminated quoted string

> SELECT $1
! 08P01 1 parameters are needed, and 0 are given

> VACUUM
! 0A000 VACUUM is not supported

# Where reads are computed; there is no Spark here
> SHOW everview_peek_engine
everview_peek_engine
auto

> SET everview_peek_engine = sparky
! 22023 invalid value for parameter "everview_peek_engine": "sparky"

> SET everview_peek_engine = spark
SET

> SELECT n FROM generate_series(1, 2) AS n
! 55000 this environment is open without Spark

> SET everview_peek_engine = 'LOCAL'
SET

> SELECT n FROM generate_series(1, 2) AS n
n
1
2

> RESET everview_peek_engine
RESET
