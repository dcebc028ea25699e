"""The demo, on a slice of the data: real output on the terminal and in a page."""

from dataclasses import replace
from pathlib import Path

import pytest

from fasterce import datasets
from fasterce.cli import adult_demo


def test_the_demo_prints_and_writes_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    adult = datasets.load("adult")
    small = replace(adult, X=adult.X.iloc[:2500], y=adult.y.iloc[:2500])
    monkeypatch.setattr(datasets, "load", lambda name: small)
    adult_demo.main(tmp_path / "demo.html")
    printed, page = capsys.readouterr().out, (tmp_path / "demo.html").read_text()
    for words in (
        "FASTER-CE1",
        "FASTER-CE2 ",
        "closest",
        "<=50K",
        ">50K",
        "→",
        "prediction hyperplane agrees",
        "Holds under noise",
        "demo.html",
    ):
        assert words in printed
    for words in ("FASTER-CE1", "&lt;=50K", "data:image/svg+xml", "walk through latent space", "<html"):
        assert words in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
