# Regular expressions and SIMILAR TO
> CREATE TABLE r (id int, a text, p text)
CREATE TABLE

> INSERT INTO r VALUES (1, 'foobar', 'o+'), (2, 'Foo Bar baz', 'b.'), (3, '', '^$'), (4, NULL, NULL), (5, '2024-01-15', '\d+')
INSERT 0 5

% changes
> INSERT INTO r VALUES (6, 'a1b22c333', '[0-9]'), (7, 'tab' || chr(9) || 'x', 'x$'), (8, 'x.y(z)', '\.'), (9, 'two' || chr(10) || 'lines', 'lines')
INSERT 0 4

> UPDATE r SET a = a || '9' WHERE id = 6
UPDATE 1

> DELETE FROM r WHERE id = 7
DELETE 1

> SELECT id, a ~ 'o' FROM r
id:int4|?column?:bool
1|t
2|t
3|f
4|NULL
5|f
8|f
9|t
6|f

> SELECT id, a ~ '^f' FROM r
id:int4|?column?:bool
1|t
2|f
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, a ~* '^f' FROM r
id:int4|?column?:bool
1|t
2|t
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, a !~ 'o' FROM r
id:int4|?column?:bool
1|f
2|f
3|t
4|NULL
5|t
8|t
9|f
6|t

> SELECT id, a !~* 'BAR' FROM r
id:int4|?column?:bool
1|f
2|f
3|t
4|NULL
5|t
8|t
9|t
6|t

> SELECT id, a ~ p FROM r
id:int4|?column?:bool
1|t
2|t
3|t
4|NULL
5|t
8|t
9|t
6|t

> SELECT id, a ~ '[0-9]+' FROM r
id:int4|?column?:bool
1|f
2|f
3|f
4|NULL
5|t
8|f
9|f
6|t

> SELECT id, a ~ '\d{4}-\d{2}-\d{2}' FROM r
id:int4|?column?:bool
1|f
2|f
3|f
4|NULL
5|t
8|f
9|f
6|f

> SELECT id, a ~ '(foo|baz)' FROM r
id:int4|?column?:bool
1|t
2|t
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, a ~ '^[a-z]+$' FROM r
id:int4|?column?:bool
1|t
2|f
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, a ~ 'a.*b' FROM r
id:int4|?column?:bool
1|f
2|t
3|f
4|NULL
5|f
8|f
9|f
6|t

> SELECT id, a ~ '\.' FROM r
id:int4|?column?:bool
1|f
2|f
3|f
4|NULL
5|f
8|t
9|f
6|f

> SELECT id, a ~ '\(z\)' FROM r
id:int4|?column?:bool
1|f
2|f
3|f
4|NULL
5|f
8|t
9|f
6|f

> SELECT id, a ~ '[[:digit:]]' FROM r
id:int4|?column?:bool
1|f
2|f
3|f
4|NULL
5|t
8|f
9|f
6|t

> SELECT id, a ~ '[[:space:]]' FROM r
id:int4|?column?:bool
1|f
2|t
3|f
4|NULL
5|f
8|f
9|t
6|f

> SELECT id, a ~ '^$' FROM r
id:int4|?column?:bool
1|f
2|f
3|t
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, a ~ 'b{1}' FROM r
id:int4|?column?:bool
1|t
2|t
3|f
4|NULL
5|f
8|f
9|f
6|t

> SELECT id, a ~ '(?i)BAR' FROM r
id:int4|?column?:bool
1|t
2|t
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, a ~ '\mBar' FROM r
id:int4|?column?:bool
1|f
2|t
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, regexp_like(a, 'o{2}') FROM r
id:int4|regexp_like:bool
1|t
2|t
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, regexp_like(a, 'FOO', 'i') FROM r
id:int4|regexp_like:bool
1|t
2|t
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, regexp_count(a, '[0-9]') FROM r
id:int4|regexp_count:int4
1|0
2|0
3|0
4|NULL
5|8
8|0
9|0
6|7

> SELECT id, regexp_count(a, 'o') FROM r
id:int4|regexp_count:int4
1|2
2|2
3|0
4|NULL
5|0
8|0
9|1
6|0

> SELECT id, regexp_match(a, '([a-z]+)([0-9]+)') FROM r
id:int4|regexp_match:text[]
1|NULL
2|NULL
3|NULL
4|NULL
5|NULL
8|NULL
9|NULL
6|{a,1}

> SELECT id, regexp_match(a, '(\d+)-(\d+)') FROM r
id:int4|regexp_match:text[]
1|NULL
2|NULL
3|NULL
4|NULL
5|{2024,01}
8|NULL
9|NULL
6|NULL

> SELECT id, regexp_match(a, 'o+') FROM r
id:int4|regexp_match:text[]
1|{oo}
2|{oo}
3|NULL
4|NULL
5|NULL
8|NULL
9|{o}
6|NULL

