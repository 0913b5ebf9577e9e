# Dates, times, timestamps and intervals
> CREATE TABLE d (id int, d date, e date, ts timestamp, tz timestamptz, t time, i interval, n int)
CREATE TABLE

> INSERT INTO d VALUES (1, '2024-01-31', '2023-12-25', '2024-01-31 13:45:30.123456', '2024-01-31 13:45:30+00', '13:45:30', '1 month 2 days 03:04:05', 1), (2, '2024-02-29', '2024-02-29', '2024-02-29 00:00:00', '2024-02-29 23:59:59.999+02', '00:00:00', '-1 days', -3), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (9, '2020-01-01', '2020-01-01', '2020-01-01', '2020-01-01 00:00:00+00', '01:00', '1 day', 5)
INSERT 0 4

% changes
> INSERT INTO d VALUES (4, '1999-12-31', '2000-01-01', '1999-12-31 23:59:59', '1999-12-31 23:59:59-05', '23:59:59.5', '1 year 6 months', 12), (5, '1970-01-01', '1969-12-31', '1969-12-31 12:00:00.5', '1970-01-01 00:00:00+00', '12:00', '36:00:00', 0), (6, '2038-01-19', '2040-02-29', '2038-01-19 03:14:08', '2100-01-01 00:00:00+00', '06:30:15.25', '2 weeks 00:00:00.001', 100)
INSERT 0 3

> UPDATE d SET d = d + 1, ts = ts + interval '1 hour' WHERE id = 2
UPDATE 1

> DELETE FROM d WHERE id = 9
DELETE 1

> SELECT id, d + 1 FROM d
id:int4|?column?:date
1|2024-02-01
3|NULL
4|2000-01-01
5|1970-01-02
6|2038-01-20
2|2024-03-02

> SELECT id, d - 1 FROM d
id:int4|?column?:date
1|2024-01-30
3|NULL
4|1999-12-30
5|1969-12-31
6|2038-01-18
2|2024-02-29

> SELECT id, d + n FROM d
id:int4|?column?:date
1|2024-02-01
3|NULL
4|2000-01-12
5|1970-01-01
6|2038-04-29
2|2024-02-27

> SELECT id, n + d FROM d
id:int4|?column?:date
1|2024-02-01
3|NULL
4|2000-01-12
5|1970-01-01
6|2038-04-29
2|2024-02-27

> SELECT id, d - e FROM d
id:int4|?column?:int4
1|37
3|NULL
4|-1
5|1
6|-771
2|1

> SELECT id, d - date '2024-01-01' FROM d
id:int4|?column?:int4
1|30
3|NULL
4|-8767
5|-19723
6|5132
2|60

> SELECT id, d + interval '1 month' FROM d
id:int4|?column?:timestamp
1|2024-02-29 00:00:00
3|NULL
4|2000-01-31 00:00:00
5|1970-02-01 00:00:00
6|2038-02-19 00:00:00
2|2024-04-01 00:00:00

> SELECT id, d - interval '1 month' FROM d
id:int4|?column?:timestamp
1|2023-12-31 00:00:00
3|NULL
4|1999-11-30 00:00:00
5|1969-12-01 00:00:00
6|2037-12-19 00:00:00
2|2024-02-01 00:00:00

> SELECT id, d + i FROM d
id:int4|?column?:timestamp
1|2024-03-02 03:04:05
3|NULL
4|2001-06-30 00:00:00
5|1970-01-02 12:00:00
6|2038-02-02 00:00:00.001
2|2024-02-29 00:00:00

> SELECT id, d - i FROM d
id:int4|?column?:timestamp
1|2023-12-28 20:55:55
3|NULL
4|1998-06-30 00:00:00
5|1969-12-30 12:00:00
6|2038-01-04 23:59:59.999
2|2024-03-02 00:00:00

> SELECT id, d + t FROM d
id:int4|?column?:timestamp
1|2024-01-31 13:45:30
3|NULL
4|1999-12-31 23:59:59.5
5|1970-01-01 12:00:00
6|2038-01-19 06:30:15.25
2|2024-03-01 00:00:00

> SELECT id, d + interval '36 hours' FROM d
id:int4|?column?:timestamp
1|2024-02-01 12:00:00
3|NULL
4|2000-01-01 12:00:00
5|1970-01-02 12:00:00
6|2038-01-20 12:00:00
2|2024-03-02 12:00:00

> SELECT id, ts + interval '1 day' FROM d
id:int4|?column?:timestamp
1|2024-02-01 13:45:30.123456
3|NULL
4|2000-01-01 23:59:59
5|1970-01-01 12:00:00.5
6|2038-01-20 03:14:08
2|2024-03-01 01:00:00

> SELECT id, ts - interval '1 month' FROM d
id:int4|?column?:timestamp
1|2023-12-31 13:45:30.123456
3|NULL
4|1999-11-30 23:59:59
5|1969-11-30 12:00:00.5
6|2037-12-19 03:14:08
2|2024-01-29 01:00:00

> SELECT id, ts + i FROM d
id:int4|?column?:timestamp
1|2024-03-02 16:49:35.123456
3|NULL
4|2001-06-30 23:59:59
5|1970-01-02 00:00:00.5
6|2038-02-02 03:14:08.001
2|2024-02-28 01:00:00

> SELECT id, ts - i FROM d
id:int4|?column?:timestamp
1|2023-12-29 10:41:25.123456
3|NULL
4|1998-06-30 23:59:59
5|1969-12-30 00:00:00.5
6|2038-01-05 03:14:07.999
2|2024-03-01 01:00:00

> SELECT id, ts - ts FROM d
id:int4|?column?:interval
1|00:00:00
3|NULL
4|00:00:00
5|00:00:00
6|00:00:00
2|00:00:00

> SELECT id, ts - timestamp '2000-01-01' FROM d
id:int4|?column?:interval
1|8796 days 13:45:30.123456
3|NULL
4|-00:00:01
5|-10957 days -11:59:59.5
6|13898 days 03:14:08
2|8825 days 01:00:00

