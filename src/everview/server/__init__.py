"""The server: the PostgreSQL wire protocol and a little HTTP over the adapter's sessions."""
