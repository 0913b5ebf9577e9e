"""The real PostgreSQL, as elsewhere."""

from tests.storage.conftest import postgres_url

__all__ = ["postgres_url"]