> SELECT id, ts - d FROM d
id:int4|?column?:interval
1|13:45:30.123456
3|NULL
4|23:59:59
5|-11:59:59.5
6|03:14:08
2|-23:00:00

> SELECT id, tz + interval '1 day' FROM d
id:int4|?column?:timestamptz
1|2024-02-01 13:45:30+00
3|NULL
4|2000-01-02 04:59:59+00
5|1970-01-02 00:00:00+00
6|2100-01-02 00:00:00+00
2|2024-03-01 21:59:59.999+00

> SELECT id, tz + i FROM d
id:int4|?column?:timestamptz
1|2024-03-02 16:49:35+00
3|NULL
4|2001-07-01 04:59:59+00
5|1970-01-02 12:00:00+00
6|2100-01-15 00:00:00.001+00
2|2024-02-28 21:59:59.999+00

> SELECT id, tz - interval '2 hours' FROM d
id:int4|?column?:timestamptz
1|2024-01-31 11:45:30+00
3|NULL
4|2000-01-01 02:59:59+00
5|1969-12-31 22:00:00+00
6|2099-12-31 22:00:00+00
2|2024-02-29 19:59:59.999+00

> SELECT id, tz - timestamptz '2000-01-01 00:00:00+00' FROM d
id:int4|?column?:interval
1|8796 days 13:45:30
3|NULL
4|04:59:59
5|-10957 days
6|36525 days
2|8825 days 21:59:59.999

> SELECT id, t + interval '2 hours' FROM d
id:int4|?column?:time
1|15:45:30
3|NULL
4|01:59:59.5
5|14:00:00
6|08:30:15.25
2|02:00:00

> SELECT id, t - interval '14 hours' FROM d
id:int4|?column?:time
1|23:45:30
3|NULL
4|09:59:59.5
5|22:00:00
6|16:30:15.25
2|10:00:00

> SELECT id, t - time '06:00' FROM d
id:int4|?column?:interval
1|07:45:30
3|NULL
4|17:59:59.5
5|06:00:00
6|00:30:15.25
2|-06:00:00

> SELECT id, i + interval '1 day' FROM d
id:int4|?column?:interval
1|1 mon 3 days 03:04:05
3|NULL
4|1 year 6 mons 1 day
5|1 day 36:00:00
6|15 days 00:00:00.001
2|00:00:00

> SELECT id, i - interval '1 hour' FROM d
id:int4|?column?:interval
1|1 mon 2 days 02:04:05
3|NULL
4|1 year 6 mons -01:00:00
5|35:00:00
6|14 days -00:59:59.999
2|-1 days -01:00:00

> SELECT id, i * 2 FROM d
id:int4|?column?:interval
1|2 mons 4 days 06:08:10
3|NULL
4|3 years
5|72:00:00
6|28 days 00:00:00.002
2|-2 days

> SELECT id, i * 1.5 FROM d
id:int4|?column?:interval
1|1 mon 18 days 04:36:07.5
3|NULL
4|2 years 3 mons
5|54:00:00
6|21 days 00:00:00.0015
2|-1 days -12:00:00

> SELECT id, 2 * i FROM d
id:int4|?column?:interval
1|2 mons 4 days 06:08:10
3|NULL
4|3 years
5|72:00:00
6|28 days 00:00:00.002
2|-2 days

> SELECT id, i / 2 FROM d
id:int4|?column?:interval
1|16 days 01:32:02.5
3|NULL
4|9 mons
5|18:00:00
6|7 days 00:00:00.0005
2|-12:00:00

> SELECT id, i / 0.5 FROM d
id:int4|?column?:interval
1|2 mons 4 days 06:08:10
3|NULL
4|3 years
5|72:00:00
6|28 days 00:00:00.002
2|-2 days

> SELECT id, -i FROM d
id:int4|?column?:interval
1|-1 mons -2 days -03:04:05
3|NULL
4|-1 years -6 mons
5|-36:00:00
6|-14 days -00:00:00.001
2|1 day

> SELECT id, interval '1 day' * n FROM d
id:int4|?column?:interval
1|1 day
3|NULL
4|12 days
5|00:00:00
6|100 days
2|-3 days

> SELECT id, n * interval '1 hour' FROM d
id:int4|?column?:interval
1|01:00:00
3|NULL
4|12:00:00
5|00:00:00
6|100:00:00
2|-03:00:00

> SELECT id, interval '1 month' * n FROM d
id:int4|?column?:interval
1|1 mon
3|NULL
4|1 year
5|00:00:00
6|8 years 4 mons
2|-3 mons

> SELECT id, i = interval '1 day' FROM d
id:int4|?column?:bool
1|f
3|NULL
4|f
5|f
6|f
2|f

> SELECT id, i > interval '1 day' FROM d
id:int4|?column?:bool
1|t
3|NULL
4|t
5|t
6|t
2|f

> SELECT id, i BETWEEN interval '0' AND interval '1 month' FROM d
id:int4|?column?:bool
1|f
3|NULL
4|f
5|t
6|t
2|f

> SELECT id, d = e FROM d
id:int4|?column?:bool
1|f
3|NULL
4|f
5|f
6|f
2|f

> SELECT id, d < e FROM d
id:int4|?column?:bool
1|f
3|NULL
4|t
5|f
6|t
2|f

> SELECT id, d > '2000-01-01' FROM d
id:int4|?column?:bool
1|t
3|NULL
4|f
5|f
6|t
2|t

> SELECT id, d >= date '2024-02-29' FROM d
id:int4|?column?:bool
1|f
3|NULL
4|f
5|f
6|t
2|t

> SELECT id, ts > d FROM d
id:int4|?column?:bool
1|t
3|NULL
4|t
5|f
6|t
2|f

> SELECT id, ts = timestamp '2024-01-31 13:45:30.123456' FROM d
id:int4|?column?:bool
1|t
3|NULL
4|f
5|f
6|f
2|f

