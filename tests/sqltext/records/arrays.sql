# Arrays: construction, subscripts, operators, functions
> CREATE TABLE a (id int, x int[], t text[], n int)
CREATE TABLE

> INSERT INTO a VALUES (1, '{1,2,3}', '{a,b}', 2), (2, '{}', '{}', 1), (3, NULL, NULL, NULL), (9, '{9}', '{z}', 9)
INSERT 0 4

% changes
> INSERT INTO a VALUES (4, '{5,NULL,5}', '{x,NULL,"q r"}', 5), (5, '{7}', '{""}', 7), (6, ARRAY[3, 2, 1, 2], ARRAY['b', 'a', 'b'], 2)
INSERT 0 3

> UPDATE a SET x = x || 4 WHERE id = 1
UPDATE 1

> DELETE FROM a WHERE id = 9
DELETE 1

> SELECT id, x FROM a
id:int4|x:int4[]
2|{}
3|NULL
4|{5,NULL,5}
5|{7}
6|{3,2,1,2}
1|{1,2,3,4}

> SELECT id, t FROM a
id:int4|t:text[]
2|{}
3|NULL
4|{x,NULL,"q r"}
5|{""}
6|{b,a,b}
1|{a,b}

> SELECT id, x[1] FROM a
id:int4|x:int4
2|NULL
3|NULL
4|5
5|7
6|3
1|1

> SELECT id, x[n] FROM a
id:int4|x:int4
2|NULL
3|NULL
4|NULL
5|NULL
6|2
1|2

> SELECT id, x[0] FROM a
id:int4|x:int4
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
1|NULL

> SELECT id, t[2] FROM a
id:int4|t:text
2|NULL
3|NULL
4|NULL
5|NULL
6|a
1|b

> SELECT id, x[2:3] FROM a
id:int4|x:int4[]
2|{}
3|NULL
4|{NULL,5}
5|{}
6|{2,1}
1|{2,3}

> SELECT id, x[:2] FROM a
id:int4|x:int4[]
2|{}
3|NULL
4|{5,NULL}
5|{7}
6|{3,2}
1|{1,2}

> SELECT id, x[2:] FROM a
id:int4|x:int4[]
2|{}
3|NULL
4|{NULL,5}
5|{}
6|{2,1,2}
1|{2,3,4}

> SELECT id, x[3:1] FROM a
id:int4|x:int4[]
2|{}
3|NULL
4|{}
5|{}
6|{}
1|{}

> SELECT id, t[1:n] FROM a
id:int4|t:text[]
2|{}
3|NULL
4|{x,NULL,"q r"}
5|{""}
6|{b,a}
1|{a,b}

> SELECT id, array_length(x, 1) FROM a
id:int4|array_length:int4
2|NULL
3|NULL
4|3
5|1
6|4
1|4

> SELECT id, array_length(t, 2) FROM a
id:int4|array_length:int4
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
1|NULL

> SELECT id, cardinality(x) FROM a
id:int4|cardinality:int4
2|0
3|NULL
4|3
5|1
6|4
1|4

> SELECT id, array_upper(x, 1) FROM a
id:int4|array_upper:int4
2|NULL
3|NULL
4|3
5|1
6|4
1|4

> SELECT id, array_lower(x, 1) FROM a
id:int4|array_lower:int4
2|NULL
3|NULL
4|1
5|1
6|1
1|1

> SELECT id, array_ndims(x) FROM a
id:int4|array_ndims:int4
2|NULL
3|NULL
4|1
5|1
6|1
1|1

> SELECT id, array_append(x, n) FROM a
id:int4|array_append:int4[]
2|{1}
3|{NULL}
4|{5,NULL,5,5}
5|{7,7}
6|{3,2,1,2,2}
1|{1,2,3,4,2}

> SELECT id, array_append(x, NULL) FROM a
id:int4|array_append:int4[]
2|{NULL}
3|{NULL}
4|{5,NULL,5,NULL}
5|{7,NULL}
6|{3,2,1,2,NULL}
1|{1,2,3,4,NULL}

