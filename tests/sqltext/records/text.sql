# Strings: operators, functions, patterns of LIKE
> CREATE TABLE x (id int, a text, b text, v varchar(8), c char(5), n int)
CREATE TABLE

> INSERT INTO x VALUES (1, 'hello', 'lo', 'abc', 'ab', 2), (2, 'Hello World', 'o', 'XyZ', 'xyz', 3), (3, '', '', '', '', 0), (4, NULL, NULL, NULL, NULL, NULL), (8, 'gone', 'g', 'g', 'g', 1)
INSERT 0 5

% changes
> INSERT INTO x VALUES (5, 'ünïcödé', 'ï', 'été', 'é', 4), (6, '  padded  ', ' ', 'a_b%c', 'a b', -2), (7, 'a,b,,c', ',', 'x,y', 'z', 1)
INSERT 0 3

> UPDATE x SET a = a || '!' WHERE id = 2
UPDATE 1

> DELETE FROM x WHERE id = 8
DELETE 1

> SELECT id, a || b FROM x
id:int4|?column?:text
1|hellolo
3|""
4|NULL
5|ünïcödéï
6|\  padded  \s
7|a,b,,c,
2|Hello World!o

> SELECT id, a || n FROM x
id:int4|?column?:text
1|hello2
3|0
4|NULL
5|ünïcödé4
6|\  padded  -2
7|a,b,,c1
2|Hello World!3

> SELECT id, n || a FROM x
id:int4|?column?:text
1|2hello
3|0
4|NULL
5|4ünïcödé
6|-2  padded \s
7|1a,b,,c
2|3Hello World!

> SELECT id, v || c FROM x
id:int4|?column?:text
1|abcab
3|""
4|NULL
5|étéé
6|a_b%ca b
7|x,yz
2|XyZxyz

> SELECT id, a || NULL FROM x
id:int4|?column?:text
1|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
2|NULL

> SELECT id, '<' || c || '>' FROM x
id:int4|?column?:text
1|<ab>
3|<>
4|NULL
5|<é>
6|<a b>
7|<z>
2|<xyz>

> SELECT id, length(a) FROM x
id:int4|length:int4
1|5
3|0
4|NULL
5|7
6|10
7|6
2|12

> SELECT id, length(c) FROM x
id:int4|length:int4
1|2
3|0
4|NULL
5|1
6|3
7|1
2|3

> SELECT id, length(v) FROM x
id:int4|length:int4
1|3
3|0
4|NULL
5|3
6|5
7|3
2|3

> SELECT id, char_length(a) FROM x
id:int4|char_length:int4
1|5
3|0
4|NULL
5|7
6|10
7|6
2|12

> SELECT id, character_length(b) FROM x
id:int4|character_length:int4
1|2
3|0
4|NULL
5|1
6|1
7|1
2|1

> SELECT id, octet_length(a) FROM x
id:int4|octet_length:int4
1|5
3|0
4|NULL
5|11
6|10
7|6
2|12

> SELECT id, bit_length(a) FROM x
id:int4|bit_length:int4
1|40
3|0
4|NULL
5|88
6|80
7|48
2|96

> SELECT id, upper(a) FROM x
id:int4|upper:text
1|HELLO
3|""
4|NULL
5|ÜNÏCÖDÉ
6|\  PADDED \s
7|A,B,,C
2|HELLO WORLD!

> SELECT id, lower(a) FROM x
id:int4|lower:text
1|hello
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|hello world!

> SELECT id, initcap(a) FROM x
id:int4|initcap:text
1|Hello
3|""
4|NULL
5|Ünïcödé
6|\  Padded \s
7|A,B,,C
2|Hello World!

> SELECT id, upper(v) FROM x
id:int4|upper:text
1|ABC
3|""
4|NULL
5|ÉTÉ
6|A_B%C
7|X,Y
2|XYZ

> SELECT id, lower(c) FROM x
id:int4|lower:text
1|ab
3|""
4|NULL
5|é
6|a b
7|z
2|xyz

> SELECT id, reverse(a) FROM x
id:int4|reverse:text
1|olleh
3|""
4|NULL
5|édöcïnü
6|\  deddap \s
7|c,,b,a
2|\!dlroW olleH

