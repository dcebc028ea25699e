"""KServe's client asks by both protocols. Arguments as of `triton.py`."""

import asyncio
import json
import sys

from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig

url, name = sys.argv[1:]
row = json.load(sys.stdin)


async def ask() -> dict[str, object]:
    new, old = (InferenceRESTClient(RESTConfig(protocol=protocol)) for protocol in ("v2", "v1"))
    ready = [await new.is_server_live(url), await new.is_server_ready(url), await new.is_model_ready(url, name)]
    kinds = {bool: "BOOL", str: "BYTES"}
    inputs = [InferInput(column, [2], kinds.get(type(value), "FP64"), data=[value] * 2) for column, value in row.items()]
    told = await new.infer(url, InferRequest(name, inputs), model_name=name)
    instances = {"instances": [row, list(row.values())]}
    predicted = await old.infer(url, instances, model_name=name)
    explained = await old.explain(url, model_name=name, data=instances)
    return {
        "ready": [*ready, await old.is_model_ready(url, name)],
        "status": next(one.data for one in told.outputs if one.name == "status"),
        "predictions": predicted["predictions"],
        "explanations": [one["status"] for one in explained["explanations"]],
    }


print(json.dumps(asyncio.run(ask())))
