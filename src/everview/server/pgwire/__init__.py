"""The PostgreSQL wire protocol: a codec that does no I/O, and an asyncio server around it."""