> SELECT id, repeat(b, 3) FROM x
id:int4|repeat:text
1|lololo
3|""
4|NULL
5|ïïï
6|\  \s
7|,,,
2|ooo

> SELECT id, repeat(a, n) FROM x
id:int4|repeat:text
1|hellohello
3|""
4|NULL
5|ünïcödéünïcödéünïcödéünïcödé
6|""
7|a,b,,c
2|Hello World!Hello World!Hello World!

> SELECT id, left(a, 2) FROM x
id:int4|left:text
1|he
3|""
4|NULL
5|ün
6|\ \s
7|a,
2|He

> SELECT id, left(a, -2) FROM x
id:int4|left:text
1|hel
3|""
4|NULL
5|ünïcö
6|\  padded
7|a,b,
2|Hello Worl

> SELECT id, left(a, n) FROM x
id:int4|left:text
1|he
3|""
4|NULL
5|ünïc
6|\  padded
7|a
2|Hel

> SELECT id, right(a, 2) FROM x
id:int4|right:text
1|lo
3|""
4|NULL
5|dé
6|\ \s
7|,c
2|d!

> SELECT id, right(a, -3) FROM x
id:int4|right:text
1|lo
3|""
4|NULL
5|cödé
6|added \s
7|,,c
2|lo World!

> SELECT id, right(a, n) FROM x
id:int4|right:text
1|lo
3|""
4|NULL
5|cödé
6|padded \s
7|c
2|ld!

> SELECT id, substring(a, 2) FROM x
id:int4|substring:text
1|ello
3|""
4|NULL
5|nïcödé
6|\ padded \s
7|,b,,c
2|ello World!

> SELECT id, substring(a, 2, 3) FROM x
id:int4|substring:text
1|ell
3|""
4|NULL
5|nïc
6|\ pa
7|,b,
2|ell

> SELECT id, substring(a FROM 2 FOR 2) FROM x
id:int4|substring:text
1|el
3|""
4|NULL
5|nï
6|\ p
7|,b
2|el

> SELECT id, substring(a FOR 3) FROM x
id:int4|substring:text
1|hel
3|""
4|NULL
5|ünï
6|\  p
7|a,b
2|Hel

> SELECT id, substring(a FROM 3) FROM x
id:int4|substring:text
1|llo
3|""
4|NULL
5|ïcödé
6|padded \s
7|b,,c
2|llo World!

> SELECT id, substr(a, 3) FROM x
id:int4|substr:text
1|llo
3|""
4|NULL
5|ïcödé
6|padded \s
7|b,,c
2|llo World!

> SELECT id, substr(a, 1, 4) FROM x
id:int4|substr:text
1|hell
3|""
4|NULL
5|ünïc
6|\  pa
7|a,b,
2|Hell

> SELECT id, substring(a, 0, 3) FROM x
id:int4|substring:text
1|he
3|""
4|NULL
5|ün
6|\ \s
7|a,
2|He

> SELECT id, substring(a, -1, 4) FROM x
id:int4|substring:text
1|he
3|""
4|NULL
5|ün
6|\ \s
7|a,
2|He

> SELECT id, position('l' IN a) FROM x
id:int4|position:int4
1|3
3|0
4|NULL
5|0
6|0
7|0
2|3

> SELECT id, position(b IN a) FROM x
id:int4|position:int4
1|4
3|1
4|NULL
5|3
6|1
7|2
2|5

> SELECT id, strpos(a, 'o') FROM x
id:int4|strpos:int4
1|5
3|0
4|NULL
5|0
6|0
7|0
2|5

> SELECT id, strpos(a, b) FROM x
id:int4|strpos:int4
1|4
3|1
4|NULL
5|3
6|1
7|2
2|5

> SELECT id, strpos(a, '') FROM x
id:int4|strpos:int4
1|1
3|1
4|NULL
5|1
6|1
7|1
2|1

> SELECT id, replace(a, 'l', 'L') FROM x
id:int4|replace:text
1|heLLo
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|HeLLo WorLd!

