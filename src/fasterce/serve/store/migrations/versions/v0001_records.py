"""The records, and what they are looked up by."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    word = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "fasterce_records",
        sa.Column("id", word, primary_key=True),
        sa.Column("request", word, nullable=False),
        sa.Column("decision", word),
        sa.Column("subject", word),
        sa.Column("artifact", word, nullable=False),
        sa.Column("status", word, nullable=False),
        sa.Column("time", word, nullable=False),
        sa.Column("retain_until", word),
        sa.Column("body", sa.Text(), nullable=False),
    )
    for name in ("request", "decision", "subject"):
        op.create_index(f"fasterce_records_by_{name}", "fasterce_records", [name, "time"])
