# infinity and -infinity of dates and timestamps
> CREATE TABLE i (id int, d date, t timestamp, z timestamptz)
CREATE TABLE

> INSERT INTO i VALUES (1, 'infinity', 'infinity', 'infinity'), (2, '-infinity', '-infinity', '-infinity'), (3, '2020-02-29', '2020-02-29 12:34:56.789', '2020-02-29 12:34:56.789+02'), (4, NULL, NULL, NULL), (5, '9999-12-31', '0001-01-01', '2021-03-31'), (6, ' Infinity', '- infinity', '+INFINITY')
INSERT 0 6

% changes
> INSERT INTO i SELECT id + 10, d + 1, t + interval '1 month', z - interval '1 day' FROM i WHERE id IN (1, 3, 6)
INSERT 0 3

> UPDATE i SET t = d::timestamp WHERE id = 6
UPDATE 1

> INSERT INTO i VALUES (20, 'infinity', 'infinity', '-infinity')
INSERT 0 1

> DELETE FROM i WHERE d = 'infinity' AND z = '-infinity'
DELETE 1

> SELECT * FROM i ORDER BY z, d, t, id
id:int4|d:date|t:timestamp|z:timestamptz
2|-infinity|-infinity|-infinity
13|2020-03-01|2020-03-29 12:34:56.789|2020-02-28 10:34:56.789+00
3|2020-02-29|2020-02-29 12:34:56.789|2020-02-29 10:34:56.789+00
5|9999-12-31|0001-01-01 00:00:00|2021-03-31 00:00:00+00
16|infinity|-infinity|infinity
1|infinity|infinity|infinity
6|infinity|infinity|infinity
11|infinity|infinity|infinity
4|NULL|NULL|NULL

> SELECT id FROM i ORDER BY t DESC NULLS LAST, id DESC LIMIT 4
id:int4
11
6
1
13

> SELECT max(d), min(d), max(t), min(t), max(z), min(z), count(DISTINCT d), count(DISTINCT z) FROM i
max:date|min:date|max:timestamp|min:timestamp|max:timestamptz|min:timestamptz|count:int8|count:int8
infinity|-infinity|infinity|-infinity|infinity|-infinity|5|5

> SELECT d, count(*), max(id) FROM i GROUP BY d
d:date|count:int8|max:int4
NULL|1|4
9999-12-31|1|5
2020-02-29|1|3
2020-03-01|1|13
infinity|4|16
-infinity|1|2

> SELECT DISTINCT z FROM i
z:timestamptz
NULL
2020-02-29 10:34:56.789+00
2021-03-31 00:00:00+00
-infinity
2020-02-28 10:34:56.789+00
infinity

> SELECT id, d = 'infinity', t < '-infinity', z > '-infinity', d <> t::date, t = z, d < t, d IN ('infinity', '2020-02-29') FROM i
id:int4|?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool
1|t|f|t|f|t|f|t
2|f|f|f|f|t|f|f
3|f|f|t|f|f|t|t
4|NULL|NULL|NULL|NULL|NULL|NULL|NULL
5|f|f|t|t|f|f|f
11|t|f|t|f|t|f|t
13|f|f|t|t|f|t|f
16|t|f|t|t|f|f|t
6|t|f|t|f|t|f|t

> SELECT a.id, b.id FROM i a JOIN i b ON a.d = b.t AND a.id < b.id
id:int4|id:int4
2|16
6|11
1|6
1|11

> SELECT a.id, b.id FROM i a LEFT JOIN i b ON a.z = b.z AND a.id < b.id
id:int4|id:int4
2|NULL
13|NULL
3|NULL
5|NULL
6|11
6|16
11|16
1|6
1|11
1|16
16|NULL
4|NULL

> SELECT id, greatest(d, t::date), least(t, z), coalesce(d, '-infinity'), nullif(d, 'infinity'), CASE WHEN id > 3 THEN d ELSE t END FROM i
id:int4|greatest:date|least:timestamptz|coalesce:date|nullif:date|t:timestamp
1|infinity|infinity|infinity|NULL|infinity
2|-infinity|-infinity|-infinity|-infinity|-infinity
3|2020-02-29|2020-02-29 10:34:56.789+00|2020-02-29|2020-02-29|2020-02-29 12:34:56.789
4|NULL|NULL|-infinity|NULL|NULL
5|9999-12-31|0001-01-01 00:00:00+00|9999-12-31|9999-12-31|9999-12-31 00:00:00
11|infinity|infinity|infinity|NULL|infinity
13|2020-03-29|2020-02-28 10:34:56.789+00|2020-03-01|2020-03-01|2020-03-01 00:00:00
16|infinity|-infinity|infinity|NULL|infinity
6|infinity|infinity|infinity|NULL|infinity