> SELECT id, regexp_match(a, '(x)?o') FROM r
id:int4|regexp_match:text[]
1|{NULL}
2|{NULL}
3|NULL
4|NULL
5|NULL
8|NULL
9|{NULL}
6|NULL

> SELECT id, regexp_match(a, 'FOO', 'i') FROM r
id:int4|regexp_match:text[]
1|{foo}
2|{Foo}
3|NULL
4|NULL
5|NULL
8|NULL
9|NULL
6|NULL

> SELECT id, regexp_replace(a, 'o', '0') FROM r
id:int4|regexp_replace:text
1|f0obar
2|F0o Bar baz
3|""
4|NULL
5|2024-01-15
8|x.y(z)
9|tw0\nlines
6|a1b22c3339

> SELECT id, regexp_replace(a, 'o', '0', 'g') FROM r
id:int4|regexp_replace:text
1|f00bar
2|F00 Bar baz
3|""
4|NULL
5|2024-01-15
8|x.y(z)
9|tw0\nlines
6|a1b22c3339

> SELECT id, regexp_replace(a, '[0-9]+', '#', 'g') FROM r
id:int4|regexp_replace:text
1|foobar
2|Foo Bar baz
3|""
4|NULL
5|\#-#-#
8|x.y(z)
9|two\nlines
6|a#b#c#

> SELECT id, regexp_replace(a, '(\w)(\w)', '\2\1') FROM r
id:int4|regexp_replace:text
1|ofobar
2|oFo Bar baz
3|""
4|NULL
5|0224-01-15
8|x.y(z)
9|wto\nlines
6|1ab22c3339

> SELECT id, regexp_replace(a, '(\w)(\w)', '\2\1', 'g') FROM r
id:int4|regexp_replace:text
1|ofbora
2|oFo aBr abz
3|""
4|NULL
5|0242-10-51
8|x.y(z)
9|wto\nilens
6|1a2bc23393

> SELECT id, regexp_replace(a, '^', '>') FROM r
id:int4|regexp_replace:text
1|>foobar
2|>Foo Bar baz
3|>
4|NULL
5|>2024-01-15
8|>x.y(z)
9|>two\nlines
6|>a1b22c3339

> SELECT id, regexp_replace(a, 'BAR', 'x', 'i') FROM r
id:int4|regexp_replace:text
1|foox
2|Foo x baz
3|""
4|NULL
5|2024-01-15
8|x.y(z)
9|two\nlines
6|a1b22c3339

> SELECT id, regexp_replace(a, 'O', '', 'gi') FROM r
id:int4|regexp_replace:text
1|fbar
2|F Bar baz
3|""
4|NULL
5|2024-01-15
8|x.y(z)
9|tw\nlines
6|a1b22c3339

> SELECT id, regexp_replace(a, '\s+', ' ', 'g') FROM r
id:int4|regexp_replace:text
1|foobar
2|Foo Bar baz
3|""
4|NULL
5|2024-01-15
8|x.y(z)
9|two lines
6|a1b22c3339

> SELECT id, regexp_replace(a, '.', '&\&', 'g') FROM r
id:int4|regexp_replace:text
1|&f&o&o&b&a&r
2|&F&o&o& &B&a&r& &b&a&z
3|""
4|NULL
5|&2&0&2&4&-&0&1&-&1&5
8|&x&.&y&(&z&)
9|&t&w&o&\n&l&i&n&e&s
6|&a&1&b&2&2&c&3&3&3&9

> SELECT id, regexp_replace(a, 'b', '$1') FROM r
id:int4|regexp_replace:text
1|foo$1ar
2|Foo Bar $1az
3|""
4|NULL
5|2024-01-15
8|x.y(z)
9|two\nlines
6|a1$122c3339

> SELECT id, regexp_split_to_array(a, '[^a-z0-9]+') FROM r
id:int4|regexp_split_to_array:text[]
1|{foobar}
2|{"",oo,ar,baz}
3|{""}
4|NULL
5|{2024,01,15}
8|{x,y,z,""}
9|{two,lines}
6|{a1b22c3339}

> SELECT id, regexp_split_to_array(a, '') FROM r
id:int4|regexp_split_to_array:text[]
1|{f,o,o,b,a,r}
2|{F,o,o," ",B,a,r," ",b,a,z}
3|{""}
4|NULL
5|{2,0,2,4,-,0,1,-,1,5}
8|{x,.,y,(,z,)}
9|{t,w,o,"\n",l,i,n,e,s}
6|{a,1,b,2,2,c,3,3,3,9}

> SELECT id, regexp_split_to_array(a, '-') FROM r
id:int4|regexp_split_to_array:text[]
1|{foobar}
2|{"Foo Bar baz"}
3|{""}
4|NULL
5|{2024,01,15}
8|{x.y(z)}
9|{"two\nlines"}
6|{a1b22c3339}

