# Types: casts, text forms, comparisons, uuid and bytea
> CREATE TABLE c (id int, s text, u uuid, y bytea, b boolean, v varchar(4), h char(3))
CREATE TABLE

> INSERT INTO c VALUES (1, '42', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\xdeadbeef', true, 'ab', 'x'), (2, ' -7 ', '00000000-0000-0000-0000-000000000000', '', false, '', ''), (3, NULL, NULL, NULL, NULL, NULL, NULL), (8, '1', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'a', true, 'a', 'a')
INSERT 0 4

% changes
> INSERT INTO c VALUES (4, '0', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A12', 'abc', true, 'wxyz', 'pqr'), (5, '100', '{a0eebc999c0b4ef8bb6d6bb9bd380a11}', '\x00ff', NULL, 'é', 'é')
INSERT 0 2

> UPDATE c SET s = s || '0' WHERE id = 4
UPDATE 1

> DELETE FROM c WHERE id = 8
DELETE 1

> SELECT id, s::int FROM c
id:int4|s:int4
1|42
2|-7
3|NULL
5|100
4|0

> SELECT id, s::bigint FROM c
id:int4|s:int8
1|42
2|-7
3|NULL
5|100
4|0

> SELECT id, s::smallint FROM c
id:int4|s:int2
1|42
2|-7
3|NULL
5|100
4|0

> SELECT id, s::numeric FROM c
id:int4|s:numeric
1|42
2|-7
3|NULL
5|100
4|0

> SELECT id, s::numeric(6,2) FROM c
id:int4|s:numeric
1|42.00
2|-7.00
3|NULL
5|100.00
4|0.00

> SELECT id, s::double precision FROM c
id:int4|s:float8
1|42
2|-7
3|NULL
5|100
4|0

> SELECT id, s::real FROM c
id:int4|s:float4
1|42
2|-7
3|NULL
5|100
4|0

> SELECT id, s::int = 42 FROM c
id:int4|?column?:bool
1|t
2|f
3|NULL
5|f
4|f

> SELECT id, s::int::text FROM c
id:int4|s:text
1|42
2|-7
3|NULL
5|100
4|0

> SELECT id, s::text FROM c
id:int4|s:text
1|42
2|\ -7\s
3|NULL
5|100
4|00

> SELECT id, s::varchar(2) FROM c
id:int4|s:varchar
1|42
2|\ -
3|NULL
5|10
4|00

> SELECT id, s::char(2) FROM c
id:int4|s:bpchar
1|42
2|\ -
3|NULL
5|10
4|00

> SELECT id, cast(s AS int) + 1 FROM c
id:int4|?column?:int4
1|43
2|-6
3|NULL
5|101
4|1

> SELECT id, s::int::boolean FROM c
id:int4|s:bool
1|t
2|t
3|NULL
5|t
4|f

> SELECT id, (s::int > 10)::text FROM c
id:int4|text:text
1|true
2|false
3|NULL
5|true
4|false

> SELECT id, u FROM c
id:int4|u:uuid
1|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
2|00000000-0000-0000-0000-000000000000
3|NULL
5|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
4|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12

> SELECT id, u::text FROM c
id:int4|u:text
1|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
2|00000000-0000-0000-0000-000000000000
3|NULL
5|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
4|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12

> SELECT id, u = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' FROM c
id:int4|?column?:bool
1|t
2|f
3|NULL
5|t
4|f

> SELECT id, u > '00000000-0000-0000-0000-000000000000' FROM c
id:int4|?column?:bool
1|t
2|f
3|NULL
5|t
4|t

> SELECT id, u::text LIKE 'a0%' FROM c
id:int4|?column?:bool
1|t
2|f
3|NULL
5|t
4|t

> SELECT id, y FROM c
id:int4|y:bytea
1|\\xdeadbeef
2|\\x
3|NULL
5|\\x00ff
4|\\x616263

> SELECT id, y::text FROM c
id:int4|y:text
1|\\xdeadbeef
2|\\x
3|NULL
5|\\x00ff
4|\\x616263

> SELECT id, length(y) FROM c
id:int4|length:int4
1|4
2|0
3|NULL
5|2
4|3

> SELECT id, octet_length(y) FROM c
id:int4|octet_length:int4
1|4
2|0
3|NULL
5|2
4|3

> SELECT id, encode(y, 'hex') FROM c
id:int4|encode:text
1|deadbeef
2|""
3|NULL
5|00ff
4|616263

> SELECT id, encode(y, 'base64') FROM c
id:int4|encode:text
1|3q2+7w==
2|""
3|NULL
5|AP8=
4|YWJj

> SELECT id, encode(y, 'escape') FROM c
id:int4|encode:text
1|\\336\\255\\276\\357
2|""
3|NULL
5|\\000\\377
4|abc

> SELECT id, y = 'abc' FROM c
id:int4|?column?:bool
1|f
2|f
3|NULL
5|f
4|t

> SELECT id, y || '\x01' FROM c
id:int4|?column?:bytea
1|\\xdeadbeef01
2|\\x01
3|NULL
5|\\x00ff01
4|\\x61626301

> SELECT id, y < '\xdd' FROM c
id:int4|?column?:bool
1|f
2|t
3|NULL
5|t
4|t

> SELECT id, md5(y) FROM c
id:int4|md5:text
1|2f249230a8e7c2bf6005ccd2679259ec
2|d41d8cd98f00b204e9800998ecf8427e
3|NULL
5|d07d34efac6328007ad67c7e0a985e00
4|900150983cd24fb0d6963f7d28e17f72

> SELECT id, sha256(y) FROM c
id:int4|sha256:bytea
1|\\x5f78c33274e43fa9de5659265c1d917e25c03722dcb0b8d27db8d5feaa813953
2|\\xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
3|NULL
5|\\x06eb7d6a69ee19e5fbdf749018d3d2abfa04bcbd1365db312eb86dc7169389b8
4|\\xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad

> SELECT id, substring(y, 1, 2) FROM c
id:int4|substring:bytea
1|\\xdead
2|\\x
3|NULL
5|\\x00ff
4|\\x6162

> SELECT id, b::text FROM c
id:int4|b:text
1|true
2|false
3|NULL
5|NULL
4|true

> SELECT id, b::int FROM c
id:int4|b:int4
1|1
2|0
3|NULL
5|NULL
4|1

> SELECT id, b = 'true' FROM c
id:int4|?column?:bool
1|t
2|f
3|NULL
5|NULL
4|t

> SELECT id, b IS TRUE FROM c
id:int4|?column?:bool
1|t
2|f
3|f
5|f
4|t

> SELECT id, NOT b FROM c
id:int4|?column?:bool
1|f
2|t
3|NULL
5|NULL
4|f

> SELECT id, v FROM c
id:int4|v:varchar
1|ab
2|""
3|NULL
5|é
4|wxyz

> SELECT id, v IS NULL FROM c
id:int4|?column?:bool
1|f
2|f
3|t
5|f
4|f

> SELECT id, v || 'x' FROM c
id:int4|?column?:text
1|abx
2|x
3|NULL
5|éx
4|wxyzx

> SELECT id, v::text = 'ab' FROM c
id:int4|?column?:bool
1|t
2|f
3|NULL
5|f
4|f

> SELECT id, v::char(6) = 'ab' FROM c
id:int4|?column?:bool
1|t
2|f
3|NULL
5|f
4|f

> SELECT id, length(v) FROM c
id:int4|length:int4
1|2
2|0
3|NULL
5|1
4|4

> SELECT id, h FROM c
id:int4|h:bpchar
1|x \s
2|\  \s
3|NULL
5|é \s
4|pqr

> SELECT id, h::text FROM c
id:int4|h:text
1|x
2|""
3|NULL
5|é
4|pqr

> SELECT id, h || 'x' FROM c
id:int4|?column?:text
1|xx
2|x
3|NULL
5|éx
4|pqrx

> SELECT id, h = 'x' FROM c
id:int4|?column?:bool
1|t
2|f
3|NULL
5|f
4|f

> SELECT id, h = 'x  ' FROM c
id:int4|?column?:bool
1|t
2|f
3|NULL
5|f
4|f

> SELECT id, length(h) FROM c
id:int4|length:int4
1|1
2|0
3|NULL
5|1
4|3

> SELECT id, h::varchar FROM c
id:int4|h:varchar
1|x
2|""
3|NULL
5|é
4|pqr

> SELECT id, coalesce(s, v) FROM c
id:int4|coalesce:text
1|42
2|\ -7\s
3|NULL
5|100
4|00

> SELECT id, coalesce(s::int, id) FROM c
id:int4|coalesce:int4
1|42
2|-7
3|3
5|100
4|0

> SELECT id, coalesce(b::text, '?') FROM c
id:int4|coalesce:text
1|true
2|false
3|\?
5|\?
4|true

> SELECT id, nullif(id, 1)::text FROM c
id:int4|nullif:text
1|NULL
2|2
3|3
5|5
4|4

> SELECT id, id::text || s FROM c
id:int4|?column?:text
1|142
2|2 -7\s
3|NULL
5|5100
4|400

> SELECT id, id::numeric(4,1) FROM c
id:int4|id:numeric
1|1.0
2|2.0
3|3.0
5|5.0
4|4.0

> SELECT id, id::real FROM c
id:int4|id:float4
1|1
2|2
3|3
5|5
4|4

> SELECT id, id = s::numeric FROM c
id:int4|?column?:bool
1|f
2|f
3|NULL
5|f
4|f

> SELECT id, id < s::double precision FROM c
id:int4|?column?:bool
1|t
2|f
3|NULL
5|t
4|f

> SELECT id, array_agg(id) OVER () = '{}'::int[] FROM c
id:int4|?column?:bool
1|f
2|f
3|f
5|f
4|f

> SELECT id, '[' || id || ']' FROM c
id:int4|?column?:text
1|[1]
2|[2]
3|[3]
5|[5]
4|[4]

> SELECT id, (id || '')::int FROM c
id:int4|int4:int4
1|1
2|2
3|3
5|5
4|4

> SELECT id, id::text::int::text::bigint FROM c
id:int4|id:int8
1|1
2|2
3|3
5|5
4|4

> SELECT id, to_jsonb(s) FROM c
id:int4|to_jsonb:jsonb
1|"42"
2|" -7 "
3|NULL
5|"100"
4|"00"

> SELECT id, to_jsonb(id) FROM c
id:int4|to_jsonb:jsonb
1|1
2|2
3|3
5|5
4|4

> SELECT id, to_jsonb(b) FROM c
id:int4|to_jsonb:jsonb
1|true
2|false
3|NULL
5|NULL
4|true

> SELECT '1'::int, '1'::text, '1'::numeric, '1'::double precision, '1'::boolean
int4:int4|text:text|numeric:numeric|float8:float8|bool:bool
1|1|1|1|t

> SELECT 1::text, 1.0::text, 1.50::text, 1e20::double precision::text, 0.00001::double precision::text
text:text|text:text|text:text|text:text|text:text
1|1.0|1.50|1e+20|1e-05

> SELECT 1.5::int, 2.5::int, -1.5::int, -2.5::int, 1.4999::int
int4:int4|int4:int4|?column?:int4|?column?:int4|int4:int4
2|3|-2|-3|1

> SELECT 1.5::double precision::int, 2.5::double precision::int, 3.5::double precision::int, -0.5::double precision::int
int4:int4|int4:int4|int4:int4|?column?:int4
2|2|4|0

> SELECT 123456789.987::numeric(12,2), 0.005::numeric(4,2), -0.005::numeric(4,2), 0.015::numeric(4,2)
numeric:numeric|numeric:numeric|?column?:numeric|numeric:numeric
123456789.99|0.01|-0.01|0.02

> SELECT 'true'::boolean, 'T'::boolean, 'yes'::boolean, 'on'::boolean, '1'::boolean, 'f'::boolean, 'no'::boolean, 'n'::boolean
bool:bool|bool:bool|bool:bool|bool:bool|bool:bool|bool:bool|bool:bool|bool:bool
t|t|t|t|t|f|f|f

> SELECT 1::boolean, 0::boolean, (-1)::boolean, true::int, false::int
bool:bool|bool:bool|bool:bool|int4:int4|int4:int4
t|f|t|1|0

> SELECT 'abc'::varchar(2), 'abc'::char(5), 'abc'::char, 'abc'::varchar
varchar:varchar|bpchar:bpchar|bpchar:bpchar|varchar:varchar
ab|abc \s|a|abc

> SELECT '\x4142'::bytea, 'AB'::bytea
bytea:bytea|bytea:bytea
\\x4142|\\x4142

> SELECT '12:00'::time, '2024-01-01'::date, '1 day'::interval, '2024-01-01 10:00'::timestamp
time:time|date:date|interval:interval|timestamp:timestamp
12:00:00|2024-01-01|1 day|2024-01-01 10:00:00

> SELECT '{1,2,3}'::int[], '{a,b}'::text[], '{"x y",NULL}'::text[], '{}'::int[]
int4:int4[]|text:text[]|text:text[]|int4:int4[]
{1,2,3}|{a,b}|{"x y",NULL}|{}

> SELECT '{"a": 1}'::jsonb, '[1, 2]'::jsonb, '"x"'::jsonb, 'null'::jsonb
jsonb:jsonb|jsonb:jsonb|jsonb:jsonb|jsonb:jsonb
{"a": 1}|[1, 2]|"x"|null

> SELECT NULL::int, NULL::text, NULL::date, NULL::jsonb, NULL::int[]
int4:int4|text:text|date:date|jsonb:jsonb|int4:int4[]
NULL|NULL|NULL|NULL|NULL

> SELECT int '5', text 'x', numeric '1.25', date '2024-01-01', boolean 'true'
int4:int4|text:text|numeric:numeric|date:date|bool:bool
5|x|1.25|2024-01-01|t

> SELECT 1 = 1.0, 1 = 1.0::double precision, 1::smallint = 1::bigint, '1' = 1
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|t|t|t

> SELECT 'a' = 'a'::char(3), 'a '::char(3) = 'a'::char(3), 'a' = 'a '::text
?column?:bool|?column?:bool|?column?:bool
t|t|f

> SELECT 1 + '2', '3' * 2, 1.5 + '2.5', '2024-01-01' < date '2024-01-02'
?column?:int4|?column?:int4|?column?:numeric|?column?:bool
3|6|4.0|t

> SELECT 1::real / 3, 1::double precision / 3, 16777217::real, 0.1::real
?column?:float8|?column?:float8|float4:float4|float4:float4
0.3333333333333333|0.3333333333333333|1.6777216e+07|0.1

> SELECT 1e15::double precision, 1e16::double precision, 1e-5::double precision, 123456789012345678::double precision
float8:float8|float8:float8|float8:float8|float8:float8
1e+15|1e+16|1e-05|1.2345678901234568e+17

> SELECT 100::real, 1e6::real, 1e7::real, 1.5e-7::real
float4:float4|float4:float4|float4:float4|float4:float4
100|1e+06|1e+07|1.5e-07

> SELECT 3::int8, 3::int2, 3::int4, 3::float8, 3::float4, 3::decimal(3,1)
int8:int8|int2:int2|int4:int4|float8:float8|float4:float4|numeric:numeric
3|3|3|3|3|3.0

> SELECT 'NaN'::real, '-Infinity'::double precision, 'inf'::double precision
float4:float4|float8:float8|float8:float8
NaN|-Infinity|Infinity

> SELECT 0.1::numeric(3,2), 12::numeric(4,2), 1::numeric(38,10)
numeric:numeric|numeric:numeric|numeric:numeric
0.10|12.00|1.0000000000

> SELECT 1.0, 1.10, 100.00, 0.0, -0.0, 00.50
?column?:numeric|?column?:numeric|?column?:numeric|?column?:numeric|?column?:numeric|?column?:numeric
1.0|1.10|100.00|0.0|0.0|0.50

> SELECT x.id FROM c x JOIN c y ON x.s::int = y.id * 21
id:int4
1

> SELECT id FROM c ORDER BY u, id
id:int4
2
1
5
4
3

> SELECT id FROM c ORDER BY y DESC NULLS LAST, id
id:int4
1
4
5
2
3

> SELECT min(v), max(h), count(u), count(DISTINCT y) FROM c
min:text|max:bpchar|count:int8|count:int8
""|é \s|4|4

> SELECT u, count(*) FROM c GROUP BY u
u:uuid|count:int8
NULL|1
a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|2
a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12|1
00000000-0000-0000-0000-000000000000|1

> SELECT y, count(*) FROM c GROUP BY y
y:bytea|count:int8
NULL|1
\\x|1
\\x616263|1
\\x00ff|1
\\xdeadbeef|1