> SELECT id, d + 5, d - 5, 5 + d, d + interval '1 year', t + interval '1 mon 2 days', z - interval '3 hours', d + time '10:11' FROM i WHERE id <> 5
id:int4|?column?:date|?column?:date|?column?:date|?column?:timestamp|?column?:timestamp|?column?:timestamptz|?column?:timestamp
1|infinity|infinity|infinity|infinity|infinity|infinity|infinity
2|-infinity|-infinity|-infinity|-infinity|-infinity|-infinity|-infinity
3|2020-03-05|2020-02-24|2020-03-05|2021-02-28 00:00:00|2020-03-31 12:34:56.789|2020-02-29 07:34:56.789+00|2020-02-29 10:11:00
4|NULL|NULL|NULL|NULL|NULL|NULL|NULL
11|infinity|infinity|infinity|infinity|infinity|infinity|infinity
13|2020-03-06|2020-02-25|2020-03-06|2021-03-01 00:00:00|2020-05-01 12:34:56.789|2020-02-28 07:34:56.789+00|2020-03-01 10:11:00
16|infinity|infinity|infinity|infinity|-infinity|infinity|infinity
6|infinity|infinity|infinity|infinity|infinity|infinity|infinity

> SELECT id, isfinite(d), isfinite(t), isfinite(z) FROM i
id:int4|isfinite:bool|isfinite:bool|isfinite:bool
1|f|f|f
2|f|f|f
3|t|t|t
4|NULL|NULL|NULL
5|t|t|t
11|f|f|f
13|t|t|t
16|f|f|f
6|f|f|f

> SELECT id, d::timestamp, d::timestamptz, t::date, t::timestamptz, z::date, z::timestamp, t::time, z::time FROM i
id:int4|d:timestamp|d:timestamptz|t:date|t:timestamptz|z:date|z:timestamp|t:time|z:time
1|infinity|infinity|infinity|infinity|infinity|infinity|NULL|NULL
2|-infinity|-infinity|-infinity|-infinity|-infinity|-infinity|NULL|NULL
3|2020-02-29 00:00:00|2020-02-29 00:00:00+00|2020-02-29|2020-02-29 12:34:56.789+00|2020-02-29|2020-02-29 10:34:56.789|12:34:56.789|10:34:56.789
4|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL
5|9999-12-31 00:00:00|9999-12-31 00:00:00+00|0001-01-01|0001-01-01 00:00:00+00|2021-03-31|2021-03-31 00:00:00|00:00:00|00:00:00
11|infinity|infinity|infinity|infinity|infinity|infinity|NULL|NULL
13|2020-03-01 00:00:00|2020-03-01 00:00:00+00|2020-03-29|2020-03-29 12:34:56.789+00|2020-02-28|2020-02-28 10:34:56.789|12:34:56.789|10:34:56.789
16|infinity|infinity|-infinity|-infinity|infinity|infinity|NULL|NULL
6|infinity|infinity|infinity|infinity|infinity|infinity|NULL|NULL

> SELECT id, d::text, t::text, z::text, z::timestamptz(0), t::timestamp(2) FROM i
id:int4|d:text|t:text|z:text|z:timestamptz|t:timestamp
1|infinity|infinity|infinity|infinity|infinity
2|-infinity|-infinity|-infinity|-infinity|-infinity
3|2020-02-29|2020-02-29 12:34:56.789|2020-02-29 10:34:56.789+00|2020-02-29 10:34:57+00|2020-02-29 12:34:56.79
4|NULL|NULL|NULL|NULL|NULL
5|9999-12-31|0001-01-01 00:00:00|2021-03-31 00:00:00+00|2021-03-31 00:00:00+00|0001-01-01 00:00:00
11|infinity|infinity|infinity|infinity|infinity
13|2020-03-01|2020-03-29 12:34:56.789|2020-02-28 10:34:56.789+00|2020-02-28 10:34:57+00|2020-03-29 12:34:56.79
16|infinity|-infinity|infinity|infinity|-infinity
6|infinity|infinity|infinity|infinity|infinity

