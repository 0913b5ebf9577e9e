# jsonb: operators, functions, construction, table functions
> CREATE TABLE j (id int, v jsonb, k text, n int)
CREATE TABLE

> INSERT INTO j VALUES (1, '{"a": 1, "b": {"c": [1, 2, 3]}, "d": null}', 'a', 0), (2, '[1, "two", null, true, {"x": 1.5}]', 'b', 1), (3, NULL, NULL, NULL), (9, '{"gone": true}', 'gone', 1)
INSERT 0 4

% changes
> INSERT INTO j VALUES (4, '"text"', 'c', 2), (5, '42', 'd', -1), (6, '{"a": "x", "b": [], "z": {"y": {"w": false}}}', 'z', 3), (7, '{}', 'a', 0), (8, '[]', 'x', 0)
INSERT 0 5

> UPDATE j SET v = v || '{"e": 2.5}' WHERE id = 1
UPDATE 1

> DELETE FROM j WHERE id = 9
DELETE 1

> SELECT id, v FROM j
id:int4|v:jsonb
2|[1, "two", null, true, {"x": 1.5}]
3|NULL
4|"text"
5|42
6|{"a": "x", "b": [], "z": {"y": {"w": false}}}
7|{}
8|[]
1|{"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}

> SELECT id, v -> 'a' FROM j
id:int4|?column?:jsonb
2|NULL
3|NULL
4|NULL
5|NULL
6|"x"
7|NULL
8|NULL
1|1

> SELECT id, v ->> 'a' FROM j
id:int4|?column?:text
2|NULL
3|NULL
4|NULL
5|NULL
6|x
7|NULL
8|NULL
1|1

> SELECT id, v -> k FROM j
id:int4|?column?:jsonb
2|NULL
3|NULL
4|NULL
5|NULL
6|{"y": {"w": false}}
7|NULL
8|NULL
1|1

> SELECT id, v ->> k FROM j
id:int4|?column?:text
2|NULL
3|NULL
4|NULL
5|NULL
6|{"y": {"w": false}}
7|NULL
8|NULL
1|1

> SELECT id, v -> 'b' -> 'c' FROM j
id:int4|?column?:jsonb
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|[1, 2, 3]

> SELECT id, v -> 'b' -> 'c' -> 0 FROM j
id:int4|?column?:jsonb
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|1

> SELECT id, v -> 'b' -> 'c' ->> 1 FROM j
id:int4|?column?:text
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|2

> SELECT id, v -> 0 FROM j
id:int4|?column?:jsonb
2|1
3|NULL
4|"text"
5|42
6|NULL
7|NULL
8|NULL
1|NULL

> SELECT id, v -> 1 FROM j
id:int4|?column?:jsonb
2|"two"
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|NULL

> SELECT id, v ->> 1 FROM j
id:int4|?column?:text
2|two
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|NULL

> SELECT id, v -> -1 FROM j
id:int4|?column?:jsonb
2|{"x": 1.5}
3|NULL
4|"text"
5|42
6|NULL
7|NULL
8|NULL
1|NULL

> SELECT id, v ->> n FROM j
id:int4|?column?:text
2|two
3|NULL
4|NULL
5|42
6|NULL
7|NULL
8|NULL
1|NULL

> SELECT id, v -> 4 -> 'x' FROM j
id:int4|?column?:jsonb
2|1.5
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|NULL

> SELECT id, v #> '{b,c}' FROM j
id:int4|?column?:jsonb
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|[1, 2, 3]

> SELECT id, v #> '{b,c,0}' FROM j
id:int4|?column?:jsonb
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|1

> SELECT id, v #>> '{b,c,2}' FROM j
id:int4|?column?:text
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|3

> SELECT id, v #>> '{z,y,w}' FROM j
id:int4|?column?:text
2|NULL
3|NULL
4|NULL
5|NULL
6|false
7|NULL
8|NULL
1|NULL

> SELECT id, v #> ARRAY['z', 'y'] FROM j
id:int4|?column?:jsonb
2|NULL
3|NULL
4|NULL
5|NULL
6|{"w": false}
7|NULL
8|NULL
1|NULL

> SELECT id, v #> '{}' FROM j
id:int4|?column?:jsonb
2|[1, "two", null, true, {"x": 1.5}]
3|NULL
4|"text"
5|42
6|{"a": "x", "b": [], "z": {"y": {"w": false}}}
7|{}
8|[]
1|{"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}

> SELECT id, v ? 'a' FROM j
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|t
7|f
8|f
1|t

> SELECT id, v ? k FROM j
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|t
7|f
8|f
1|t

> SELECT id, v ?| ARRAY['a', 'z'] FROM j
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|t
7|f
8|f
1|t

> SELECT id, v ?& ARRAY['a', 'b'] FROM j
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|t
7|f
8|f
1|t

> SELECT id, v @> '{"a": 1}' FROM j
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|f
7|f
8|f
1|t

> SELECT id, v @> '{"b": {}}' FROM j
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|f
7|f
8|f
1|t

> SELECT id, v @> '[1]' FROM j
id:int4|?column?:bool
2|t
3|NULL
4|f
5|f
6|f
7|f
8|f
1|f

> SELECT id, v @> '[{"x": 1.5}]' FROM j
id:int4|?column?:bool
2|t
3|NULL
4|f
5|f
6|f
7|f
8|f
1|f

> SELECT id, v <@ '{"a": 1, "b": {"c": [1, 2, 3, 4]}, "d": null, "e": 2.5}' FROM j
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|f
7|t
8|f
1|t

> SELECT id, v @> '"text"' FROM j
id:int4|?column?:bool
2|f
3|NULL
4|t
5|f
6|f
7|f
8|f
1|f

> SELECT id, v @> '42' FROM j
id:int4|?column?:bool
2|f
3|NULL
4|f
5|t
6|f
7|f
8|f
1|f

> SELECT id, v = '{}' FROM j
id:int4|?column?:bool
2|f
3|NULL
4|f
5|f
6|f
7|t
8|f
1|f

> SELECT id, v = '42' FROM j
id:int4|?column?:bool
2|f
3|NULL
4|f
5|t
6|f
7|f
8|f
1|f

> SELECT id, v <> '[]' FROM j
id:int4|?column?:bool
2|t
3|NULL
4|t
5|t
6|t
7|t
8|f
1|t

> SELECT id, v < '{}' FROM j
id:int4|?column?:bool
2|t
3|NULL
4|t
5|t
6|f
7|f
8|t
1|f

> SELECT id, v > '[]' FROM j
id:int4|?column?:bool
2|t
3|NULL
4|t
5|t
6|t
7|t
8|f
1|t

> SELECT id, v || '{"new": 1}' FROM j
id:int4|?column?:jsonb
2|[1, "two", null, true, {"x": 1.5}, {"new": 1}]
3|NULL
4|["text", {"new": 1}]
5|[42, {"new": 1}]
6|{"a": "x", "b": [], "z": {"y": {"w": false}}, "new": 1}
7|{"new": 1}
8|[{"new": 1}]
1|{"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5, "new": 1}

> SELECT id, v || '[9]' FROM j
id:int4|?column?:jsonb
2|[1, "two", null, true, {"x": 1.5}, 9]
3|NULL
4|["text", 9]
5|[42, 9]
6|[{"a": "x", "b": [], "z": {"y": {"w": false}}}, 9]
7|[{}, 9]
8|[9]
1|[{"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}, 9]

> SELECT id, jsonb_typeof(v) FROM j
id:int4|jsonb_typeof:text
2|array
3|NULL
4|string
5|number
6|object
7|object
8|array
1|object

> SELECT id, jsonb_typeof(v -> 'a') FROM j
id:int4|jsonb_typeof:text
2|NULL
3|NULL
4|NULL
5|NULL
6|string
7|NULL
8|NULL
1|number

> SELECT id, jsonb_typeof(v -> 'd') FROM j
id:int4|jsonb_typeof:text
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|null

> SELECT id, v ->> 'd' IS NULL FROM j
id:int4|?column?:bool
2|t
3|t
4|t
5|t
6|t
7|t
8|t
1|t

> SELECT id, v -> 'd' IS NULL FROM j
id:int4|?column?:bool
2|t
3|t
4|t
5|t
6|t
7|t
8|t
1|f

> SELECT id, v::text FROM j
id:int4|v:text
2|[1, "two", null, true, {"x": 1.5}]
3|NULL
4|"text"
5|42
6|{"a": "x", "b": [], "z": {"y": {"w": false}}}
7|{}
8|[]
1|{"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}

> SELECT id, (v ->> 'a') || '!' FROM j
id:int4|?column?:text
2|NULL
3|NULL
4|NULL
5|NULL
6|x!
7|NULL
8|NULL
1|1!

> SELECT id, (v -> 'b')::text FROM j
id:int4|text:text
2|NULL
3|NULL
4|NULL
5|NULL
6|[]
7|NULL
8|NULL
1|{"c": [1, 2, 3]}

> SELECT id, jsonb_strip_nulls(v) FROM j
id:int4|jsonb_strip_nulls:jsonb
2|[1, "two", null, true, {"x": 1.5}]
3|NULL
4|"text"
5|42
6|{"a": "x", "b": [], "z": {"y": {"w": false}}}
7|{}
8|[]
1|{"a": 1, "b": {"c": [1, 2, 3]}, "e": 2.5}

> SELECT id, v - 'a', v - ARRAY['a', 'b'], v #- '{b,c}' FROM j WHERE jsonb_typeof(v) = 'object'
! 22P02 path element at position 2 is not an integer: "c"

> SELECT id, v - 'two', v - 0, v - -1 FROM j WHERE jsonb_typeof(v) = 'array'
id:int4|?column?:jsonb|?column?:jsonb|?column?:jsonb
2|[1, null, true, {"x": 1.5}]|["two", null, true, {"x": 1.5}]|[1, "two", null, true]
8|[]|[]|[]

> SELECT id, jsonb_set(v, '{a}', '"new"'), jsonb_set(v, '{q}', '1') FROM j WHERE jsonb_typeof(v) = 'object'
id:int4|jsonb_set:jsonb|jsonb_set:jsonb
6|{"a": "new", "b": [], "z": {"y": {"w": false}}}|{"a": "x", "b": [], "q": 1, "z": {"y": {"w": false}}}
7|{"a": "new"}|{"q": 1}
1|{"a": "new", "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}|{"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5, "q": 1}

> SELECT id, jsonb_set(v, '{q}', '1', false) AS p, jsonb_set(v, '{b,c,0}', '[]') AS q FROM j WHERE jsonb_typeof(v) = 'object'
! 22P02 path element at position

> SELECT id, jsonb_set(v, '{0}', '"first"') FROM j WHERE jsonb_typeof(v) = 'array'
id:int4|jsonb_set:jsonb
2|["first", "two", null, true, {"x": 1.5}]
8|["first"]

> SELECT id, v - 'a' FROM j WHERE id = 4
! 22023 cannot delete from scalar

> SELECT id, jsonb_extract_path(v, 'b', 'c') FROM j
id:int4|jsonb_extract_path:jsonb
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|[1, 2, 3]

> SELECT id, jsonb_extract_path_text(v, 'b', 'c') FROM j
id:int4|jsonb_extract_path_text:text
2|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|NULL
1|[1, 2, 3]

> SELECT id, jsonb_build_object('id', id, 'k', k, 'v', v) FROM j
id:int4|jsonb_build_object:jsonb
2|{"k": "b", "v": [1, "two", null, true, {"x": 1.5}], "id": 2}
3|{"k": null, "v": null, "id": 3}
4|{"k": "c", "v": "text", "id": 4}
5|{"k": "d", "v": 42, "id": 5}
6|{"k": "z", "v": {"a": "x", "b": [], "z": {"y": {"w": false}}}, "id": 6}
7|{"k": "a", "v": {}, "id": 7}
8|{"k": "x", "v": [], "id": 8}
1|{"k": "a", "v": {"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}, "id": 1}

> SELECT id, jsonb_build_array(id, k, v, NULL, true, 1.5) FROM j
id:int4|jsonb_build_array:jsonb
2|[2, "b", [1, "two", null, true, {"x": 1.5}], null, true, 1.5]
3|[3, null, null, null, true, 1.5]
4|[4, "c", "text", null, true, 1.5]
5|[5, "d", 42, null, true, 1.5]
6|[6, "z", {"a": "x", "b": [], "z": {"y": {"w": false}}}, null, true, 1.5]
7|[7, "a", {}, null, true, 1.5]
8|[8, "x", [], null, true, 1.5]
1|[1, "a", {"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}, null, true, 1.5]

> SELECT id, jsonb_build_object('n', n, 'nested', jsonb_build_object('x', ARRAY[1, 2])) FROM j
id:int4|jsonb_build_object:jsonb
2|{"n": 1, "nested": {"x": [1, 2]}}
3|{"n": null, "nested": {"x": [1, 2]}}
4|{"n": 2, "nested": {"x": [1, 2]}}
5|{"n": -1, "nested": {"x": [1, 2]}}
6|{"n": 3, "nested": {"x": [1, 2]}}
7|{"n": 0, "nested": {"x": [1, 2]}}
8|{"n": 0, "nested": {"x": [1, 2]}}
1|{"n": 0, "nested": {"x": [1, 2]}}

> SELECT id, jsonb_build_array() FROM j
id:int4|jsonb_build_array:jsonb
2|[]
3|[]
4|[]
5|[]
6|[]
7|[]
8|[]
1|[]

> SELECT id, jsonb_build_object() FROM j
id:int4|jsonb_build_object:jsonb
2|{}
3|{}
4|{}
5|{}
6|{}
7|{}
8|{}
1|{}

> SELECT id, to_jsonb(id) FROM j
id:int4|to_jsonb:jsonb
2|2
3|3
4|4
5|5
6|6
7|7
8|8
1|1

> SELECT id, to_jsonb(k) FROM j
id:int4|to_jsonb:jsonb
2|"b"
3|NULL
4|"c"
5|"d"
6|"z"
7|"a"
8|"x"
1|"a"

> SELECT id, to_jsonb(v) FROM j
id:int4|to_jsonb:jsonb
2|[1, "two", null, true, {"x": 1.5}]
3|NULL
4|"text"
5|42
6|{"a": "x", "b": [], "z": {"y": {"w": false}}}
7|{}
8|[]
1|{"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}

> SELECT id, to_jsonb(ARRAY[id, n]) FROM j
id:int4|to_jsonb:jsonb
2|[2, 1]
3|[3, null]
4|[4, 2]
5|[5, -1]
6|[6, 3]
7|[7, 0]
8|[8, 0]
1|[1, 0]

> SELECT id, to_jsonb(1.5) FROM j
id:int4|to_jsonb:jsonb
2|1.5
3|1.5
4|1.5
5|1.5
6|1.5
7|1.5
8|1.5
1|1.5

> SELECT id, to_jsonb(date '2024-01-01') FROM j
id:int4|to_jsonb:jsonb
2|"2024-01-01"
3|"2024-01-01"
4|"2024-01-01"
5|"2024-01-01"
6|"2024-01-01"
7|"2024-01-01"
8|"2024-01-01"
1|"2024-01-01"

> SELECT id, to_jsonb(timestamp '2024-01-01 10:00:00') FROM j
id:int4|to_jsonb:jsonb
2|"2024-01-01T10:00:00"
3|"2024-01-01T10:00:00"
4|"2024-01-01T10:00:00"
5|"2024-01-01T10:00:00"
6|"2024-01-01T10:00:00"
7|"2024-01-01T10:00:00"
8|"2024-01-01T10:00:00"
1|"2024-01-01T10:00:00"

> SELECT id, to_jsonb(true) FROM j
id:int4|to_jsonb:jsonb
2|true
3|true
4|true
5|true
6|true
7|true
8|true
1|true

> SELECT id, CASE WHEN jsonb_typeof(v) = 'array' THEN jsonb_array_length(v) END FROM j
id:int4|case:int4
2|5
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
8|0
1|NULL

> SELECT id, CASE WHEN jsonb_typeof(v) = 'number' THEN v::int END FROM j
id:int4|case:int4
2|NULL
3|NULL
4|NULL
5|42
6|NULL
7|NULL
8|NULL
1|NULL

> SELECT id, CASE WHEN jsonb_typeof(v) = 'number' THEN v::numeric + 0.5 END FROM j
id:int4|case:numeric
2|NULL
3|NULL
4|NULL
5|42.5
6|NULL
7|NULL
8|NULL
1|NULL

> SELECT id, coalesce(v ->> 'a', 'none') FROM j
id:int4|coalesce:text
2|none
3|none
4|none
5|none
6|x
7|none
8|none
1|1

> SELECT id, length(v::text) FROM j
id:int4|length:int4
2|34
3|NULL
4|6
5|2
6|45
7|2
8|2
1|52

> SELECT id FROM j WHERE v @> '{"a": 1}'
id:int4
1

> SELECT id FROM j WHERE v ? 'a'
id:int4
6
1

> SELECT id FROM j WHERE v ->> 'a' = 'x'
id:int4
6

> SELECT id FROM j WHERE jsonb_typeof(v) = 'object'
id:int4
6
7
1

> SELECT id, e FROM j, jsonb_array_elements(v) AS e WHERE jsonb_typeof(v) = 'array'
id:int4|e:jsonb
2|1
2|"two"
2|null
2|true
2|{"x": 1.5}

> SELECT id, e FROM j, jsonb_array_elements_text(CASE WHEN jsonb_typeof(v) = 'array' THEN v END) AS e
id:int4|e:text
2|1
2|two
2|NULL
2|true
2|{"x": 1.5}

> SELECT id, e FROM j, jsonb_array_elements(v #> '{b,c}') AS e
id:int4|e:jsonb
1|1
1|2
1|3

> SELECT id, key, value FROM j, jsonb_each(CASE WHEN jsonb_typeof(v) = 'object' THEN v END)
id:int4|key:text|value:jsonb
6|a|"x"
6|b|[]
6|z|{"y": {"w": false}}
1|a|1
1|b|{"c": [1, 2, 3]}
1|d|null
1|e|2.5

> SELECT id, key, value FROM j, jsonb_each_text(CASE WHEN jsonb_typeof(v) = 'object' THEN v END)
id:int4|key:text|value:text
6|a|x
6|b|[]
6|z|{"y": {"w": false}}
1|a|1
1|b|{"c": [1, 2, 3]}
1|d|NULL
1|e|2.5

> SELECT id, key FROM j, jsonb_object_keys(CASE WHEN jsonb_typeof(v) = 'object' THEN v END) AS key
id:int4|key:text
6|a
6|b
6|z
1|a
1|b
1|d
1|e

> SELECT id, e.value ->> 'x' FROM j, jsonb_array_elements(CASE WHEN jsonb_typeof(v) = 'array' THEN v END) AS e(value) WHERE jsonb_typeof(e.value) = 'object'
id:int4|?column?:text
2|1.5

> SELECT key, count(*) FROM j, jsonb_object_keys(CASE WHEN jsonb_typeof(v) = 'object' THEN v END) AS key GROUP BY key
key:text|count:int8
z|1
d|1
a|2
b|2
e|1

> SELECT jsonb_agg(id ORDER BY id) FROM j
jsonb_agg:jsonb
[1, 2, 3, 4, 5, 6, 7, 8]

> SELECT jsonb_agg(v ORDER BY id) FROM j
jsonb_agg:jsonb
[{"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}, [1, "two", null, true, {"x": 1.5}], null, "text", 42, {"a": "x", "b": [], "z": {"y": {"w": false}}}, {}, []]

> SELECT jsonb_agg(k ORDER BY k) FILTER (WHERE n > 0) FROM j
jsonb_agg:jsonb
["b", "c", "z"]

> SELECT jsonb_object_agg(id, k) FROM j WHERE k IS NOT NULL
jsonb_object_agg:jsonb
{"1": "a", "2": "b", "4": "c", "5": "d", "6": "z", "7": "a", "8": "x"}

> SELECT n, jsonb_agg(id ORDER BY id DESC) FROM j GROUP BY n
n:int4|jsonb_agg:jsonb
-1|[5]
0|[8, 7, 1]
1|[2]
2|[4]
3|[6]
NULL|[3]

> SELECT jsonb_typeof(v) AS type, count(*) FROM j GROUP BY type
type:text|count:int8
NULL|1
string|1
object|3
number|1
array|2

> SELECT DISTINCT jsonb_typeof(v) FROM j
jsonb_typeof:text
NULL
string
object
number
array

> SELECT count(DISTINCT v) FROM j
count:int8
7

> SELECT v, count(*) FROM j GROUP BY v
v:jsonb|count:int8
[]|1
{}|1
NULL|1
42|1
[1, "two", null, true, {"x": 1.5}]|1
"text"|1
{"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}|1
{"a": "x", "b": [], "z": {"y": {"w": false}}}|1

> SELECT id FROM j ORDER BY v, id
id:int4
8
4
5
2
7
6
1
3

> SELECT x.id, y.id FROM j x JOIN j y ON x.v @> y.v
id:int4|id:int4
2|2
2|8
4|4
5|5
6|6
6|7
7|7
8|8
1|7
1|1

> SELECT x.id, y.id FROM j x JOIN j y ON x.v = y.v
id:int4|id:int4
2|2
4|4
5|5
6|6
7|7
8|8
1|1

> SELECT '{"b": 1, "a": 2, "aa": 3, "a": 4}'::jsonb, '[1,  2]'::jsonb, ' 1 '::jsonb, '1e2'::jsonb
jsonb:jsonb|jsonb:jsonb|jsonb:jsonb|jsonb:jsonb
{"a": 4, "b": 1, "aa": 3}|[1, 2]|1|100

> SELECT '{"a": {"b": [10, 20]}}'::jsonb #>> '{a,b,-1}'
?column?:text
20

> SELECT '"a\u00e9\n"'::jsonb, '"a\u00e9"'::jsonb ->> 0, '"x"'::jsonb #>> '{}'
jsonb:jsonb|?column?:text|?column?:text
"aé\\n"|aé|x

> SELECT '[1, 2, 3]'::jsonb - 1, '{"a": 1, "b": 2}'::jsonb - 'a', '["a", "b"]'::jsonb - 'a'
?column?:jsonb|?column?:jsonb|?column?:jsonb
[1, 3]|{"b": 2}|["b"]

> SELECT '[1, [2, 3]]'::jsonb @> '[[2]]', '[1, 2]'::jsonb @> '[2, 1, 1]', '{"a": [1, 2]}'::jsonb @> '{"a": 1}'
?column?:bool|?column?:bool|?column?:bool
t|t|f

> SELECT '1'::jsonb = '1.0'::jsonb, '{"a":1,"b":2}'::jsonb = '{"b":2,"a":1}'::jsonb, 'null'::jsonb IS NULL
?column?:bool|?column?:bool|?column?:bool
t|t|f

> SELECT '{"a": true}'::jsonb -> 'a' = 'true'::jsonb, ('{"a": true}'::jsonb -> 'a')::boolean, ('{"a": 3}'::jsonb -> 'a')::int
?column?:bool|bool:bool|int4:int4
t|t|3

# A key that is NULL
> SELECT id, jsonb_build_object(k, n) FROM j
! 22023 must not be null

> SELECT id, jsonb_build_object(k, v) FROM j WHERE k IS NOT NULL
id:int4|jsonb_build_object:jsonb
2|{"b": [1, "two", null, true, {"x": 1.5}]}
4|{"c": "text"}
5|{"d": 42}
6|{"z": {"a": "x", "b": [], "z": {"y": {"w": false}}}}
7|{"a": {}}
8|{"x": []}
1|{"a": {"a": 1, "b": {"c": [1, 2, 3]}, "d": null, "e": 2.5}}

> SELECT jsonb_pretty('{"b": [1, {"c": null}], "a": "x", "e": {}, "l": []}'), jsonb_pretty('1')
jsonb_pretty:text|jsonb_pretty:text
{\n    "a": "x",\n    "b": [\n        1,\n        {\n            "c": null\n        }\n    ],\n    "e": {\n    },\n    "l": [\n    ]\n}|1

> SELECT id, v #- '{b,c,0}', jsonb_insert(v, '{b,c,0}', '9') FROM j WHERE id = 1
id:int4|?column?:jsonb|jsonb_insert:jsonb
1|{"a": 1, "b": {"c": [2, 3]}, "d": null, "e": 2.5}|{"a": 1, "b": {"c": [9, 1, 2, 3]}, "d": null, "e": 2.5}

> SELECT jsonb_object('{a,1,b,x}'), jsonb_object('{a,b}', '{1,NULL}'), '[1, [2, 3]]'::jsonb #- '{1,-1}'
jsonb_object:jsonb|jsonb_object:jsonb|?column?:jsonb
{"a": "1", "b": "x"}|{"a": "1", "b": null}|[1, [2]]

> SELECT jsonb_insert('{"a": 1}', '{a}', '2')
! 22023 cannot replace existing key

> SELECT '1'::jsonb #- '{a}'
! 22023 cannot delete path in scalar
