"""The source from PostgreSQL, with a real server."""
