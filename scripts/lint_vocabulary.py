"""Lint names and phrases the project has retired (part of `make lint`), and measure the code (`--measure`).

Identifiers in `src` and `benchmarks` are split into words and compared with RETIRED_WORDS; docstrings, comments, messages,
pages and docs are searched for RETIRED_PHRASES.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fasterce"
BENCHMARKS = ROOT / "benchmarks"
# They have to quote old names.
QUOTING = {ROOT / "CHANGELOG.md", *(ROOT / "docs" / "decisions").glob("*.md")}
RETIRED_WORDS = {
    "ask",
    "asks",
    "asked",
    "asking",
    "said",
    "told",
    "heard",
    "wish",
    "wishes",
    "circumstances",
    "knowledge",
    "twin",
    "twins",
    "rule",
    "rules",
    "refusal",
    "refusals",
    "shake",
    "shakes",
    "shaken",
    "shaking",
    "survive",
    "survived",
    "survives",
    "steady",
    "unsteady",
    "hire",
    "hired",
    "hires",
    "bury",
    "buried",
    "buries",
    "nursery",
    "crew",
    "house",
    "gate",
    "desk",
    "gathering",
    "pace",
    "keeping",
    "lane",
    "lanes",
    "lazily",
    "inquire",
    "inquiry",
    "converse",
    "trial",
    "trials",
    "answer",
    "answers",
    "answered",
    "answering",
    "question",
    "questions",
}
# Words of the old benchmarks that have an ordinary meaning elsewhere.
RETIRED_IN_BENCHMARKS = RETIRED_WORDS | {
    "crowd",
    "elsewhere",
    "glue",
    "hear",
    "judge",
    "keeper",
    "sparing",
    "stranger",
    "strangers",
    "tell",
    "tells",
    "word",
    "words",
}
NOT_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
RETIRED_CLASSES = re.compile(
    r"class (House|Desk|Gate|Visit|Kept|Crew|Hand|Standing|Tally|Wanted|Circumstances|Confirming|Told|Said|Heard|Borders|"
    r"StandIns|Knowledge|Nursery|Pace|People|Learned|Box|Limit|Fact|Cell|Link|Linked|Final)\b"
)
RETIRED_PHRASES = [
    re.compile(pattern)
    for pattern in (
        r"\b(nursery|wishes|lazily|how-manieth|nought)\b",
        r"(in the same breath|the last word|gone on with|so many times as dear|to the last bit|rows asked)",
        r"(asked an explanation|useful no|holds? shaken|dark room|stands? in the way|its company)",
        r"\b(one|a|an) (word|record|line|file|entry|table|code|step|number|key|part|model|call|sentence|label|score|cell|"
        r"value|row|reason|chance|feature|column|group|dimension|tensor) an? "
        r"(row|partition|feature|column|kind|batch|chunk|query|class|method|person|counterfactual|cell)\b",
        r"\b(twins?|why_not|the distilled copy|a copy of the model|rows? asked)\b",
    )
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="print code lines, uses of Any and long functions")
    parser.add_argument("paths", nargs="*", help="limit the output to paths that start with one of these")
    arguments = parser.parse_args()
    if arguments.measure:
        measure()
        return
    found = [line for line in (*identifiers(), *phrases()) if not arguments.paths or line.startswith(tuple(arguments.paths))]
    print("\n".join(found) or "no retired names or phrases")
    if found:
        print(f"{len(found)} found")
    sys.exit(bool(found))


def identifiers() -> Iterator[str]:
    for folder, retired in ((SOURCE, RETIRED_WORDS), (BENCHMARKS, RETIRED_IN_BENCHMARKS)):
        for path in files(folder, "py"):
            text = path.read_text(encoding="utf-8")
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.NAME and words(token.string) & retired:
                    yield f"{path.relative_to(ROOT)}:{token.start[0]}: name {token.string}"
            for number, line in enumerate(text.splitlines(), 1):
                found = RETIRED_CLASSES.search(line)
                # In a benchmark a cell is a pair of dataset and model, as in the tables of papers.
                if found and not (folder == BENCHMARKS and found[1] == "Cell"):
                    yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def files(folder: Path, *kinds: str) -> list[Path]:
    """Return the files of a folder with some suffixes, without those in hidden folders such as virtual environments."""
    found = (path for kind in kinds for path in folder.rglob(f"*.{kind}"))
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def words(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def phrases() -> Iterator[str]:
    pages = {*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")} - QUOTING
    # Reports of past runs are quoted as they were written.
    benchmarks = [path for path in files(BENCHMARKS, "py", "md") if BENCHMARKS / "results" not in path.parents]
    for path in sorted({*pages, *benchmarks, *files(SOURCE, "py", "js", "html", "json", "toml")}):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if any(phrase.search(line) for phrase in RETIRED_PHRASES):
                yield f"{path.relative_to(ROOT)}:{number}: {line.strip()[:110]}"


def measure() -> None:
    lines: Counter[str] = Counter()
    anys: Counter[str] = Counter()
    classes: defaultdict[str, list[str]] = defaultdict(list)
    long, wide, top = [], [], 0
    for path in sorted(SOURCE.rglob("*.py")):
        text, package = path.read_text(encoding="utf-8"), path.relative_to(SOURCE).parts[0]
        tree = ast.parse(text)
        lines[package] += code_lines(text, tree)
        anys[package] += len(re.findall(r"\bAny\b", text))
        top += path.parent == SOURCE
        for node in ast.walk(tree):
            where = f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(where)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                doc = ast.get_docstring(node)
                body = (node.end_lineno or 0) - node.body[0].lineno + 1 - (doc.count("\n") + 1 if doc else 0)
                arguments = node.args
                count = len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs])
                if body > 40:
                    long.append(f"{where} {node.name}: {body} lines")
                if count > 8:
                    wide.append(f"{where} {node.name}: {count} parameters")
    for package, count in lines.most_common():
        print(f"{package:20} {count:6,} code lines {anys[package]:5} Any")
    print(f"{'all':20} {sum(lines.values()):6,} code lines {sum(anys.values()):5} Any; {top} modules at the top level")
    repeated = {name: places for name, places in classes.items() if len(places) > 1}
    print(f"{len(repeated)} class names defined more than once: {', '.join(sorted(repeated))}")
    print(f"{len(long)} functions over 40 lines:", *long, sep="\n  ")
    print(f"{len(wide)} functions with more than 8 parameters:", *wide, sep="\n  ")


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines with code: no blank lines, comments or docstrings."""
    counted = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (
            tokenize.COMMENT,
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENDMARKER,
        ):
            counted.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            counted -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(counted)


if __name__ == "__main__":
    main()
