"""PostgreSQL as a source: a snapshot of tables, and from then on their changes by logical replication."""