> SELECT id, array_prepend(n, x) FROM a
id:int4|array_prepend:int4[]
2|{1}
3|{NULL}
4|{5,5,NULL,5}
5|{7,7}
6|{2,3,2,1,2}
1|{2,1,2,3,4}

> SELECT id, array_cat(x, ARRAY[8, 9]) FROM a
id:int4|array_cat:int4[]
2|{8,9}
3|{8,9}
4|{5,NULL,5,8,9}
5|{7,8,9}
6|{3,2,1,2,8,9}
1|{1,2,3,4,8,9}

> SELECT id, x || 9 FROM a
id:int4|?column?:int4[]
2|{9}
3|{9}
4|{5,NULL,5,9}
5|{7,9}
6|{3,2,1,2,9}
1|{1,2,3,4,9}

> SELECT id, 0 || x FROM a
id:int4|?column?:int4[]
2|{0}
3|{0}
4|{0,5,NULL,5}
5|{0,7}
6|{0,3,2,1,2}
1|{0,1,2,3,4}

> SELECT id, x || ARRAY[10, 11] FROM a
id:int4|?column?:int4[]
2|{10,11}
3|{10,11}
4|{5,NULL,5,10,11}
5|{7,10,11}
6|{3,2,1,2,10,11}
1|{1,2,3,4,10,11}

> SELECT id, x || NULL::int[] FROM a
id:int4|?column?:int4[]
2|{}
3|NULL
4|{5,NULL,5}
5|{7}
6|{3,2,1,2}
1|{1,2,3,4}

> SELECT id, t || 'new'::text FROM a
id:int4|?column?:text[]
2|{new}
3|{new}
4|{x,NULL,"q r",new}
5|{"",new}
6|{b,a,b,new}
1|{a,b,new}

> SELECT id, t || t FROM a
id:int4|?column?:text[]
2|{}
3|NULL
4|{x,NULL,"q r",x,NULL,"q r"}
5|{"",""}
6|{b,a,b,b,a,b}
1|{a,b,a,b}

> SELECT id, array_remove(x, 2) FROM a
id:int4|array_remove:int4[]
2|{}
3|NULL
4|{5,NULL,5}
5|{7}
6|{3,1}
1|{1,3,4}

> SELECT id, array_remove(x, NULL) FROM a
id:int4|array_remove:int4[]
2|{}
3|NULL
4|{5,5}
5|{7}
6|{3,2,1,2}
1|{1,2,3,4}

> SELECT id, array_remove(t, 'b') FROM a
id:int4|array_remove:text[]
2|{}
3|NULL
4|{x,NULL,"q r"}
5|{""}
6|{a}
1|{a}

> SELECT id, array_position(x, 2) FROM a
id:int4|array_position:int4
2|NULL
3|NULL
4|NULL
5|NULL
6|2
1|2

> SELECT id, array_position(t, 'b') FROM a
id:int4|array_position:int4
2|NULL
3|NULL
4|NULL
5|NULL
6|1
1|2

> SELECT id, array_position(x, n) FROM a
id:int4|array_position:int4
2|NULL
3|NULL
4|1
5|1
6|2
1|2

> SELECT id, array_to_string(x, ',') FROM a
id:int4|array_to_string:text
2|""
3|NULL
4|5,5
5|7
6|3,2,1,2
1|1,2,3,4

> SELECT id, array_to_string(x, ',', '*') FROM a
id:int4|array_to_string:text
2|""
3|NULL
4|5,*,5
5|7
6|3,2,1,2
1|1,2,3,4

> SELECT id, array_to_string(t, '-') FROM a
id:int4|array_to_string:text
2|""
3|NULL
4|x-q r
5|""
6|b-a-b
1|a-b

> SELECT id, x = ARRAY[7] FROM a
id:int4|?column?:bool
2|f
3|NULL
4|f
5|t
6|f
1|f

> SELECT id, x = '{}' FROM a
id:int4|?column?:bool
2|t
3|NULL
4|f
5|f
6|f
1|f

