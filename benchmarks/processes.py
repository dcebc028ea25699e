"""Descendants of a process, their processor time and memory, as Linux reports them in /proc."""

import os
from contextlib import suppress
from pathlib import Path


def family(process: int) -> list[int]:
    """Return a process and all its descendants, itself first."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                parents[int(folder.name)] = int(_after_name(int(folder.name))[1])
    found, grown = [process], True
    while grown:
        below = [pid for pid, parent in parents.items() if parent in found and pid not in found]
        grown = bool(below)
        found += below
    return found


def processor_seconds(process: int) -> float:
    """Return the processor time of a process in seconds, 0 if it has ended."""
    with suppress(OSError):
        return sum(map(int, _after_name(process)[11:13])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def resident_mb(process: int) -> float:
    """Return the resident memory of a process in MB, shared memory included; 0 if it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return 0.0


def _after_name(process: int) -> list[str]:
    """Return the fields of `stat` from the state on; the name before it may contain spaces."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