> SELECT id, tz > '2024-01-01 00:00:00+00' FROM d
id:int4|?column?:bool
1|t
3|NULL
4|f
5|f
6|t
2|t

> SELECT id, t > '12:00' FROM d
id:int4|?column?:bool
1|t
3|NULL
4|t
5|f
6|f
2|f

> SELECT id, d BETWEEN '2000-01-01' AND '2024-12-31' FROM d
id:int4|?column?:bool
1|t
3|NULL
4|f
5|f
6|f
2|t

> SELECT id, d IN ('2024-01-31', '1970-01-01') FROM d
id:int4|?column?:bool
1|t
3|NULL
4|f
5|t
6|f
2|f

> SELECT id, (d, e) OVERLAPS (date '2000-01-01', date '2010-01-01') FROM d
id:int4|overlaps:bool
1|f
3|NULL
4|f
5|f
6|f
2|f

> SELECT id, greatest(d, e) FROM d
id:int4|greatest:date
1|2024-01-31
3|NULL
4|2000-01-01
5|1970-01-01
6|2040-02-29
2|2024-03-01

> SELECT id, least(ts, timestamp '2000-01-01') FROM d
id:int4|least:timestamp
1|2000-01-01 00:00:00
3|2000-01-01 00:00:00
4|1999-12-31 23:59:59
5|1969-12-31 12:00:00.5
6|2000-01-01 00:00:00
2|2000-01-01 00:00:00

> SELECT id, extract(year FROM d) FROM d
id:int4|extract:numeric
1|2024
3|NULL
4|1999
5|1970
6|2038
2|2024

> SELECT id, extract(month FROM d) FROM d
id:int4|extract:numeric
1|1
3|NULL
4|12
5|1
6|1
2|3

> SELECT id, extract(day FROM d) FROM d
id:int4|extract:numeric
1|31
3|NULL
4|31
5|1
6|19
2|1

> SELECT id, extract(dow FROM d) FROM d
id:int4|extract:numeric
1|3
3|NULL
4|5
5|4
6|2
2|5

> SELECT id, extract(isodow FROM d) FROM d
id:int4|extract:numeric
1|3
3|NULL
4|5
5|4
6|2
2|5

> SELECT id, extract(doy FROM d) FROM d
id:int4|extract:numeric
1|31
3|NULL
4|365
5|1
6|19
2|61

> SELECT id, extract(week FROM d) FROM d
id:int4|extract:numeric
1|5
3|NULL
4|52
5|1
6|3
2|9

> SELECT id, extract(isoyear FROM d) FROM d
id:int4|extract:numeric
1|2024
3|NULL
4|1999
5|1970
6|2038
2|2024

> SELECT id, extract(quarter FROM d) FROM d
id:int4|extract:numeric
1|1
3|NULL
4|4
5|1
6|1
2|1

> SELECT id, extract(decade FROM d) FROM d
id:int4|extract:numeric
1|202
3|NULL
4|199
5|197
6|203
2|202

> SELECT id, extract(century FROM d) FROM d
id:int4|extract:numeric
1|21
3|NULL
4|20
5|20
6|21
2|21

> SELECT id, extract(millennium FROM d) FROM d
id:int4|extract:numeric
1|3
3|NULL
4|2
5|2
6|3
2|3

> SELECT id, extract(epoch FROM d) FROM d
id:int4|extract:numeric
1|1706659200
3|NULL
4|946598400
5|0
6|2147472000
2|1709251200

> SELECT id, extract(hour FROM ts) FROM d
id:int4|extract:numeric
1|13
3|NULL
4|23
5|12
6|3
2|1

> SELECT id, extract(minute FROM ts) FROM d
id:int4|extract:numeric
1|45
3|NULL
4|59
5|0
6|14
2|0

> SELECT id, extract(second FROM ts) FROM d
id:int4|extract:numeric
1|30.123456
3|NULL
4|59.000000
5|0.500000
6|8.000000
2|0.000000

> SELECT id, extract(millisecond FROM ts) FROM d
id:int4|extract:numeric
1|30123.456
3|NULL
4|59000.000
5|500.000
6|8000.000
2|0.000

> SELECT id, extract(microsecond FROM ts) FROM d
id:int4|extract:numeric
1|30123456
3|NULL
4|59000000
5|500000
6|8000000
2|0

> SELECT id, extract(epoch FROM ts) FROM d
id:int4|extract:numeric
1|1706708730.123456
3|NULL
4|946684799.000000
5|-43199.500000
6|2147483648.000000
2|1709168400.000000

> SELECT id, extract(epoch FROM tz) FROM d
id:int4|extract:numeric
1|1706708730.000000
3|NULL
4|946702799.000000
5|0.000000
6|4102444800.000000
2|1709243999.999000

> SELECT id, extract(hour FROM tz) FROM d
id:int4|extract:numeric
1|13
3|NULL
4|4
5|0
6|0
2|21

> SELECT id, extract(hour FROM t) FROM d
id:int4|extract:numeric
1|13
3|NULL
4|23
5|12
6|6
2|0

> SELECT id, extract(second FROM t) FROM d
id:int4|extract:numeric
1|30.000000
3|NULL
4|59.500000
5|0.000000
6|15.250000
2|0.000000

> SELECT id, extract(epoch FROM t) FROM d
id:int4|extract:numeric
1|49530.000000
3|NULL
4|86399.500000
5|43200.000000
6|23415.250000
2|0.000000

> SELECT id, extract(year FROM i) FROM d
id:int4|extract:numeric
1|0
3|NULL
4|1
5|0
6|0
2|0

> SELECT id, extract(month FROM i) FROM d
id:int4|extract:numeric
1|1
3|NULL
4|6
5|0
6|0
2|0

> SELECT id, extract(day FROM i) FROM d
id:int4|extract:numeric
1|2
3|NULL
4|0
5|0
6|14
2|-1

