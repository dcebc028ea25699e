"""Which letters were written about a record, and which of its alternatives they contain."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    word = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "fasterce_letters",
        sa.Column("id", word, primary_key=True),
        sa.Column("record", word, nullable=False),
        sa.Column("time", word, nullable=False),
        sa.Column("alternatives", sa.Text(), nullable=False),
        sa.Column("digest", word, nullable=False),
        sa.Column("key", word),
    )
    op.create_index("fasterce_letters_by_record", "fasterce_letters", ["record"])
