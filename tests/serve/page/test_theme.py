"""Both themes can be read: contrast of text as WCAG 2.1 AA counts it, from the stylesheet itself."""

import re
from pathlib import Path

import pytest

import fasterce.serve

PAGE = Path(fasterce.serve.__file__).parent / "static"
LIGHT, CHOSEN_DARK, SYSTEM_DARK = 0, 1, 2
TEXT, LARGE = 4.5, 3.0
READ_ON = {
    "ink": ("ground", "surface", "raised", "sunken", "chosen"),
    "soft": ("ground", "surface", "raised", "sunken"),
    "accent": ("ground", "surface", "raised"),
    "on-accent": ("accent", "accent-strong"),
    "on-tint": ("tint",),
    "warn": ("warn-tint",),
    "wrong": ("surface", "raised"),
}
# Lines and dots that say something by being there.
SEEN_ON = {"accent": ("surface", "sunken", "tint"), "edge": ("surface",)}


def themes() -> list[dict[str, str]]:
    text = (PAGE / "theme.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root[^{]*\{([^}]*--ground[^}]*)\}", text)
    return [dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", block)) for block in blocks]


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_counted_as_the_standard_does() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", [LIGHT, CHOSEN_DARK], ids=["light", "dark"])
def test_text_and_marks_stand_out(theme: int) -> None:
    colours = themes()[theme]
    for wanted, pairs in ((TEXT, READ_ON), (LARGE, SEEN_ON)):
        for front, grounds in pairs.items():
            for ground in grounds:
                found = contrast(colours[front], colours[ground])
                assert found >= wanted, f"{front} on {ground}: {found:.2f}"


def test_dark_is_the_same_whoever_chose_it() -> None:
    assert themes()[CHOSEN_DARK] == themes()[SYSTEM_DARK]


def test_nothing_comes_from_elsewhere_or_stands_inline() -> None:
    """What `default-src 'self'` forbids, and addresses of others."""
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\bsrc=)", page)
    for file in PAGE.rglob("*.*"):
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|(?<!:)//\w+\.\w+/", text), file.name
        assert "innerHTML" not in text
        assert "insertAdjacentHTML" not in text