> SELECT id, extract(hour FROM i) FROM d
id:int4|extract:numeric
1|3
3|NULL
4|0
5|36
6|0
2|0

> SELECT id, extract(second FROM i) FROM d
id:int4|extract:numeric
1|5.000000
3|NULL
4|0.000000
5|0.000000
6|0.001000
2|0.000000

> SELECT id, extract(epoch FROM i) FROM d
id:int4|extract:numeric
1|2775845.000000
3|NULL
4|47109600.000000
5|129600.000000
6|1209600.001000
2|-86400.000000

> SELECT id, extract(julian FROM d) FROM d
id:int4|extract:numeric
1|2460341
3|NULL
4|2451544
5|2440588
6|2465443
2|2460371

> SELECT id, date_part('year', d) FROM d
id:int4|date_part:float8
1|2024
3|NULL
4|1999
5|1970
6|2038
2|2024

> SELECT id, date_part('hour', ts) FROM d
id:int4|date_part:float8
1|13
3|NULL
4|23
5|12
6|3
2|1

> SELECT id, date_part('epoch', i) FROM d
id:int4|date_part:float8
1|2775845
3|NULL
4|47109600
5|129600
6|1209600.001
2|-86400

> SELECT id, date_part('dow', ts) FROM d
id:int4|date_part:float8
1|3
3|NULL
4|5
5|3
6|2
2|4

> SELECT id, date_trunc('year', ts) FROM d
id:int4|date_trunc:timestamp
1|2024-01-01 00:00:00
3|NULL
4|1999-01-01 00:00:00
5|1969-01-01 00:00:00
6|2038-01-01 00:00:00
2|2024-01-01 00:00:00

> SELECT id, date_trunc('quarter', ts) FROM d
id:int4|date_trunc:timestamp
1|2024-01-01 00:00:00
3|NULL
4|1999-10-01 00:00:00
5|1969-10-01 00:00:00
6|2038-01-01 00:00:00
2|2024-01-01 00:00:00

> SELECT id, date_trunc('month', ts) FROM d
id:int4|date_trunc:timestamp
1|2024-01-01 00:00:00
3|NULL
4|1999-12-01 00:00:00
5|1969-12-01 00:00:00
6|2038-01-01 00:00:00
2|2024-02-01 00:00:00

> SELECT id, date_trunc('week', ts) FROM d
id:int4|date_trunc:timestamp
1|2024-01-29 00:00:00
3|NULL
4|1999-12-27 00:00:00
5|1969-12-29 00:00:00
6|2038-01-18 00:00:00
2|2024-02-26 00:00:00

> SELECT id, date_trunc('day', ts) FROM d
id:int4|date_trunc:timestamp
1|2024-01-31 00:00:00
3|NULL
4|1999-12-31 00:00:00
5|1969-12-31 00:00:00
6|2038-01-19 00:00:00
2|2024-02-29 00:00:00

> SELECT id, date_trunc('hour', ts) FROM d
id:int4|date_trunc:timestamp
1|2024-01-31 13:00:00
3|NULL
4|1999-12-31 23:00:00
5|1969-12-31 12:00:00
6|2038-01-19 03:00:00
2|2024-02-29 01:00:00

> SELECT id, date_trunc('minute', ts) FROM d
id:int4|date_trunc:timestamp
1|2024-01-31 13:45:00
3|NULL
4|1999-12-31 23:59:00
5|1969-12-31 12:00:00
6|2038-01-19 03:14:00
2|2024-02-29 01:00:00

> SELECT id, date_trunc('second', ts) FROM d
id:int4|date_trunc:timestamp
1|2024-01-31 13:45:30
3|NULL
4|1999-12-31 23:59:59
5|1969-12-31 12:00:00
6|2038-01-19 03:14:08
2|2024-02-29 01:00:00

> SELECT id, date_trunc('milliseconds', ts) FROM d
id:int4|date_trunc:timestamp
1|2024-01-31 13:45:30.123
3|NULL
4|1999-12-31 23:59:59
5|1969-12-31 12:00:00.5
6|2038-01-19 03:14:08
2|2024-02-29 01:00:00

> SELECT id, date_trunc('decade', ts) FROM d
id:int4|date_trunc:timestamp
1|2020-01-01 00:00:00
3|NULL
4|1990-01-01 00:00:00
5|1960-01-01 00:00:00
6|2030-01-01 00:00:00
2|2020-01-01 00:00:00

> SELECT id, date_trunc('century', ts) FROM d
id:int4|date_trunc:timestamp
1|2001-01-01 00:00:00
3|NULL
4|1901-01-01 00:00:00
5|1901-01-01 00:00:00
6|2001-01-01 00:00:00
2|2001-01-01 00:00:00

> SELECT id, date_trunc('month', d) FROM d
id:int4|date_trunc:timestamptz
1|2024-01-01 00:00:00+00
3|NULL
4|1999-12-01 00:00:00+00
5|1970-01-01 00:00:00+00
6|2038-01-01 00:00:00+00
2|2024-03-01 00:00:00+00

> SELECT id, date_trunc('day', tz) FROM d
id:int4|date_trunc:timestamptz
1|2024-01-31 00:00:00+00
3|NULL
4|2000-01-01 00:00:00+00
5|1970-01-01 00:00:00+00
6|2100-01-01 00:00:00+00
2|2024-02-29 00:00:00+00

> SELECT id, date_trunc('hour', i) FROM d
id:int4|date_trunc:interval
1|1 mon 2 days 03:00:00
3|NULL
4|1 year 6 mons
5|36:00:00
6|14 days
2|-1 days

> SELECT id, date_trunc('month', i) FROM d
id:int4|date_trunc:interval
1|1 mon
3|NULL
4|1 year 6 mons
5|00:00:00
6|00:00:00
2|00:00:00

