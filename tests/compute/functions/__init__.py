"""The function registry held against a real PostgreSQL and a real Spark."""
