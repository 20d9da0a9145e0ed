# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""gRPC calls, row by row of what the original answers: codes, first words, and what an answer says.

What Classify, Regress and MultiInference do is in test_inference.py, plain Predict in
test_predict_grpc.py and test_errors.py; here is what lies between them.
"""

import grpc
import numpy as np
import pytest
import tensorflow as tf
from clients import SECONDS, GrpcClient, error_of
from local_server import eventually
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    predict_pb2,
    regression_pb2,
)

Code = grpc.StatusCode
X = np.array([1.0, 3.0], np.float32)
NAMES = ["half", "half_plus_two", "defaults", "echo", "mixed", "two_in", "examples"]


@pytest.fixture(scope="module")
def server(module_servers, models):
    served = {name: models / name for name in NAMES}
    served["labelled"] = (
        models / "half",
        "model_version_policy { all {} } version_labels { key: 'stable' value: 1 }",
    )
    return module_servers.start(models=served)


@pytest.fixture(scope="module")
def client(server):
    client = GrpcClient(server.grpc)
    # Ready means one version of each model; the others of "labelled" may still be on their way.
    all_three = dict.fromkeys((1, 2, 3), "AVAILABLE")
    eventually(lambda: client.states("labelled") == all_three, "all versions serve")
    yield client
    client.close()


def refusal(call):
    error = error_of(call)
    return error.code(), error.details()


def spoiled():
    """Says it holds two floats, and holds five bytes."""
    proto = tf.make_tensor_proto(X)
    proto.tensor_content = b"12345"
    return proto


# ---- Predict: signatures, versions, labels ---------------------------------------------------


def test_an_answer_names_the_model_its_version_and_the_resolved_signature(client):
    for keywords in ({}, {"signature": ""}, {"signature": "serving_default"}):
        spec = client.predict_raw("half", {"x": X}, **keywords).model_spec
        assert (spec.name, spec.version.value, spec.signature_name) == (
            "half",
            3,
            "serving_default",
        )
        assert spec.WhichOneof("version_choice") == "version"


def test_a_label_picks_a_version_and_is_not_echoed(client):
    spec = client.predict_raw("labelled", {"x": X}, label="stable").model_spec
    assert spec.version.value == 1
    assert spec.version_label == ""
    assert client.predict("labelled", {"x": X}, label="stable")["y"].tolist() == [2.5, 3.5]
    assert client.predict("labelled", {"x": X}, version=2)["y"].tolist() == [3.5, 4.5]


def test_predict_works_with_signatures_of_every_method(client):
    row = tf.train.Example()
    row.features.feature["x"].float_list.value.append(2.0)
    inputs = {"inputs": [row.SerializeToString()]}
    regressed = client.predict("half_plus_two", inputs, signature="regress_x_to_y")
    assert regressed["outputs"].tolist() == [[3.0]]
    classified = client.predict("half_plus_two", inputs, signature="classify_x_to_y")
    assert classified["scores"].tolist() == [[3.0]]


def test_an_output_filter_picks_and_an_empty_one_gives_all(client):
    inputs = {"a": X, "b": X}
    assert set(client.predict("two_in", inputs)) == {"sum", "difference"}
    for outputs in (["sum"], ["difference"], ["difference", "sum"]):
        assert set(client.predict("two_in", inputs, outputs=outputs)) == set(outputs)


def test_an_input_with_a_default_may_be_left_out(client):
    assert client.predict("defaults", {"a": X})["y"].tolist() == [11.0, 31.0]
    changed = client.predict("defaults", {"a": X, "scale": np.float32(2)})
    assert changed["y"].tolist() == [3.0, 7.0]


def test_fields_that_are_for_others_are_ignored(client):
    request = client.predict_request("half", {"x": X})
    request.predict_streamed_options.request_state = predict_pb2.PredictStreamedOptions.SPLIT
    answer = client.prediction.Predict(request, timeout=SECONDS)
    assert tf.make_ndarray(answer.outputs["y"]).tolist() == [2.5, 3.5]


PREDICT_ERRORS = [
    ("no name", {"model": ""}, Code.INVALID_ARGUMENT, "ModelSpec has no name specified."),
    ("no model", {"model": "no"}, Code.NOT_FOUND, "Servable not found for request: Latest(no)"),
    (
        "no version",
        {"version": 7},
        Code.NOT_FOUND,
        "Servable not found for request: Specific(half, 7)",
    ),
    (
        "no label",
        {"label": "x"},
        Code.INVALID_ARGUMENT,
        "Unrecognized servable version label",
    ),
    (
        "no signature",
        {"signature": "s"},
        Code.FAILED_PRECONDITION,
        'Serving signature key "s" not found.',
    ),
    (
        "too many inputs",
        {"inputs": {"x": X, "z": X}},
        Code.INVALID_ARGUMENT,
        "input size does not match signature: 2!=1 len({x,z}) != len({x}). Sent extra: {z}. "
        "Missing but required: {}.",
    ),
    (
        "too few inputs",
        {"model": "two_in", "inputs": {"a": X}},
        Code.INVALID_ARGUMENT,
        "input size does not match signature: 1!=2 len({a}) != len({a,b}). Sent extra: {}. "
        "Missing but required: {b}.",
    ),
    (
        "wrong name",
        {"inputs": {"z": X}},
        Code.INVALID_ARGUMENT,
        "Signature input alias: x(feed name: ",
    ),
    (
        "unknown name beside a default",
        {"model": "defaults", "inputs": {"a": X, "z": X}},
        Code.INVALID_ARGUMENT,
        "Inputs contains invalid name",
    ),
    (
        "malformed tensor",
        {"inputs": {"x": spoiled()}},
        Code.INVALID_ARGUMENT,
        "tensor parsing error: x",
    ),
    (
        "wrong dtype",
        {"inputs": {"x": np.array([1], np.int32)}},
        Code.INVALID_ARGUMENT,
        "Expects arg[0] to be float but int32 is provided",
    ),
    (
        "unknown output",
        {"outputs": ["no"]},
        Code.INVALID_ARGUMENT,
        "output tensor alias not found in signature: no Outputs expected to be in the set {y}.",
    ),
    (
        "output twice",
        {"outputs": ["y", "y"]},
        Code.INVALID_ARGUMENT,
        "duplicate output tensor alias: y",
    ),
]


@pytest.mark.parametrize(
    ("change", "code", "words"), [r[1:] for r in PREDICT_ERRORS], ids=[r[0] for r in PREDICT_ERRORS]
)
def test_a_predict_call_that_is_refused(client, change, code, words):
    arguments = {"model": "half", "inputs": {"x": X}, "version": None, **change}
    got, said = refusal(lambda: client.predict(**arguments))
    assert got == code
    assert said.startswith(words)
    assert len(said) <= 1024 + len("...TRUNCATED")


def test_a_call_without_a_model_spec(client):
    stub = client.prediction
    for call, request in (
        (stub.Predict, predict_pb2.PredictRequest()),
        (stub.Classify, classification_pb2.ClassificationRequest()),
        (stub.Regress, regression_pb2.RegressionRequest()),
        (stub.GetModelMetadata, get_model_metadata_pb2.GetModelMetadataRequest()),
        (client.models.GetModelStatus, get_model_status_pb2.GetModelStatusRequest()),
    ):
        got, said = refusal(lambda call=call, request=request: call(request, timeout=SECONDS))
        assert (got, said) == (Code.INVALID_ARGUMENT, "Missing ModelSpec")
    empty = inference_pb2.MultiInferenceRequest()
    got, said = refusal(lambda: stub.MultiInference(empty, timeout=SECONDS))
    assert got == Code.INVALID_ARGUMENT
    assert said.startswith("ModelSpec has no name specified")


def test_what_cannot_be_found_is_told_before_a_tensor_that_is_malformed(client):
    """Whoever asks for a model that is not there learns that, whatever else is wrong."""
    bad = {"x": spoiled()}
    assert refusal(lambda: client.predict("nobody", bad))[0] == Code.NOT_FOUND
    assert refusal(lambda: client.predict("half", bad, version=9))[0] == Code.NOT_FOUND
    code, said = refusal(lambda: client.predict("half", bad, signature="s"))
    assert code == Code.FAILED_PRECONDITION
    assert said.startswith("Serving signature key")


# ---- Metadata and status ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([], "GetModelMetadataRequest must specify at least one metadata_field"),
        (["signature_def", "nonsense"], "Metadata field nonsense is not supported"),
    ],
)
def test_metadata_that_is_not_there(client, fields, words):
    code, said = refusal(lambda: client.metadata("half", fields=fields))
    assert code == Code.INVALID_ARGUMENT
    assert said.startswith(words)


def test_metadata_of_a_model_that_is_not_there(client):
    assert refusal(lambda: client.metadata("nobody"))[0] == Code.NOT_FOUND
    assert refusal(lambda: client.metadata("half", version=9))[0] == Code.NOT_FOUND


def test_metadata_names_the_version_and_keeps_defaults_and_methods(client):
    answer, signatures = client.metadata("defaults")
    assert answer.model_spec.version.value == 1
    assert set(signatures["serving_default"].defaults) == {"scale", "offset"}
    _, signatures = client.metadata("half_plus_two")
    assert signatures["regress_x_to_y"].method_name == "tensorflow/serving/regress"
    assert signatures["serving_default"].inputs["x"].dtype == types_pb2.DT_FLOAT


def test_status_lists_versions_downward_and_takes_no_notice_of_a_label(client):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "labelled"
    request.model_spec.version_label = "nonsense"
    answer = client.models.GetModelStatus(request, timeout=SECONDS)
    assert [v.version for v in answer.model_version_status] == [3, 2, 1]
    assert [v.version for v in client.status("labelled", version=2)] == [2]


@pytest.mark.parametrize(
    ("model", "version", "words"),
    [
        ("nobody", None, "Could not find any versions of model nobody"),
        ("half", 7, "Could not find version 7 of model half"),
    ],
)
def test_status_of_what_is_not_there(client, model, version, words):
    code, said = refusal(lambda: client.status(model, version))
    assert code == Code.NOT_FOUND
    assert said.startswith(words)


# ---- How outputs are written -----------------------------------------------------------------

TYPED = {
    "float32": ("float_val", np.array([1.5, -2.0], np.float32)),
    "float64": ("double_val", np.array([1.5, -2.0])),
    "int32": ("int_val", np.array([5, -6], np.int32)),
    "int16": ("int_val", np.array([5, -6], np.int16)),
    "int8": ("int_val", np.array([5, -6], np.int8)),
    "uint8": ("int_val", np.array([5, 250], np.uint8)),
    "uint16": ("int_val", np.array([5, 65000], np.uint16)),
    "int64": ("int64_val", np.array([5, -(2**40)], np.int64)),
    "uint32": ("uint32_val", np.array([5, 2**32 - 1], np.uint32)),
    "uint64": ("uint64_val", np.array([5, 2**64 - 1], np.uint64)),
    "bool": ("bool_val", np.array([True, False])),
    "string": ("string_val", np.array([b"a", b"\xff"], object)),
    "float16": ("half_val", np.array([1.5, -2.0], np.float16)),
    "bfloat16": ("half_val", tf.constant([1.5, -2.0], tf.bfloat16).numpy()),
    "complex64": ("scomplex_val", np.array([1 + 2j, 3], np.complex64)),
    "complex128": ("dcomplex_val", np.array([1 + 2j, 3])),
}


def set_fields(proto):
    return {field.name for field, _ in proto.ListFields()} - {"dtype", "tensor_shape"}


def test_outputs_are_typed_fields_by_default(client):
    for name, (field, values) in TYPED.items():
        proto = client.predict_raw("echo", {"x": values}, signature=name).outputs["y"]
        assert set_fields(proto) == {field}, name
        assert np.array_equal(tf.make_ndarray(proto), values), name


def test_outputs_are_tensor_content_when_asked(servers, models, grpc_client):
    server = servers.start(
        models={"echo": models / "echo"}, enable_serialization_as_tensor_content="true"
    )
    client = grpc_client(server)
    for name, (_, values) in TYPED.items():
        proto = client.predict_raw("echo", {"x": values}, signature=name).outputs["y"]
        assert set_fields(proto) == {"tensor_content"}, name
        if name == "string":  # Lengths, then bytes: TensorFlow reads it, make_ndarray does not.
            read = tf.io.parse_tensor(proto.SerializeToString(), tf.string).numpy()
            assert read.tolist() == values.tolist()
        else:
            assert np.array_equal(tf.make_ndarray(proto), values), name
