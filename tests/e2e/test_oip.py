# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The Open Inference Protocol with Triton's stock clients, over HTTP and gRPC."""

import json

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from clients import SECONDS
from local_server import eventually
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

MODELS = ("half", "echo", "strings", "two_in", "odd", "const_out")

# Signatures of the model echo that have a datatype of the protocol.
ECHOES = {
    "bool": ("BOOL", np.array([True, False])),
    "uint8": ("UINT8", np.array([0, 255], np.uint8)),
    "uint16": ("UINT16", np.array([0, 65535], np.uint16)),
    "uint32": ("UINT32", np.array([0, 2**32 - 1], np.uint32)),
    "uint64": ("UINT64", np.array([0, 2**64 - 1], np.uint64)),
    "int8": ("INT8", np.array([-128, 127], np.int8)),
    "int16": ("INT16", np.array([-(2**15), 2**15 - 1], np.int16)),
    "int32": ("INT32", np.array([-(2**31), 2**31 - 1], np.int32)),
    "int64": ("INT64", np.array([-(2**63), 2**63 - 1], np.int64)),
    "float16": ("FP16", np.array([0.5, -2], np.float16)),
    "float32": ("FP32", np.array([0.1, -2e10], np.float32)),
    "float64": ("FP64", np.array([0.1, -2e300])),
    "string": ("BYTES", np.array([b"a", "\u00fc".encode()], object)),
}


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(models={name: models / name for name in MODELS})


def http_input(name, datatype, value, binary):
    tensor = triton_http.InferInput(name, list(value.shape), datatype)
    tensor.set_data_from_numpy(value, binary_data=binary)
    return tensor


def grpc_input(name, datatype, value):
    tensor = triton_grpc.InferInput(name, list(value.shape), datatype)
    tensor.set_data_from_numpy(value)
    return tensor


def infer_http(client, model, tensors, binary=True, outputs=("y",), **arguments):
    inputs = [http_input(name, *tensor, binary) for name, tensor in tensors.items()]
    wanted = [triton_http.InferRequestedOutput(name, binary_data=binary) for name in outputs]
    return client.infer(model, inputs, outputs=wanted or None, **arguments)


X = np.array([2.0, 4.0], np.float32)
HALF = {"x": ("FP32", X)}


# ---- Health and metadata ---------------------------------------------------------


@pytest.mark.parametrize("transport", ["http", "over_grpc"])
def test_health_is_told(request, transport):
    client = request.getfixturevalue(transport)
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("half")
    assert client.is_model_ready("half", "3")
    assert not client.is_model_ready("half", "7")
    assert not client.is_model_ready("nobody")


def test_health_over_rest_has_the_bodies_that_kserve_reads(rest):
    assert rest.get("/v2/health/live").json() == {"live": True}
    assert rest.get("/v2/health/ready").json() == {"ready": True}
    assert rest.get("/v2/models/half/ready").json() == {"name": "half", "ready": True}
    assert rest.get("/v2/models/nobody/ready").status_code == 400


def test_metadata_is_told_over_http(http):
    assert http.get_server_metadata()["name"] == "tensord"
    assert "binary_tensor_data" in http.get_server_metadata()["extensions"]
    assert http.get_model_metadata("two_in") == {
        "name": "two_in",
        "versions": ["1"],
        "platform": "tensorflow_savedmodel",
        "inputs": [
            {"name": "a", "datatype": "FP32", "shape": [-1]},
            {"name": "b", "datatype": "FP32", "shape": [-1]},
        ],
        "outputs": [
            {"name": "difference", "datatype": "FP32", "shape": [-1]},
            {"name": "sum", "datatype": "FP32", "shape": [-1]},
        ],
    }


def test_metadata_is_told_over_grpc(over_grpc):
    assert over_grpc.get_server_metadata().name == "tensord"
    metadata = over_grpc.get_model_metadata("half", "3")
    assert (metadata.name, list(metadata.versions)) == ("half", ["3"])
    assert [(t.name, t.datatype, list(t.shape)) for t in metadata.inputs] == [("x", "FP32", [-1])]


# ---- Inference --------------------------------------------------------------------


