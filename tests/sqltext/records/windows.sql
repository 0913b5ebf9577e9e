# Window functions and their frames
> CREATE TABLE w (id int, g text, k int, v numeric(6,1), d date)
CREATE TABLE

> INSERT INTO w VALUES (1, 'a', 1, 10.0, '2024-01-01'), (2, 'a', 1, 20.0, '2024-01-02'), (3, 'a', 2, NULL, '2024-01-04'), (4, 'b', 5, 5.5, '2024-01-01'), (5, 'b', 4, 7.5, NULL), (12, 'z', 9, 1.0, '2020-01-01')
INSERT 0 6

% changes
> INSERT INTO w VALUES (6, NULL, 3, 1.5, '2024-02-01'), (7, 'a', 2, 40.0, '2024-01-08'), (8, 'b', 5, 5.5, '2024-01-03'), (9, NULL, NULL, 2.5, '2024-01-31'), (10, 'c', 0, 0.0, '2024-03-01')
INSERT 0 5

> UPDATE w SET v = v + 1 WHERE id = 2
UPDATE 1

> DELETE FROM w WHERE id = 12
DELETE 1

> SELECT id, row_number() OVER (ORDER BY id) FROM w
id:int4|row_number:int8
1|1
2|2
3|3
4|4
5|5
6|6
7|7
8|8
9|9
10|10

> SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|row_number:int8
1|1
2|2
3|3
7|4
4|1
5|2
8|3
10|1
6|1
9|2

> SELECT id, row_number() OVER (PARTITION BY g ORDER BY v DESC NULLS LAST, id) FROM w
id:int4|row_number:int8
7|1
2|2
1|3
3|4
5|1
4|2
8|3
10|1
9|1
6|2

> SELECT id, rank() OVER (ORDER BY k) FROM w
id:int4|rank:int8
10|1
1|2
2|2
3|4
7|4
6|6
5|7
8|8
4|8
9|10

> SELECT id, rank() OVER (PARTITION BY g ORDER BY k) FROM w
id:int4|rank:int8
1|1
2|1
7|3
3|3
5|1
8|2
4|2
10|1
6|1
9|2

> SELECT id, rank() OVER (PARTITION BY g ORDER BY k DESC NULLS LAST) FROM w
id:int4|rank:int8
7|1
3|1
2|3
1|3
4|1
8|1
5|3
10|1
6|1
9|2

> SELECT id, dense_rank() OVER (ORDER BY k) FROM w
id:int4|dense_rank:int8
10|1
1|2
2|2
3|3
7|3
6|4
5|5
8|6
4|6
9|7

> SELECT id, dense_rank() OVER (PARTITION BY g ORDER BY v) FROM w
id:int4|dense_rank:int8
1|1
2|2
7|3
3|4
8|1
4|1
5|2
10|1
6|1
9|2

> SELECT id, percent_rank() OVER (ORDER BY k) FROM w
id:int4|percent_rank:float8
10|0
1|0.1111111111111111
2|0.1111111111111111
3|0.3333333333333333
7|0.3333333333333333
6|0.5555555555555556
5|0.6666666666666666
8|0.7777777777777778
4|0.7777777777777778
9|1

> SELECT id, percent_rank() OVER (PARTITION BY g ORDER BY v) FROM w
id:int4|percent_rank:float8
1|0
2|0.3333333333333333
7|0.6666666666666666
3|1
8|0
4|0
5|1
10|0
6|0
9|1

> SELECT id, cume_dist() OVER (ORDER BY k) FROM w
id:int4|cume_dist:float8
10|0.1
1|0.3
2|0.3
3|0.5
7|0.5
6|0.6
5|0.7
8|0.9
4|0.9
9|1

> SELECT id, cume_dist() OVER (PARTITION BY g ORDER BY k) FROM w
id:int4|cume_dist:float8
1|0.5
2|0.5
7|1
3|1
5|0.3333333333333333
8|1
4|1
10|1
6|0.5
9|1