> SELECT id, date_bin('15 minutes', ts, timestamp '2000-01-01') FROM d
id:int4|date_bin:timestamp
1|2024-01-31 13:45:00
3|NULL
4|1999-12-31 23:45:00
5|1969-12-31 12:00:00
6|2038-01-19 03:00:00
2|2024-02-29 01:00:00

> SELECT id, date_bin('1 day', ts, timestamp '2000-01-01 06:00') FROM d
id:int4|date_bin:timestamp
1|2024-01-31 06:00:00
3|NULL
4|1999-12-31 06:00:00
5|1969-12-31 06:00:00
6|2038-01-18 06:00:00
2|2024-02-28 06:00:00

> SELECT id, age(ts, timestamp '2000-01-01') FROM d
id:int4|age:interval
1|24 years 30 days 13:45:30.123456
3|NULL
4|-00:00:01
5|-30 years -11:59:59.5
6|38 years 18 days 03:14:08
2|24 years 1 mon 28 days 01:00:00

> SELECT id, age(d, e) FROM d
id:int4|age:interval
1|1 mon 6 days
3|NULL
4|-1 days
5|1 day
6|-2 years -1 mons -10 days
2|1 day

> SELECT id, age(timestamp '2024-03-31', ts) FROM d
id:int4|age:interval
1|1 mon 30 days 10:14:29.876544
3|NULL
4|24 years 2 mons 30 days 00:00:01
5|54 years 2 mons 30 days 11:59:59.5
6|-13 years -9 mons -19 days -03:14:08
2|1 mon 1 day 23:00:00

> SELECT id, make_date(2024, abs(n % 12) + 1, 15) FROM d
id:int4|make_date:date
1|2024-02-15
3|NULL
4|2024-01-15
5|2024-01-15
6|2024-05-15
2|2024-04-15

> SELECT id, make_time(abs(n % 24), 30, 15.5) FROM d
id:int4|make_time:time
1|01:30:15.5
3|NULL
4|12:30:15.5
5|00:30:15.5
6|04:30:15.5
2|03:30:15.5

> SELECT id, make_timestamp(2024, 2, 29, abs(n % 24), 0, 1.25) FROM d
id:int4|make_timestamp:timestamp
1|2024-02-29 01:00:01.25
3|NULL
4|2024-02-29 12:00:01.25
5|2024-02-29 00:00:01.25
6|2024-02-29 04:00:01.25
2|2024-02-29 03:00:01.25

> SELECT id, make_interval(days => n) FROM d
id:int4|make_interval:interval
1|1 day
3|NULL
4|12 days
5|00:00:00
6|100 days
2|-3 days

> SELECT id, make_interval(0, 1, 0, n) FROM d
id:int4|make_interval:interval
1|1 mon 1 day
3|NULL
4|1 mon 12 days
5|1 mon
6|1 mon 100 days
2|1 mon -3 days

> SELECT id, justify_days(i) FROM d
id:int4|justify_days:interval
1|1 mon 2 days 03:04:05
3|NULL
4|1 year 6 mons
5|36:00:00
6|14 days 00:00:00.001
2|-1 days

> SELECT id, justify_hours(i) FROM d
id:int4|justify_hours:interval
1|1 mon 2 days 03:04:05
3|NULL
4|1 year 6 mons
5|1 day 12:00:00
6|14 days 00:00:00.001
2|-1 days

> SELECT id, justify_interval(i) FROM d
id:int4|justify_interval:interval
1|1 mon 2 days 03:04:05
3|NULL
4|1 year 6 mons
5|1 day 12:00:00
6|14 days 00:00:00.001
2|-1 days

> SELECT id, justify_interval(interval '1 month -1 hour') FROM d
id:int4|justify_interval:interval
1|29 days 23:00:00
3|29 days 23:00:00
4|29 days 23:00:00
5|29 days 23:00:00
6|29 days 23:00:00
2|29 days 23:00:00

> SELECT id, to_timestamp(n * 86400) FROM d
id:int4|to_timestamp:timestamptz
1|1970-01-02 00:00:00+00
3|NULL
4|1970-01-13 00:00:00+00
5|1970-01-01 00:00:00+00
6|1970-04-11 00:00:00+00
2|1969-12-29 00:00:00+00

> SELECT id, to_timestamp(1700000000.25) FROM d
id:int4|to_timestamp:timestamptz
1|2023-11-14 22:13:20.25+00
3|2023-11-14 22:13:20.25+00
4|2023-11-14 22:13:20.25+00
5|2023-11-14 22:13:20.25+00
6|2023-11-14 22:13:20.25+00
2|2023-11-14 22:13:20.25+00

> SELECT id, to_char(d, 'YYYY-MM-DD') FROM d
id:int4|to_char:text
1|2024-01-31
3|NULL
4|1999-12-31
5|1970-01-01
6|2038-01-19
2|2024-03-01

> SELECT id, to_char(d, 'DD Mon YYYY') FROM d
id:int4|to_char:text
1|31 Jan 2024
3|NULL
4|31 Dec 1999
5|01 Jan 1970
6|19 Jan 2038
2|01 Mar 2024

> SELECT id, to_char(d, 'Day, DDth Month YYYY') FROM d
id:int4|to_char:text
1|Wednesday, 31st January   2024
3|NULL
4|Friday   , 31st December  1999
5|Thursday , 01st January   1970
6|Tuesday  , 19th January   2038
2|Friday   , 01st March     2024

> SELECT id, to_char(d, 'FMDay, FMDDth FMMonth') FROM d
id:int4|to_char:text
1|Wednesday, 31st January
3|NULL
4|Friday, 31st December
5|Thursday, 1st January
6|Tuesday, 19th January
2|Friday, 1st March

> SELECT id, to_char(ts, 'HH24:MI:SS.MS') FROM d
id:int4|to_char:text
1|13:45:30.123
3|NULL
4|23:59:59.000
5|12:00:00.500
6|03:14:08.000
2|01:00:00.000

> SELECT id, to_char(ts, 'HH12:MI AM') FROM d
id:int4|to_char:text
1|01:45 PM
3|NULL
4|11:59 PM
5|12:00 PM
6|03:14 AM
2|01:00 AM