@pytest.mark.parametrize("binary", [True, False])
def test_http_infers_with_and_without_binary_tensors(http, binary):
    result = infer_http(http, "half", HALF, binary, request_id="call 7", model_version="3")
    np.testing.assert_array_equal(result.as_numpy("y"), X / 2 + 2)
    answer = result.get_response()
    assert (answer["id"], answer["model_name"], answer["model_version"]) == ("call 7", "half", "3")


def test_http_gives_all_outputs_when_none_is_named(http):
    tensors = {"a": ("FP32", X), "b": ("FP32", X)}
    result = infer_http(http, "two_in", tensors, outputs=())
    np.testing.assert_array_equal(result.as_numpy("sum"), X + X)
    np.testing.assert_array_equal(result.as_numpy("difference"), X - X)
    result = infer_http(http, "two_in", tensors, outputs=("sum",))
    assert result.as_numpy("difference") is None


@pytest.mark.parametrize("signature", ECHOES)
def test_http_carries_every_datatype(http, signature):
    tensors = {"x": ECHOES[signature]}
    for binary in (True, False):
        if signature == "float16" and not binary:
            continue  # The client sends none as JSON.
        result = infer_http(http, "echo", tensors, binary, parameters={"signature_name": signature})
        got = result.as_numpy("y")
        wanted = ECHOES[signature][1]
        if signature == "string" and not binary:
            wanted = [text.decode() for text in wanted]
        assert got.tolist() == list(wanted)


@pytest.mark.parametrize("signature", ECHOES)
def test_grpc_carries_every_datatype(over_grpc, signature):
    datatype, value = ECHOES[signature]
    result = over_grpc.infer(
        "echo", [grpc_input("x", datatype, value)], parameters={"signature_name": signature}
    )
    assert result.as_numpy("y").tolist() == value.tolist()


def test_bfloat16_goes_raw_and_as_json(http, over_grpc, rest):
    bits = np.array([0x3F00, 0xC000], np.uint16)  # 0.5 and -2.
    tensor = triton_grpc.InferInput("x", [2], "BF16")
    tensor._raw_content = bits.tobytes()
    result = over_grpc.infer("echo", [tensor], parameters={"signature_name": "bfloat16"})
    assert result.get_response().raw_output_contents[0] == bits.tobytes()
    body = {
        "parameters": {"signature_name": "bfloat16"},
        "inputs": [{"name": "x", "shape": [2], "datatype": "BF16", "data": [0.5, -2]}],
    }
    answer = rest.post("/v2/models/echo/infer", body).json()
    assert answer["outputs"][0]["data"] == [0.5, -2]


def test_grpc_answers_as_it_is_asked_raw_or_typed(over_grpc):
    result = over_grpc.infer("half", [grpc_input("x", "FP32", X)], request_id="call 7")
    np.testing.assert_array_equal(result.as_numpy("y"), X / 2 + 2)
    answer = result.get_response()
    assert (answer.id, answer.model_version) == ("call 7", "3")
    assert len(answer.raw_output_contents) == 1
    request = service_pb2.ModelInferRequest(model_name="half")
    tensor = request.inputs.add(name="x", datatype="FP32", shape=[2])
    tensor.contents.fp32_contents.extend(X)
    request.outputs.add(name="y")
    answer = over_grpc._client_stub.ModelInfer(request, timeout=SECONDS)
    assert len(answer.raw_output_contents) == 0
    assert list(answer.outputs[0].contents.fp32_contents) == [3, 4]


def test_large_tensors_go_through_in_every_form(http, over_grpc):
    many = np.arange(1_000_000, dtype=np.float32)
    for binary in (True, False):
        result = infer_http(http, "half", {"x": ("FP32", many)}, binary)
        np.testing.assert_array_equal(result.as_numpy("y"), many / 2 + 2)
    result = over_grpc.infer("half", [grpc_input("x", "FP32", many)])
    np.testing.assert_array_equal(result.as_numpy("y"), many / 2 + 2)


def test_compressed_requests_and_answers_are_taken(http):
    gzip = {
        "request_compression_algorithm": "gzip",
        "response_compression_algorithm": "gzip",
    }
    result = infer_http(http, "half", HALF, **gzip)
    np.testing.assert_array_equal(result.as_numpy("y"), X / 2 + 2)