> SELECT id, ntile(3) OVER (ORDER BY id) FROM w
id:int4|ntile:int4
1|1
2|1
3|1
4|1
5|2
6|2
7|2
8|3
9|3
10|3

> SELECT id, ntile(2) OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|ntile:int4
1|1
2|1
3|2
7|2
4|1
5|1
8|2
10|1
6|1
9|2

> SELECT id, ntile(100) OVER (ORDER BY id) FROM w
id:int4|ntile:int4
1|1
2|2
3|3
4|4
5|5
6|6
7|7
8|8
9|9
10|10

> SELECT id, lag(v) OVER (ORDER BY id) FROM w
id:int4|lag:numeric
1|NULL
2|10.0
3|21.0
4|NULL
5|5.5
6|7.5
7|1.5
8|40.0
9|5.5
10|2.5

> SELECT id, lag(v, 2) OVER (ORDER BY id) FROM w
id:int4|lag:numeric
1|NULL
2|NULL
3|10.0
4|21.0
5|NULL
6|5.5
7|7.5
8|1.5
9|40.0
10|5.5

> SELECT id, lag(v, 1, 0) OVER (ORDER BY id) FROM w
id:int4|lag:numeric
1|0
2|10.0
3|21.0
4|NULL
5|5.5
6|7.5
7|1.5
8|40.0
9|5.5
10|2.5

> SELECT id, lag(v, 0) OVER (ORDER BY id) FROM w
id:int4|lag:numeric
1|10.0
2|21.0
3|NULL
4|5.5
5|7.5
6|1.5
7|40.0
8|5.5
9|2.5
10|0.0

> SELECT id, lag(k, 1, -1) OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|lag:int4
1|-1
2|1
3|1
7|2
4|-1
5|5
8|4
10|-1
6|-1
9|3

> SELECT id, lead(v) OVER (ORDER BY id) FROM w
id:int4|lead:numeric
1|21.0
2|NULL
3|5.5
4|7.5
5|1.5
6|40.0
7|5.5
8|2.5
9|0.0
10|NULL

> SELECT id, lead(v, 2) OVER (ORDER BY id) FROM w
id:int4|lead:numeric
1|NULL
2|5.5
3|7.5
4|1.5
5|40.0
6|5.5
7|2.5
8|0.0
9|NULL
10|NULL

> SELECT id, lead(g, 1, 'none') OVER (ORDER BY id) FROM w
id:int4|lead:text
1|a
2|a
3|b
4|b
5|NULL
6|a
7|b
8|NULL
9|c
10|none

> SELECT id, lead(d) OVER (PARTITION BY g ORDER BY d, id) FROM w
id:int4|lead:date
1|2024-01-02
2|2024-01-04
3|2024-01-08
7|NULL
4|2024-01-03
8|NULL
5|NULL
10|NULL
9|2024-02-01
6|NULL

> SELECT id, first_value(id) OVER (PARTITION BY g ORDER BY v, id) FROM w
id:int4|first_value:int4
1|1
2|1
7|1
3|1
4|4
8|4
5|4
10|10
6|6
9|6

> SELECT id, first_value(v) OVER (ORDER BY id) FROM w
id:int4|first_value:numeric
1|10.0
2|10.0
3|10.0
4|10.0
5|10.0
6|10.0
7|10.0
8|10.0
9|10.0
10|10.0

> SELECT id, last_value(id) OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|last_value:int4
1|1
2|2
3|3
7|7
4|4
5|5
8|8
10|10
6|6
9|9

> SELECT id, last_value(id) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM w
id:int4|last_value:int4
1|7
2|7
3|7
7|7
4|8
5|8
8|8
10|10
6|9
9|9

> SELECT id, nth_value(id, 2) OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|nth_value:int4
1|NULL
2|2
3|2
7|2
4|NULL
5|5
8|5
10|NULL
6|NULL
9|9

> SELECT id, nth_value(id, 2) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM w
id:int4|nth_value:int4
1|2
2|2
3|2
7|2
4|5
5|5
8|5
10|NULL
6|9
9|9

