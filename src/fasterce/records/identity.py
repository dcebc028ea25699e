"""Names for people and files that give nothing away: keyed and plain SHA-256."""

import hashlib
import hmac
import os
from pathlib import Path

from fasterce.errors import InputError

SHORTEST_KEY = 16


def pseudonym(subject: str | int, key: bytes | str) -> str:
    """The same subject and key always give the same pseudonym; without the key it leads back to no one."""
    if isinstance(subject, bool) or not isinstance(subject, (str, int)) or subject == "":
        raise InputError(f"subject must be a text or a whole number that names someone; got {type(subject).__name__}.")
    secret = key.encode() if isinstance(key, str) else key
    if not isinstance(secret, bytes) or len(secret) < SHORTEST_KEY:
        got = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(key).__name__
        raise InputError(f"key must be a secret of at least {SHORTEST_KEY} bytes; got {got}.")
    return f"hmac-sha256:{hmac.new(secret, str(subject).encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()}"


def file_digest(path: str | os.PathLike[str]) -> str:
    """A file's "sha256:…", for `make(model_digest=...)`."""
    try:
        with Path(path).open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        raise InputError(f"A digest is made of a file that can be read; got {error}.") from error