> SELECT id, to_char(ts, 'YYYY"-W"IW') FROM d
id:int4|to_char:text
1|2024-W05
3|NULL
4|1999-W52
5|1969-W01
6|2038-W03
2|2024-W09

> SELECT id, to_char(ts, 'Q DDD J') FROM d
id:int4|to_char:text
1|1 031 2460341
3|NULL
4|4 365 2451544
5|4 365 2440587
6|1 019 2465443
2|1 060 2460370

> SELECT id, to_char(tz, 'YYYY-MM-DD HH24:MI:SS') FROM d
id:int4|to_char:text
1|2024-01-31 13:45:30
3|NULL
4|2000-01-01 04:59:59
5|1970-01-01 00:00:00
6|2100-01-01 00:00:00
2|2024-02-29 21:59:59

> SELECT id, to_date(to_char(d, 'YYYYMMDD'), 'YYYYMMDD') FROM d
id:int4|to_date:date
1|2024-01-31
3|NULL
4|1999-12-31
5|1970-01-01
6|2038-01-19
2|2024-03-01

> SELECT id, to_timestamp('2024-05-06 07:08:09', 'YYYY-MM-DD HH24:MI:SS') FROM d
id:int4|to_timestamp:timestamptz
1|2024-05-06 07:08:09+00
3|2024-05-06 07:08:09+00
4|2024-05-06 07:08:09+00
5|2024-05-06 07:08:09+00
6|2024-05-06 07:08:09+00
2|2024-05-06 07:08:09+00

> SELECT id, ts AT TIME ZONE 'UTC' FROM d
id:int4|timezone:timestamptz
1|2024-01-31 13:45:30.123456+00
3|NULL
4|1999-12-31 23:59:59+00
5|1969-12-31 12:00:00.5+00
6|2038-01-19 03:14:08+00
2|2024-02-29 01:00:00+00

> SELECT id, ts AT TIME ZONE 'America/New_York' FROM d
id:int4|timezone:timestamptz
1|2024-01-31 18:45:30.123456+00
3|NULL
4|2000-01-01 04:59:59+00
5|1969-12-31 17:00:00.5+00
6|2038-01-19 08:14:08+00
2|2024-02-29 06:00:00+00

> SELECT id, tz AT TIME ZONE 'Europe/Berlin' FROM d
id:int4|timezone:timestamp
1|2024-01-31 14:45:30
3|NULL
4|2000-01-01 05:59:59
5|1970-01-01 01:00:00
6|2100-01-01 01:00:00
2|2024-02-29 22:59:59.999

> SELECT id, tz AT TIME ZONE 'UTC' FROM d
id:int4|timezone:timestamp
1|2024-01-31 13:45:30
3|NULL
4|2000-01-01 04:59:59
5|1970-01-01 00:00:00
6|2100-01-01 00:00:00
2|2024-02-29 21:59:59.999

> SELECT id, tz AT TIME ZONE 'Asia/Kolkata' FROM d
id:int4|timezone:timestamp
1|2024-01-31 19:15:30
3|NULL
4|2000-01-01 10:29:59
5|1970-01-01 05:30:00
6|2100-01-01 05:30:00
2|2024-03-01 03:29:59.999

> SELECT id, timezone('UTC', ts) FROM d
id:int4|timezone:timestamptz
1|2024-01-31 13:45:30.123456+00
3|NULL
4|1999-12-31 23:59:59+00
5|1969-12-31 12:00:00.5+00
6|2038-01-19 03:14:08+00
2|2024-02-29 01:00:00+00

> SELECT id, tz::timestamp FROM d
id:int4|tz:timestamp
1|2024-01-31 13:45:30
3|NULL
4|2000-01-01 04:59:59
5|1970-01-01 00:00:00
6|2100-01-01 00:00:00
2|2024-02-29 21:59:59.999

> SELECT id, ts::timestamptz FROM d
id:int4|ts:timestamptz
1|2024-01-31 13:45:30.123456+00
3|NULL
4|1999-12-31 23:59:59+00
5|1969-12-31 12:00:00.5+00
6|2038-01-19 03:14:08+00
2|2024-02-29 01:00:00+00

> SELECT id, ts::date FROM d
id:int4|ts:date
1|2024-01-31
3|NULL
4|1999-12-31
5|1969-12-31
6|2038-01-19
2|2024-02-29

> SELECT id, ts::time FROM d
id:int4|ts:time
1|13:45:30.123456
3|NULL
4|23:59:59
5|12:00:00.5
6|03:14:08
2|01:00:00

> SELECT id, tz::date FROM d
id:int4|tz:date
1|2024-01-31
3|NULL
4|2000-01-01
5|1970-01-01
6|2100-01-01
2|2024-02-29

> SELECT id, d::timestamp FROM d
id:int4|d:timestamp
1|2024-01-31 00:00:00
3|NULL
4|1999-12-31 00:00:00
5|1970-01-01 00:00:00
6|2038-01-19 00:00:00
2|2024-03-01 00:00:00

> SELECT id, d::timestamptz FROM d
id:int4|d:timestamptz
1|2024-01-31 00:00:00+00
3|NULL
4|1999-12-31 00:00:00+00
5|1970-01-01 00:00:00+00
6|2038-01-19 00:00:00+00
2|2024-03-01 00:00:00+00

> SELECT id, d::text FROM d
id:int4|d:text
1|2024-01-31
3|NULL
4|1999-12-31
5|1970-01-01
6|2038-01-19
2|2024-03-01

> SELECT id, ts::text FROM d
id:int4|ts:text
1|2024-01-31 13:45:30.123456
3|NULL
4|1999-12-31 23:59:59
5|1969-12-31 12:00:00.5
6|2038-01-19 03:14:08
2|2024-02-29 01:00:00

