"""The server is tested without sockets where it can be, and with the real clients of PostgreSQL."""
