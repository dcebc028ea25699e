"""Migrations from one version of the database to the next, run by Alembic; see migrate.py."""
