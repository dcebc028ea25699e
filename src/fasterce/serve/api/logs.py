"""Logs as lines of JSON: what happened to which request, and nothing of a person's data."""

import ipaddress
import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from functools import lru_cache

NAME = "fasterce.serve"
log = logging.getLogger(NAME)


class JSONFormatter(logging.Formatter):
    """One object per line, with the first line of the message and the class and place of an exception, whose text may hold
    personal data."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": (record.getMessage().splitlines() or [""])[0],
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            innermost = traceback.extract_tb(record.exc_info[2])[-1:]
            where = "".join(f"{frame.filename}:{frame.lineno}" for frame in innermost)
            line |= {"exception": record.exc_info[0].__name__, "where": where}
        return json.dumps(line, default=str)


def set_up(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter())
    for name in (NAME, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == NAME else "WARNING")
    # Other libraries, such as asyncio about a task that failed, log the same way.
    logging.getLogger().handlers = [handler]


def log_event(event: str, level: int = logging.INFO, exc_info: BaseException | None = None, **fields: object) -> None:
    log.log(level, event, extra={"fields": fields}, exc_info=exc_info)


def shown_address(client: tuple[str, int] | None, how: str) -> str | None:
    """Return the address of a client for a log line: none, full, or only its network."""
    if client is None or how == "none":
        return None
    return client[0] if how == "full" else _network(client[0])


@lru_cache(1000)
def _network(text: str) -> str | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    address = getattr(address, "ipv4_mapped", None) or address
    return str(ipaddress.ip_network((address, 24 if address.version == 4 else 48), strict=False))