> SELECT id, to_jsonb(d), to_jsonb(t), jsonb_build_object('z', z) FROM i
id:int4|to_jsonb:jsonb|to_jsonb:jsonb|jsonb_build_object:jsonb
1|"infinity"|"infinity"|{"z": "infinity"}
2|"-infinity"|"-infinity"|{"z": "-infinity"}
3|"2020-02-29"|"2020-02-29T12:34:56.789"|{"z": "2020-02-29T10:34:56.789+00:00"}
4|NULL|NULL|{"z": null}
5|"9999-12-31"|"0001-01-01T00:00:00"|{"z": "2021-03-31T00:00:00+00:00"}
11|"infinity"|"infinity"|{"z": "infinity"}
13|"2020-03-01"|"2020-03-29T12:34:56.789"|{"z": "2020-02-28T10:34:56.789+00:00"}
16|"infinity"|"-infinity"|{"z": "infinity"}
6|"infinity"|"infinity"|{"z": "infinity"}

> SELECT id, ARRAY[d, NULL, '2020-01-01'], ARRAY[t]::date[], ARRAY[z]::text[] FROM i
id:int4|array:date[]|array:date[]|array:text[]
1|{infinity,NULL,2020-01-01}|{infinity}|{infinity}
2|{-infinity,NULL,2020-01-01}|{-infinity}|{-infinity}
3|{2020-02-29,NULL,2020-01-01}|{2020-02-29}|{"2020-02-29 10:34:56.789+00"}
4|{NULL,NULL,2020-01-01}|{NULL}|{NULL}
5|{9999-12-31,NULL,2020-01-01}|{0001-01-01}|{"2021-03-31 00:00:00+00"}
11|{infinity,NULL,2020-01-01}|{infinity}|{infinity}
13|{2020-03-01,NULL,2020-01-01}|{2020-03-29}|{"2020-02-28 10:34:56.789+00"}
16|{infinity,NULL,2020-01-01}|{-infinity}|{infinity}
6|{infinity,NULL,2020-01-01}|{infinity}|{infinity}

> SELECT id, date_trunc('month', t), date_trunc('century', z), date_trunc('day', d) FROM i
id:int4|date_trunc:timestamp|date_trunc:timestamptz|date_trunc:timestamptz
1|infinity|infinity|infinity
2|-infinity|-infinity|-infinity
3|2020-02-01 00:00:00|2001-01-01 00:00:00+00|2020-02-29 00:00:00+00
4|NULL|NULL|NULL
5|0001-01-01 00:00:00|2001-01-01 00:00:00+00|9999-12-31 00:00:00+00
11|infinity|infinity|infinity
13|2020-03-01 00:00:00|2001-01-01 00:00:00+00|2020-03-01 00:00:00+00
16|-infinity|infinity|infinity
6|infinity|infinity|infinity

> SELECT id, extract(month FROM d), extract(hour FROM t), extract(dow FROM z), date_part('day', t) FROM i
id:int4|extract:numeric|extract:numeric|extract:numeric|date_part:float8
1|NULL|NULL|NULL|NULL
2|NULL|NULL|NULL|NULL
3|2|12|6|29
4|NULL|NULL|NULL|NULL
5|12|0|3|1
11|NULL|NULL|NULL|NULL
13|3|12|5|29
16|NULL|NULL|NULL|NULL
6|NULL|NULL|NULL|NULL

> SELECT id, date_part('epoch', t), date_part('year', z), date_part('century', t), date_part('julian', d) FROM i WHERE id <> 5
id:int4|date_part:float8|date_part:float8|date_part:float8|date_part:float8
1|Infinity|Infinity|Infinity|Infinity
2|-Infinity|-Infinity|-Infinity|-Infinity
3|1582979696.789|2020|21|2458909
4|NULL|NULL|NULL|NULL
11|Infinity|Infinity|Infinity|Infinity
13|1585485296.789|2020|21|2458910
16|-Infinity|Infinity|-Infinity|Infinity
6|Infinity|Infinity|Infinity|Infinity

> SELECT id, date_bin('15 minutes', t, '2001-01-01'), date_bin('1 day', z, '2001-01-01') FROM i
id:int4|date_bin:timestamp|date_bin:timestamptz
1|infinity|infinity
2|-infinity|-infinity
3|2020-02-29 12:30:00|2020-02-29 00:00:00+00
4|NULL|NULL
5|0001-01-01 00:00:00|2021-03-31 00:00:00+00
11|infinity|infinity
13|2020-03-29 12:30:00|2020-02-28 00:00:00+00
16|-infinity|infinity
6|infinity|infinity