> SELECT id, replace(a, b, '-') FROM x
id:int4|replace:text
1|hel-
3|""
4|NULL
5|ün-cödé
6|--padded--
7|a-b--c
2|Hell- W-rld!

> SELECT id, replace(a, '', 'x') FROM x
id:int4|replace:text
1|hello
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|Hello World!

> SELECT id, translate(a, 'lo', 'xy') FROM x
id:int4|translate:text
1|hexxy
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|Hexxy Wyrxd!

> SELECT id, translate(a, 'elo', 'x') FROM x
id:int4|translate:text
1|hx
3|""
4|NULL
5|ünïcödé
6|\  paddxd \s
7|a,b,,c
2|Hx Wrd!

> SELECT id, translate(a, 'abc', '') FROM x
id:int4|translate:text
1|hello
3|""
4|NULL
5|ünïödé
6|\  pdded \s
7|,,,
2|Hello World!

> SELECT id, trim(a) FROM x
id:int4|btrim:text
1|hello
3|""
4|NULL
5|ünïcödé
6|padded
7|a,b,,c
2|Hello World!

> SELECT id, trim(both 'h!' FROM a) FROM x
id:int4|btrim:text
1|ello
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|Hello World

> SELECT id, trim(leading FROM a) FROM x
id:int4|ltrim:text
1|hello
3|""
4|NULL
5|ünïcödé
6|padded \s
7|a,b,,c
2|Hello World!

> SELECT id, trim(trailing '!' FROM a) FROM x
id:int4|rtrim:text
1|hello
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|Hello World

> SELECT id, btrim(a) FROM x
id:int4|btrim:text
1|hello
3|""
4|NULL
5|ünïcödé
6|padded
7|a,b,,c
2|Hello World!

> SELECT id, btrim(a, ' h') FROM x
id:int4|btrim:text
1|ello
3|""
4|NULL
5|ünïcödé
6|padded
7|a,b,,c
2|Hello World!

> SELECT id, ltrim(a) FROM x
id:int4|ltrim:text
1|hello
3|""
4|NULL
5|ünïcödé
6|padded \s
7|a,b,,c
2|Hello World!

> SELECT id, ltrim(a, 'he') FROM x
id:int4|ltrim:text
1|llo
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|Hello World!

> SELECT id, rtrim(a) FROM x
id:int4|rtrim:text
1|hello
3|""
4|NULL
5|ünïcödé
6|\  padded
7|a,b,,c
2|Hello World!

> SELECT id, rtrim(a, 'ol!') FROM x
id:int4|rtrim:text
1|he
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|Hello World

> SELECT id, lpad(a, 8) FROM x
id:int4|lpad:text
1|\   hello
3|\       \s
4|NULL
5|\ ünïcödé
6|\  padded
7|\  a,b,,c
2|Hello Wo

> SELECT id, lpad(a, 8, 'xy') FROM x
id:int4|lpad:text
1|xyxhello
3|xyxyxyxy
4|NULL
5|xünïcödé
6|\  padded
7|xya,b,,c
2|Hello Wo

> SELECT id, lpad(a, 3) FROM x
id:int4|lpad:text
1|hel
3|\  \s
4|NULL
5|ünï
6|\  p
7|a,b
2|Hel

> SELECT id, rpad(a, 8) || '|' FROM x
id:int4|?column?:text
1|hello   \|
3|\        \|
4|NULL
5|ünïcödé \|
6|\  padded\|
7|a,b,,c  \|
2|Hello Wo\|

> SELECT id, rpad(a, 8, 'xy') FROM x
id:int4|rpad:text
1|helloxyx
3|xyxyxyxy
4|NULL
5|ünïcödéx
6|\  padded
7|a,b,,cxy
2|Hello Wo

> SELECT id, rpad(a, 3) FROM x
id:int4|rpad:text
1|hel
3|\  \s
4|NULL
5|ünï
6|\  p
7|a,b
2|Hel

> SELECT id, lpad(n::text, 4, '0') FROM x
id:int4|lpad:text
1|0002
3|0000
4|NULL
5|0004
6|00-2
7|0001
2|0003

