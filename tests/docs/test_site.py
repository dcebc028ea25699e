"""The site is built strictly, hangs together, and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import fasterce

pytest.importorskip("mkdocs")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from mkdocs.config import load_config  # noqa: E402

import flow_pictures  # noqa: E402

ASSETS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "object": "data"}


@dataclass
class Page(HTMLParser):
    """What a page refers to and what it can be referred to by."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    assets: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ASSETS and ASSETS[tag] in given:
            self.assets.append(given[ASSETS[tag]])

    def __hash__(self) -> int:
        return id(self)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=False
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = Page()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def _in_nav(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for below in entry.values() if isinstance(entry, dict) else entry:
            yield from _in_nav(below)


def test_every_page_is_in_the_nav_once_or_waits_for_it() -> None:
    config = load_config(str(ROOT / "mkdocs.yml"))
    listed = list(_in_nav(config["nav"]))
    docs = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    waiting = {page for page in docs if config["not_in_nav"] and config["not_in_nav"].match_file(page)}
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) == docs - waiting


def test_links_and_anchors_lead_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    broken = [
        f"{path.relative_to(site)} -> {link}"
        for path, page in pages.items()
        for link in page.links
        if not _resolves(path, link, pages)
    ]
    assert len(pages) > 20
    assert broken == []


def _resolves(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme:
        return parts.scheme in ("https", "mailto")
    target = (path.parent / unquote(parts.path)).resolve() if parts.path not in ("", ".") else path
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return path.name == "404.html" and link.startswith("/")
    return not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].ids


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    foreign = [asset for page in pages.values() for asset in page.assets if urlsplit(asset).netloc]
    assert foreign == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def test_every_asset_a_page_loads_is_there(pages: dict[Path, Page]) -> None:
    missing = [
        (path.name, asset)
        for path, page in pages.items()
        if path.name != "404.html"
        for asset in page.assets
        if not asset.startswith("data:") and not (path.parent / unquote(urlsplit(asset).path)).is_file()
    ]
    assert missing == []


def test_the_flow_pictures_are_those_of_their_script(site: Path) -> None:
    page = (site / "how-it-works.html").read_text(encoding="utf-8")
    for name, flow in flow_pictures.FLOWS.items():
        drawn = flow_pictures.draw(flow)
        assert (flow_pictures.FOLDER / f"flow-{name}.svg").read_text(encoding="utf-8") == drawn
        assert f'aria-label="{flow.title}"' in page
    assert "mermaid" not in page, "Material loads Mermaid from another site"


def test_search_works_without_a_server(site: Path) -> None:
    assert "iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "search" / "search_index.js").is_file()


def test_all_that_is_public_is_in_the_reference(pages: dict[Path, Page]) -> None:
    anchors = {name for page in pages.values() for name in page.ids}
    constraints = [f"fasterce.constraints.{name}" for name in dir(fasterce.constraints) if name != "Constraint"]
    public = [f"fasterce.{name}" for name in fasterce.__all__ if not isinstance(getattr(fasterce, name), (str, ModuleType))]
    missing = [name for name in (*public, *constraints, "fasterce.datasets.load") if name not in anchors]
    assert missing == []


def test_the_site_and_the_readme_tell_the_same_figures() -> None:
    readme, page = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/performance.md"))
    rivals = [line for line in page[page.index("## Compared with others") :].splitlines() if line.startswith("|")]
    assert len(rivals) > 5
    assert [line for line in rivals if line not in readme] == []
