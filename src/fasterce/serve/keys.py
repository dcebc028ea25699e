"""API keys: a file of names, hashes, scopes and expiry dates; a key itself is shown once and stored nowhere.

A key is 32 random bytes, which cannot be guessed from a SHA-256, so that no slow hash is needed.
"""

import hashlib
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
from uuid import uuid4

from fasterce.errors import FasterCEError, InputError
from fasterce.serve.messages import Json

FORMAT, VERSION = "fasterce-keys", 1
SCOPES = ("explain", "applicants", "records", "metrics", "admin")
PREFIX = "fce_"
TOKEN = re.compile(r"fce_[A-Za-z0-9_-]{43}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ @-]{0,99}")
HASH = re.compile(r"[0-9a-f]{64}")
# Seconds between two looks at whether the file has changed, and its largest size in bytes.
CHECK_SECONDS = 1.0
MAX_BYTES = 4 << 20

log = logging.getLogger("fasterce.serve.keys")


class KeysError(InputError):
    """The file of keys, or what is to be written into it, is not what was expected."""


class KeyRejected(FasterCEError):
    """A request is not permitted; the text says why and does not repeat the key.

    `status` and `code` are those of the HTTP response, `key` the name of the key if it is known.
    """

    status, code = 401, "wrong_key"

    @property
    def key(self) -> str | None:
        return self.problem.details.get("key")


class NoKey(KeyRejected):
    """The request has no key."""


class WrongKey(KeyRejected):
    """The key is unknown."""


class ExpiredKey(KeyRejected):
    """The last day of the key has passed."""

    code = "expired_key"


class MissingScope(KeyRejected):
    """The key does not have the scope."""

    status, code = 403, "missing_scope"


@dataclass(frozen=True)
class Key:
    """One entry of the file. `expires` is the last day the key is valid, in UTC."""

    name: str
    sha256: str
    scopes: tuple[str, ...]
    expires: str | None
    created: str

    def expired(self, today: date) -> bool:
        return self.expires is not None and date.fromisoformat(self.expires) < today


class Keys:
    """The keys of a file, which is read again when it changes."""

    def __init__(self, path: str | os.PathLike[str], check_seconds: float = CHECK_SECONDS) -> None:
        """Read a file; raises KeysError if it is missing or not a file of keys."""
        self._path, self._check_seconds = Path(path), check_seconds
        self._stamp = _stamp(self._path)
        self._by_hash = {key.sha256: key for key in read(self._path)}
        self._checked = time.monotonic()

    def check(self, token: str | None, *scopes: str) -> Key:
        """Return the key if it is valid and has the scopes; raises KeyRejected."""
        self._read_changes()
        if not token:
            raise NoKey("serve.no_key")
        # Looked up by its hash: the time this takes reveals nothing, as nobody can choose a hash.
        key = self._by_hash.get(_hash(token)) if TOKEN.fullmatch(token) else None
        if key is None:
            raise WrongKey("serve.wrong_key")
        if key.expired(datetime.now(UTC).date()):
            raise ExpiredKey("serve.expired_key", expires=key.expires, key=key.name)
        for scope in scopes:
            if scope not in key.scopes:
                raise MissingScope("serve.missing_scope", expected=scope, scopes=", ".join(key.scopes), key=key.name)
        return key

    def _read_changes(self) -> None:
        now = time.monotonic()
        if now - self._checked < self._check_seconds:
            return
        self._checked = now
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._by_hash = {key.sha256: key for key in read(self._path)}
        except KeysError as error:
            log.error("The keys are unchanged: %s", error)
        else:
            log.info("%d keys read again from %s", len(self._by_hash), self._path)


def new_key(path: Path, name: str, scopes: Sequence[str], expires: str | None = None) -> str:
    """Add a key to the file, which is created if necessary, and return the key: it is not stored anywhere."""
    token = PREFIX + secrets.token_urlsafe(32)
    created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    given = {"name": name, "sha256": _hash(token), "scopes": list(dict.fromkeys(scopes)), "expires": expires}
    key = _key(given | {"created": created}, path)
    if key.expired(datetime.now(UTC).date()):
        raise KeysError("serve.key_expired_already", received=expires)
    with _changing(path) as keys:
        if any(known.name == name for known in keys):
            raise KeysError("serve.key_name_taken", received=name, path=str(path))
        keys.append(key)
    return token


def revoke_key(path: Path, name: str) -> None:
    """Remove a key from the file."""
    if not path.exists():
        raise KeysError("serve.keys_not_read", path=str(path), reason="No such file or directory")
    with _changing(path) as keys:
        left = [key for key in keys if key.name != name]
        if len(left) == len(keys):
            raise KeysError("serve.unknown_key_name", received=name, expected=[key.name for key in keys], path=str(path))
        keys[:] = left


def read(path: Path) -> list[Key]:
    """Return all keys of a file, in order; raises KeysError."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise KeysError("serve.keys_not_read", path=str(path), reason=error.strerror or str(error)) from error
    if len(raw) > MAX_BYTES:
        raise KeysError("serve.keys_too_large", expected=MAX_BYTES >> 20, path=str(path))
    try:
        content = json.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        raise KeysError("serve.keys_not_json", path=str(path), received=type(error).__name__) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
        raise KeysError("serve.keys_wrong_format", path=str(path), format=FORMAT, version=VERSION)
    entries = content.get("keys")
    if not isinstance(entries, list):
        raise KeysError("serve.keys_not_a_list", path=str(path), received=type(entries).__name__)
    keys = [_key(entry, path, number) for number, entry in enumerate(entries, start=1)]
    for what in ("name", "sha256"):
        if len({getattr(key, what) for key in keys}) < len(keys):
            raise KeysError("serve.keys_repeated", path=str(path), field=what)
    return keys


def _key(entry: Json, path: Path, number: int = 1) -> Key:
    """Return an entry, checked field by field."""
    where = {"path": str(path), "number": number}
    fields = ("name", "sha256", "scopes", "expires", "created")
    if not isinstance(entry, Mapping) or set(entry) != set(fields):
        raise KeysError("serve.key_fields", expected=fields, **where)
    name, hashed, scopes, expires = entry["name"], entry["sha256"], entry["scopes"], entry["expires"]
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise KeysError("serve.key_name", received=name, **where)
    if not isinstance(hashed, str) or not HASH.fullmatch(hashed):
        raise KeysError("serve.key_hash", **where)
    if not isinstance(scopes, list) or not scopes:
        raise KeysError("serve.key_no_scope", expected=SCOPES, **where)
    for scope in scopes:
        if scope not in SCOPES:
            raise KeysError("serve.key_scope", expected=SCOPES, received=scope, **where)
    if not isinstance(entry["created"], str):
        raise KeysError("serve.key_created", received=type(entry["created"]).__name__, **where)
    try:
        day = None if expires is None else date.fromisoformat(expires).isoformat()
    except (TypeError, ValueError):
        raise KeysError("serve.key_expires", received=expires, **where) from None
    return Key(name, hashed, tuple(scopes), day, entry["created"])


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return what changes with the file: every change puts a new file in the place of the old one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@contextmanager
def _changing(path: Path) -> Iterator[list[Key]]:
    """Yield the keys of the file and write them back atomically, under a lock, so that no change is lost."""
    try:
        with _locked(path.resolve().parent):
            keys = read(path) if path.exists() else []
            yield keys
            _write(path, keys)
    except OSError as error:
        raise KeysError("serve.keys_not_written", path=str(path), reason=error.strerror or str(error)) from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder, since the file itself is replaced; some systems have no such lock."""
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
