"""A folder of finished pieces of a job, each with a digest, which a later run of the same job resumes.

`_run.json` describes the job. A piece is one or more files (`part-000000.parquet`, `column=value/part-000000.parquet`,
`_records/part-000000.jsonl`) and `_shards/000000.json`, written last, with size and SHA-256 of each file: without it a piece
is not finished. Every file is staged in `_temporary/` and renamed when its bytes are on disk. `_SUCCESS` marks a whole run.
Readers of Parquet folders skip names with an underscore.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import numpy as np

from fasterce.constraints import Constraint
from fasterce.constraints import io as constraint_files
from fasterce.data.dtypes import plain
from fasterce.errors import InputError, SchemaError
from fasterce.io import atomic, locations
from fasterce.io.atomic import Write
from fasterce.typing import Json, JsonObject

RUN, LOCK, SUCCESS = "_run.json", "_lock", "_SUCCESS"
PIECES, RECORDS, STAGING = "_shards", "_records", "_temporary"
REPORT_JSON, REPORT_PAGE = "_report.json", "_report.html"
KNOWN_NAMES = re.compile(
    r"_run\.json|_lock|_SUCCESS|_report\.(json|html)|_shards/\d+\.json|_records/part-\d+\.jsonl|_temporary/.*"
    r"|([^/]+=[^/]*/)*part-\d+\.(parquet|csv|jsonl)|.*/"
)
VERSION = 3
LONGEST_SHOWN = 100
# The option that discards an earlier run, as messages name it.
RESTART = "resume=False"


class ResumableFolder:
    """The finished pieces of one job.

    Parameters
    ----------
    path : path
        The folder; worker processes open it again by its path and token.
    token : str, optional
        Which run of the folder the pieces belong to; `begin` sets it.
    outputs : sequence of paths, optional
        Files outside the folder that `publish` writes; what a killed run left of them is removed.
    """

    def __init__(self, path: Path, token: str = "", outputs: Sequence[Path] = ()) -> None:
        self.path, self.token, self.outputs = path, token, outputs

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the folder, which must have no other content."""
        self._check_contents()
        with atomic.write_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with atomic.exclusive_lock(self.path / LOCK, self.outputs[0] if self.outputs else self.path):
            yield

    def begin(self, job: Mapping[str, Json], *, fresh: bool, discard: bool = False) -> None:
        """Start a run, or resume one of the same job.

        Parameters
        ----------
        job : mapping
            What identifies the job; a folder of another one is refused.
        fresh : bool
            Whether to discard an earlier run.
        discard : bool, default=False
            Whether files that belong to no run may be removed too.
        """
        found = atomic.read_json(self.path / RUN)
        with atomic.write_errors(self.path):
            if found is not None:
                # Unfinished outputs of a killed run.
                for output in self.outputs:
                    _unpublished(output, found.get("token", "")).unlink(missing_ok=True)
            if found is not None and found.get("version") == VERSION and not fresh:
                _check_same_job(self.path, found["job"], json.loads(json.dumps(job)))
                self.token = found["token"]
                (self.path / SUCCESS).unlink(missing_ok=True)
                self._prepare()
                return
            if found is None and not fresh and not discard:
                self._check_empty()
            self._clear()
            self.token = uuid4().hex
            self._prepare()
        manifest = {"version": VERSION, "token": self.token, "job": job}
        self.publish(self.path / RUN, lambda file: atomic.write_json(file, manifest))

    def _prepare(self) -> None:
        """Make the folders inside, and remove what an earlier run has staged."""
        for name in (PIECES, STAGING):
            (self.path / name).mkdir(exist_ok=True)
        for left in (self.path / STAGING).iterdir():
            left.unlink()

    def finished(self, number: int) -> JsonObject | None:
        """Return the description of a finished piece, or None if its files have changed since they were written."""
        piece = atomic.read_json(self._piece(number))
        if piece is None or (piece.get("token"), piece.get("number")) != (self.token, number):
            return None
        for name, written in piece["files"].items():
            path = self.path / name
            if path.is_symlink() or not path.is_file() or path.stat().st_size != written["bytes"]:
                return None
            if file_digest(path) != written:
                return None
        description: JsonObject = piece["about"]
        return description

    def stage(self) -> Path:
        """Return a new name to write a file under until it is whole."""
        return self.path / STAGING / f"{uuid4().hex}.tmp"

    def commit(self, number: int, staged: Mapping[str, Path | Write], about: Mapping[str, Json]) -> None:
        """Move the files of a piece to their names; the piece is finished when all of them are there.

        Parameters
        ----------
        staged : mapping
            By its name in the folder each file: the path it was staged under, or a function that writes it.
        about : mapping
            The description `finished` returns.
        """
        self._check_current()
        files = {}
        for name, content in staged.items():
            path = content if isinstance(content, Path) else self._staged(content)
            files[name] = file_digest(path)
            target = self.path / name
            with atomic.write_errors(self.path), atomic.removed_on_failure(path):
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, target)
                atomic.sync_folder(target.parent)
        piece = {"token": self.token, "number": number, "about": about, "files": files}
        self.publish(self._piece(number), lambda file: atomic.write_json(file, piece))

    def publish(self, target: Path, write: Write) -> None:
        """Replace one of the outputs, or a file of the folder, at once."""
        inside = target.is_relative_to(self.path)
        atomic.replace_file(target, write, self.stage() if inside else _unpublished(target, self.token))

    def complete(self, whole: bool) -> None:
        """End a run whose folder is the output itself: mark it if it is whole, and remove what was staged."""
        if whole:
            self.publish(self.path / SUCCESS, lambda file: None)
        with suppress(OSError):
            shutil.rmtree(self.path / STAGING)

    def remove(self) -> None:
        """Remove the folder of a run whose outputs are published."""
        self._clear()
        with suppress(OSError):
            (self.path / LOCK).unlink()
            self.path.rmdir()

    def _staged(self, write: Write) -> Path:
        path = self.stage()
        with atomic.write_errors(self.path), atomic.new_file(path) as file:
            write(file)
        return path

    def _piece(self, number: int) -> Path:
        return self.path / PIECES / f"{number:06d}.json"

    def _check_current(self) -> None:
        """Raise if the folder belongs to a later run: a worker that was declared dead must not write into it."""
        found = atomic.read_json(self.path / RUN)
        if found is None or found.get("token") != self.token:
            raise InputError("io.replaced_run", path=self.path)

    def _check_contents(self) -> None:
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_dir()):
            raise InputError("io.not_a_folder", path=self.path)
        unknown = sorted(name for name in self._inside() if not KNOWN_NAMES.fullmatch(name))
        if unknown:
            raise InputError("io.foreign_files", path=self.path, received=unknown[:3])

    def _check_empty(self) -> None:
        left = [name for name in self._inside() if name != LOCK and not name.startswith(STAGING)]
        if left:
            raise InputError("io.not_resumable", path=self.path, received=left[:3], manifest=RUN, option=RESTART)

    def _inside(self) -> Iterator[str]:
        if self.path.is_dir():
            for path in self.path.rglob("*"):
                name = path.relative_to(self.path).as_posix()
                yield name + "/" if path.is_dir() and not path.is_symlink() else name

    def _clear(self) -> None:
        """Remove everything but the lock; first the manifest, without which nothing can be resumed."""
        (self.path / RUN).unlink(missing_ok=True)
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != LOCK:
                entry.unlink()


