"""`everview serve`: one environment, open for SQL over the PostgreSQL wire protocol, with its figures over HTTP."""