> SELECT id, to_char(t, 'YYYY-MM-DD HH24:MI:SS'), to_char(z, 'Day') FROM i
id:int4|to_char:text|to_char:text
1|NULL|NULL
2|NULL|NULL
3|2020-02-29 12:34:56|Saturday\s
4|NULL|NULL
5|0001-01-01 00:00:00|Wednesday
11|NULL|NULL
13|2020-03-29 12:34:56|Friday  \s
16|NULL|NULL
6|NULL|NULL

> SELECT id, t AT TIME ZONE 'Europe/Berlin', z AT TIME ZONE 'Asia/Kolkata' FROM i WHERE id <> 5
id:int4|timezone:timestamptz|timezone:timestamp
1|infinity|infinity
2|-infinity|-infinity
3|2020-02-29 11:34:56.789+00|2020-02-29 16:04:56.789
4|NULL|NULL
11|infinity|infinity
13|2020-03-29 10:34:56.789+00|2020-02-28 16:04:56.789
16|-infinity|infinity
6|infinity|infinity

> SELECT id, (t, z::timestamp) OVERLAPS ('2019-01-01'::timestamp, '2020-06-01'::timestamp) FROM i
id:int4|overlaps:bool
1|f
2|f
3|t
4|NULL
5|t
11|f
13|t
16|t
6|f

> SELECT id, row_number() OVER (ORDER BY d, id), first_value(t) OVER (PARTITION BY d ORDER BY id), lag(z) OVER (ORDER BY id) FROM i
id:int4|row_number:int8|first_value:timestamp|lag:timestamptz
2|1|-infinity|infinity
3|2|2020-02-29 12:34:56.789|-infinity
13|3|2020-03-29 12:34:56.789|infinity
5|4|0001-01-01 00:00:00|NULL
1|5|infinity|NULL
6|6|infinity|2021-03-31 00:00:00+00
11|7|infinity|infinity
16|8|infinity|2020-02-28 10:34:56.789+00
4|9|NULL|2020-02-29 10:34:56.789+00

> SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN '1 day' PRECEDING AND '2 days' FOLLOWING) FROM i WHERE id <> 5
id:int4|count:int8
2|1
3|2
13|2
6|4
11|4
1|4
16|4
4|1

> SELECT id, count(*) OVER (ORDER BY z DESC RANGE BETWEEN UNBOUNDED PRECEDING AND '1 hour' FOLLOWING) FROM i
id:int4|count:int8
4|1
1|5
11|5
16|5
6|5
5|6
3|7
13|8
2|9

> SELECT array_agg(d ORDER BY d, id), string_agg(z::text, ',' ORDER BY id), bool_and(isfinite(t)) FROM i
array_agg:date[]|string_agg:text|bool_and:bool
{-infinity,2020-02-29,2020-03-01,9999-12-31,infinity,infinity,infinity,infinity,NULL}|infinity,-infinity,2020-02-29 10:34:56.789+00,2021-03-31 00:00:00+00,infinity,infinity,2020-02-28 10:34:56.789+00,infinity|f

> SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY d), mode() WITHIN GROUP (ORDER BY d) FROM i
percentile_disc:date|mode:date
9999-12-31|infinity

> SELECT to_timestamp('Infinity'::float8 * id) FROM i WHERE id = 1
to_timestamp:timestamptz
infinity

> SELECT x::date FROM (VALUES ('infinity'), (' -Infinity '), ('+infinity'), ('epoch')) AS v (x)
x:date
infinity
-infinity
infinity
1970-01-01

> SELECT d FROM i WHERE d = 'infinity' UNION SELECT t::date FROM i WHERE t = '-infinity' EXCEPT SELECT date '2020-01-01'
d:date
-infinity
infinity

> SELECT id, d - date '2020-01-01' FROM i WHERE id = 1
! 22008 cannot subtract infinite dates

> SELECT id, date_bin('1 day', t, 'infinity') FROM i WHERE id = 3
! 22008 origin out of range

> SELECT 'inf'::date
! 22007 invalid input syntax for type date: "inf"

> SELECT 'infinity'::time
! 22007 invalid input syntax for type time: "infinity"