> SELECT id, sum(v) OVER () FROM w
id:int4|sum:numeric
1|93.5
3|93.5
4|93.5
5|93.5
6|93.5
7|93.5
8|93.5
9|93.5
10|93.5
2|93.5

> SELECT id, sum(v) OVER (PARTITION BY g) FROM w
id:int4|sum:numeric
2|71.0
3|71.0
7|71.0
1|71.0
8|18.5
4|18.5
5|18.5
10|0.0
6|4.0
9|4.0

> SELECT id, sum(v) OVER (ORDER BY id) FROM w
id:int4|sum:numeric
1|10.0
2|31.0
3|31.0
4|36.5
5|44.0
6|45.5
7|85.5
8|91.0
9|93.5
10|93.5

> SELECT id, sum(v) OVER (ORDER BY k) FROM w
id:int4|sum:numeric
10|0.0
1|31.0
2|31.0
3|71.0
7|71.0
6|72.5
5|80.0
8|91.0
4|91.0
9|93.5

> SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|sum:numeric
1|10.0
2|31.0
3|31.0
7|71.0
4|5.5
5|13.0
8|18.5
10|0.0
6|1.5
9|4.0

> SELECT id, sum(v) OVER (PARTITION BY g ORDER BY k) FROM w
id:int4|sum:numeric
1|31.0
2|31.0
7|71.0
3|71.0
5|7.5
8|18.5
4|18.5
10|0.0
6|1.5
9|4.0

> SELECT id, sum(k) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM w
id:int4|sum:int8
1|1
2|2
3|3
4|7
5|9
6|7
7|5
8|7
9|5
10|0

> SELECT id, sum(k) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM w
id:int4|sum:int8
1|2
2|4
3|8
4|11
5|12
6|9
7|10
8|7
9|5
10|0

> SELECT id, sum(k) OVER (ORDER BY id ROWS 2 PRECEDING) FROM w
id:int4|sum:int8
1|1
2|2
3|4
4|8
5|11
6|12
7|9
8|10
9|7
10|5

> SELECT id, sum(k) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM w
id:int4|sum:int8
1|23
2|22
3|21
4|19
5|14
6|10
7|7
8|5
9|0
10|0

> SELECT id, sum(k) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) FROM w
id:int4|sum:int8
1|NULL
2|1
3|2
4|4
5|9
6|13
7|16
8|18
9|23
10|23

> SELECT id, sum(k) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM w
id:int4|sum:int8
1|3
2|7
3|9
4|7
5|5
6|7
7|5
8|0
9|0
10|NULL

> SELECT id, sum(k) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING) FROM w
id:int4|sum:int8
1|NULL
2|NULL
3|1
4|2
5|3
6|7
7|9
8|7
9|5
10|7

% not-on-spark
> SELECT id, sum(k) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING) FROM w
id:int4|sum:int8
1|NULL
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
9|NULL
10|NULL

> SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM w
id:int4|sum:int8
1|2
2|4
3|5
7|4
4|9
5|14
8|9
10|0
6|3
9|3

> SELECT id, sum(id) OVER (ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM w
id:int4|sum:int8
10|10
1|13
2|13
3|23
7|23
6|29
5|34
8|46
4|46
9|55

> SELECT id, sum(id) OVER (ORDER BY k RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM w
id:int4|sum:int8
10|55
1|45
2|45
3|42
7|42
6|32
5|26
8|21
4|21
9|9

> SELECT id, sum(id) OVER (ORDER BY k RANGE CURRENT ROW) FROM w
id:int4|sum:int8
10|10
1|3
2|3
3|10
7|10
6|6
5|5
8|12
4|12
9|9

> SELECT id, sum(id) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM w
id:int4|sum:int8
10|13
1|23
2|23
3|19
7|19
6|21
5|23
8|17
4|17
9|9

> SELECT id, sum(id) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM w
id:int4|sum:int8
10|10
1|13
2|13
3|13
7|13
6|16
5|11
8|17
4|17
9|9

> SELECT id, sum(id) OVER (ORDER BY k DESC RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) FROM w
id:int4|sum:int8
9|9
8|12
4|12
5|17
6|23
7|21
3|21
2|19
1|19
10|23

> SELECT id, sum(id) OVER (ORDER BY v RANGE BETWEEN 2.5 PRECEDING AND 2.5 FOLLOWING) FROM w
id:int4|sum:int8
10|25
6|25
9|25
8|17
4|17
5|18
1|6
2|2
7|7
3|3

> SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN interval '2 days' PRECEDING AND CURRENT ROW) FROM w
id:int4|count:int8
4|2
1|2
2|3
8|4
3|3
7|1
9|1
6|2
10|1
5|1

% not-on-spark
> SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN interval '1 month' PRECEDING AND interval '1 day' FOLLOWING) FROM w
id:int4|count:int8
4|3
1|3
2|4
8|5
3|5
7|6
9|8
6|8
10|2
5|1