> SELECT id, split_part(a, ',', 1) FROM x
id:int4|split_part:text
1|hello
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a
2|Hello World!

> SELECT id, split_part(a, ',', 2) FROM x
id:int4|split_part:text
1|""
3|""
4|NULL
5|""
6|""
7|b
2|""

> SELECT id, split_part(a, ',', -1) FROM x
id:int4|split_part:text
1|hello
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|c
2|Hello World!

> SELECT id, split_part(a, ' ', 2) FROM x
id:int4|split_part:text
1|""
3|""
4|NULL
5|""
6|""
7|""
2|World!

> SELECT id, split_part(a, ',', 9) FROM x
id:int4|split_part:text
1|""
3|""
4|NULL
5|""
6|""
7|""
2|""

> SELECT id, concat(a, b) FROM x
id:int4|concat:text
1|hellolo
3|""
4|""
5|ünïcödéï
6|\  padded  \s
7|a,b,,c,
2|Hello World!o

> SELECT id, concat(a, NULL, n, true) FROM x
id:int4|concat:text
1|hello2t
3|0t
4|t
5|ünïcödé4t
6|\  padded  -2t
7|a,b,,c1t
2|Hello World!3t

> SELECT id, concat(v, '-', v, '-') FROM x
id:int4|concat:text
1|abc-abc-
3|--
4|--
5|été-été-
6|a_b%c-a_b%c-
7|x,y-x,y-
2|XyZ-XyZ-

> SELECT id, concat_ws('/', a, b, v) FROM x
id:int4|concat_ws:text
1|hello/lo/abc
3|//
4|""
5|ünïcödé/ï/été
6|\  padded  / /a_b%c
7|a,b,,c/,/x,y
2|Hello World!/o/XyZ

> SELECT id, concat_ws(',', n, a) FROM x
id:int4|concat_ws:text
1|2,hello
3|0,
4|""
5|4,ünïcödé
6|-2,  padded \s
7|1,a,b,,c
2|3,Hello World!

> SELECT id, concat_ws(NULL, a, b) FROM x
id:int4|concat_ws:text
1|NULL
3|NULL
4|NULL
5|NULL
6|NULL
7|NULL
2|NULL

> SELECT id, ascii(a) FROM x
id:int4|ascii:int4
1|104
3|0
4|NULL
5|252
6|32
7|97
2|72

> SELECT id, ascii(b) FROM x
id:int4|ascii:int4
1|108
3|0
4|NULL
5|239
6|32
7|44
2|111

> SELECT id, chr(65 + abs(n)) FROM x
id:int4|chr:text
1|C
3|A
4|NULL
5|E
6|C
7|B
2|D

> SELECT id, md5(a) FROM x
id:int4|md5:text
1|5d41402abc4b2a76b9719d911017c592
3|d41d8cd98f00b204e9800998ecf8427e
4|NULL
5|c122dd63912c7bdc299849963e1c5b18
6|2c10e6b3ece52c46634f659109e15fea
7|e25525e3d41f57be29ab0ecf3365ba14
2|ed076287532e86365e841e92bfc50d8c

> SELECT id, sha256(a::bytea) FROM x
id:int4|sha256:bytea
1|\\x2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
3|\\xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
4|NULL
5|\\xb09ad3e278dfb341468394a32f732467e2245b4b2876c3e15e0aaf1aa5ac242a
6|\\x3d4a55719d2ebc89e0e90d5c6ca663ba4871cb0aa98603cf716bf343db149465
7|\\x11fa270fc075dcc5dfda7121ed65bb665670468286b1f2cfe260df31d878ff21
2|\\x7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069

> SELECT id, encode(a::bytea, 'hex') FROM x
id:int4|encode:text
1|68656c6c6f
3|""
4|NULL
5|c3bc6ec3af63c3b664c3a9
6|20207061646465642020
7|612c622c2c63
2|48656c6c6f20576f726c6421

> SELECT id, encode(a::bytea, 'base64') FROM x
id:int4|encode:text
1|aGVsbG8=
3|""
4|NULL
5|w7xuw69jw7Zkw6k=
6|ICBwYWRkZWQgIA==
7|YSxiLCxj
2|SGVsbG8gV29ybGQh

