"""For Schemathesis, named by SCHEMATHESIS_HOOKS: three of four generated requests are led past the first checks.

Left alone nearly all generated requests end there (another artifact, ids for more rows than there are), and what lies behind
would hardly be tried. FASTERCE_FUZZ says what the server has: {"name": …, "version": …, "row": {…}}.
"""

import json
import os
from hashlib import sha256
from typing import Any

import schemathesis

SERVED = json.loads(os.environ.get("FASTERCE_FUZZ", '{"name": "", "version": "", "row": {}}'))
PER_ROW = ("row_ids", "decision_ids", "subjects")
SECONDS = 20_000


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    if not path_parameters or left_alone(path_parameters):
        return path_parameters
    return {name: SERVED.get(name, value) for name, value in path_parameters.items()}


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    found = {name: value for name, value in body.items() if not (name == "deadline_ms" and type(value) is int)}
    if left_alone(body):
        return found
    if "inputs" in found:
        return found | {"inputs": [tensor(name, value) for name, value in SERVED["row"].items()]}
    if "rows" in found:
        kept = {name: value for name, value in found.items() if name not in PER_ROW}
        rows = kept["rows"] if isinstance(kept["rows"], list) else [kept["rows"]]
        filled = [SERVED["row"] | row if isinstance(row, dict) else row for row in rows]
        return kept | {"artifact": None, "rows": filled, "deadline_ms": SECONDS}
    return found


def tensor(name: str, value: Any) -> dict[str, Any]:
    datatype = "BYTES" if isinstance(value, str) else "FP64"
    return {"name": name, "shape": [1], "datatype": datatype, "data": [value]}


def left_alone(generated: Any) -> bool:
    """One of four, the same ones every time."""
    return sha256(repr(generated).encode(errors="surrogatepass")).digest()[0] % 4 == 0