> SELECT id, tz::text FROM d
id:int4|tz:text
1|2024-01-31 13:45:30+00
3|NULL
4|2000-01-01 04:59:59+00
5|1970-01-01 00:00:00+00
6|2100-01-01 00:00:00+00
2|2024-02-29 21:59:59.999+00

> SELECT id, t::text FROM d
id:int4|t:text
1|13:45:30
3|NULL
4|23:59:59.5
5|12:00:00
6|06:30:15.25
2|00:00:00

> SELECT id, i::text FROM d
id:int4|i:text
1|1 mon 2 days 03:04:05
3|NULL
4|1 year 6 mons
5|36:00:00
6|14 days 00:00:00.001
2|-1 days

> SELECT id, t::interval FROM d
id:int4|t:interval
1|13:45:30
3|NULL
4|23:59:59.5
5|12:00:00
6|06:30:15.25
2|00:00:00

> SELECT id, i::time FROM d
id:int4|i:time
1|03:04:05
3|NULL
4|00:00:00
5|12:00:00
6|00:00:00.001
2|00:00:00

> SELECT id, ts::timestamp(0) FROM d
id:int4|ts:timestamp
1|2024-01-31 13:45:30
3|NULL
4|1999-12-31 23:59:59
5|1969-12-31 12:00:00
6|2038-01-19 03:14:08
2|2024-02-29 01:00:00

> SELECT id, ts::timestamp(3) FROM d
id:int4|ts:timestamp
1|2024-01-31 13:45:30.123
3|NULL
4|1999-12-31 23:59:59
5|1969-12-31 12:00:00.5
6|2038-01-19 03:14:08
2|2024-02-29 01:00:00

> SELECT id, d::text || 'T' || t::text FROM d
id:int4|?column?:text
1|2024-01-31T13:45:30
3|NULL
4|1999-12-31T23:59:59.5
5|1970-01-01T12:00:00
6|2038-01-19T06:30:15.25
2|2024-03-01T00:00:00

> SELECT id, (d::text || ' ' || t::text)::timestamp FROM d
id:int4|timestamp:timestamp
1|2024-01-31 13:45:30
3|NULL
4|1999-12-31 23:59:59.5
5|1970-01-01 12:00:00
6|2038-01-19 06:30:15.25
2|2024-03-01 00:00:00

> SELECT id, (d + t) = ts FROM d
id:int4|?column?:bool
1|f
3|NULL
4|f
5|f
6|f
2|f

> SELECT id, d IS NOT DISTINCT FROM e FROM d
id:int4|?column?:bool
1|f
3|t
4|f
5|f
6|f
2|f

> SELECT id, CASE WHEN d < e THEN e - d ELSE d - e END FROM d
id:int4|case:int4
1|37
3|NULL
4|1
5|1
6|771
2|1

> SELECT id, date '2024-02-28' + n FROM d
id:int4|?column?:date
1|2024-02-29
3|NULL
4|2024-03-11
5|2024-02-28
6|2024-06-07
2|2024-02-25

> SELECT id, date '2024-01-31' + interval '1 month' * n FROM d
id:int4|?column?:timestamp
1|2024-02-29 00:00:00
3|NULL
4|2025-01-31 00:00:00
5|2024-01-31 00:00:00
6|2032-05-31 00:00:00
2|2023-10-31 00:00:00

> SELECT id, timestamp '2024-01-31 10:00' - interval '1 year 1 month 1 day 1 hour' FROM d
id:int4|?column?:timestamp
1|2022-12-30 09:00:00
3|2022-12-30 09:00:00
4|2022-12-30 09:00:00
5|2022-12-30 09:00:00
6|2022-12-30 09:00:00
2|2022-12-30 09:00:00

> SELECT interval '1 year 2 months 3 days 4 hours 5 minutes 6.789 seconds'
interval:interval
1 year 2 mons 3 days 04:05:06.789

> SELECT interval '1-2', interval '3 4:05:06', interval 'P1Y2M3DT4H5M6S', interval '-1 day +2 hours'
interval:interval|interval:interval|interval:interval|interval:interval
1 year 2 mons|3 days 04:05:06|1 year 2 mons 3 days 04:05:06|-1 days +02:00:00

> SELECT interval '1' day, interval '2' month, interval '90' minute, interval '1.5 hours', interval '0'
interval:interval|interval:interval|interval:interval|interval:interval|interval:interval
1 day|2 mons|01:30:00|01:30:00|00:00:00

> SELECT interval '1 day ago', interval '-00:00:01', interval '100 years', interval '1 week'
interval:interval|interval:interval|interval:interval|interval:interval
-1 days|-00:00:01|100 years|7 days

> SELECT date '1999-01-08', date '1999-1-8'
date:date|date:date
1999-01-08|1999-01-08

> SELECT timestamp '2024-01-01', timestamp '2024-01-01T12:30', timestamp '2024-01-01 12:30:00.5'
timestamp:timestamp|timestamp:timestamp|timestamp:timestamp
2024-01-01 00:00:00|2024-01-01 12:30:00|2024-01-01 12:30:00.5

> SELECT timestamptz '2024-06-01 12:00:00Z', timestamptz '2024-06-01 12:00+05:30'
timestamptz:timestamptz|timestamptz:timestamptz
2024-06-01 12:00:00+00|2024-06-01 06:30:00+00

> SELECT time '12:30', time '12:30:45.678', time '24:00'
time:time|time:time|time:time
12:30:00|12:30:45.678|24:00:00

> SELECT date '2024-12-31' - date '2024-01-01', timestamp '2024-12-31' - timestamp '2024-01-01 12:00'
?column?:int4|?column?:interval
365|364 days 12:00:00

> SELECT interval '1 month' = interval '30 days', interval '1 day' = interval '24 hours', interval '1 year' > interval '360 days'
?column?:bool|?column?:bool|?column?:bool
t|t|f

> SELECT date 'epoch', timestamp 'epoch', date '0001-01-01'
date:date|timestamp:timestamp|date:date
1970-01-01|1970-01-01 00:00:00|0001-01-01

