"""Pseudonyms of people in records. This module imports no NumPy: the HTTP front uses it."""

import hashlib
import hmac

from fasterce.errors import InputError

# Where the service finds the key, and how many bytes it must have at least.
VARIABLE = "FASTERCE_PSEUDONYM_KEY"
SHORTEST_KEY = 16


def pseudonym(subject: str | int, key: bytes | str) -> str:
    """Return a pseudonym: the same for the same subject and key, and not traceable without the key.

    Parameters
    ----------
    subject : str or int
        Who it is about.
    key : bytes or str
        A secret of at least 16 bytes, kept elsewhere.

    Returns
    -------
    str
    """
    if isinstance(subject, bool) or not isinstance(subject, (str, int)) or subject == "":
        raise InputError("records.not_a_subject", option="subject", received=type(subject).__name__)
    secret = key.encode() if isinstance(key, str) else key
    if not isinstance(secret, bytes) or len(secret) < SHORTEST_KEY:
        received = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(key).__name__
        raise InputError("records.not_a_key", option="key", expected=SHORTEST_KEY, received=received)
    return f"hmac-sha256:{hmac.new(secret, str(subject).encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()}"
