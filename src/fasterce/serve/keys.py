"""API keys: a file of names, hashes, scopes and days; the keys themselves are shown once and kept nowhere.

A key is 32 random bytes, which nobody can guess from a SHA-256, so that no slow hash is needed.
"""

import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NewType
from uuid import uuid4

from fasterce.errors import InputError, shorten

KeyName = NewType("KeyName", str)

FORMAT, VERSION = "fasterce-keys", 1
SCOPES = ("explain", "records", "metrics", "admin")
PREFIX = "fce_"
TOKEN = re.compile(r"fce_[A-Za-z0-9_-]{43}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ @-]{0,99}")
HASH = re.compile(r"[0-9a-f]{64}")
LOOK_SECONDS = 1.0
MOST_BYTES = 4 << 20

log = logging.getLogger("fasterce.serve.keys")


class KeysError(InputError):
    """The file of keys, or what is to be written into it, is not what was expected."""


class KeyRefused(Exception):
    """A request may not do what it asks for; the sentence says why and does not repeat the key."""


class NoKey(KeyRefused):
    """There is no key in the request."""


class WrongKey(KeyRefused):
    """Nobody has this key."""


class ExpiredKey(KeyRefused):
    """The key was good until a day that has passed."""


class MissingScope(KeyRefused):
    """The key is for other things."""


@dataclass(frozen=True)
class Key:
    """One entry of the file. `expires` is the last day the key is good for, in UTC."""

    name: str
    sha256: str
    scopes: tuple[str, ...]
    expires: str | None
    created: str

    def expired(self, today: date) -> bool:
        return self.expires is not None and date.fromisoformat(self.expires) < today


class Keys:
    """The keys of a file, read again when the file changes."""

    def __init__(self, path: Path, keys: Sequence[Key], stamp: tuple[int, ...] | None) -> None:
        self._path, self._stamp = path, stamp
        self._by_hash = {key.sha256: key for key in keys}
        self._looked = time.monotonic()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Keys":
        """Raises KeysError where the file is not there or not one of keys."""
        file = Path(path)
        stamp = _stamp(file)
        return cls(file, read(file), stamp)

    def check(self, token: str | None, scope: str) -> KeyName:
        """Whose key this is, if it is good for the scope; a refusal if not."""
        self._look()
        if not token:
            raise NoKey("A key is needed; expected the header 'Authorization: Bearer fce_…'.")
        key = self._find(token)
        if key is None:
            raise WrongKey("The key is not one of those known here.")
        if key.expired(datetime.now(UTC).date()):
            raise ExpiredKey(f"The key must not have expired; it was good until {key.expires}.")
        if scope not in key.scopes:
            raise MissingScope(f"The key must have the scope {scope!r}; it has {', '.join(key.scopes)}.")
        return KeyName(key.name)

    def _find(self, token: str) -> Key | None:
        """The time this takes tells nothing of a key: what is looked up and compared is a hash, which nobody can steer."""
        if not TOKEN.fullmatch(token):
            return None
        hashed = _hash(token)
        found = self._by_hash.get(hashed)
        return found if found is not None and hmac.compare_digest(found.sha256, hashed) else None

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._by_hash = {key.sha256: key for key in read(self._path)}
        except KeysError as error:
            log.error("The keys stay as they were: %s", error)
        else:
            log.info("%d keys read again from %s", len(self._by_hash), self._path)


def new_key(path: Path, name: str, scopes: Sequence[str], expires: str | None = None) -> str:
    """Add a key to the file, made if it is not there, and return what has to be sent: this is the only time it is known."""
    token = PREFIX + secrets.token_urlsafe(32)
    created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    entry = {
        "name": name,
        "sha256": _hash(token),
        "scopes": list(dict.fromkeys(scopes)),
        "expires": expires,
        "created": created,
    }
    key = _key(entry, "The key")
    with _changing(path) as keys:
        if any(known.name == name for known in keys):
            raise KeysError(f"A key's name must be its own; got {name!r}, which {path} has already.")
        keys.append(key)
    return token