> SELECT id, x <> ARRAY[1, 2] FROM a
id:int4|?column?:bool
2|t
3|NULL
4|t
5|t
6|t
1|t

> SELECT id, x < ARRAY[3] FROM a
id:int4|?column?:bool
2|t
3|NULL
4|f
5|f
6|f
1|t

> SELECT id, x > ARRAY[1, 2] FROM a
id:int4|?column?:bool
2|f
3|NULL
4|t
5|t
6|t
1|t

> SELECT id, x @> ARRAY[2] FROM a
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|t
1|t

> SELECT id, x @> ARRAY[]::int[] FROM a
id:int4|?column?:bool
2|t
3|NULL
4|t
5|t
6|t
1|t

> SELECT id, x <@ ARRAY[1, 2, 3, 4, 5] FROM a
id:int4|?column?:bool
2|t
3|NULL
4|f
5|f
6|t
1|t

> SELECT id, x && ARRAY[2, 7] FROM a
id:int4|?column?:bool
2|f
3|NULL
4|f
5|t
6|t
1|t

> SELECT id, x && ARRAY[100] FROM a
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|f
1|f

> SELECT id, t @> ARRAY['a'] FROM a
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|t
1|t

> SELECT id, t && ARRAY['x', 'b'] FROM a
id:int4|?column?:bool
2|f
3|NULL
4|t
5|f
6|t
1|t

> SELECT id, n = ANY (x) FROM a
id:int4|?column?:bool
2|f
3|NULL
4|t
5|t
6|t
1|t

> SELECT id, n <> ALL (x) FROM a
id:int4|?column?:bool
2|t
3|NULL
4|f
5|f
6|f
1|f

> SELECT id, n > ANY (x) FROM a
id:int4|?column?:bool
2|f
3|NULL
4|NULL
5|f
6|t
1|t

> SELECT id, n >= ALL (x) FROM a
id:int4|?column?:bool
2|t
3|NULL
4|NULL
5|t
6|f
1|f

> SELECT id, 'b' = ANY (t) FROM a
id:int4|?column?:bool
2|f
3|NULL
4|NULL
5|f
6|t
1|t

> SELECT id, 2 = ANY (x) FROM a
id:int4|?column?:bool
2|f
3|NULL
4|NULL
5|f
6|t
1|t

> SELECT id, ARRAY[id, n] FROM a
id:int4|array:int4[]
2|{2,1}
3|{3,NULL}
4|{4,5}
5|{5,7}
6|{6,2}
1|{1,2}

> SELECT id, ARRAY[id, n] || x FROM a
id:int4|?column?:int4[]
2|{2,1}
3|{3,NULL}
4|{4,5,5,NULL,5}
5|{5,7,7}
6|{6,2,3,2,1,2}
1|{1,2,1,2,3,4}

> SELECT id, ARRAY[id, NULL] FROM a
id:int4|array:int4[]
2|{2,NULL}
3|{3,NULL}
4|{4,NULL}
5|{5,NULL}
6|{6,NULL}
1|{1,NULL}

> SELECT id, ARRAY[n::numeric, 1.5] FROM a
id:int4|array:numeric[]
2|{1,1.5}
3|{NULL,1.5}
4|{5,1.5}
5|{7,1.5}
6|{2,1.5}
1|{2,1.5}

> SELECT id, ARRAY[t[1], 'lit'] FROM a
id:int4|array:text[]
2|{NULL,lit}
3|{NULL,lit}
4|{x,lit}
5|{"",lit}
6|{b,lit}
1|{a,lit}

> SELECT id, x::text FROM a
id:int4|x:text
2|{}
3|NULL
4|{5,NULL,5}
5|{7}
6|{3,2,1,2}
1|{1,2,3,4}

> SELECT id, x::text[] FROM a
id:int4|x:text[]
2|{}
3|NULL
4|{5,NULL,5}
5|{7}
6|{3,2,1,2}
1|{1,2,3,4}

