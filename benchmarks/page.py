"""A report as sections of text, tables and pictures: as Markdown with the pictures beside it, or as one HTML page."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from benchmarks import measuring
from fasterce.viz import html

LONGEST_LINE = 45


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Grid:
    header: Sequence[str]
    lines: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    name: str
    figure: Any
    alt: str


Block = Text | Grid | Picture
Section = tuple[str, list[Block]]


def as_markdown(title: str, sections: Sequence[Section], out: Path) -> str:
    parts = [f"# {title}"]
    for heading, blocks in sections:
        parts.append(f"## {heading}")
        parts += [markdown_block(block, out) for block in blocks]
    return "\n\n".join(parts) + "\n"


def markdown_block(block: Block, out: Path) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Grid):
        return measuring.table(
            block.header, [[cell.replace("|", "/").replace("\n", " ") for cell in line] for line in block.lines]
        )
    (out / "figures").mkdir(exist_ok=True)
    block.figure.savefig(out / "figures" / f"{block.name}.svg", format="svg", metadata={"Date": None})
    return f"![{block.alt}](figures/{block.name}.svg)"


def as_html(title: str, sections: Sequence[Section]) -> str:
    return html.page(title, [(heading, "".join(map(html_block, blocks))) for heading, blocks in sections])


def html_block(block: Block) -> str:
    if isinstance(block, Text):
        return f"<p>{marked(block.text)}</p>"
    if isinstance(block, Picture):
        return html.figure(block.figure, alt=block.alt)
    head = "".join(f'<th scope="col" style="white-space:nowrap">{escape(name)}</th>' for name in block.header)
    body = "".join(
        f'<tr><th scope="row">{marked(line[0])}</th>{"".join(map(html_cell, line[1:]))}</tr>' for line in block.lines
    )
    table = f'<table class="fce-list"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto;margin:0 0 1.5rem" tabindex="0">{table}</div>'


def html_cell(text: str) -> str:
    """Return a cell: numbers on one line, sentences wrapped."""
    style = "white-space:nowrap" if len(text) <= LONGEST_LINE else "min-width:20rem"
    return f'<td style="{style}">{marked(text)}</td>'


def marked(text: str) -> str:
    """Convert the bold, emphasis and code of Markdown to HTML."""
    text = re.sub(r"`(.+?)`", r"<code>\1</code>", escape(text))
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    return re.sub(r"(?<!\w)\*(\w[^*]*?)\*(?!\w)", r"<i>\1</i>", text)
