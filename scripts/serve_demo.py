"""`make demo-serve`: two black boxes on bundled data behind the service and its page.

The first start trains them and their explainers, in a process of its own, and keeps them in a folder; later ones only serve.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from fasterce.records.pseudonyms import VARIABLE
from fasterce.serve.run import run
from fasterce.serve.settings import ServedArtifact, Settings

FOLDER = Path(".demo-serve")
TITLES = {"german_credit": "German credit", "adult": "Adult income"}
# What more is against a person's interest on the page; the bundled schemas leave these directions open. The order of
# categories is from worst to best, and no savings are the worst.
IN_THE_PERSONS_INTEREST: dict[str, dict[str, dict[str, Any]]] = {
    "german_credit": {
        "existing_credits": {"preferred": "lower"},
        "housing": {"categories": ["rent", "for free", "own"], "ordered": True, "preferred": "higher"},
        "savings": {
            "categories": ["unknown or none", "below 100 DM", "100 to 500 DM", "500 to 1000 DM", "1000 DM or more"],
            "ordered": True,
            "preferred": "higher",
        },
        "property": {
            "categories": ["unknown or none", "car or other", "savings plan or life insurance", "real estate"],
            "ordered": True,
            "preferred": "higher",
        },
    }
}
WHO = "applicant"
PEOPLE = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--port", type=int, default=Settings.port)
    parser.add_argument("--train", nargs=2, metavar=("DATASET", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train is not None:
        learn(options.train[0], Path(options.train[1]))
        return
    artifacts = tuple(served(options.folder, name) for name in TITLES)
    records = f"sqlite:///{options.folder / 'records.db'}"
    # Records are found by the person; kept with the demonstration, so that they are found after the next start too.
    secret = options.folder / "pseudonym-key"
    if not secret.exists():
        secret.write_text(token_hex(16))
    environment = {VARIABLE: secret.read_text()}
    print(f"Open http://127.0.0.1:{options.port} in a browser; Ctrl-C ends it.")
    run(
        Settings(
            artifacts,
            port=options.port,
            records=records,
            retention_days=30,
            environment=environment,
            log_level="warning",
        )
    )


def served(folder: Path, name: str) -> ServedArtifact:
    made = folder / name
    if not made.exists():
        print(f"Training a black box and an explainer on {name} (once) …", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        staged = Path(mkdtemp(dir=folder, prefix=f".{name}-"))
        try:
            # What training takes in memory is given back when its process ends.
            subprocess.run([sys.executable, __file__, "--train", name, str(staged)], check=True)
            staged.rename(made)
        finally:
            rmtree(staged, ignore_errors=True)
    return ServedArtifact(name, made / "artifact", title=TITLES[name], applicants=made / "people.csv", applicants_id=WHO)


def learn(name: str, folder: Path) -> None:
    """A scikit-learn pipeline as ONNX inside the artifact, and people it refuses. What training needs is imported here: the
    service starts without it."""
    import skl2onnx  # noqa: PLC0415
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType  # noqa: PLC0415

    from fasterce import FasterCE, datasets  # noqa: PLC0415
    from fasterce.cli.adult_demo import balanced, make_model  # noqa: PLC0415
    from fasterce.models.files.load import load_model  # noqa: PLC0415

    data = datasets.load(name)
    pipeline = make_model().fit(*balanced(data.X, data.y))
    inputs = [
        (column, FloatTensorType([None, 1]) if data.schema[column].numeric else StringTensorType([None, 1]))
        for column in data.X.columns
    ]
    file = folder / "model.onnx"
    file.write_bytes(skl2onnx.convert_sklearn(pipeline, initial_types=inputs, target_opset=17).SerializeToString())
    loaded = load_model(file)
    schema = data.schema.declare(IN_THE_PERSONS_INTEREST.get(name))
    explainer = FasterCE(loaded.model, schema, random_state=0).fit(data.X)
    explainer.save(folder / "artifact", model_file=loaded)
    refused = data.X[loaded.model.predict(data.X) != data.wanted].sample(frac=1, random_state=0).head(PEOPLE)
    # Compiles the kernels of the search, which are kept on disk: the service starts in seconds from now on.
    explainer.explain(refused.head(1))
    refused.rename_axis(WHO).set_axis(range(1001, 1001 + len(refused))).to_csv(folder / "people.csv", index_label=WHO)


if __name__ == "__main__":
    main()