> SELECT id, x::bigint[] FROM a
id:int4|x:int8[]
2|{}
3|NULL
4|{5,NULL,5}
5|{7}
6|{3,2,1,2}
1|{1,2,3,4}

> SELECT id, t::text FROM a
id:int4|t:text
2|{}
3|NULL
4|{x,NULL,"q r"}
5|{""}
6|{b,a,b}
1|{a,b}

> SELECT id, x IS NULL FROM a
id:int4|?column?:bool
2|f
3|t
4|f
5|f
6|f
1|f

> SELECT id, coalesce(x, '{0}') FROM a
id:int4|coalesce:int4[]
2|{}
3|{0}
4|{5,NULL,5}
5|{7}
6|{3,2,1,2}
1|{1,2,3,4}

> SELECT id, CASE WHEN cardinality(x) > 1 THEN x ELSE ARRAY[-1] END FROM a
id:int4|array:int4[]
2|{-1}
3|{-1}
4|{5,NULL,5}
5|{-1}
6|{3,2,1,2}
1|{1,2,3,4}

> SELECT id, ARRAY(SELECT e * 2 FROM unnest(x) AS e ORDER BY e) FROM a
id:int4|array:int4[]
2|{}
3|{}
4|{10,10,NULL}
5|{14}
6|{2,4,4,6}
1|{2,4,6,8}

> SELECT id, ARRAY(SELECT b.id FROM a b WHERE b.id < a.id ORDER BY b.id) FROM a
id:int4|array:int4[]
2|{1}
3|{1,2}
4|{1,2,3}
5|{1,2,3,4}
6|{1,2,3,4,5}
1|{}

> SELECT id, (SELECT sum(e) FROM unnest(x) AS e) FROM a
id:int4|sum:int8
2|NULL
3|NULL
4|10
5|7
6|8
1|10

> SELECT id, (SELECT string_agg(e, '+' ORDER BY e) FROM unnest(t) AS e) FROM a
id:int4|string_agg:text
2|NULL
3|NULL
4|q r+x
5|""
6|a+b+b
1|a+b

> SELECT id, x[1] + x[2] FROM a
id:int4|?column?:int4
2|NULL
3|NULL
4|NULL
5|NULL
6|5
1|3

> SELECT id, length(t[1]) FROM a
id:int4|length:int4
2|NULL
3|NULL
4|1
5|0
6|1
1|1

> SELECT id, string_to_array('a,b,,c', ',') FROM a
id:int4|string_to_array:text[]
2|{a,b,"",c}
3|{a,b,"",c}
4|{a,b,"",c}
5|{a,b,"",c}
6|{a,b,"",c}
1|{a,b,"",c}

> SELECT id, string_to_array('a,b,,c', ',', '') FROM a
id:int4|string_to_array:text[]
2|{a,b,NULL,c}
3|{a,b,NULL,c}
4|{a,b,NULL,c}
5|{a,b,NULL,c}
6|{a,b,NULL,c}
1|{a,b,NULL,c}

> SELECT id, string_to_array('abc', NULL) FROM a
id:int4|string_to_array:text[]
2|{a,b,c}
3|{a,b,c}
4|{a,b,c}
5|{a,b,c}
6|{a,b,c}
1|{a,b,c}

> SELECT id, string_to_array('', ',') FROM a
id:int4|string_to_array:text[]
2|{}
3|{}
4|{}
5|{}
6|{}
1|{}

> SELECT id, e FROM a, unnest(x) AS e
id:int4|e:int4
4|5
4|NULL
4|5
5|7
6|3
6|2
6|1
6|2
1|1
1|2
1|3
1|4

> SELECT id, e FROM a LEFT JOIN unnest(x) AS e ON true
id:int4|e:int4
2|NULL
3|NULL
4|5
4|NULL
4|5
5|7
6|3
6|2
6|1
6|2
1|1
1|2
1|3
1|4

> SELECT id, e, o FROM a, unnest(x) WITH ORDINALITY AS u(e, o)
id:int4|e:int4|o:int8
4|5|1
4|NULL|2
4|5|3
5|7|1
6|3|1
6|2|2
6|1|3
6|2|4
1|1|1
1|2|2
1|3|3
1|4|4