> SELECT id, sum(id) OVER (ORDER BY k GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM w
id:int4|sum:int8
10|10
1|13
2|13
3|13
7|13
6|16
5|11
8|17
4|17
9|21

> SELECT id, sum(id) OVER (ORDER BY k GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM w
id:int4|sum:int8
10|13
1|13
2|13
3|16
7|16
6|11
5|17
8|21
4|21
9|9

% not-on-spark
> SELECT id, sum(k) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM w
id:int4|sum:int8
1|1
2|3
3|6
4|6
5|8
6|6
7|8
8|2
9|5
10|NULL

% not-on-spark
> SELECT id, sum(id) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP) FROM w
id:int4|sum:int8
10|45
1|52
2|52
3|45
7|45
6|49
5|50
8|43
4|43
9|46

% not-on-spark
> SELECT id, sum(id) OVER (ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM w
id:int4|sum:int8
10|10
1|11
2|12
3|16
7|20
6|29
5|34
8|42
4|38
9|55

> SELECT id, count(*) OVER () FROM w
id:int4|count:int8
1|10
3|10
4|10
5|10
6|10
7|10
8|10
9|10
10|10
2|10

> SELECT id, count(*) OVER (PARTITION BY g) FROM w
id:int4|count:int8
2|4
3|4
7|4
1|4
8|3
4|3
5|3
10|1
6|2
9|2

> SELECT id, count(v) OVER (PARTITION BY g) FROM w
id:int4|count:int8
2|3
3|3
7|3
1|3
8|3
4|3
5|3
10|1
6|2
9|2

> SELECT id, count(v) OVER (ORDER BY id) FROM w
id:int4|count:int8
1|1
2|2
3|2
4|3
5|4
6|5
7|6
8|7
9|8
10|9

> SELECT id, count(*) FILTER (WHERE k > 1) OVER (PARTITION BY g) FROM w
id:int4|count:int8
2|2
3|2
7|2
1|2
8|3
4|3
5|3
10|0
6|1
9|1

> SELECT id, sum(v) FILTER (WHERE k > 1) OVER (ORDER BY id) FROM w
id:int4|sum:numeric
1|NULL
2|NULL
3|NULL
4|5.5
5|13.0
6|14.5
7|54.5
8|60.0
9|60.0
10|60.0

> SELECT id, avg(v) OVER (PARTITION BY g) FROM w
id:int4|avg:numeric
2|23.6666666666666667
3|23.6666666666666667
7|23.6666666666666667
1|23.6666666666666667
8|6.1666666666666667
4|6.1666666666666667
5|6.1666666666666667
10|0.00000000000000000000
6|2.0000000000000000
9|2.0000000000000000

> SELECT id, avg(k) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM w
id:int4|avg:numeric
1|1.00000000000000000000
2|1.00000000000000000000
3|1.3333333333333333
4|2.6666666666666667
5|3.6666666666666667
6|4.0000000000000000
7|3.0000000000000000
8|3.3333333333333333
9|3.5000000000000000
10|2.5000000000000000

> SELECT id, min(v) OVER (PARTITION BY g) FROM w
id:int4|min:numeric
2|10.0
3|10.0
7|10.0
1|10.0
8|5.5
4|5.5
5|5.5
10|0.0
6|1.5
9|1.5

> SELECT id, max(v) OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|max:numeric
1|10.0
2|21.0
3|21.0
7|40.0
4|5.5
5|7.5
8|7.5
10|0.0
6|1.5
9|2.5

> SELECT id, max(v) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM w
id:int4|max:numeric
1|21.0
2|21.0
3|21.0
4|7.5
5|7.5
6|40.0
7|40.0
8|40.0
9|5.5
10|2.5

> SELECT id, min(d) OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|min:date
1|2024-01-01
2|2024-01-01
3|2024-01-01
7|2024-01-01
4|2024-01-01
5|2024-01-01
8|2024-01-01
10|2024-03-01
6|2024-02-01
9|2024-01-31

> SELECT id, bool_and(v > 5) OVER (PARTITION BY g) FROM w
id:int4|bool_and:bool
2|t
3|t
7|t
1|t
8|t
4|t
5|t
10|f
6|f
9|f

> SELECT id, bool_or(k = 5) OVER (ORDER BY id) FROM w
id:int4|bool_or:bool
1|f
2|f
3|f
4|t
5|t
6|t
7|t
8|t
9|t
10|t

> SELECT id, string_agg(g, '') OVER (ORDER BY id) FROM w
id:int4|string_agg:text
1|a
2|aa
3|aaa
4|aaab
5|aaabb
6|aaabb
7|aaabba
8|aaabbab
9|aaabbab
10|aaabbabc

> SELECT id, string_agg(id::text, ',') OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|string_agg:text
1|1
2|1,2
3|1,2,3
7|1,2,3,7
4|4
5|4,5
8|4,5,8
10|10
6|6
9|6,9

> SELECT id, array_agg(id) OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|array_agg:int4[]
1|{1}
2|{1,2}
3|{1,2,3}
7|{1,2,3,7}
4|{4}
5|{4,5}
8|{4,5,8}
10|{10}
6|{6}
9|{6,9}

> SELECT id, array_agg(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM w
id:int4|array_agg:int4[]
1|{1,2}
2|{1,2,3}
3|{2,3,4}
4|{3,4,5}
5|{4,5,6}
6|{5,6,7}
7|{6,7,8}
8|{7,8,9}
9|{8,9,10}
10|{9,10}

> SELECT id, var_pop(k) OVER (PARTITION BY g) FROM w
id:int4|var_pop:numeric
2|0.25000000000000000000
3|0.25000000000000000000
7|0.25000000000000000000
1|0.25000000000000000000
8|0.22222222222222222222
4|0.22222222222222222222
5|0.22222222222222222222
10|0
6|0
9|0

> SELECT id, v - avg(v) OVER (PARTITION BY g) FROM w
id:int4|?column?:numeric
2|-2.6666666666666667
3|NULL
7|16.3333333333333333
1|-13.6666666666666667
8|-0.6666666666666667
4|-0.6666666666666667
5|1.3333333333333333
10|0.00000000000000000000
6|-0.5000000000000000
9|0.5000000000000000

> SELECT id, v / sum(v) OVER () * 100 FROM w
id:int4|?column?:numeric
1|10.69518716577540107000
3|NULL
4|5.88235294117647058800
5|8.02139037433155080200
6|1.60427807486631016000
7|42.78074866310160427800
8|5.88235294117647058800
9|2.67379679144385026700
10|0.00000000000000000000
2|22.45989304812834224600

> SELECT id, v - lag(v) OVER (PARTITION BY g ORDER BY id) FROM w
id:int4|?column?:numeric
1|NULL
2|11.0
3|NULL
7|NULL
4|NULL
5|2.0
8|-2.0
10|NULL
6|NULL
9|1.0

> SELECT id, d - lag(d) OVER (ORDER BY d, id) FROM w
id:int4|?column?:int4
1|NULL
4|0
2|1
8|1
3|1
7|4
9|23
6|1
10|29
5|NULL

> SELECT id, k - row_number() OVER (ORDER BY id) FROM w
id:int4|?column?:int8
1|0
2|-1
3|-1
4|1
5|-1
6|-3
7|-5
8|-3
9|NULL
10|-10

> SELECT id, coalesce(lag(v) OVER (ORDER BY id), -1) FROM w
id:int4|coalesce:numeric
1|-1
2|10.0
3|21.0
4|-1
5|5.5
6|7.5
7|1.5
8|40.0
9|5.5
10|2.5

> SELECT id, CASE WHEN row_number() OVER (PARTITION BY g ORDER BY id) = 1 THEN 'first' ELSE 'rest' END FROM w
id:int4|case:text
1|first
2|rest
3|rest
7|rest
4|first
5|rest
8|rest
10|first
6|first
9|rest

> SELECT id, rank() OVER (ORDER BY v DESC NULLS LAST), rank() OVER (ORDER BY v) FROM w
id:int4|rank:int8|rank:int8
10|9|1
6|8|2
9|7|3
8|5|4
4|5|4
5|4|6
1|3|7
2|2|8
7|1|9
3|10|10

> SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id), sum(v) OVER (PARTITION BY g) FROM w
id:int4|sum:numeric|sum:numeric
1|10.0|71.0
2|31.0|71.0
3|31.0|71.0
7|71.0|71.0
4|5.5|18.5
5|13.0|18.5
8|18.5|18.5
10|0.0|0.0
6|1.5|4.0
9|4.0|4.0

> SELECT id, row_number() OVER (ORDER BY v NULLS FIRST, id) FROM w
id:int4|row_number:int8
3|1
10|2
6|3
9|4
4|5
8|6
5|7
1|8
2|9
7|10

> SELECT id, row_number() OVER (ORDER BY g DESC, id DESC) FROM w
id:int4|row_number:int8
9|1
6|2
10|3
8|4
5|5
4|6
7|7
3|8
2|9
1|10

> SELECT id, row_number() OVER (ORDER BY g || id) FROM w
id:int4|row_number:int8
1|1
2|2
3|3
7|4
4|5
5|6
8|7
10|8
6|9
9|10

> SELECT id, rank() OVER (ORDER BY k % 2, id) FROM w
id:int4|rank:int8
3|1
5|2
7|3
10|4
1|5
2|6
4|7
6|8
8|9
9|10

> SELECT id, sum(k + 1) OVER (PARTITION BY k % 2 ORDER BY id) FROM w
id:int4|sum:int8
3|3
5|8
7|11
10|12
1|2
2|4
4|10
6|14
8|20
9|NULL

> SELECT id, count(*) OVER (PARTITION BY g, k) FROM w
id:int4|count:int8
1|2
2|2
7|2
3|2
5|1
8|2
4|2
10|1
6|1
9|1

> SELECT id, count(*) OVER (PARTITION BY g IS NULL) FROM w
id:int4|count:int8
2|8
3|8
4|8
5|8
10|8
1|8
7|8
8|8
6|2
9|2

> SELECT id, first_value(g) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM w
id:int4|first_value:text
1|a
2|a
3|a
4|b
5|b
6|NULL
7|a
8|b
9|NULL
10|c

> SELECT id, sum(v) OVER w1 FROM w WINDOW w1 AS (PARTITION BY g ORDER BY id)
id:int4|sum:numeric
1|10.0
2|31.0
3|31.0
7|71.0
4|5.5
5|13.0
8|18.5
10|0.0
6|1.5
9|4.0

> SELECT id, sum(v) OVER w1, count(*) OVER w2 FROM w WINDOW w1 AS (PARTITION BY g), w2 AS (w1 ORDER BY id)
id:int4|sum:numeric|count:int8
1|71.0|1
2|71.0|2
3|71.0|3
7|71.0|4
4|18.5|1
5|18.5|2
8|18.5|3
10|0.0|1
6|4.0|1
9|4.0|2

> SELECT id, max(v) OVER (w1 ORDER BY id) FROM w WINDOW w1 AS (PARTITION BY g)
id:int4|max:numeric
1|10.0
2|21.0
3|21.0
7|40.0
4|5.5
5|7.5
8|7.5
10|0.0
6|1.5
9|2.5

> SELECT id, sum(v) OVER (w1 ROWS 1 PRECEDING) FROM w WINDOW w1 AS (ORDER BY id)
id:int4|sum:numeric
1|10.0
2|31.0
3|21.0
4|5.5
5|13.0
6|9.0
7|41.5
8|45.5
9|8.0
10|2.5

> SELECT * FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY v DESC NULLS LAST, id) AS n FROM w) x WHERE n = 1
id:int4|g:text|n:int8
7|a|1
5|b|1
10|c|1
9|NULL|1

