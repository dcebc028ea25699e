"""Audit records kept in SQLite or PostgreSQL: durable before they are confirmed, found again, forgotten in time."""

from fasterce.serve.store.errors import StoreError, UnstorableError
from fasterce.serve.store.keeping import DEFAULT_URL, Store, open_store

__all__ = ["DEFAULT_URL", "Store", "StoreError", "UnstorableError", "open_store"]
