"""What docs/bias.md shows must run as it stands."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "bias.md"


def test_the_example_runs_and_says_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, str(PAGE), "exec"), names)
    gap, latent = names["gap"], names["latent"]
    said = " ".join(capsys.readouterr().out.split())
    assert gap.caution in said
    assert latent.caution in said
    assert (gap.frame.groupby("attribute")["rows"].sum() == len(names["refused"])).all()
    assert latent.frame["degrees"].between(0, 180).all()
