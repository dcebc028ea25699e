"""README and site have the table of the committed report."""

from pathlib import Path

import pytest
from benchmarks import publish

REPORT = """# Side by side

## At a glance

| gower_l1 | cells | queries | valid % | ÷ nearest known | 10 – 90 % of cells | ms |
| --- | --- | --- | --- | --- | --- | --- |
| DiCE random | 2 | 40 | 99.5 | 9.1 (8.0 – 9.9) | 3.0 – 20.0 | 210 |
| DiCE genetic | 2 | 40 | 100 | 8.1 (7.0 – 9.9) | 3.0 – 20.0 | 500 |
| fasterce closest | 2 | 400 | 100 | 1.001 (1.000 – 1.002) | 1.000 – 1.010 | 12.3 |

![Near](figures/pareto-mlp-gower_l1-nn_ratio.svg) ![The paper](figures/paper-figure.svg)

## Do they name the same features?

![Agreement](figures/agreement-adult-mlp.svg)

## The end
"""

PAPER_REPORT = """# The paper

## At a glance

Of the paper's 2 statements, **1 agree**.

## Comparison (Figure 3)

![Bars](figures/paper-figure.svg)

## What the paper says, and these numbers

| the paper says | this run | numbers | reading |
| --- | --- | --- | --- |
| CE1 is valid | agrees | adult: 100.0 % |  |

**Of rivals**

| the paper says | this run | numbers | reading |
| --- | --- | --- | --- |
| DiCE is far | differs | DiCE: 1 and 2 | *Possibly:* why |

## Ablation: random numbers for the latent space

| data | engine | method | queries | found | found, random | identical | counterfactuals by origin |
| --- | --- | --- | --- | --- | --- | --- | --- |
| adult | hybrid | closest | 200 | 100.0 % | 100.0 % | 90.0 % | edits 100.0 % |
| adult | hybrid, not compiled | closest | 200 | 100.0 % | 100.0 % | 80.0 % | edits 100.0 % |
"""


def test_some_lines_and_columns_ours_first() -> None:
    assert publish.short_table(REPORT).splitlines() == [
        "| gower_l1 | cells | queries | valid % | ÷ nearest known (95 %) | ms |",
        "| --- | --- | --- | --- | --- | --- |",
        "| fasterce closest | 2 | 400 | 100 | 1.001 (1.000 – 1.002) | 12.3 |",
        "| DiCE random | 2 | 40 | 99.5 | 9.1 (8.0 – 9.9) | 210 |",
    ]


@pytest.mark.parametrize("page", publish.PAGES)
def test_every_page_has_the_table_of_the_report_that_is_kept(page: str) -> None:
    text = (publish.ROOT / page).read_text(encoding="utf-8")
    table = publish.short_table((publish.RESULTS / "report.md").read_text(encoding="utf-8"))
    assert publish.with_table(text, table, page) == text


def test_the_report_and_its_pictures_are_kept_with_what_was_special(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, kept = tmp_path / "run", tmp_path / "kept"
    (run / "figures").mkdir(parents=True)
    (run / "report.md").write_text(REPORT)
    for name in (*publish.PICTURES, "paper-figure"):
        (run / "figures" / f"{name}.svg").write_text("<svg/>")
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    monkeypatch.setattr(publish, "RESULTS", kept)
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    for page in publish.PAGES:
        (tmp_path / page).write_text(f"before\n\n{publish.START}old{publish.END}\nafter\n")
    publish.main(["--run", str(run), "--note", "On a Monday."])
    assert (kept / "report.md").read_text().startswith("# Side by side\n\n> On a Monday.\n\n## At a glance")
    assert sorted(path.stem for path in (kept / "figures").iterdir()) == ["paper-figure", "pareto-mlp-gower_l1-nn_ratio"]
    assert "agreement" not in (kept / "report.md").read_text()
    assert "## The end" in (kept / "report.md").read_text()
    assert (tmp_path / "docs" / "pictures" / "bench-summary.svg").exists()
    assert "| fasterce closest | 2 | 400 | 100 | 1.001 (1.000 – 1.002) | 12.3 |" in (tmp_path / "README.md").read_text()
    assert "old" not in (tmp_path / "README.md").read_text()


def test_a_run_of_the_papers_experiments_is_kept_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, kept = tmp_path / "run", tmp_path / "paper"
    (run / "figures").mkdir(parents=True)
    (run / "report.md").write_text(PAPER_REPORT)
    for name in publish.PAPER_PICTURES:
        (run / "figures" / f"{name}.svg").write_text("<svg/>")
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    (tmp_path / "docs" / "benchmark.md").write_text("Before\n\n<!-- paper -->\n\nold\n\n<!-- /paper -->\n\nAfter\n")
    monkeypatch.setattr(publish, "PAPER", kept)
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    publish.main(["--paper", "--run", str(run)])
    assert (kept / "report.md").read_text().startswith("# The paper")
    assert [path.stem for path in (kept / "figures").iterdir()] == ["paper-figure"]
    assert (tmp_path / "docs" / "pictures" / "bench-paper-total-time.svg").exists()
    page = (tmp_path / "docs" / "benchmark.md").read_text().splitlines()
    assert (page[0], page[-1]) == ("Before", "After")
    assert "old" not in page
    assert [line for line in page if line.startswith("Of the")] == ["Of the paper's 2 statements, **1 agree**."]
    assert [line for line in page if "CE1" in line or "DiCE" in line] == [
        "| CE1 is valid | agrees |",
        "| DiCE is far | differs |",
    ]
    assert [line for line in page if line.startswith("| adult")] == ["| adult | hybrid | closest | 90.0 % | edits 100.0 % |"]


def test_the_page_has_the_statements_of_the_report_that_is_kept() -> None:
    text = (publish.ROOT / publish.PAPER_PAGE).read_text(encoding="utf-8")
    report = (publish.PAPER / "report.md").read_text(encoding="utf-8")
    marks = publish.PAPER_START, publish.PAPER_END
    assert publish.with_table(text, publish.paper_block(report), publish.PAPER_PAGE, marks) == text


def test_a_page_without_a_place_for_it_is_named() -> None:
    with pytest.raises(SystemExit, match=r"README\.md has no place for the table"):
        publish.with_table("nothing here", "table", "README.md")
