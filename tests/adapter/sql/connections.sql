# Secrets and connections: what they are called by and depend on, and that nobody sees a secret
> CREATE SECRET pw AS 'hush, a secret'
CREATE SECRET

> CREATE SECRET pw AS 'other'
! 42P07 relation "pw" already exists

> CREATE SECRET IF NOT EXISTS pw AS 'other'
CREATE SECRET

> CREATE SECRET nothing AS ''
! 22023 a secret cannot be empty, nor hold NUL

> CREATE SECRET token FROM ENVIRONMENT 'EVERVIEW_TEST_TOKEN'
CREATE SECRET

> CREATE SECRET own FROM ENVIRONMENT 'EVERVIEW_KEY'
! 22023 "EVERVIEW_KEY" cannot be the variable of a secret

> CREATE SECRET filed FROM FILE '/nowhere/at/all'
CREATE SECRET

> SHOW CREATE SECRET pw
name|create_sql
everview.public.pw|CREATE SECRET everview.public.pw AS '***'

> SHOW CREATE SECRET token
name|create_sql
everview.public.token|CREATE SECRET everview.public.token FROM ENVIRONMENT 'EVERVIEW_TEST_TOKEN'

> SHOW SECRETS
name|comment
filed|
pw|
token|

> SELECT name, origin FROM mz_secrets ORDER BY name
name|origin
filed|file
pw|sealed
token|environment

> SELECT * FROM pw
! 42809 "pw" is not a table, view, materialized view or source

> CREATE INDEX ON pw (a)
! 42809 cannot create an index on secret "pw"

> COMMENT ON SECRET pw IS 'of the shop'
COMMENT

> SELECT count(*) FROM pg_class WHERE relname IN ('pw', 'token', 'filed')
count
0

> CREATE CONNECTION shop TO POSTGRES (HOST 'db.test', DATABASE 'shop', USER 'me', PASSWORD 'plain')
! 22023 PASSWORD takes a secret, not a text

> CREATE CONNECTION shop TO POSTGRES (HOST 'db.test', USER 'me')
! 22023 a connection to POSTGRES needs DATABASE

> CREATE CONNECTION shop TO POSTGRES (HOST 'db.test', DATABASE 'shop', USER 'me', PORT 99999)
! 22023 invalid value for PORT: "99999"

> CREATE CONNECTION shop TO POSTGRES (HOST 'db.test', DATABASE 'shop', USER 'me', SSL MODE 'perhaps')
! 22023 invalid value for SSL MODE: "perhaps"

> CREATE CONNECTION shop TO POSTGRES (HOST 'db.test', DATABASE 'shop', USER 'me', HOSTS 'other')
! 22023 a connection to POSTGRES has no option HOSTS

> CREATE CONNECTION shop TO ORACLE (HOST 'db.test')
! 0A000 a connection to ORACLE is not supported

> CREATE CONNECTION shop TO POSTGRES (HOST 'db.test', DATABASE 'shop', USER 'me', PASSWORD SECRET nowhere)
! 42P01 relation "nowhere" does not exist

> CREATE CONNECTION shop TO POSTGRES (HOST '127.0.0.1', PORT 1, DATABASE 'shop', USER 'me', PASSWORD SECRET pw)
! 08006 cannot connect to PostgreSQL

> CREATE CONNECTION shop TO POSTGRES (HOST '127.0.0.1', PORT 1, DATABASE 'shop', USER 'me', PASSWORD SECRET pw, SSL MODE require) WITH (VALIDATE = false)
CREATE CONNECTION

> VALIDATE CONNECTION shop
! 08006 cannot connect to PostgreSQL

> VALIDATE CONNECTION pw
! 42809 "pw" is not a connection

> SHOW CREATE CONNECTION shop
name|create_sql
everview.public.shop|CREATE CONNECTION everview.public.shop TO POSTGRES (HOST '127.0.0.1', PORT '1', DATABASE 'shop', USER 'me', SSL MODE 'require', PASSWORD SECRET everview.public.pw)

> SHOW CONNECTIONS
name|comment
shop|

> SELECT name, type FROM mz_connections
name|type
shop|postgres

> SELECT o.name, r.name AS needs FROM mz_internal.mz_object_dependencies AS d JOIN mz_objects AS o ON o.id = d.object_id JOIN mz_objects AS r ON r.id = d.referenced_object_id
name|needs
shop|pw

> ALTER CONNECTION shop SET (PORT 2, PASSWORD SECRET token) WITH (VALIDATE = false)
ALTER CONNECTION

> ALTER CONNECTION shop RESET (SSL MODE, PORT)
! 42704 secret "token" has no value

> ALTER CONNECTION shop RESET (CERTIFICATE)
! 22023 connection "shop" has no option CERTIFICATE to reset

> ALTER CONNECTION shop SET (PASSWORD SECRET pw) WITH (VALIDATE = false)
ALTER CONNECTION

> ALTER SECRET pw AS 'another secret'
ALTER SECRET

> ALTER SECRET IF EXISTS nothing AS 'x'
ALTER SECRET

> ALTER CONNECTION shop RENAME TO store
ALTER CONNECTION

> SHOW CREATE CONNECTION store
name|create_sql
everview.public.store|CREATE CONNECTION everview.public.store TO POSTGRES (HOST '127.0.0.1', DATABASE 'shop', USER 'me', SSL MODE 'require', PORT '2', PASSWORD SECRET everview.public.pw)

> CREATE TABLE t (a int)
CREATE TABLE

> CREATE SINK s FROM t INTO POSTGRES CONNECTION store (TABLE 't', CONNECTION 'x') KEY (a)
! 22023 CONNECTION is what connection "store" says

> CREATE SINK s FROM t INTO KAFKA CONNECTION store (TOPIC 't')
! 42809 connection "store" does not lead to KAFKA

> CREATE SINK s FROM t INTO POSTGRES CONNECTION pw (TABLE 't') KEY (a)
! 42809 "pw" is not a connection

> CREATE SINK s FROM t INTO SQLITE CONNECTION store (TABLE 't') KEY (a)
! 0A000 a connection of a sink into SQLITE is not supported

> DROP SECRET pw
! 2BP01 cannot drop secret "pw" because other objects depend on it

> DROP SECRET pw CASCADE
DROP SECRET

> SHOW CONNECTIONS
name|comment

> DROP CONNECTION IF EXISTS store
DROP CONNECTION

> DROP SECRET token, filed
DROP SECRET

> SELECT event_type, object_type, count(*) FROM mz_audit_events WHERE object_type IN ('secret', 'connection') GROUP BY 1, 2 ORDER BY 1, 2
event_type|object_type|count
alter|connection|3
alter|secret|1
comment|secret|1
create|connection|1
create|secret|3
drop|connection|1
drop|secret|3

> SELECT count(*) FROM mz_audit_events WHERE details::text LIKE '%secret%' AND details::text LIKE '%hush%'
count
0