> SELECT id, substring(a FROM '[0-9]+') FROM r
id:int4|substring:text
1|NULL
2|NULL
3|NULL
4|NULL
5|2024
8|NULL
9|NULL
6|1

> SELECT id, substring(a FROM 'b(.)') FROM r
id:int4|substring:text
1|a
2|a
3|NULL
4|NULL
5|NULL
8|NULL
9|NULL
6|2

> SELECT id, substring(a, 'o+') FROM r
id:int4|substring:text
1|oo
2|oo
3|NULL
4|NULL
5|NULL
8|NULL
9|o
6|NULL

> SELECT id, substring(a, p) FROM r
id:int4|substring:text
1|oo
2|ba
3|""
4|NULL
5|2024
8|.
9|lines
6|1

> SELECT id, a SIMILAR TO 'foo%' FROM r
id:int4|?column?:bool
1|t
2|f
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, a SIMILAR TO '(f|F)oo%' FROM r
id:int4|?column?:bool
1|t
2|t
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, a NOT SIMILAR TO '%[0-9]%' FROM r
id:int4|?column?:bool
1|t
2|t
3|t
4|NULL
5|f
8|t
9|t
6|f

> SELECT id, a SIMILAR TO '_____r' FROM r
id:int4|?column?:bool
1|t
2|f
3|f
4|NULL
5|f
8|f
9|f
6|f

> SELECT id, m FROM r, regexp_matches(a, '[a-z]+', 'g') AS m
id:int4|m:text[]
1|{foobar}
2|{oo}
2|{ar}
2|{baz}
8|{x}
8|{y}
8|{z}
9|{two}
9|{lines}
6|{a}
6|{b}
6|{c}

> SELECT id, m FROM r, regexp_matches(a, '([0-9])', 'g') AS m
id:int4|m:text[]
5|{2}
5|{0}
5|{2}
5|{4}
5|{0}
5|{1}
5|{1}
5|{5}
6|{1}
6|{2}
6|{2}
6|{3}
6|{3}
6|{3}
6|{9}

> SELECT id, m FROM r, regexp_matches(a, 'o') AS m
id:int4|m:text[]
1|{o}
2|{o}
9|{o}

> SELECT id, w FROM r, regexp_split_to_table(a, '[ -]') AS w
id:int4|w:text
1|foobar
2|Foo
2|Bar
2|baz
3|""
5|2024
5|01
5|15
8|x.y(z)
9|two\nlines
6|a1b22c3339

> SELECT id, w FROM r, string_to_table(a, '-') AS w
id:int4|w:text
1|foobar
2|Foo Bar baz
5|2024
5|01
5|15
8|x.y(z)
9|two\nlines
6|a1b22c3339

> SELECT id FROM r WHERE a ~ '^[A-Z]' ORDER BY id
id:int4
2

> SELECT count(*) FROM r WHERE a ~ '[0-9]' AND a !~ '-'
count:int8
1

> SELECT r.id, s.id FROM r JOIN r s ON s.a ~ r.p
id:int4|id:int4
1|1
1|2
1|9
2|1
2|2
2|6
3|3
5|5
5|6
8|8
9|9
6|5
6|6

> SELECT regexp_replace(a, '[0-9]', '', 'g') AS k, count(*) FROM r GROUP BY k
k:text|count:int8
NULL|1
""|1
Foo Bar baz|1
x.y(z)|1
--|1
abc|1
foobar|1
two\nlines|1

> SELECT id, regexp_substr(a, '[a-z]+', 1, 2), regexp_instr(a, 'o', 2), regexp_count(a, 'O', 1, 'i'), regexp_replace(a, '[ao]', '<\&>', 1, 2) FROM r
id:int4|regexp_substr:text|regexp_instr:int4|regexp_count:int4|regexp_replace:text
1|NULL|2|2|fo<o>bar
2|ar|2|2|Fo<o> Bar baz
3|NULL|0|0|""
4|NULL|NULL|NULL|NULL
5|NULL|0|0|2024-01-15
8|y|0|0|x.y(z)
9|lines|3|1|two\nlines
6|b|0|0|a1b22c3339

> SELECT id, a SIMILAR TO '%(o|x){2}%', a NOT SIMILAR TO 'f_obar', a SIMILAR TO '20%#-15' ESCAPE '#', regexp_split_to_array(a, 'B', 'i') FROM r
id:int4|?column?:bool|?column?:bool|?column?:bool|regexp_split_to_array:text[]
1|t|f|f|{foo,ar}
2|t|t|f|{"Foo ","ar ",az}
3|f|t|f|{""}
4|NULL|NULL|NULL|NULL
5|f|t|t|{2024-01-15}
8|f|t|f|{x.y(z)}
9|f|t|f|{"two\nlines"}
6|f|t|f|{a1,22c3339}

> SELECT regexp_instr('a', 'a', 0)
! 22023 invalid value for parameter "start": 0

> SELECT regexp_substr('a', 'a', 1, 0)
! 22023 invalid value for parameter "n": 0