> SELECT min(d), max(d), min(ts), max(tz), min(t), max(i) FROM d
min:date|max:date|min:timestamp|max:timestamptz|min:time|max:interval
1970-01-01|2038-01-19|1969-12-31 12:00:00.5|2100-01-01 00:00:00+00|00:00:00|1 year 6 mons

> SELECT sum(i), avg(i), count(i) FROM d
sum:interval|avg:interval|count:int8
1 year 7 mons 15 days 39:04:05.001|3 mons 27 days 07:48:49.0002|5

> SELECT extract(year FROM d) AS y, count(*) FROM d GROUP BY y
y:numeric|count:int8
NULL|1
2038|1
1970|1
2024|2
1999|1

> SELECT date_trunc('year', ts) AS y, count(*), min(id) FROM d GROUP BY 1
y:timestamp|count:int8|min:int4
NULL|1|3
1969-01-01 00:00:00|1|5
1999-01-01 00:00:00|1|4
2024-01-01 00:00:00|2|1
2038-01-01 00:00:00|1|6

> SELECT id FROM d ORDER BY d, id
id:int4
5
4
1
2
6
3

> SELECT id FROM d ORDER BY i DESC NULLS LAST, id
id:int4
4
1
6
5
2
3

> SELECT id FROM d ORDER BY t NULLS FIRST, id
id:int4
3
2
6
5
1
4

> SELECT DISTINCT extract(dow FROM d) FROM d
extract:numeric
NULL
3
4
2
5

> SELECT x.id, y.id FROM d x JOIN d y ON x.d - y.e BETWEEN 0 AND 40
id:int4|id:int4
1|1
5|5
2|2

> SELECT x.id, y.id FROM d x JOIN d y ON x.ts > y.tz::timestamp AND x.id <> y.id
id:int4|id:int4
1|4
1|5
4|5
6|1
6|4
6|5
6|2
2|1
2|4
2|5

> SELECT id, g FROM d, generate_series(d::timestamp, d::timestamp + interval '2 days', interval '1 day') AS g WHERE id < 3
id:int4|g:timestamp
1|2024-01-31 00:00:00
1|2024-02-01 00:00:00
1|2024-02-02 00:00:00
2|2024-03-01 00:00:00
2|2024-03-02 00:00:00
2|2024-03-03 00:00:00

> SELECT g FROM generate_series(timestamp '2024-01-31', timestamp '2024-05-01', interval '1 month') AS g
g:timestamp
2024-01-31 00:00:00
2024-02-29 00:00:00
2024-03-29 00:00:00
2024-04-29 00:00:00

> SELECT id, lag(d) OVER (ORDER BY id), d - lag(d) OVER (ORDER BY id) FROM d
id:int4|lag:date|?column?:int4
1|NULL|NULL
2|2024-01-31|30
3|2024-03-01|NULL
4|NULL|NULL
5|1999-12-31|-10956
6|1970-01-01|24855

> SELECT isfinite(date '2020-01-01'), isfinite(now()), isfinite(interval '1 day'), isfinite(NULL::timestamp)
isfinite:bool|isfinite:bool|isfinite:bool|isfinite:bool
t|t|t|NULL

> SELECT make_interval(days => 3, hours => 2), make_interval(1, months => 2), make_interval(secs => 1.5)
make_interval:interval|make_interval:interval|make_interval:interval
3 days 02:00:00|1 year 2 mons|00:00:01.5

% everview-only
> SELECT make_interval(nope => 1)
! 42883 make_interval has no argument nope

% no-view
> SELECT age(current_date::timestamp), age(current_date - 1)
age:interval|age:interval
00:00:00|1 day

> SELECT id, to_char(ts, 'FMMonth Y,YYY SSSS FF3 A.D. RM IDDD'), to_char(tz, 'TZ OF TZH'), to_char(i, 'YYYY-MM-DD HH24:MI:SS') FROM d
id:int4|to_char:text|to_char:text|to_char:text
1|January 2,024 49530 123 A.D. I    031|UTC +00 +00|0000-01-02 03:04:05
3|NULL|NULL|NULL
4|December 1,999 86399 000 A.D. XII  362|UTC +00 +00|0001-06-00 00:00:00
5|December 1,969 43200 500 A.D. XII  003|UTC +00 +00|0000-00-00 36:00:00
6|January 2,038 11648 000 A.D. I    016|UTC +00 +00|0000-00-14 00:00:00
2|February 2,024 3600 000 A.D. II   060|UTC +00 +00|0000-00--1 00:00:00

> SELECT id, date_trunc('day', tz, 'Europe/Berlin'), extract(julian FROM d), extract(timezone FROM tz), (d, e) OVERLAPS (date '2024-01-01', interval '40 days') FROM d
id:int4|date_trunc:timestamptz|extract:numeric|extract:numeric|overlaps:bool
1|2024-01-30 23:00:00+00|2460341|0|t
3|NULL|NULL|NULL|NULL
4|1999-12-31 23:00:00+00|2451544|0|f
5|1969-12-31 23:00:00+00|2440588|0|f
6|2099-12-31 23:00:00+00|2465443|0|f
2|2024-02-28 23:00:00+00|2460371|0|f

> SELECT make_timestamptz(2024, 7, 1, 8, 15, 23.5), make_timestamptz(2024, 7, 1, 8, 15, 23.5, 'Europe/Berlin')
make_timestamptz:timestamptz|make_timestamptz:timestamptz
2024-07-01 08:15:23.5+00|2024-07-01 06:15:23.5+00

> SELECT to_date('05 Dec 2000', 'DD Mon YYYY'), to_timestamp('December 5, 2000 1:30 pm', 'Month DD, YYYY HH12:MI am')
to_date:date|to_timestamp:timestamptz
2000-12-05|2000-12-05 13:30:00+00

> SELECT to_date('05 Foo 2000', 'DD Mon YYYY')
! 22007 invalid value "Foo" for