> SELECT id, decode(md5(a), 'hex') FROM x
id:int4|decode:bytea
1|\\x5d41402abc4b2a76b9719d911017c592
3|\\xd41d8cd98f00b204e9800998ecf8427e
4|NULL
5|\\xc122dd63912c7bdc299849963e1c5b18
6|\\x2c10e6b3ece52c46634f659109e15fea
7|\\xe25525e3d41f57be29ab0ecf3365ba14
2|\\xed076287532e86365e841e92bfc50d8c

> SELECT id, starts_with(a, 'h') FROM x
id:int4|starts_with:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a ^@ 'H' FROM x
id:int4|?column?:bool
1|f
3|f
4|NULL
5|f
6|f
7|f
2|t

> SELECT id, starts_with(a, b) FROM x
id:int4|starts_with:bool
1|f
3|t
4|NULL
5|f
6|t
7|f
2|f

> SELECT id, quote_literal(a) FROM x
id:int4|quote_literal:text
1|'hello'
3|''
4|NULL
5|'ünïcödé'
6|'  padded  '
7|'a,b,,c'
2|'Hello World!'

> SELECT id, quote_ident(a) FROM x
id:int4|quote_ident:text
1|hello
3|""
4|NULL
5|"ünïcödé"
6|"  padded  "
7|"a,b,,c"
2|"Hello World!"

> SELECT id, quote_ident(v) FROM x
id:int4|quote_ident:text
1|abc
3|""
4|NULL
5|"été"
6|"a_b%c"
7|"x,y"
2|"XyZ"

> SELECT id, quote_literal(n::text) FROM x
id:int4|quote_literal:text
1|'2'
3|'0'
4|NULL
5|'4'
6|'-2'
7|'1'
2|'3'

% not-on-spark
> SELECT id, format('%s-%s', a, n) FROM x
id:int4|format:text
1|hello-2
3|-0
4|-
5|ünïcödé-4
6|\  padded  --2
7|a,b,,c-1
2|Hello World!-3

% not-on-spark
> SELECT id, format('%I %L', v, a) FROM x
! 22004 null values cannot be formatted as an SQL identifier

% not-on-spark
> SELECT id, format('%2$s %1$s', a, b) FROM x
id:int4|format:text
1|lo hello
3|\\s
4|\\s
5|ï ünïcödé
6|\    padded \s
7|, a,b,,c
2|o Hello World!

% not-on-spark
> SELECT id, format('%%%s', n) FROM x
id:int4|format:text
1|\%2
3|\%0
4|\%
5|\%4
6|\%-2
7|\%1
2|\%3

> SELECT id, to_hex(abs(n)) FROM x
id:int4|to_hex:text
1|2
3|0
4|NULL
5|4
6|2
7|1
2|3

> SELECT id, coalesce(a, 'none') FROM x
id:int4|coalesce:text
1|hello
3|""
4|none
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|Hello World!

> SELECT id, nullif(a, '') FROM x
id:int4|nullif:text
1|hello
3|NULL
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|Hello World!

> SELECT id, nullif(b, 'o') FROM x
id:int4|nullif:text
1|lo
3|""
4|NULL
5|ï
6|\\s
7|,
2|NULL

> SELECT id, greatest(a, b) FROM x
id:int4|greatest:text
1|lo
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|o

> SELECT id, least(a, v) FROM x
id:int4|least:text
1|abc
3|""
4|NULL
5|été
6|\  padded \s
7|a,b,,c
2|Hello World!

> SELECT id, a = b FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a = v FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, c = 'ab' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, c = 'ab   ' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, c::text = 'ab ' FROM x
id:int4|?column?:bool
1|f
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, v = 'abc' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a < 'i' FROM x
id:int4|?column?:bool
1|t
3|t
4|NULL
5|f
6|t
7|t
2|t

> SELECT id, a > b FROM x
id:int4|?column?:bool
1|f
3|f
4|NULL
5|t
6|t
7|t
2|f

> SELECT id, a <= 'hello' FROM x
id:int4|?column?:bool
1|t
3|t
4|NULL
5|f
6|t
7|t
2|t

