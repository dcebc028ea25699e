"""Indexes for retention: expired records, and records older than a number of days."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_index("fasterce_records_by_retention", "fasterce_records", ["retain_until", "time"])
    op.create_index("fasterce_records_by_time", "fasterce_records", ["time"])
