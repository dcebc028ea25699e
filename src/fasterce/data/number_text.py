"""Numbers written as text: which decimal mark and which separator of thousands a column has."""

import re
from dataclasses import dataclass

import pandas as pd

from fasterce.data.detect import FIRST_TEXTS, ID_WORDS, has_word, stripped_texts

CODE_WORDS = ID_WORDS | {
    "zip",
    "zipcode",
    "postcode",
    "postal",
    "plz",
    "phone",
    "tel",
    "telephone",
    "code",
    "account",
    "iban",
}
LEADING_ZERO = r"[+-]?0\d.*"
WHOLE = r"[+-]?\d+"


@dataclass(frozen=True)
class NumberText:
    """The marks of numbers: `decimal` is "." or ",", `thousands` empty where nothing separates them."""

    decimal: str = "."
    thousands: str = ""

    @property
    def pattern(self) -> str:
        """The regular expression of a number."""
        whole = rf"\d{{1,3}}(?:{re.escape(self.thousands)}\d{{3}})*" if self.thousands else r"\d*"
        return rf"[+-]?{whole}(?:{re.escape(self.decimal)}\d+|(?<=\d){re.escape(self.decimal)}?)(?:[eE][+-]?\d+)?"

    @property
    def options(self) -> str:
        """The options of the command line that read such numbers."""
        decimal = f"--decimal {self.decimal}" if self.decimal != "." else ""
        mark = f'"{self.thousands}"' if self.thousands in (" ", "'") else self.thousands
        return " ".join(filter(None, [decimal, f"--thousands {mark}" if self.thousands else ""]))

    def written_call(self, name: str) -> str:
        """Return the line of Python that converts a column, `name` as Python writes it."""
        text = f"X[{name}]"
        if self.thousands or self.decimal != ".":
            text += ".str.strip()"
        for mark, other in ((self.thousands, ""), (self.decimal if self.decimal != "." else "", ".")):
            text += f'.str.replace("{mark}", "{other}", regex=False)' if mark else ""
        return f"X[{name}] = pd.to_numeric({text})"


# In the order in which they are tried: "1,234" alone is a thousand, unless other numbers of the column say otherwise.
KNOWN = (
    NumberText(),
    NumberText(".", ","),
    NumberText(","),
    NumberText(",", "."),
    *(NumberText(decimal, mark) for mark in (" ", "\u00a0", "\u202f", "'") for decimal in (".", ",")),
)


def number_text(column: pd.Series) -> NumberText | None:
    """Return how the numbers of a column of text are written, None if some text is not a number or looks like a code."""
    stripped = stripped_texts(column)
    if stripped is None:
        return None
    first = stripped.head(FIRST_TEXTS)
    for one in KNOWN:
        if first.str.fullmatch(one.pattern).all() and stripped.str.fullmatch(one.pattern).all():
            return None if _are_codes(stripped, column.name) else one
    return None


def _are_codes(texts: pd.Series, name: object) -> bool:
    """Return whether whole numbers are codes: they have leading zeros, or the column has the name of a code."""
    if texts.str.fullmatch(LEADING_ZERO).any() and texts.str.fullmatch(WHOLE).all():
        return True
    return bool(texts.str.fullmatch(WHOLE).all()) and has_word(name, frozenset(CODE_WORDS))
