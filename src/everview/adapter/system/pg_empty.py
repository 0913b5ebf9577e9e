"""Relations of pg_catalog that tools look into and that have nothing to say here, each with its columns."""

from __future__ import annotations

_TEXT = """
pg_auth_members: oid, roleid, member, grantor oid, admin_option, inherit_option, set_option bool
pg_shdepend: dbid, classid, objid oid, objsubid int4, refclassid, refobjid oid, deptype char
pg_constraint: oid oid, conname text, connamespace oid, contype char, condeferrable, condeferred, convalidated
    bool, conrelid, contypid, conindid, conparentid, confrelid oid, confupdtype, confdeltype, confmatchtype
    char, conislocal bool, coninhcount int4, connoinherit bool, conkey, confkey int2[], conpfeqop, conppeqop,
    conffeqop, confdelsetcols, conexclop int8[], conbin text
pg_inherits: inhrelid, inhparent oid, inhseqno int4, inhdetachpending bool
pg_policy: oid oid, polname text, polrelid oid, polcmd char, polpermissive bool, polroles int8[], polqual,
    polwithcheck text
pg_trigger: oid, tgrelid, tgparentid oid, tgname text, tgfoid oid, tgtype int2, tgenabled char, tgisinternal
    bool, tgconstrrelid, tgconstrindid, tgconstraint oid, tgdeferrable, tginitdeferred bool, tgnargs int2,
    tgattr int2[], tgargs, tgqual, tgoldtable, tgnewtable text
pg_rewrite: oid oid, rulename text, ev_class oid, ev_type, ev_enabled char, is_instead bool, ev_qual, ev_action
    text
pg_enum: oid, enumtypid oid, enumsortorder float4, enumlabel text
pg_range: rngtypid, rngsubtype, rngmultitypid, rngcollation, rngsubopc oid, rngcanonical, rngsubdiff text
pg_proc: oid oid, proname text, pronamespace, proowner, prolang oid, prokind char, prosecdef, proleakproof,
    proisstrict, proretset bool, provolatile, proparallel char, pronargs, pronargdefaults int2, prorettype oid,
    proargtypes oidvector, proallargtypes int8[], proargmodes, proargnames text[], prosrc text, proacl text[]
pg_operator: oid oid, oprname text, oprnamespace, oprowner oid, oprkind char, oprcanmerge, oprcanhash bool, oprleft,
    oprright, oprresult, oprcom, oprnegate, oprcode, oprrest, oprjoin oid
pg_opfamily: oid, opfmethod oid, opfname text, opfnamespace, opfowner oid
pg_amop: oid, amopfamily, amoplefttype, amoprighttype oid, amopstrategy int2, amoppurpose char, amopopr, amopmethod,
    amopsortfamily oid
pg_amproc: oid, amprocfamily, amproclefttype, amprocrighttype oid, amprocnum int2, amproc oid
pg_conversion: oid oid, conname text, connamespace, conowner oid, conforencoding, contoencoding int4, conproc oid,
    condefault bool
pg_ts_config: oid oid, cfgname text, cfgnamespace, cfgowner, cfgparser oid
pg_ts_config_map: mapcfg oid, maptokentype, mapseqno int4, mapdict oid
pg_ts_dict: oid oid, dictname text, dictnamespace, dictowner, dicttemplate oid, dictinitoption text
pg_ts_parser: oid oid, prsname text, prsnamespace, prsstart, prstoken, prsend, prsheadline, prslextype oid
pg_ts_template: oid oid, tmplname text, tmplnamespace, tmplinit, tmpllexize oid
pg_foreign_data_wrapper: oid oid, fdwname text, fdwowner, fdwhandler, fdwvalidator oid, fdwacl, fdwoptions text[]
pg_user_mapping: oid, umuser, umserver oid, umoptions text[]
pg_user_mappings: umid, srvid oid, srvname text, umuser oid, usename text, umoptions text[]
pg_subscription: oid, subdbid oid, subname text, subowner oid, subenabled bool, subconninfo, subslotname text,
    subpublications text[]
pg_largeobject_metadata: oid, lomowner oid, lomacl text[]
pg_transform: oid, trftype, trflang, trffromsql, trftosql oid
pg_init_privs: objoid, classoid oid, objsubid int4, privtype text, initprivs text[]
pg_available_extensions: name, default_version, installed_version, comment text
pg_prepared_xacts: transaction oid, gid text, prepared timestamptz, owner, database text
pg_opclass: oid, opcmethod oid, opcname text, opcnamespace, opcowner, opcfamily, opcintype oid, opcdefault bool,
    opckeytype oid
pg_language: oid oid, lanname text, lanowner oid, lanispl, lanpltrusted bool, lanplcallfoid, laninline, lanvalidator
    oid, lanacl text[]
pg_extension: oid oid, extname text, extowner, extnamespace oid, extrelocatable bool, extversion text
pg_foreign_table: ftrelid, ftserver oid, ftoptions text[]
pg_foreign_server: oid oid, srvname text, srvowner, srvfdw oid, srvtype, srvversion text, srvacl, srvoptions
    text[]
pg_partitioned_table: partrelid oid, partstrat char, partnatts int2, partdefid oid, partattrs int2[]
pg_sequence: seqrelid, seqtypid oid, seqstart, seqincrement, seqmax, seqmin, seqcache int8, seqcycle bool
pg_sequences: schemaname, sequencename, sequenceowner text
pg_statistic_ext: oid, stxrelid oid, stxname text, stxnamespace, stxowner oid, stxstattarget int4, stxkeys
    int2[], stxkind text[], stxexprs text
pg_publication: oid oid, pubname text, pubowner oid, puballtables, pubinsert, pubupdate, pubdelete, pubtruncate,
    pubviaroot bool
pg_publication_rel: oid, prpubid, prrelid oid, prqual text, prattrs int2[]
pg_publication_namespace: oid, pnpubid, pnnspid oid
pg_event_trigger: oid oid, evtname, evtevent text, evtowner, evtfoid oid, evtenabled char, evttags text[]
pg_cast: oid, castsource, casttarget, castfunc oid, castcontext, castmethod char
pg_seclabel: objoid, classoid oid, objsubid int4, provider, label text
pg_db_role_setting: setdatabase, setrole oid, setconfig text[]
pg_parameter_acl: oid oid, parname text, paracl text[]
pg_default_acl: oid, defaclrole, defaclnamespace oid, defaclobjtype char, defaclacl text[]
pg_locks: locktype text, database, relation oid, pid int4, mode text, granted bool
pg_timezone_names: name, abbrev text, utc_offset interval, is_dst bool
"""


def _parsed() -> dict[str, str]:
    """By name the columns; a line that begins with a blank goes on with the one before."""
    lines = _TEXT.strip().replace("\n    ", " ").splitlines()
    return dict(line.split(": ", 1) for line in lines)


EMPTY = _parsed()