def _unpublished(output: Path, token: str) -> Path:
    """Return where an output is written until it is whole: in its own folder, where it can be renamed."""
    return output.with_name(f".{output.name}.{token}.tmp")


def file_digest(source: locations.Source) -> JsonObject:
    """Return size and SHA-256 of all of a file; explaining a row takes thousands of times as long as reading it."""
    with locations.open_binary(source) as file:
        digest = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]
        return {"bytes": file.tell(), "sha256": digest.hexdigest()}


def job_options(options: Mapping[str, object]) -> JsonObject:
    """Return the options of `explain` as JSON can hold them, to compare those of two runs."""
    return {
        f"option {name}": json.loads(json.dumps(_text_keys(value), default=_as_json, sort_keys=True))
        for name, value in sorted(options.items())
    }


def _text_keys(content: object) -> object:
    """Turn keys, which may be names of columns of any type, into text."""
    if isinstance(content, Mapping):
        return {str(key): _text_keys(value) for key, value in content.items()}
    return [_text_keys(value) for value in content] if isinstance(content, (list, tuple)) else content


def _as_json(value: object) -> object:
    if isinstance(value, Constraint):
        try:
            return constraint_files.to_dict([value])[0]
        except SchemaError:
            return {name: _text_keys(part) for name, part in vars(value).items()}
    if isinstance(value, np.generic):
        return plain(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    return repr(value)


def _check_same_job(folder: Path, found: Mapping[str, Json], now: Mapping[str, Json]) -> None:
    differing = [name for name in sorted({*found, *now}) if found.get(name) != now.get(name)]
    if differing:
        first = differing[0]
        details = {"name": first, "was": _shown(found.get(first)), "now": _shown(now.get(first)), "others": differing[1:]}
        code = "io.different_jobs" if differing[1:] else "io.different_job"
        raise InputError(code, path=folder, option=RESTART, **details)


def _shown(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}…"