> SELECT id, a <> 'hello' FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|t
6|t
7|t
2|t

> SELECT id, a BETWEEN 'a' AND 'i' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|t
2|f

> SELECT id, a IN ('hello', '', 'x') FROM x
id:int4|?column?:bool
1|t
3|t
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a NOT IN ('hello', 'x') FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|t
6|t
7|t
2|t

> SELECT id, a LIKE 'h%' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a LIKE '%o' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a LIKE '%l%' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|t

> SELECT id, a LIKE 'h_llo' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a LIKE '_____' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a LIKE '' FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a LIKE '%' FROM x
id:int4|?column?:bool
1|t
3|t
4|NULL
5|t
6|t
7|t
2|t

> SELECT id, a LIKE a FROM x
id:int4|?column?:bool
1|t
3|t
4|NULL
5|t
6|t
7|t
2|t

> SELECT id, a LIKE b || '%' FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|f
6|t
7|f
2|f

> SELECT id, a NOT LIKE '%o%' FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|t
6|t
7|t
2|f

> SELECT id, a ILIKE 'H%' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|t

> SELECT id, a ILIKE '%WORLD%' FROM x
id:int4|?column?:bool
1|f
3|f
4|NULL
5|f
6|f
7|f
2|t

> SELECT id, a NOT ILIKE 'h%' FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|t
6|t
7|t
2|f

> SELECT id, a ILIKE 'ÜN%' FROM x
id:int4|?column?:bool
1|f
3|f
4|NULL
5|t
6|f
7|f
2|f

> SELECT id, v LIKE 'a\_b\%c' FROM x
id:int4|?column?:bool
1|f
3|f
4|NULL
5|f
6|t
7|f
2|f

> SELECT id, v LIKE 'a_b%c' FROM x
id:int4|?column?:bool
1|f
3|f
4|NULL
5|f
6|t
7|f
2|f

> SELECT id, v LIKE 'a#_b%' ESCAPE '#' FROM x
id:int4|?column?:bool
1|f
3|f
4|NULL
5|f
6|t
7|f
2|f

> SELECT id, v LIKE 'a!%%' ESCAPE '!' FROM x
id:int4|?column?:bool
1|f
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, v LIKE '%z' OR v LIKE 'a%' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|t
7|f
2|f

> SELECT id, a ~~ 'h%' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a !~~ 'h%' FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|t
6|t
7|t
2|t

> SELECT id, a ~~* 'H%' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|t

> SELECT id, a !~~* 'H%' FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|t
6|t
7|t
2|f

> SELECT id, a LIKE 'h%' AND a LIKE '%o' FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, upper(left(a, 1)) || lower(substr(a, 2)) FROM x
id:int4|?column?:text
1|Hello
3|""
4|NULL
5|Ünïcödé
6|\  padded \s
7|A,b,,c
2|Hello world!

> SELECT id, length(trim(a)) - length(a) FROM x
id:int4|?column?:int4
1|0
3|0
4|NULL
5|0
6|-4
7|0
2|0

> SELECT id, a || ' ' || coalesce(b, '?') || ' ' || v FROM x
id:int4|?column?:text
1|hello lo abc
3|\ \s
4|NULL
5|ünïcödé ï été
6|\  padded     a_b%c
7|a,b,,c , x,y
2|Hello World! o XyZ

> SELECT id, a::varchar(3) FROM x
id:int4|a:varchar
1|hel
3|""
4|NULL
5|ünï
6|\  p
7|a,b
2|Hel

> SELECT id, a::char(3) FROM x
id:int4|a:bpchar
1|hel
3|\  \s
4|NULL
5|ünï
6|\  p
7|a,b
2|Hel

> SELECT id, c::varchar(2) FROM x
id:int4|c:varchar
1|ab
3|""
4|NULL
5|é
6|a\s
7|z
2|xy

> SELECT id, c || '.' FROM x
id:int4|?column?:text
1|ab.
3|.
4|NULL
5|é.
6|a b.
7|z.
2|xyz.

