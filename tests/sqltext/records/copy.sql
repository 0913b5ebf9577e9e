# COPY in and out, text and CSV
> CREATE TABLE c (id int, name text, price numeric(6,2), at date, flag boolean)
CREATE TABLE

> COPY c FROM STDIN
  1	one	1.50	2024-01-01	t
  2	two	\N	\N	f
  3	tab\there	3	2024-01-03	\N
COPY 3

> COPY c TO STDOUT
1	one	1.50	2024-01-01	t
2	two	\\N	\\N	f
3	tab\\there	3.00	2024-01-03	\\N

> COPY c (id, name) FROM STDIN
  4	back\\slash
  5	new\nline
COPY 2

> COPY c (id, name) TO STDOUT
1	one
2	two
3	tab\\there
4	back\\\\slash
5	new\\nline

> COPY c FROM STDIN WITH (FORMAT csv)
  6,"quoted, comma",6.5,2024-01-06,true
  7,"say ""hi""",,,
  8,,8,,
COPY 3

> COPY (SELECT id, name, price FROM c ORDER BY id) TO STDOUT
1	one	1.50
2	two	\\N
3	tab\\there	3.00
4	back\\\\slash	\\N
5	new\\nline	\\N
6	quoted, comma	6.50
7	say "hi"	\\N
8	\\N	8.00

> COPY (SELECT id, name, price FROM c ORDER BY id) TO STDOUT WITH (FORMAT csv)
1,one,1.50
2,two,
3,tab	here,3.00
4,back\\slash,
5,"new
line",
6,"quoted, comma",6.50
7,"say ""hi""",
8,,8.00

> COPY (SELECT id, name FROM c ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER)
id,name
1,one
2,two
3,tab	here
4,back\\slash
5,"new
line"
6,"quoted, comma"
7,"say ""hi"""
8,

> COPY (SELECT id, name FROM c WHERE id > 5 ORDER BY id) TO STDOUT WITH (FORMAT csv, DELIMITER ';')
6;quoted, comma
7;"say ""hi"""
8;

> COPY (SELECT id, price FROM c ORDER BY id) TO STDOUT WITH (NULL 'nothing')
1	1.50
2	nothing
3	3.00
4	nothing
5	nothing
6	6.50
7	nothing
8	8.00

> COPY (SELECT id, price FROM c ORDER BY id) TO STDOUT WITH (FORMAT csv, NULL 'NA')
1,1.50
2,NA
3,3.00
4,NA
5,NA
6,6.50
7,NA
8,8.00

> COPY (SELECT id, name FROM c WHERE id < 3 ORDER BY id) TO STDOUT WITH (FORMAT csv, FORCE_QUOTE *)
"1","one"
"2","two"

> COPY (SELECT id, name FROM c WHERE id < 3 ORDER BY id) TO STDOUT WITH (DELIMITER '|')
1\|one
2\|two

> COPY (SELECT 1, 'a', NULL) TO STDOUT
1	a	\\N

> COPY (VALUES (1, true), (2, false)) TO STDOUT WITH CSV
1,t
2,f

> COPY (SELECT ARRAY[1, 2], '{"a": 1}'::jsonb, interval '1 day') TO STDOUT
{1,2}	{"a": 1}	1 day

> COPY c (id, name) FROM STDIN WITH (FORMAT csv, HEADER)
  id,name
  20,header skipped
COPY 1

> COPY c (id, price) FROM STDIN WITH (FORMAT csv, NULL 'NA')
  21,NA
  22,2.25
COPY 2

> COPY c (name, id) FROM STDIN WITH (DELIMITER '|')
  pipe|23
COPY 1

> SELECT id, name, price FROM c WHERE id >= 20 ORDER BY id
id:int4|name:text|price:numeric
20|header skipped|NULL
21|NULL|NULL
22|NULL|2.25
23|pipe|NULL

> COPY c (id, name) FROM STDIN
  x	not a number
! 22P02 invalid input syntax for type integer: "x"

> COPY c (id, name) FROM STDIN
  1
! 22P04 missing data for column "name"

> COPY c (id, name) FROM STDIN
  1	two	three
! 22P04 extra data after last expected column

> COPY c (id, at) FROM STDIN
  1	2024-02-30
! 22008 date/time field value out of range: "2024-02-30"

> COPY c FROM STDIN WITH (FORMAT nope)
! 22023 COPY format "nope" not recognized

> COPY c FROM STDIN WITH (FORMAT binary, HEADER)
! 0A000 cannot specify HEADER in BINARY mode

> COPY c FROM STDIN WITH (FORMAT binary, DELIMITER ',')
! 42601 cannot specify DELIMITER in BINARY mode

% everview-only
> COPY c TO STDOUT WITH (ENCODING 'LATIN1')
! 0A000 the encoding "latin1" is not supported

> COPY c (id, nope) FROM STDIN
! 42703 column "nope" of relation "c" does not exist

> COPY nope FROM STDIN
! 42P01 relation "nope" does not exist

> COPY (SELECT nope) TO STDOUT
! 42703 column "nope" does not exist

> COPY (SELECT 1 / 0) TO STDOUT
! 22012 division by zero

> SELECT count(*) FROM c
count:int8
12
