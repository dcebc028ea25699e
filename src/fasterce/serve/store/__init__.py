"""Audit records in SQLite or PostgreSQL: durable before they are confirmed, and deleted when their time is over."""

from fasterce.serve.store.database import RepeatedKeyError, StoreError, UnstorableError
from fasterce.serve.store.records import DEFAULT_URL, Store, open_store

__all__ = ["DEFAULT_URL", "RepeatedKeyError", "Store", "StoreError", "UnstorableError", "open_store"]