> SELECT id, v::char(6) || '.' FROM x
id:int4|?column?:text
1|abc.
3|.
4|NULL
5|été.
6|a_b%c.
7|x,y.
2|XyZ.

> SELECT id, a::text::varchar FROM x
id:int4|a:varchar
1|hello
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a,b,,c
2|Hello World!

> SELECT id, length(a || b) = length(a) + length(b) FROM x
id:int4|?column?:bool
1|t
3|t
4|NULL
5|t
6|t
7|t
2|t

> SELECT id, upper(a) = upper(b) FROM x
id:int4|?column?:bool
1|f
3|t
4|NULL
5|f
6|f
7|f
2|f

> SELECT id, a COLLATE "C" < b FROM x
id:int4|?column?:bool
1|t
3|f
4|NULL
5|f
6|f
7|f
2|t

> SELECT id, 'it''s', E'a\tb', E'line\nbreak' FROM x
id:int4|?column?:text|?column?:text|?column?:text
1|it's|a	b|line\nbreak
3|it's|a	b|line\nbreak
4|it's|a	b|line\nbreak
5|it's|a	b|line\nbreak
6|it's|a	b|line\nbreak
7|it's|a	b|line\nbreak
2|it's|a	b|line\nbreak

> SELECT id, $$dollar$$, $q$it's$q$ FROM x
id:int4|?column?:text|?column?:text
1|dollar|it's
3|dollar|it's
4|dollar|it's
5|dollar|it's
6|dollar|it's
7|dollar|it's
2|dollar|it's

> SELECT id, n || ':' || a FROM x
id:int4|?column?:text
1|2:hello
3|0:
4|NULL
5|4:ünïcödé
6|-2:  padded \s
7|1:a,b,,c
2|3:Hello World!

> SELECT id, (n + 1)::text || a FROM x
id:int4|?column?:text
1|3hello
3|1
4|NULL
5|5ünïcödé
6|-1  padded \s
7|2a,b,,c
2|4Hello World!

> SELECT id, substring(a, n) FROM x
id:int4|substring:text
1|ello
3|""
4|NULL
5|cödé
6|\  padded \s
7|a,b,,c
2|llo World!

> SELECT id, length(repeat('ab', 5)) FROM x
id:int4|length:int4
1|10
3|10
4|10
5|10
6|10
7|10
2|10

> SELECT id, string_to_array(a, ',') FROM x
id:int4|string_to_array:text[]
1|{hello}
3|{}
4|NULL
5|{ünïcödé}
6|{"  padded  "}
7|{a,b,"",c}
2|{"Hello World!"}

> SELECT id, array_to_string(string_to_array(a, ','), ';') FROM x
id:int4|array_to_string:text
1|hello
3|""
4|NULL
5|ünïcödé
6|\  padded \s
7|a;b;;c
2|Hello World!

> SELECT id, a = '' IS TRUE FROM x
id:int4|?column?:bool
1|f
3|t
4|f
5|f
6|f
7|f
2|f

> SELECT id, CASE WHEN a LIKE '%o%' THEN 'has o' ELSE 'none' END FROM x
id:int4|case:text
1|has o
3|none
4|none
5|none
6|none
7|none
2|has o

> SELECT 'a' < 'B' COLLATE "C", 'a' COLLATE "C" < 'b'
?column?:bool|?column?:bool
f|t

> SELECT id FROM x ORDER BY a COLLATE "C", id
id:int4
3
6
2
7
1
5
4

> SELECT id, a FROM x WHERE length(a) > 5 ORDER BY id
id:int4|a:text
2|Hello World!
5|ünïcödé
6|\  padded \s
7|a,b,,c

> SELECT max(a COLLATE "C"), min(a COLLATE "C") FROM x
max:text|min:text
ünïcödé|""

> SELECT length(a), count(*) FROM x GROUP BY length(a)
length:int4|count:int8
NULL|1
5|1
0|1
10|1
6|1
7|1
12|1

> SELECT upper(left(a, 1)) AS first, count(*) FROM x GROUP BY 1
first:text|count:int8
NULL|1
\\s|1
""|1
H|2
Ü|1
A|1