def revoke_key(path: Path, name: str) -> None:
    """Take a key out of the file."""
    if not path.exists():
        raise KeysError(f"Keys must come from a file that can be read; got {path}: No such file or directory.")
    with _changing(path) as keys:
        left = [key for key in keys if key.name != name]
        if len(left) == len(keys):
            raise KeysError(f"The name must be one of {shorten(key.name for key in keys)} in {path}; got {name!r:.100}.")
        keys[:] = left


def read(path: Path) -> list[Key]:
    """All keys of a file, in order; one sentence if it holds anything else."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise KeysError(f"Keys must come from a file that can be read; got {path}: {error.strerror or error}.") from error
    if len(raw) > MOST_BYTES:
        raise KeysError(f"Keys must be in a file of at most {MOST_BYTES >> 20} MiB; got {path}, which is larger.")
    try:
        content = json.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        raise KeysError(f"Keys in {path} must be JSON; got {type(error).__name__}.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
        raise KeysError(f"Keys in {path} must have the format {FORMAT!r}, version {VERSION}; got something else.")
    entries = content.get("keys")
    if not isinstance(entries, list):
        raise KeysError(f"Keys in {path} must be a list in the field 'keys'; got {type(entries).__name__}.")
    keys = [_key(entry, f"Key {number} of {path}") for number, entry in enumerate(entries, start=1)]
    for what in ("name", "sha256"):
        if len({getattr(key, what) for key in keys}) < len(keys):
            raise KeysError(f"Each key in {path} must have its own {what!r}; got one twice.")
    return keys


def _key(entry: Any, where: str) -> Key:
    """An entry, checked field by field."""
    fields = ("name", "sha256", "scopes", "expires", "created")
    if not isinstance(entry, Mapping) or set(entry) != set(fields):
        raise KeysError(f"{where} must have the fields {shorten(fields)}; got others.")
    name, hashed, scopes, expires = entry["name"], entry["sha256"], entry["scopes"], entry["expires"]
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise KeysError(f"{where}: the name must be 1 to 100 letters, digits, spaces or . _ @ -; got {name!r:.100}.")
    if not isinstance(hashed, str) or not HASH.fullmatch(hashed):
        raise KeysError(f"{where}: 'sha256' must be 64 digits from 0 to f; got something else.")
    if not isinstance(scopes, list) or not scopes:
        raise KeysError(f"{where} must have at least one scope of {shorten(SCOPES)}; got none.")
    for scope in scopes:
        if scope not in SCOPES:
            raise KeysError(f"{where}: a scope must be one of {shorten(SCOPES)}; got {scope!r:.100}.")
    if not isinstance(entry["created"], str):
        raise KeysError(f"{where}: 'created' must be a time; got {type(entry['created']).__name__}.")
    return Key(name, hashed, tuple(scopes), _day(expires, where), entry["created"])


def _day(given: Any, where: str) -> str | None:
    if given is None:
        return None
    try:
        return date.fromisoformat(given).isoformat()
    except (TypeError, ValueError):
        raise KeysError(f"{where}: the last day must be a date such as 2030-12-31; got {given!r:.100}.") from None


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Changes when the file does: every change puts a new file in the place of the old."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@contextmanager
def _changing(path: Path) -> Iterator[list[Key]]:
    """The keys of the file, written back all or nothing; one at a time, so that no change is lost."""
    try:
        with _locked(path.resolve().parent):
            keys = read(path) if path.exists() else []
            yield keys
            _write(path, keys)
    except OSError as error:
        raise KeysError(f"Keys must go to a file that can be written; got {path}: {error.strerror or error}.") from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder is locked, since the file itself is replaced; some systems have no such lock."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, keys: Sequence[Key]) -> None:
    content = {"format": FORMAT, "version": VERSION, "keys": [asdict(key) for key in keys]}
    target = path.resolve()
    partial = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
    try:
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
