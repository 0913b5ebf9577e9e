# Exact and inexact numbers: operators, functions, casts
> CREATE TABLE n (id int, i int, b bigint, s smallint, p numeric(12,3), q numeric(8,2), f double precision, r real)
CREATE TABLE

> INSERT INTO n VALUES (1, 7, 9000000000, 3, 12.345, 1.50, 2.5, 0.5), (2, -7, -5, -2, -12.345, 0.25, -0.75, 1.25), (3, 0, 0, 0, 0, 0.01, 0, 0), (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (9, 1, 1, 1, 1, 1, 1, 1)
INSERT 0 5

% changes
> INSERT INTO n VALUES (5, 1000000, 922337203685477, 127, 999.999, 100, 1024, 4096), (6, 12, 144, 5, 0.5, -2.5, 1.5, -3.5), (7, -1, 81, -8, -0.5, 3.5, 100, 16)
INSERT 0 3

> UPDATE n SET i = i + 1, f = f * 2 WHERE id = 1
UPDATE 1

> DELETE FROM n WHERE id = 9
DELETE 1

# Arithmetic and the types that it gives
> SELECT id, i + 1 FROM n
id:int4|?column?:int4
2|-6
3|1
4|NULL
5|1000001
6|13
7|0
1|9

> SELECT id, i - s FROM n
id:int4|?column?:int4
2|-5
3|0
4|NULL
5|999873
6|7
7|7
1|5

> SELECT id, i * 2 FROM n
id:int4|?column?:int4
2|-14
3|0
4|NULL
5|2000000
6|24
7|-2
1|16

> SELECT id, i / 2 FROM n
id:int4|?column?:int4
2|-3
3|0
4|NULL
5|500000
6|6
7|0
1|4

> SELECT id, i % 3 FROM n
id:int4|?column?:int4
2|-1
3|0
4|NULL
5|1
6|0
7|-1
1|2

> SELECT id, -i FROM n
id:int4|?column?:int4
2|7
3|0
4|NULL
5|-1000000
6|-12
7|1
1|-8

> SELECT id, i + b FROM n
id:int4|?column?:int8
2|-12
3|0
4|NULL
5|922337204685477
6|156
7|80
1|9000000008

> SELECT id, b * s FROM n
id:int4|?column?:int8
2|10
3|0
4|NULL
5|117136824868055579
6|720
7|-648
1|27000000000

> SELECT id, s + s FROM n
id:int4|?column?:int2
2|-4
3|0
4|NULL
5|254
6|10
7|-16
1|6

> SELECT id, s * s FROM n
id:int4|?column?:int2
2|4
3|0
4|NULL
5|16129
6|25
7|64
1|9

> SELECT id, b / 7 FROM n
id:int4|?column?:int8
2|0
3|0
4|NULL
5|131762457669353
6|20
7|11
1|1285714285

> SELECT id, b % 7 FROM n
id:int4|?column?:int8
2|-5
3|0
4|NULL
5|6
6|4
7|4
1|5

> SELECT id, i + p FROM n
id:int4|?column?:numeric
2|-19.345
3|0.000
4|NULL
5|1000999.999
6|12.500
7|-1.500
1|20.345

> SELECT id, p + q FROM n
id:int4|?column?:numeric
2|-12.095
3|0.010
4|NULL
5|1099.999
6|-2.000
7|3.000
1|13.845

> SELECT id, p - q FROM n
id:int4|?column?:numeric
2|-12.595
3|-0.010
4|NULL
5|899.999
6|3.000
7|-4.000
1|10.845

> SELECT id, p * q FROM n
id:int4|?column?:numeric
2|-3.08625
3|0.00000
4|NULL
5|99999.90000
6|-1.25000
7|-1.75000
1|18.51750

> SELECT id, p * p FROM n
id:int4|?column?:numeric
2|152.399025
3|0.000000
4|NULL
5|999998.000001
6|0.250000
7|0.250000
1|152.399025

> SELECT id, p / q FROM n
id:int4|?column?:numeric
2|-49.3800000000000000
3|0.0000000000000000
4|NULL
5|9.9999900000000000
6|-0.20000000000000000000
7|-0.14285714285714285714
1|8.2300000000000000

> SELECT id, p / 3 FROM n
id:int4|?column?:numeric
2|-4.1150000000000000
3|0.00000000000000000000
4|NULL
5|333.3330000000000000
6|0.16666666666666666667
7|-0.16666666666666666667
1|4.1150000000000000

> SELECT id, p % 1.5 FROM n
id:int4|?column?:numeric
2|-0.345
3|0.000
4|NULL
5|0.999
6|0.500
7|-0.500
1|0.345

> SELECT id, -p FROM n
id:int4|?column?:numeric
2|12.345
3|0.000
4|NULL
5|-999.999
6|-0.500
7|0.500
1|-12.345

> SELECT id, p + f FROM n
id:int4|?column?:float8
2|-13.095
3|0
4|NULL
5|2023.999
6|2
7|99.5
1|17.345

> SELECT id, f + 1 FROM n
id:int4|?column?:float8
2|0.25
3|1
4|NULL
5|1025
6|2.5
7|101
1|6

> SELECT id, f * f FROM n
id:int4|?column?:float8
2|0.5625
3|0
4|NULL
5|1048576
6|2.25
7|10000
1|25

> SELECT id, f - i FROM n
id:int4|?column?:float8
2|6.25
3|0
4|NULL
5|-998976
6|-10.5
7|101
1|-3

> SELECT id, f / 4 FROM n
id:int4|?column?:float8
2|-0.1875
3|0
4|NULL
5|256
6|0.375
7|25
1|1.25

> SELECT id, -f FROM n
id:int4|?column?:float8
2|0.75
3|-0
4|NULL
5|-1024
6|-1.5
7|-100
1|-5

> SELECT id, r + r FROM n
id:int4|?column?:float4
2|2.5
3|0
4|NULL
5|8192
6|-7
7|32
1|1

> SELECT id, r * 2 FROM n
id:int4|?column?:float8
2|2.5
3|0
4|NULL
5|8192
6|-7
7|32
1|1

> SELECT id, r + f FROM n
id:int4|?column?:float8
2|0.5
3|0
4|NULL
5|5120
6|-2
7|116
1|5.5

> SELECT id, r - i FROM n
id:int4|?column?:float8
2|8.25
3|0
4|NULL
5|-995904
6|-15.5
7|17
1|-7.5

> SELECT id, i + 1.5 FROM n
id:int4|?column?:numeric
2|-5.5
3|1.5
4|NULL
5|1000001.5
6|13.5
7|0.5
1|9.5

> SELECT id, 1.5 * i FROM n
id:int4|?column?:numeric
2|-10.5
3|0.0
4|NULL
5|1500000.0
6|18.0
7|-1.5
1|12.0

> SELECT id, 2 * (i + 3) - 4 FROM n
id:int4|?column?:int4
2|-12
3|2
4|NULL
5|2000002
6|26
7|0
1|18

> SELECT id, i / 2 * 2 FROM n
id:int4|?column?:int4
2|-6
3|0
4|NULL
5|1000000
6|12
7|0
1|8

> SELECT id, i * 10 / 3 FROM n
id:int4|?column?:int4
2|-23
3|0
4|NULL
5|3333333
6|40
7|-3
1|26

> SELECT id, i::numeric / 3 FROM n
id:int4|?column?:numeric
2|-2.3333333333333333
3|0.00000000000000000000
4|NULL
5|333333.333333333333
6|4.0000000000000000
7|-0.33333333333333333333
1|2.6666666666666667

> SELECT id, b::numeric * 1.1 FROM n
id:int4|?column?:numeric
2|-5.5
3|0.0
4|NULL
5|1014570924054024.7
6|158.4
7|89.1
1|9900000000.0

> SELECT id, 10 - i - 3 FROM n
id:int4|?column?:int4
2|14
3|7
4|NULL
5|-999993
6|-5
7|8
1|-1

> SELECT id, 2 + 3 * i FROM n
id:int4|?column?:int4
2|-19
3|2
4|NULL
5|3000002
6|38
7|-1
1|26

> SELECT id, (2 + 3) * i FROM n
id:int4|?column?:int4
2|-35
3|0
4|NULL
5|5000000
6|60
7|-5
1|40

> SELECT id, i & 5 FROM n
id:int4|?column?:int4
2|1
3|0
4|NULL
5|0
6|4
7|5
1|0

> SELECT id, i | 8 FROM n
id:int4|?column?:int4
2|-7
3|8
4|NULL
5|1000008
6|12
7|-1
1|8

> SELECT id, i # 3 FROM n
id:int4|?column?:int4
2|-6
3|3
4|NULL
5|1000003
6|15
7|-4
1|11

> SELECT id, ~i FROM n
id:int4|?column?:int4
2|6
3|-1
4|NULL
5|-1000001
6|-13
7|0
1|-9

> SELECT id, i << 2 FROM n
id:int4|?column?:int4
2|-28
3|0
4|NULL
5|4000000
6|48
7|-4
1|32

> SELECT id, i >> 1 FROM n
id:int4|?column?:int4
2|-4
3|0
4|NULL
5|500000
6|6
7|-1
1|4

> SELECT id, b & 255 FROM n
id:int4|?column?:int8
2|251
3|0
4|NULL
5|101
6|144
7|81
1|0

> SELECT id, b | 1 FROM n
id:int4|?column?:int8
2|-5
3|1
4|NULL
5|922337203685477
6|145
7|81
1|9000000001

> SELECT id, s & 3 FROM n
id:int4|?column?:int4
2|2
3|0
4|NULL
5|3
6|1
7|0
1|3

> SELECT id, b << 3 FROM n
id:int4|?column?:int8
2|-40
3|0
4|NULL
5|7378697629483816
6|1152
7|648
1|72000000000

> SELECT id, ~s FROM n
id:int4|?column?:int2
2|1
3|-1
4|NULL
5|-128
6|-6
7|7
1|-4

> SELECT id, ~b FROM n
id:int4|?column?:int8
2|4
3|-1
4|NULL
5|-922337203685478
6|-145
7|-82
1|-9000000001

# Functions of numbers
> SELECT id, abs(i) FROM n
id:int4|abs:int4
2|7
3|0
4|NULL
5|1000000
6|12
7|1
1|8

> SELECT id, abs(p) FROM n
id:int4|abs:numeric
2|12.345
3|0.000
4|NULL
5|999.999
6|0.500
7|0.500
1|12.345

> SELECT id, abs(f) FROM n
id:int4|abs:float8
2|0.75
3|0
4|NULL
5|1024
6|1.5
7|100
1|5

> SELECT id, abs(b) FROM n
id:int4|abs:int8
2|5
3|0
4|NULL
5|922337203685477
6|144
7|81
1|9000000000

> SELECT id, abs(s) FROM n
id:int4|abs:int2
2|2
3|0
4|NULL
5|127
6|5
7|8
1|3

> SELECT id, sign(i) FROM n
id:int4|sign:float8
2|-1
3|0
4|NULL
5|1
6|1
7|-1
1|1

> SELECT id, sign(p) FROM n
id:int4|sign:numeric
2|-1
3|0
4|NULL
5|1
6|1
7|-1
1|1

> SELECT id, sign(f) FROM n
id:int4|sign:float8
2|-1
3|0
4|NULL
5|1
6|1
7|1
1|1

> SELECT id, ceil(p) FROM n
id:int4|ceil:numeric
2|-12
3|0
4|NULL
5|1000
6|1
7|0
1|13

> SELECT id, ceil(f) FROM n
id:int4|ceil:float8
2|-0
3|0
4|NULL
5|1024
6|2
7|100
1|5

> SELECT id, ceiling(q) FROM n
id:int4|ceiling:numeric
2|1
3|1
4|NULL
5|100
6|-2
7|4
1|2

> SELECT id, floor(p) FROM n
id:int4|floor:numeric
2|-13
3|0
4|NULL
5|999
6|0
7|-1
1|12

> SELECT id, floor(f) FROM n
id:int4|floor:float8
2|-1
3|0
4|NULL
5|1024
6|1
7|100
1|5

> SELECT id, floor(q) FROM n
id:int4|floor:numeric
2|0
3|0
4|NULL
5|100
6|-3
7|3
1|1

> SELECT id, round(p) FROM n
id:int4|round:numeric
2|-12
3|0
4|NULL
5|1000
6|1
7|-1
1|12

> SELECT id, round(p, 1) FROM n
id:int4|round:numeric
2|-12.3
3|0.0
4|NULL
5|1000.0
6|0.5
7|-0.5
1|12.3

> SELECT id, round(p, 2) FROM n
id:int4|round:numeric
2|-12.35
3|0.00
4|NULL
5|1000.00
6|0.50
7|-0.50
1|12.35

> SELECT id, round(q) FROM n
id:int4|round:numeric
2|0
3|0
4|NULL
5|100
6|-3
7|4
1|2

> SELECT id, round(f) FROM n
id:int4|round:float8
2|-1
3|0
4|NULL
5|1024
6|2
7|100
1|5

> SELECT id, round(p, 0) FROM n
id:int4|round:numeric
2|-12
3|0
4|NULL
5|1000
6|1
7|-1
1|12

> SELECT id, trunc(p) FROM n
id:int4|trunc:numeric
2|-12
3|0
4|NULL
5|999
6|0
7|0
1|12

> SELECT id, trunc(p, 1) FROM n
id:int4|trunc:numeric
2|-12.3
3|0.0
4|NULL
5|999.9
6|0.5
7|-0.5
1|12.3

> SELECT id, trunc(f) FROM n
id:int4|trunc:float8
2|-0
3|0
4|NULL
5|1024
6|1
7|100
1|5

> SELECT id, trunc(q, 1) FROM n
id:int4|trunc:numeric
2|0.2
3|0.0
4|NULL
5|100.0
6|-2.5
7|3.5
1|1.5

> SELECT id, round(i) FROM n
id:int4|round:float8
2|-7
3|0
4|NULL
5|1000000
6|12
7|-1
1|8

> SELECT id, mod(i, 4) FROM n
id:int4|mod:int4
2|-3
3|0
4|NULL
5|0
6|0
7|-1
1|0

> SELECT id, mod(b, 10) FROM n
id:int4|mod:int8
2|-5
3|0
4|NULL
5|7
6|4
7|1
1|0

> SELECT id, mod(p, 2) FROM n
id:int4|mod:numeric
2|-0.345
3|0.000
4|NULL
5|1.999
6|0.500
7|-0.500
1|0.345

> SELECT id, div(p, 2) FROM n
id:int4|div:numeric
2|-6
3|0
4|NULL
5|499
6|0
7|0
1|6

> SELECT id, div(i, 3) FROM n
id:int4|div:numeric
2|-2
3|0
4|NULL
5|333333
6|4
7|0
1|2

> SELECT id, sqrt(abs(f)) FROM n
id:int4|sqrt:float8
2|0.8660254037844386
3|0
4|NULL
5|32
6|1.224744871391589
7|10
1|2.23606797749979

> SELECT id, round(sqrt(abs(p)), 10) FROM n
id:int4|round:numeric
2|3.5135452182
3|0.0000000000
4|NULL
5|31.6227607903
6|0.7071067812
7|0.7071067812
1|3.5135452182

> SELECT id, sqrt(b::double precision * b) FROM n
id:int4|sqrt:float8
2|5
3|0
4|NULL
5|922337203685477
6|144
7|81
1|9000000000

> SELECT id, cbrt(f) FROM n
id:int4|cbrt:float8
2|-0.9085602964160697
3|0
4|NULL
5|10.079368399158987
6|1.1447142425533317
7|4.641588833612778
1|1.7099759466766968

> SELECT id, power(f, 2) FROM n
id:int4|power:float8
2|0.5625
3|0
4|NULL
5|1048576
6|2.25
7|10000
1|25

> SELECT id, power(2, s) FROM n
id:int4|power:float8
2|0.25
3|1
4|NULL
5|1.7014118346046923e+38
6|32
7|0.00390625
1|8

> SELECT id, pow(i, 2) FROM n
id:int4|pow:float8
2|49
3|0
4|NULL
5|1000000000000
6|144
7|1
1|64

> SELECT id, f ^ 2 FROM n
id:int4|?column?:float8
2|0.5625
3|0
4|NULL
5|1048576
6|2.25
7|10000
1|25

> SELECT id, i ^ 2 FROM n
id:int4|?column?:float8
2|49
3|0
4|NULL
5|1000000000000
6|144
7|1
1|64

> SELECT id, exp(s::double precision / 10) FROM n
id:int4|exp:float8
2|0.8187307530779818
3|1
4|NULL
5|327747.9018738116
6|1.6487212707001282
7|0.44932896411722156
1|1.3498588075760032

> SELECT id, ln(abs(f) + 1) FROM n
id:int4|ln:float8
2|0.5596157879354227
3|0
4|NULL
5|6.932447891572509
6|0.9162907318741551
7|4.61512051684126
1|1.791759469228055

> SELECT id, log(abs(f) + 1) FROM n
id:int4|log:float8
2|0.24303804868629442
3|0
4|NULL
5|3.010723865391773
6|0.3979400086720376
7|2.0043213737826426
1|0.7781512503836436

> SELECT id, log10(abs(f) + 1) FROM n
id:int4|log10:float8
2|0.24303804868629442
3|0
4|NULL
5|3.010723865391773
6|0.3979400086720376
7|2.0043213737826426
1|0.7781512503836436

> SELECT id, degrees(f / 100) FROM n
id:int4|degrees:float8
2|-0.4297183463481174
3|0
4|NULL
5|586.708782213963
6|0.8594366926962348
7|57.29577951308232
1|2.864788975654116

> SELECT id, radians(f) FROM n
id:int4|radians:float8
2|-0.013089969389957472
3|0
4|NULL
5|17.872171540421935
6|0.026179938779914945
7|1.7453292519943295
1|0.08726646259971647

> SELECT id, sin(f) FROM n
id:int4|sin:float8
2|-0.6816387600233341
3|0
4|NULL
5|-0.15853338004399595
6|0.9974949866040544
7|-0.5063656411097588
1|-0.9589242746631385

> SELECT id, cos(f) FROM n
id:int4|cos:float8
2|0.7316888688738209
3|1
4|NULL
5|0.9873536182198484
6|0.0707372016677029
7|0.8623188722876839
1|0.28366218546322625

> SELECT id, tan(r) FROM n
id:int4|tan:float8
2|3.0095696738628313
3|0
4|NULL
5|-0.7396130970112139
6|-0.3745856401585947
7|0.3006322420239034
1|0.5463024898437905

> SELECT id, atan(f) FROM n
id:int4|atan:float8
2|-0.6435011087932844
3|0
4|NULL
5|1.5698197646053373
6|0.982793723247329
7|1.5607966601082315
1|1.373400766945016

> SELECT id, pi() > f FROM n
id:int4|?column?:bool
2|t
3|t
4|NULL
5|f
6|t
7|f
1|f

> SELECT id, greatest(i, s, 3) FROM n
id:int4|greatest:int4
2|3
3|3
4|3
5|1000000
6|12
7|3
1|8

> SELECT id, least(i, s, 3) FROM n
id:int4|least:int4
2|-7
3|0
4|3
5|3
6|3
7|-8
1|3

> SELECT id, greatest(p, q) FROM n
id:int4|greatest:numeric
2|0.25
3|0.01
4|NULL
5|999.999
6|0.500
7|3.50
1|12.345

> SELECT id, least(p, i) FROM n
id:int4|least:numeric
2|-12.345
3|0.000
4|NULL
5|999.999
6|0.500
7|-1
1|8

> SELECT id, greatest(f, i) FROM n
id:int4|greatest:float8
2|-0.75
3|0
4|NULL
5|1000000
6|12
7|100
1|8

> SELECT id, greatest(NULL, i) FROM n
id:int4|greatest:int4
2|-7
3|0
4|NULL
5|1000000
6|12
7|-1
1|8

> SELECT id, to_hex(i) FROM n
id:int4|to_hex:text
2|fffffff9
3|0
4|NULL
5|f4240
6|c
7|ffffffff
1|8

> SELECT id, to_hex(b) FROM n
id:int4|to_hex:text
2|fffffffffffffffb
3|0
4|NULL
5|346dc5d638865
6|90
7|51
1|218711a00

# Comparisons between types
> SELECT id, i = s FROM n
id:int4|?column?:bool
2|f
3|t
4|NULL
5|f
6|f
7|f
1|f

> SELECT id, i < b FROM n
id:int4|?column?:bool
2|t
3|f
4|NULL
5|t
6|t
7|t
1|t

> SELECT id, i > p FROM n
id:int4|?column?:bool
2|t
3|f
4|NULL
5|t
6|t
7|f
1|f

> SELECT id, p >= q FROM n
id:int4|?column?:bool
2|f
3|f
4|NULL
5|t
6|t
7|f
1|t

> SELECT id, f > i FROM n
id:int4|?column?:bool
2|t
3|f
4|NULL
5|f
6|f
7|t
1|f

> SELECT id, f = r FROM n
id:int4|?column?:bool
2|f
3|t
4|NULL
5|f
6|f
7|f
1|f

> SELECT id, p <> q FROM n
id:int4|?column?:bool
2|t
3|t
4|NULL
5|t
6|t
7|t
1|t

> SELECT id, i BETWEEN -5 AND 10 FROM n
id:int4|?column?:bool
2|f
3|t
4|NULL
5|f
6|f
7|t
1|t

> SELECT id, p BETWEEN q AND 100 FROM n
id:int4|?column?:bool
2|f
3|f
4|NULL
5|f
6|t
7|f
1|t

> SELECT id, p NOT BETWEEN -1 AND 1 FROM n
id:int4|?column?:bool
2|t
3|f
4|NULL
5|t
6|f
7|f
1|t

> SELECT id, i BETWEEN SYMMETRIC 10 AND -5 FROM n
id:int4|?column?:bool
2|f
3|t
4|NULL
5|f
6|f
7|t
1|t

> SELECT id, i IN (7, 8, 12) FROM n
id:int4|?column?:bool
2|f
3|f
4|NULL
5|f
6|t
7|f
1|t

> SELECT id, p IN (0, 0.5, 12.345) FROM n
id:int4|?column?:bool
2|f
3|t
4|NULL
5|f
6|t
7|f
1|t

> SELECT id, f IN (1.5, 100) FROM n
id:int4|?column?:bool
2|f
3|f
4|NULL
5|f
6|t
7|t
1|f

> SELECT id, i = 8.0 FROM n
id:int4|?column?:bool
2|f
3|f
4|NULL
5|f
6|f
7|f
1|t

> SELECT id, b = 144 FROM n
id:int4|?column?:bool
2|f
3|f
4|NULL
5|f
6|t
7|f
1|f

> SELECT id, i IS DISTINCT FROM 12 FROM n
id:int4|?column?:bool
2|t
3|t
4|t
5|t
6|f
7|t
1|t

# From and to numbers
> SELECT id, i::text FROM n
id:int4|i:text
2|-7
3|0
4|NULL
5|1000000
6|12
7|-1
1|8

> SELECT id, b::text FROM n
id:int4|b:text
2|-5
3|0
4|NULL
5|922337203685477
6|144
7|81
1|9000000000

> SELECT id, p::text FROM n
id:int4|p:text
2|-12.345
3|0.000
4|NULL
5|999.999
6|0.500
7|-0.500
1|12.345

> SELECT id, q::text FROM n
id:int4|q:text
2|0.25
3|0.01
4|NULL
5|100.00
6|-2.50
7|3.50
1|1.50

> SELECT id, f::text FROM n
id:int4|f:text
2|-0.75
3|0
4|NULL
5|1024
6|1.5
7|100
1|5

> SELECT id, r::text FROM n
id:int4|r:text
2|1.25
3|0
4|NULL
5|4096
6|-3.5
7|16
1|0.5

> SELECT id, i::bigint FROM n
id:int4|i:int8
2|-7
3|0
4|NULL
5|1000000
6|12
7|-1
1|8

> SELECT id, i::double precision FROM n
id:int4|i:float8
2|-7
3|0
4|NULL
5|1000000
6|12
7|-1
1|8

> SELECT id, i::real FROM n
id:int4|i:float4
2|-7
3|0
4|NULL
5|1e+06
6|12
7|-1
1|8

> SELECT id, i::numeric(10,2) FROM n
id:int4|i:numeric
2|-7.00
3|0.00
4|NULL
5|1000000.00
6|12.00
7|-1.00
1|8.00

> SELECT id, i::boolean FROM n
id:int4|i:bool
2|t
3|f
4|NULL
5|t
6|t
7|t
1|t

> SELECT id, p::int FROM n
id:int4|p:int4
2|-12
3|0
4|NULL
5|1000
6|1
7|-1
1|12

> SELECT id, p::bigint FROM n
id:int4|p:int8
2|-12
3|0
4|NULL
5|1000
6|1
7|-1
1|12

> SELECT id, p::double precision FROM n
id:int4|p:float8
2|-12.345
3|0
4|NULL
5|999.999
6|0.5
7|-0.5
1|12.345

> SELECT id, p::numeric(10,1) FROM n
id:int4|p:numeric
2|-12.3
3|0.0
4|NULL
5|1000.0
6|0.5
7|-0.5
1|12.3

> SELECT id, p::numeric(5,0) FROM n
id:int4|p:numeric
2|-12
3|0
4|NULL
5|1000
6|1
7|-1
1|12

> SELECT id, q::int FROM n
id:int4|q:int4
2|0
3|0
4|NULL
5|100
6|-3
7|4
1|2

> SELECT id, f::int FROM n
id:int4|f:int4
2|-1
3|0
4|NULL
5|1024
6|2
7|100
1|5

> SELECT id, f::bigint FROM n
id:int4|f:int8
2|-1
3|0
4|NULL
5|1024
6|2
7|100
1|5

> SELECT id, f::numeric(10,2) FROM n
id:int4|f:numeric
2|-0.75
3|0.00
4|NULL
5|1024.00
6|1.50
7|100.00
1|5.00

> SELECT id, f::real FROM n
id:int4|f:float4
2|-0.75
3|0
4|NULL
5|1024
6|1.5
7|100
1|5

> SELECT id, r::double precision FROM n
id:int4|r:float8
2|1.25
3|0
4|NULL
5|4096
6|-3.5
7|16
1|0.5

> SELECT id, r::int FROM n
id:int4|r:int4
2|1
3|0
4|NULL
5|4096
6|-4
7|16
1|0

> SELECT id, s::int FROM n
id:int4|s:int4
2|-2
3|0
4|NULL
5|127
6|5
7|-8
1|3

> SELECT id, s::text || '!' FROM n
id:int4|?column?:text
2|-2!
3|0!
4|NULL
5|127!
6|5!
7|-8!
1|3!

> SELECT id, (i::text || '00')::int FROM n
id:int4|int4:int4
2|-700
3|0
4|NULL
5|100000000
6|1200
7|-100
1|800

> SELECT id, ('1.' || abs(s)::text)::numeric(6,3) FROM n
id:int4|numeric:numeric
2|1.200
3|1.000
4|NULL
5|1.127
6|1.500
7|1.800
1|1.300

> SELECT id, ('0' || abs(i)::text)::double precision FROM n
id:int4|float8:float8
2|7
3|0
4|NULL
5|1000000
6|12
7|1
1|8

> SELECT id, cast(p * 100 AS int) FROM n
id:int4|int4:int4
2|-1235
3|0
4|NULL
5|100000
6|50
7|-50
1|1235

> SELECT id, i::smallint FROM n
! 22003 smallint out of range

# Constants
> SELECT id, 1, 2147483648, 1.5, 1e3, .5, 1. FROM n
id:int4|?column?:int4|?column?:int8|?column?:numeric|?column?:numeric|?column?:numeric|?column?:numeric
2|1|2147483648|1.5|1000|0.5|1
3|1|2147483648|1.5|1000|0.5|1
4|1|2147483648|1.5|1000|0.5|1
5|1|2147483648|1.5|1000|0.5|1
6|1|2147483648|1.5|1000|0.5|1
7|1|2147483648|1.5|1000|0.5|1
1|1|2147483648|1.5|1000|0.5|1

> SELECT id, 1_000 FROM n
id:int4|?column?:int4
2|1000
3|1000
4|1000
5|1000
6|1000
7|1000
1|1000

> SELECT id, 0x1F FROM n
id:int4|?column?:int4
2|31
3|31
4|31
5|31
6|31
7|31
1|31

> SELECT id, 0b101 FROM n
id:int4|?column?:int4
2|5
3|5
4|5
5|5
6|5
7|5
1|5

> SELECT id, 0o17 FROM n
id:int4|?column?:int4
2|15
3|15
4|15
5|15
6|15
7|15
1|15

> SELECT id, -2147483648 FROM n
id:int4|?column?:int4
2|-2147483648
3|-2147483648
4|-2147483648
5|-2147483648
6|-2147483648
7|-2147483648
1|-2147483648

> SELECT id, 9223372036854775807 FROM n
id:int4|?column?:int8
2|9223372036854775807
3|9223372036854775807
4|9223372036854775807
5|9223372036854775807
6|9223372036854775807
7|9223372036854775807
1|9223372036854775807

> SELECT id, '12'::int, '-3'::smallint, ' 7 '::bigint FROM n
id:int4|int4:int4|int2:int2|int8:int8
2|12|-3|7
3|12|-3|7
4|12|-3|7
5|12|-3|7
6|12|-3|7
7|12|-3|7
1|12|-3|7

> SELECT id, '1e3'::double precision, '1.50'::numeric(6,2) FROM n
id:int4|float8:float8|numeric:numeric
2|1000|1.50
3|1000|1.50
4|1000|1.50
5|1000|1.50
6|1000|1.50
7|1000|1.50
1|1000|1.50

> SELECT id, 'NaN'::double precision, 'Infinity'::double precision, '-infinity'::real FROM n
id:int4|float8:float8|float8:float8|float4:float4
2|NaN|Infinity|-Infinity
3|NaN|Infinity|-Infinity
4|NaN|Infinity|-Infinity
5|NaN|Infinity|-Infinity
6|NaN|Infinity|-Infinity
7|NaN|Infinity|-Infinity
1|NaN|Infinity|-Infinity

> SELECT id, f / 'Infinity'::double precision FROM n
id:int4|?column?:float8
2|-0
3|0
4|NULL
5|0
6|0
7|0
1|0

> SELECT id, 'NaN'::double precision = 'NaN'::double precision FROM n
id:int4|?column?:bool
2|t
3|t
4|t
5|t
6|t
7|t
1|t

> SELECT id, 'NaN'::double precision > f FROM n
id:int4|?column?:bool
2|t
3|t
4|NULL
5|t
6|t
7|t
1|t

> SELECT id, 5 / 2, -5 / 2, 5 % -2, -5 % 2 FROM n
id:int4|?column?:int4|?column?:int4|?column?:int4|?column?:int4
2|2|-2|1|-1
3|2|-2|1|-1
4|2|-2|1|-1
5|2|-2|1|-1
6|2|-2|1|-1
7|2|-2|1|-1
1|2|-2|1|-1

> SELECT id, 7.0 / 2, 7 / 2.0 FROM n
id:int4|?column?:numeric|?column?:numeric
2|3.5000000000000000|3.5000000000000000
3|3.5000000000000000|3.5000000000000000
4|3.5000000000000000|3.5000000000000000
5|3.5000000000000000|3.5000000000000000
6|3.5000000000000000|3.5000000000000000
7|3.5000000000000000|3.5000000000000000
1|3.5000000000000000|3.5000000000000000

> SELECT id, 0.1 + 0.2, 0.1::double precision + 0.2::double precision FROM n
id:int4|?column?:numeric|?column?:float8
2|0.3|0.30000000000000004
3|0.3|0.30000000000000004
4|0.3|0.30000000000000004
5|0.3|0.30000000000000004
6|0.3|0.30000000000000004
7|0.3|0.30000000000000004
1|0.3|0.30000000000000004

> SELECT id, round(2.5), round(-2.5), round(3.5), round(2.5::double precision), round(3.5::double precision) FROM n
id:int4|round:numeric|round:numeric|round:numeric|round:float8|round:float8
2|3|-3|4|2|4
3|3|-3|4|2|4
4|3|-3|4|2|4
5|3|-3|4|2|4
6|3|-3|4|2|4
7|3|-3|4|2|4
1|3|-3|4|2|4

> SELECT id, 1.10 = 1.1 FROM n
id:int4|?column?:bool
2|t
3|t
4|t
5|t
6|t
7|t
1|t

> SELECT gcd(12, 18), gcd(-12, 0), gcd(0, 0), lcm(4, 6), lcm(0, 5), gcd(9223372036854775807, 49)
gcd:int4|gcd:int4|gcd:int4|lcm:int4|lcm:int4|gcd:int8
6|12|0|12|0|49

> SELECT lcm(2147483647, 2)
! 22003 integer out of range

> SELECT width_bucket(5.3, 0, 10, 5), width_bucket(-1, 0, 10, 5), width_bucket(10, 0, 10, 5), width_bucket(3, 10, 0, 5), width_bucket(2.5::float8, 0, 10, 4), width_bucket(5, ARRAY[1,4,6]), width_bucket(date '2020-06-01', ARRAY[date '2020-01-01', date '2021-01-01'])
width_bucket:int4|width_bucket:int4|width_bucket:int4|width_bucket:int4|width_bucket:int4|width_bucket:int4|width_bucket:int4
3|0|6|4|2|2|1

> SELECT width_bucket(1, 1, 1, 5)
! 2201G lower bound cannot equal upper bound

> SELECT width_bucket(1, 0, 2, 0)
! 2201G count must be greater than zero

> SELECT num_nulls(1, NULL, 'a'), num_nonnulls(1, NULL, 'a'), num_nulls(NULL)
num_nulls:int4|num_nonnulls:int4|num_nulls:int4
1|2|1

> SELECT to_char(1234.5, '9,999.99'), to_char(-1234.5, 'FM9,999.00'), to_char(12, '000'), to_char(-7, 'S99'), to_char(-7, '99PR'), to_char(0.5::numeric, 'FM990.00'), to_char(7, '"no. "99'), to_char(12345, '999'), to_char(5000000000, 'FM9G999G999G999')
to_char:text|to_char:text|to_char:text|to_char:text|to_char:text|to_char:text|to_char:text|to_char:text|to_char:text
\ 1,234.50|-1,234.50|\ 012|\ -7|\ <7>|0.50|no.   7|\ ###|5,000,000,000

% everview-only
> SELECT to_char(12, 'RN')
! 0A000 to_char of a number by the pattern "RN" is not supported

> SELECT id, sind(i), cosd(i), tand(i), asinh(f), sinh(f), tanh(f), erf(f), erfc(f), atan2(f, 1), atan2d(f, 1) FROM n
id:int4|sind:float8|cosd:float8|tand:float8|asinh:float8|sinh:float8|tanh:float8|erf:float8|erfc:float8|atan2:float8|atan2d:float8
2|-0.12186934340514749|0.992546151641322|-0.12278456090290461|-0.6931471805599453|-0.82231673193583|-0.6351489523872873|-0.7111556336535151|1.7111556336535152|-0.6435011087932844|-36.86989764584402
3|0|1|0|0|0|0|0|1|0|0
4|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL
5|-0.984807753012208|0.17364817766693036|-5.671281819617709|7.624619224577892|Infinity|1|1|0|1.5698197646053373|89.9440471081062
6|0.20791169081775937|0.9781476007338057|0.21255656167002215|1.1947632172871094|2.1292794550948173|0.9051482536448664|0.9661051464753108|0.033894853524689274|0.982793723247329|56.309932474020215
7|-0.017452406437283515|0.9998476951563913|-0.01745506492821759|5.298342365610589|1.3440585709080678e+43|1|1|0|1.5607966601082315|89.42706130231653
1|0.13917310096006547|0.9902680687415704|0.14054083470239145|2.3124383412727525|74.20321057778875|0.9999092042625951|0.9999999999984626|1.5374597944280351e-12|1.373400766945016|78.6900675259798

> SELECT id, scale(p), min_scale(p), trim_scale(p), gcd(p, q), factorial(abs(i) % 20), |/ abs(f), ||/ f FROM n
id:int4|scale:int4|min_scale:int4|trim_scale:numeric|gcd:numeric|factorial:numeric|?column?:float8|?column?:float8
2|3|3|-12.345|0.005|5040|0.8660254037844386|-0.9085602964160697
3|3|0|0|0.010|1|0|0
4|NULL|NULL|NULL|NULL|NULL|NULL|NULL
5|3|3|999.999|0.001|1|32|10.079368399158987
6|3|1|0.5|0.500|479001600|1.224744871391589|1.1447142425533317
7|3|1|-0.5|0.500|1|10|4.641588833612778
1|3|3|12.345|0.015|40320|2.23606797749979|1.7099759466766968

> SELECT factorial(-1)
! 22003 factorial of a negative number is undefined

> SELECT acosh(0)
! 22003 input is out of range

> SELECT asin(2)
! 22003 input is out of range

> SELECT acosd(1.5)
! 22003 input is out of range
