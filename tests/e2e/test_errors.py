# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What a gRPC client sees when it errs: code and first words of the original, and what to do."""

import grpc
import numpy as np
import pytest
import tensorflow as tf
from clients import error_of

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
X = np.array([1.0], np.float32)


@pytest.fixture(scope="module")
def server(module_servers, models):
    names = ["half", "two_in", "defaults", "rank2", "echo"]
    return module_servers.start(models={name: models / name for name in names})


@pytest.fixture(autouse=True)
def still_alive(server, client):
    """After each case: the same process, and a normal answer."""
    front = server.front()
    yield
    assert client.predict("half", {"x": X})["y"].tolist() == [2.5]
    assert server.front() == front


def refusal(client, *arguments, **keywords):
    error = error_of(lambda: client.predict(*arguments, **keywords))
    return error.code(), error.details()


def test_a_request_without_a_model_spec(client):
    request = client.predict_request("half", {"x": X})
    request.ClearField("model_spec")
    error = error_of(lambda: client.prediction.Predict(request, timeout=60))
    assert error.code() == INVALID
    assert error.details().startswith("Missing ModelSpec")


def test_a_model_spec_without_a_name(client):
    code, words = refusal(client, "", {"x": X}, version=1)
    assert code == INVALID
    assert words.startswith("ModelSpec has no name specified.")


def test_an_unknown_model(client):
    code, words = refusal(client, "nobody", {"x": X})
    assert code == NOT_FOUND
    assert words.startswith("Servable not found for request: Latest(nobody)")


def test_a_version_that_is_not_loaded(client):
    code, words = refusal(client, "half", {"x": X}, version=99)
    assert code == NOT_FOUND
    assert words.startswith("Servable not found for request: Specific(half, 99)")


def test_an_unknown_label(client):
    code, words = refusal(client, "half", {"x": X}, label="stable")
    assert code == INVALID
    assert words.startswith("Unrecognized servable version label")


def test_an_unknown_signature_is_named_beside_those_there_are(client):
    code, words = refusal(client, "half", {"x": X}, signature="nonsense")
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert words.startswith('Serving signature key "nonsense" not found.')


def test_too_few_and_too_many_inputs(client):
    code, words = refusal(client, "two_in", {"a": X})
    assert code == INVALID
    assert words.startswith("input size does not match signature: 1!=2")
    assert "Missing but required: {b}" in words
    code, words = refusal(client, "half", {"x": X, "z": X})
    assert code == INVALID
    assert "Sent extra: {z}" in words


def test_the_right_count_with_a_wrong_name(client):
    code, words = refusal(client, "half", {"z": X})
    assert code == INVALID
    assert words.startswith("Signature input alias: x("), words
    assert "Inputs expected to be in the request {z}" in words, words


def test_an_unknown_name_beside_an_input_with_a_default(client):
    code, words = refusal(client, "defaults", {"a": X, "nonsense": X})
    assert code == INVALID
    assert "nonsense" in words


def test_a_required_input_is_missing_where_others_have_defaults(client):
    code, words = refusal(client, "defaults", {"scale": np.float32(1)})
    assert code == INVALID
    assert words.startswith("Signature input alias: a("), words


def test_a_wrong_dtype_names_both(client):
    code, words = refusal(client, "half", {"x": np.array([1], np.int32)})
    assert code == INVALID
    assert "float" in words
    assert "int32" in words


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (["nonsense"], "output tensor alias not found"),
        (["y", "y"], "duplicate output tensor alias"),
    ],
)
def test_an_output_filter_that_does_not_fit(client, outputs, words):
    code, said = refusal(client, "half", {"x": X}, outputs=outputs)
    assert code == INVALID
    assert said.startswith(words)


def test_a_rank_that_the_model_cannot_take_names_the_input(client):
    code, words = refusal(client, "rank2", {"x": X})
    assert code == INVALID
    assert 'input "x" came with shape [1], the signature says [-1,3]' in words, words


def test_a_static_dim_that_differs_names_the_input(client):
    code, words = refusal(client, "rank2", {"x": np.ones((2, 5), np.float32)})
    assert code == INVALID
    assert 'input "x" came with shape [2,5], the signature says [-1,3]' in words, words


def tensor(**changes):
    proto = tf.make_tensor_proto(np.ones(3, np.float32))
    for name, value in changes.items():
        setattr(proto, name, value)
    return proto


def test_packed_bytes_of_the_wrong_length(client):
    for size in (0, 4, 11, 13, 16):
        proto = tensor(tensor_content=b"\0" * size)
        if size == 0:
            continue
        code, words = refusal(client, "half", {"x": proto})
        assert code == INVALID, size
        assert words.startswith("tensor parsing error: x"), words


@pytest.mark.parametrize("dims", [[-1], [-(2**63)], [2**62, 2**62], [2**40], [1] * 300])
def test_dims_that_cannot_be(client, dims):
    proto = tensor()
    del proto.tensor_shape.dim[:]
    for size in dims:
        proto.tensor_shape.dim.add(size=size)
    code, words = refusal(client, "half", {"x": proto})
    assert code in {INVALID, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert words.startswith("tensor parsing error: x"), words


@pytest.mark.parametrize("dtype", [0, 20, 21, 11, 99, 2**31 - 1])
def test_dtypes_that_cannot_be_served(client, dtype):
    code, words = refusal(client, "half", {"x": tensor(dtype=dtype)})
    assert code in {INVALID, grpc.StatusCode.UNIMPLEMENTED}
    assert "x" in words.replace(":", " ").replace(chr(34), " ").split(), words


def test_an_unknown_rank_beside_dims_is_ignored_as_tensorflow_ignores_it(client):
    proto = tensor()
    proto.tensor_shape.unknown_rank = True
    assert client.predict("half", {"x": proto})["y"].tolist() == [2.5, 2.5, 2.5]


def test_bytes_that_are_no_message(client):
    call = client.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    for data in (b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x12\x05\x0a\x01x\x12\x7f"):
        error = error_of(lambda data=data: call(data, timeout=60))
        assert error.code() in {INVALID, grpc.StatusCode.INTERNAL}, error.details()


def test_a_failing_call_leaves_its_neighbours_alone(client):
    requests = [
        client.predict_request("rank2", {"x": np.ones((2, 3 if i % 2 else 5), np.float32)})
        for i in range(100)
    ]
    calls = [client.prediction.Predict.future(request, timeout=60) for request in requests]
    codes = [call.code().name for call in calls]
    assert codes == ["INVALID_ARGUMENT", "OK"] * 50
