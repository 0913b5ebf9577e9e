"""Names and texts as SQL has them, in PostgreSQL's words and in Spark's: whoever writes SQL, quotes by this."""

from __future__ import annotations


def identifier(name: str) -> str:
    """A name in quotes, as in PostgreSQL, SQLite and most others."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a string of standard SQL, in which a backslash means nothing."""
    return "'" + text.replace("'", "''") + "'"


def escape_literal(text: str) -> str:
    """A text as PostgreSQL's `quote_literal` has it: right whether or not a backslash means something."""
    return "E" + literal(text.replace("\\", "\\\\")) if "\\" in text else literal(text)


def spark_identifier(name: str) -> str:
    """A name in Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def spark_literal(text: str) -> str:
    """A text in Spark SQL. No `$` is left in it, so a Spark that substitutes variables all the same finds none."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"
