"""A table in MLServer's encoding goes in, tables and texts are decoded from what comes out. Arguments as of `triton.py`."""

import json
import sys

import httpx
import pandas as pd
from mlserver.codecs import PandasCodec, StringCodec
from mlserver.types import InferenceResponse

url, name = sys.argv[1:]
frame = pd.DataFrame([json.load(sys.stdin)] * 2)
sent = PandasCodec.encode_request(frame).model_dump_json(exclude_none=True)
answer = httpx.post(
    f"{url}/v2/models/{name}/infer", content=sent, headers={"content-type": "application/json"}, trust_env=False
)
response = InferenceResponse.model_validate(answer.json())
by_name = {one.name: one for one in response.outputs}
columns = PandasCodec.decode_response(response).columns.tolist()
print(json.dumps({"status": StringCodec.decode_output(by_name["status"]), "columns": columns}))
