"""Triton's HTTP client asks a server about the row on stdin; arguments are the address and the name of an artifact."""

import json
import sys

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

KINDS = {"FP64": np.float64, "BOOL": np.bool_, "BYTES": np.object_}
url, name = sys.argv[1:]
client = triton.InferenceServerClient(url.removeprefix("http://"))
row = json.load(sys.stdin)


def inputs(binary: bool) -> list[triton.InferInput]:
    made = []
    for described in client.get_model_metadata(name)["inputs"]:
        value = row[described["name"]]
        values: np.ndarray = np.array([np.nan if value is None else value] * 2, dtype=KINDS[described["datatype"]])
        one = triton.InferInput(described["name"], [2], described["datatype"])
        one.set_data_from_numpy(values, binary_data=binary)
        made.append(one)
    return made


found = {"ready": client.is_server_live() and client.is_server_ready() and client.is_model_ready(name)}
# By default the client prefers binary outputs.
found["default"] = client.infer(name, inputs(binary=False)).as_numpy("status").tolist()
wanted = [triton.InferRequestedOutput("status"), triton.InferRequestedOutput("record", binary_data=False)]
told = client.infer(name, inputs(binary=False), outputs=wanted, parameters={"n": 2, "made_up": 1})
found["counterfactuals"] = len(json.loads(told.as_numpy("record")[0])["counterfactuals"])
try:
    client.infer(name, inputs(binary=True))
except InferenceServerException as error:
    found["binary"] = str(error)
print(json.dumps(found))