> SELECT id, s FROM a, generate_subscripts(x, 1) AS s
id:int4|s:int4
4|1
4|2
4|3
5|1
6|1
6|2
6|3
6|4
1|1
1|2
1|3
1|4

> SELECT id, unnest(x) FROM a
id:int4|unnest:int4
4|5
4|NULL
4|5
5|7
6|3
6|2
6|1
6|2
1|1
1|2
1|3
1|4

> SELECT id, unnest(x), unnest(t) FROM a
id:int4|unnest:int4|unnest:text
4|5|x
4|NULL|NULL
4|5|q r
5|7|""
6|3|b
6|2|a
6|1|b
6|2|NULL
1|1|a
1|2|b
1|3|NULL
1|4|NULL

> SELECT e, count(*) FROM a, unnest(x) AS e GROUP BY e
e:int4|count:int8
7|1
NULL|1
1|2
5|2
4|1
2|3
3|2

> SELECT array_agg(id ORDER BY id) FROM a
array_agg:int4[]
{1,2,3,4,5,6}

> SELECT array_agg(n ORDER BY n DESC, id) FROM a
array_agg:int4[]
{NULL,7,5,2,2,1}

> SELECT array_agg(DISTINCT n ORDER BY n) FROM a
array_agg:int4[]
{1,2,5,7,NULL}

> SELECT array_agg(id ORDER BY id) FILTER (WHERE n > 2) FROM a
array_agg:int4[]
{4,5}

> SELECT n, array_agg(id ORDER BY id) FROM a GROUP BY n
n:int4|array_agg:int4[]
1|{2}
2|{1,6}
5|{4}
7|{5}
NULL|{3}

> SELECT array_agg(id ORDER BY id) FROM a WHERE false
array_agg:int4[]
NULL

> SELECT x, count(*) FROM a GROUP BY x
x:int4[]|count:int8
NULL|1
{3,2,1,2}|1
{5,NULL,5}|1
{}|1
{1,2,3,4}|1
{7}|1

> SELECT DISTINCT x[1] FROM a
x:int4
NULL
3
5
7
1

> SELECT id FROM a ORDER BY x, id
id:int4
2
1
6
4
5
3

> SELECT id FROM a ORDER BY t DESC NULLS LAST, id
id:int4
4
6
1
5
2
3

> SELECT id FROM a WHERE x @> ARRAY[2] AND cardinality(x) > 3
id:int4
6
1

> SELECT p.id, q.id FROM a p JOIN a q ON p.x && q.x AND p.id < q.id
id:int4|id:int4
1|6

> SELECT p.id, q.id FROM a p JOIN a q ON p.n = ANY (q.x)
id:int4|id:int4
2|6
2|1
4|4
5|5
6|6
6|1
1|6
1|1

> SELECT ARRAY[1, 2, 3], ARRAY['a', NULL], ARRAY[]::int[], ARRAY[1.5, 2.5], ARRAY[true]
array:int4[]|array:text[]|array:int4[]|array:numeric[]|array:bool[]
{1,2,3}|{a,NULL}|{}|{1.5,2.5}|{t}

