"""Logs as lines of JSON: what happened to which request, and nothing of a person's data."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

NAME = "fasterce.serve"
log = logging.getLogger(NAME)


class Lines(logging.Formatter):
    """One object a line, of a message the first line; an exception by its kind and place. Their texts may hold a value."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": (record.getMessage().splitlines() or [""])[0],
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line |= {"exception": record.exc_info[0].__name__, "where": where(record.exc_info[2])}
        return json.dumps(line, default=str)


def where(traceback: Any) -> str:
    """File and line of the innermost frame."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}" if traceback else ""


def set_up(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    for name in (NAME, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == NAME else "WARNING")
    # What others have to say, asyncio of a task that failed for one, goes the same way.
    logging.getLogger().handlers = [handler]


def say(event: str, level: int = logging.INFO, exc_info: Any = None, **facts: Any) -> None:
    log.log(level, event, extra={"facts": facts}, exc_info=exc_info)
