# Digits of a second: timestamp(n), time(n), interval(n)
> CREATE TABLE p (id int, a timestamp(1), b timestamptz(0), c time(2), e interval(2), f timestamp(3)[], g timestamp(6))
CREATE TABLE

> INSERT INTO p VALUES (1, '2020-01-01 12:34:56.75', '1999-12-31 23:59:59.5', '12:34:56.785', '1 day -12:34:56.785', '{1999-01-01 00:00:00.0005,2001-01-01 00:00:00.0005}', '2020-01-01 12:34:56.789012'), (2, '1999-01-01 12:34:56.75', '2020-12-31 23:59:59.49', '23:59:59.995', '1 month 00:00:00.005', NULL, NULL)
INSERT 0 2

% changes
> INSERT INTO p (id, a, c, e) SELECT id + 2, a + interval '0.05 s', c + interval '0.006 s', e * 1.5 FROM p
INSERT 0 2

> UPDATE p SET a = g + interval '0.96 s' WHERE id = 1
UPDATE 1

> SELECT * FROM p
id:int4|a:timestamp|b:timestamptz|c:time|e:interval|f:timestamp[]|g:timestamp
2|1999-01-01 12:34:56.7|2020-12-31 23:59:59+00|24:00:00|1 mon 00:00:00.01|NULL|NULL
3|2020-01-01 12:34:56.9|NULL|12:34:56.8|1 day -06:52:25.19|NULL|NULL
4|1999-01-01 12:34:56.7|NULL|00:00:00.01|1 mon 15 days 00:00:00.02|NULL|NULL
1|2020-01-01 12:34:57.7|1999-12-31 23:59:59+00|12:34:56.79|1 day -12:34:56.79|{"1999-01-01 00:00:00","2001-01-01 00:00:00.001"}|2020-01-01 12:34:56.789012

> SELECT id, a::timestamp(0), b::timestamp(0), c::time(0), e::interval(0), g::timestamptz(2), g::time(3) FROM p
id:int4|a:timestamp|b:timestamp|c:time|e:interval|g:timestamptz|g:time
2|1999-01-01 12:34:57|2020-12-31 23:59:59|24:00:00|1 mon|NULL|NULL
3|2020-01-01 12:34:57|NULL|12:34:57|1 day -06:52:25|NULL|NULL
4|1999-01-01 12:34:57|NULL|00:00:00|1 mon 15 days|NULL|NULL
1|2020-01-01 12:34:58|1999-12-31 23:59:59|12:34:57|1 day -12:34:57|2020-01-01 12:34:56.79+00|12:34:56.789

> SELECT id, f::timestamp(0)[], f::text[] FROM p
id:int4|f:timestamp[]|f:text[]
1|{"1999-01-01 00:00:00","2001-01-01 00:00:00"}|{"1999-01-01 00:00:00","2001-01-01 00:00:00.001"}
2|NULL|NULL
3|NULL|NULL
4|NULL|NULL

> SELECT id, CASE WHEN id > 1 THEN a ELSE g END, coalesce(g, a)::timestamp(2) FROM p
id:int4|g:timestamp|coalesce:timestamp
2|1999-01-01 12:34:56.7|1999-01-01 12:34:56.7
3|2020-01-01 12:34:56.9|2020-01-01 12:34:56.9
4|1999-01-01 12:34:56.7|1999-01-01 12:34:56.7
1|2020-01-01 12:34:56.789012|2020-01-01 12:34:56.79

> SELECT a, b FROM p UNION SELECT g, g FROM p
a:timestamp|b:timestamptz
NULL|NULL
2020-01-01 12:34:56.789012|2020-01-01 12:34:56.789012+00
2020-01-01 12:34:56.9|NULL
1999-01-01 12:34:56.7|2020-12-31 23:59:59+00
2020-01-01 12:34:57.7|1999-12-31 23:59:59+00
1999-01-01 12:34:56.7|NULL

> SELECT timestamp(1) '2020-01-01 12:34:56.789', '2020-01-01 12:34:56.789'::timestamptz(0), '12:34:56.789'::time(1), '1 day 12:34:56.789'::interval(1), time(0) '23:59:59.5'
timestamp:timestamp|timestamptz:timestamptz|time:time|interval:interval|time:time
2020-01-01 12:34:56.8|2020-01-01 12:34:57+00|12:34:56.8|1 day 12:34:56.8|24:00:00

> SELECT '-00:00:01.5'::interval(0), '1999-12-31 23:59:59.5'::timestamp(0), '1999-12-31 23:59:58.5'::timestamp(0), '2000-01-01 00:00:00.5'::timestamp(0)
interval:interval|timestamp:timestamp|timestamp:timestamp|timestamp:timestamp
-00:00:02|1999-12-31 23:59:59|1999-12-31 23:59:58|2000-01-01 00:00:01

> SELECT '1.1'::float(24)::float8 = 1.1, '1.1'::float(25)
?column?:bool|float8:float8
f|1.1

> SELECT '1'::float(54)
! 22023 precision for type float must be less than 54 bits

> SELECT '1'::float(0)
! 22023 precision for type float must be at least 1 bit

% no-view
> SELECT current_timestamp(0) = date_trunc('second', current_timestamp(0)), localtimestamp(0) IS NULL, localtime(1) IS NULL
?column?:bool|?column?:bool|?column?:bool
t|f|f

> SELECT now(3)
! 42883 function now(integer) does not exist

% everview-only
> SELECT interval '1 year 2 days' year
! 0A000 an interval with fields is not supported

% everview-only
> SELECT interval '1 2' day to hour
! 0A000 an interval with fields is not supported

% everview-only
> SELECT interval '1.5' hour
! 0A000 an interval with fields is not supported

% everview-only
> SELECT interval(1) '1.25 s'
! 0A000 interval(n) in front of a literal is not supported

> SELECT interval '3' day, interval '-2' minute, interval '1.5' second
interval:interval|interval:interval|interval:interval
3 days|-00:02:00|00:00:01.5

% no-view no-spark
> SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'p'::regclass AND attnum BETWEEN 2 AND 6 ORDER BY attnum
attname:text|format_type:text
a|timestamp(1) without time zone
b|timestamp(0) with time zone
c|time(2) without time zone
e|interval(2)
f|timestamp(3) without time zone[]

% no-view no-spark
> SELECT column_name::text, data_type::text, datetime_precision, character_maximum_length FROM information_schema.columns WHERE table_name = 'p' ORDER BY ordinal_position
column_name:text|data_type:text|datetime_precision:int4|character_maximum_length:int4
id|integer|NULL|NULL
a|timestamp without time zone|1|NULL
b|timestamp with time zone|0|NULL
c|time without time zone|2|NULL
e|interval|2|NULL
f|ARRAY|NULL|NULL
g|timestamp without time zone|6|NULL
