"""Which key a record was made with, and the replies to requests with an idempotency key."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    word = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.add_column("fasterce_records", sa.Column("key", word))
    op.create_table(
        "fasterce_replies",
        sa.Column("id", word, primary_key=True),
        sa.Column("fingerprint", word, nullable=False),
        sa.Column("head", sa.Text(), nullable=False),
        sa.Column("records", sa.Text(), nullable=False),
        sa.Column("time", word, nullable=False),
    )
    op.create_index("fasterce_replies_by_time", "fasterce_replies", ["time"])
