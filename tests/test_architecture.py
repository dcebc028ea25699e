"""Every module is in a layer of the import contracts, and ARCHITECTURE.md names files that exist."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fasterce"


def modules() -> list[str]:
    files = [path.relative_to(SOURCE.parent).with_suffix("") for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    return [".".join(path.parts) for path in files]


def test_every_module_is_in_a_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    named = [name.strip() for layer in layers for name in re.split(r"[|:]", layer)]
    assert len(named) == len(set(named))
    homeless = [name for name in modules() if not any(name == one or name.startswith(f"{one}.") for one in named)]
    assert homeless == []


def test_the_architecture_names_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+(?:\.py|\.toml|\.md|/))`", text)) | set(re.findall(r"[\w/]+\.py", text))
    places = (SOURCE, ROOT)
    assert len(named) > 50
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


def test_no_loose_modules_at_the_top_level() -> None:
    assert len(list(SOURCE.glob("*.py"))) <= 10
