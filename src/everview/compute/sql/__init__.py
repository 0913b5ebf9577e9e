"""The SQL front end: text to typed plans. sqlglot's classes do not leave this package."""