> SELECT * FROM (SELECT id, rank() OVER (ORDER BY k) AS r FROM w) x WHERE r <= 3
id:int4|r:int8
10|1
1|2
2|2

> SELECT g, sum(v), rank() OVER (ORDER BY sum(v) DESC NULLS LAST) FROM w GROUP BY g
g:text|sum:numeric|rank:int8
a|71.0|1
b|18.5|2
NULL|4.0|3
c|0.0|4

> SELECT g, count(*), sum(count(*)) OVER (ORDER BY g) FROM w GROUP BY g
g:text|count:int8|sum:numeric
a|4|4
b|3|7
c|1|8
NULL|2|10

> SELECT g, avg(sum(v)) OVER () FROM w GROUP BY g
g:text|avg:numeric
NULL|23.3750000000000000
a|23.3750000000000000
b|23.3750000000000000
c|23.3750000000000000

> SELECT id FROM w ORDER BY row_number() OVER (ORDER BY v DESC NULLS LAST, id)
id:int4
7
2
1
5
4
8
9
6
10
3

> SELECT id, n FROM (SELECT id, count(*) OVER (PARTITION BY g) AS n FROM w WHERE v > 2) x
id:int4|n:int8
7|3
1|3
2|3
8|3
4|3
5|3
9|1

> SELECT DISTINCT g, count(*) OVER (PARTITION BY g) FROM w
g:text|count:int8
c|1
b|3
NULL|2
a|4