> SELECT string_agg(a, '|' ORDER BY id) FROM x
string_agg:text
hello\|Hello World!\|\|ünïcödé\|  padded  \|a,b,,c

> SELECT x.id, y.id FROM x JOIN x y ON x.a LIKE '%' || y.b || '%'
id:int4|id:int4
1|1
1|3
1|2
3|3
5|3
5|5
6|3
6|6
7|3
7|7
2|1
2|3
2|6
2|2

> SELECT id, ch FROM x, unnest(string_to_array(a, ',')) AS ch
id:int4|ch:text
1|hello
5|ünïcödé
6|\  padded \s
7|a
7|b
7|""
7|c
2|Hello World!

> SELECT 'abc' || 'def', 'x' || 1, 1 || 'x'
?column?:text|?column?:text|?column?:text
abcdef|x1|1x

> SELECT length(''), upper(''), reverse(''), repeat('', 3), left('', 1)
length:int4|upper:text|reverse:text|repeat:text|left:text
0|""|""|""|""

> SELECT sha224('a'), sha384('a'), sha512('a')
sha224:bytea|sha384:bytea|sha512:bytea
\\xabd37534c7d9a2efb9465de931cd7055ffdb8879563ae98078d6d6d5|\\x54a59b9f22b0b80880d8427e548b7c23abd873486e1f035dce9cd697e85175033caa88e6d57bc35efae0b5afd3145f31|\\x1f40fc92da241694750979ee6cf582f2d5d7d28e18335de05abc54d0560e0f5302860c652bf08d560252aa5e74210546f369fbbbce8c12cfc7957b2652fe9a75

% no-view
> SELECT pg_typeof(1)::text, pg_typeof('a'::text)::text, pg_typeof(NULL)::text, pg_typeof(ARRAY[1.5])::text, pg_typeof(now())::text, pg_typeof('x'::varchar(3))::text
pg_typeof:text|pg_typeof:text|pg_typeof:text|pg_typeof:text|pg_typeof:text|pg_typeof:text
integer|text|unknown|numeric[]|timestamp with time zone|character varying

> SELECT id, overlay(a PLACING 'XX' FROM 2), overlay(a PLACING b FROM 1 FOR 3), quote_nullable(a), quote_literal(n), normalize(a) FROM x
id:int4|overlay:text|overlay:text|quote_nullable:text|quote_literal:text|normalize:text
1|hXXlo|lolo|'hello'|'2'|hello
3|XX|""|''|'0'|""
4|NULL|NULL|NULL|NULL|NULL
5|üXXcödé|ïcödé|'ünïcödé'|'4'|ünïcödé
6|\ XXadded \s|\ added \s|'  padded  '|'-2'|\  padded \s
7|aXX,,c|,,,c|'a,b,,c'|'1'|a,b,,c
2|HXXlo World!|olo World!|'Hello World!'|'3'|Hello World!

> SELECT id, to_bin(n), to_oct(n), convert_from(convert_to(a, 'UTF8'), 'utf-8'), decode(encode(a::bytea, 'escape'), 'escape') = a::bytea FROM x
id:int4|to_bin:text|to_oct:text|convert_from:text|?column?:bool
1|10|2|hello|t
3|0|0|""|t
4|NULL|NULL|NULL|NULL
5|100|4|ünïcödé|t
6|11111111111111111111111111111110|37777777776|\  padded \s|t
7|1|1|a,b,,c|t
2|11|3|Hello World!|t

> SELECT id, bit_length(a::bytea), position('l'::bytea IN a::bytea), bit_count(b::bytea), btrim(a::bytea, ' '::bytea) FROM x
id:int4|bit_length:int4|position:int4|bit_count:int8|btrim:bytea
1|40|3|10|\\x68656c6c6f
3|0|0|0|\\x
4|NULL|NULL|NULL|NULL
5|88|0|10|\\xc3bc6ec3af63c3b664c3a9
6|80|0|1|\\x706164646564
7|48|0|3|\\x612c622c2c63
2|96|3|6|\\x48656c6c6f20576f726c6421

> SELECT get_byte('\x12'::bytea, 1)
! 2202E index 1 out of valid range, 0..0
