"""What docs/fairness.md shows must run as it stands."""

import pytest

from tests.docs.pages import run_page


def test_the_example_runs_and_says_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_page("fairness.md")
    gap, latent = names["gap"], names["latent"]
    text = " ".join(capsys.readouterr().out.split())
    assert gap.caution in text
    assert latent.caution in text
    assert (gap.frame.groupby("attribute")["rows"].sum() == len(names["refused"])).all()
    assert latent.frame["degrees"].between(0, 180).all()
