"""The adapter: SQL statements in sessions, over a catalog, a timeline and maintained views."""