def test_many_calls_at_once_each_get_their_own_answer(http, over_grpc):
    calls = []
    for i in range(50):
        value = np.array([i], np.float32)
        calls.append(http.async_infer("half", [http_input("x", "FP32", value, True)]))
    for i, call in enumerate(calls):
        assert call.get_result().as_numpy("y").tolist() == [i / 2 + 2]


# ---- Errors ------------------------------------------------------------------------


def refused(call):
    with pytest.raises(InferenceServerException) as raised:
        call()
    return raised.value


def test_errors_name_what_is_wrong_over_http(http, rest):
    wrong = {"x": ("INT32", np.array([1], np.int32))}
    error = refused(lambda: infer_http(http, "half", wrong))
    assert error.status() == "400"
    assert 'input "x" of signature "serving_default"' in error.message()
    error = refused(lambda: infer_http(http, "nobody", HALF))
    assert error.status() == "404"
    error = refused(lambda: infer_http(http, "half", HALF, outputs=("z",)))
    assert (error.status(), "z" in error.message()) == ("400", True)
    answer = rest.post("/v2/models/half/infer", b"{")
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert rest.get("/v2/models/half/infer").status_code == 405
    assert rest.get("/v2/models/half/trace/setting").status_code == 404


def test_errors_name_what_is_wrong_over_grpc(over_grpc):
    error = refused(lambda: over_grpc.infer("nobody", [grpc_input("x", "FP32", X)]))
    assert error.status() == "StatusCode.NOT_FOUND"
    two = np.array([[1, 2]], np.int32)
    error = refused(lambda: over_grpc.infer("half", [grpc_input("x", "INT32", two)]))
    assert error.status() == "StatusCode.INVALID_ARGUMENT"
    assert 'input "x"' in error.message()


def test_json_answers_are_strict(http, rest):
    def strictly(text):
        def no(word):
            raise AssertionError(word)

        return json.loads(text, parse_constant=no)

    body = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}]}
    answer = rest.post("/v2/models/odd/infer", body)
    assert answer.status_code == 400
    assert 'output "y" holds NaN' in strictly(answer.text)["error"]
    result = infer_http(http, "odd", {"x": ("FP32", np.ones(1, np.float32))}, binary=True)
    assert np.isnan(result.as_numpy("y")[0][0])
    text = b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [NaN]}]}'
    assert "no JSON numbers" in rest.post("/v2/models/half/infer", text).json()["error"]


def test_non_finite_values_are_null_where_that_is_asked_for(servers, models, rest_client):
    server = servers.start(models={"odd": models / "odd"}, oip_json_non_finite="null")
    body = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}]}
    answer = rest_client(server).post("/v2/models/odd/infer", body).json()
    assert answer["outputs"][0]["data"][:3] == [None, None, None]


# ---- The repository -------------------------------------------------------------------


def test_models_are_listed_unloaded_and_loaded_again(servers, models):
    server = servers.create(models={name: models / name for name in ("half", "two_in")})
    server.options["rest_api_port"] = server.rest_port = server.grpc_port
    server.start().wait_ready()
    over_http = triton_http.InferenceServerClient(f"127.0.0.1:{server.rest_port}")
    over_grpc = triton_grpc.InferenceServerClient(server.grpc)
    index = {(m["name"], m["version"]): m["state"] for m in over_http.get_model_repository_index()}
    assert index == {("half", "3"): "READY", ("two_in", "1"): "READY"}
    assert {m.name for m in over_grpc.get_model_repository_index().models} == {"half", "two_in"}
    for client in (over_http, over_grpc):
        client.unload_model("half")
        eventually(lambda: not client.is_model_ready("half"), "it is unloaded")  # noqa: B023
        assert client.is_model_ready("two_in")
        client.load_model("half")
        assert client.is_model_ready("half")
        assert "nobody" in refused(lambda: client.load_model("nobody")).message()  # noqa: B023
    error = refused(lambda: over_http.load_model("half", config='{"backend": "python"}'))
    assert (error.status(), "config" in error.message()) == ("400", True)
    over_http.close()
    over_grpc.close()


def test_callers_of_the_rest_port_alone_change_no_models(http):
    error = refused(lambda: http.unload_model("half"))
    assert (error.status(), "the REST port" in error.message()) == ("403", True)
    assert http.is_model_ready("half")