> SELECT a.id, sum(a.v) OVER (PARTITION BY b.g ORDER BY a.id) FROM w a JOIN w b ON a.id = b.id
id:int4|sum:numeric
1|10.0
2|31.0
3|31.0
7|71.0
4|5.5
5|13.0
8|18.5
10|0.0
6|1.5
9|4.0

> SELECT id, row_number() OVER (ORDER BY id) FROM w ORDER BY id DESC LIMIT 3
id:int4|row_number:int8
10|10
9|9
8|8

> SELECT id, sum(v) OVER (PARTITION BY g ORDER BY d, id ROWS UNBOUNDED PRECEDING) FROM w
id:int4|sum:numeric
1|10.0
2|31.0
3|31.0
7|71.0
4|5.5
8|11.0
5|18.5
10|0.0
9|2.5
6|4.0

> SELECT id, id - dense_rank() OVER (ORDER BY g, id) AS island FROM w
id:int4|island:int8
1|0
2|0
3|0
7|3
4|-1
5|-1
8|1
10|2
6|-3
9|-1

> SELECT g, min(id), max(id) FROM (SELECT id, g, id - row_number() OVER (PARTITION BY g ORDER BY id) AS island FROM w) x GROUP BY g, island
g:text|min:int4|max:int4
c|10|10
a|7|7
b|4|5
NULL|6|6
a|1|3
NULL|9|9
b|8|8

> SELECT sum(x) FROM (SELECT lag(k, 1, 0) OVER (ORDER BY id) AS x FROM w) y
sum:int8
23

> SELECT id, sum(s) OVER (ORDER BY id) FROM (SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) AS s FROM w) x
id:int4|sum:numeric
1|1
2|3
3|7
4|12
5|21
6|24
7|30
8|44
9|47
10|47

> SELECT 1, row_number() OVER () FROM w WHERE id = 1
?column?:int4|row_number:int8
1|1

> SELECT id, rank() OVER () FROM w
id:int4|rank:int8
1|1
3|1
4|1
5|1
6|1
7|1
8|1
9|1
10|1
2|1
