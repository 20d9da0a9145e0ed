# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""KServe's own client against a server: client.py GRPC_ADDRESS REST_URL. Says what went well.

The server has the model half: y = x / 2 + 2 in version 3.
"""

import asyncio
import sys

import grpc
import httpx
import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest
from kserve.inference_client import RESTConfig

X = np.array([2.0, 4.0], np.float32)


def request_for(model, binary):
    tensor = InferInput("x", list(X.shape), "FP32")
    tensor.set_data_from_numpy(X, binary_data=binary)
    return InferRequest(model, [tensor], request_id="call 7")


def check(what, fine):
    if not fine:
        sys.exit(f"wrong: {what}")
    print(f"ok {what}", flush=True)


def right(answer):
    values = answer.outputs[0].as_numpy()
    return answer.id == "call 7" and np.array_equal(values, X / 2 + 2)


async def over_rest(url):
    client = InferenceRESTClient(RESTConfig(protocol="v2", retries=0))
    check("REST live", await client.is_server_live(url))
    check("REST ready", await client.is_server_ready(url))
    check("REST model ready", await client.is_model_ready(url, "half"))
    check("REST model not ready", not await client.is_model_ready(url, "nobody"))
    async with httpx.AsyncClient() as plain:  # The client has no call for it.
        metadata = (await plain.get(f"{url}/v2/models/half")).json()
    check(
        "REST metadata", metadata["inputs"][0] == {"name": "x", "datatype": "FP32", "shape": [-1]}
    )
    for binary in (False, True):
        answer = await client.infer(url, request_for("half", binary), model_name="half")
        check(f"REST infer, {'binary' if binary else 'JSON'}", right(answer))
    try:
        await client.infer(url, request_for("nobody", False), model_name="nobody")
    except httpx.HTTPStatusError as error:
        check("REST error", error.response.status_code == 404 and "nobody" in str(error))
    await client.close()


async def over_grpc(address):
    client = InferenceGRPCClient(address, retries=0)
    check("gRPC live", await client.is_server_live())
    check("gRPC ready", await client.is_server_ready())
    check("gRPC model ready", await client.is_model_ready("half"))
    check("gRPC model not ready", not await client.is_model_ready("nobody"))
    for binary in (False, True):
        answer = await client.infer(request_for("half", binary))
        check(f"gRPC infer, {'raw' if binary else 'typed'}", right(answer))
    try:
        await client.infer(request_for("nobody", False))
    except grpc.RpcError as error:
        check("gRPC error", error.code() == grpc.StatusCode.NOT_FOUND and "nobody" in str(error))
    await client.close()


async def main():
    address, url = sys.argv[1:]
    await over_rest(url)
    await over_grpc(address)


asyncio.run(main())