> SELECT ARRAY[date '2024-01-01'], ARRAY[interval '1 day'], ARRAY['x"y', 'a,b', 'NULL', '']
array:date[]|array:interval[]|array:text[]
{2024-01-01}|{"1 day"}|{"x\\"y","a,b","NULL",""}

> SELECT (ARRAY[1, 2, 3])[2], (ARRAY['a', 'b'])[5], ('{4,5}'::int[])[1]
array:int4|array:text|int4:int4
2|NULL|4

> SELECT '{1, 2 ,3}'::int[], '{"a b", c}'::text[], '{t,f}'::boolean[], '{1.5,2}'::numeric(4,2)[]
int4:int4[]|text:text[]|bool:bool[]|numeric:numeric[]
{1,2,3}|{"a b",c}|{t,f}|{1.50,2.00}

> SELECT ARRAY[1, 2] = ARRAY[1, 2], ARRAY[1, NULL] = ARRAY[1, NULL], ARRAY[1, 2] < ARRAY[1, 3], ARRAY[1] < ARRAY[1, 0]
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|t|t|t

> SELECT unnest(ARRAY[1, 2]), unnest(ARRAY['a', 'b', 'c'])
unnest:int4|unnest:text
1|a
2|b
NULL|c

> SELECT 1 = ANY (ARRAY[]::int[]), 1 = ALL (ARRAY[]::int[]), NULL = ANY (ARRAY[1])
?column?:bool|?column?:bool|?column?:bool
f|t|NULL

> SELECT array_replace(ARRAY[1,2,NULL,1], 1, 9), array_replace(ARRAY[1,NULL], NULL, 5), array_positions(ARRAY['a','b','a'], 'a'), array_positions(ARRAY[1,NULL], NULL), trim_array(ARRAY[1,2,3], 2)
array_replace:int4[]|array_replace:int4[]|array_positions:int4[]|array_positions:int4[]|trim_array:int4[]
{9,2,NULL,9}|{1,5}|{1,3}|{2}|{1}

> SELECT trim_array(ARRAY[1], 2)
! 2202E number of elements to trim must be between 0 and 1

> SELECT array_to_string(ARRAY[1,NULL,3], ',', '*'), array_to_string(ARRAY[1,NULL,3], ',')
array_to_string:text|array_to_string:text
1,*,3|1,3

> SELECT * FROM unnest(ARRAY[5,6]) WITH ORDINALITY
unnest:int4|ordinality:int8
5|1
6|2

> SELECT * FROM unnest(ARRAY[5,6]) WITH ORDINALITY AS t
t:int4|ordinality:int8
5|1
6|2

> SELECT * FROM unnest(ARRAY[5,6]) WITH ORDINALITY AS t (a, n)
a:int4|n:int8
5|1
6|2

> SELECT * FROM unnest(ARRAY[5,6]) WITH ORDINALITY AS t (a)
a:int4|ordinality:int8
5|1
6|2

> SELECT * FROM generate_series(3, 1, -1) WITH ORDINALITY AS t (a, n) WHERE n > 1
a:int4|n:int8
2|2
1|3

> SELECT v.k, u.e, u.n FROM (VALUES (1, ARRAY['x','y']), (2, NULL), (3, ARRAY['z'])) AS v (k, a), unnest(v.a) WITH ORDINALITY AS u (e, n)
k:int4|e:text|n:int8
1|x|1
1|y|2
3|z|1

> SELECT v.k, u.* FROM (VALUES (1, ARRAY['x','y']), (2, '{}')) AS v (k, a) LEFT JOIN LATERAL unnest(v.a) WITH ORDINALITY AS u ON true
k:int4|u:text|ordinality:int8
1|x|1
1|y|2
2|NULL|NULL

> SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b','c'])
unnest:int4|unnest:text
1|a
2|b
NULL|c

> SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b','c'], NULL::int[]) WITH ORDINALITY AS t (a, b, c, n)
a:int4|b:text|c:int4|n:int8
1|a|NULL|1
2|b|NULL|2
NULL|c|NULL|3

> SELECT k, x, y FROM (VALUES (1, ARRAY[1,2], ARRAY['a']), (2, NULL, NULL)) AS v (k, a, b), unnest(a, b) AS u (x, y)
k:int4|x:int4|y:text
1|1|a
1|2|NULL

% everview-only
> SELECT * FROM unnest(ARRAY[1], 2)
! 42883 function unnest(integer[], integer) does not exist

> SELECT * FROM regexp_split_to_table('a1b2c', '[0-9]') WITH ORDINALITY AS t (part, n)
part:text|n:int8
a|1
b|2
c|3

> SELECT * FROM jsonb_each_text('{"a": 1, "b": "x"}') WITH ORDINALITY
key:text|value:text|ordinality:int8
a|1|1
b|x|2
