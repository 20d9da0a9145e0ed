# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Serving's own published test data, served as it is. Never copied into this tree.

Found in $TENSORD_FIXTURES or ../shared/fixtures; skipped with a word where it is not, unless
TENSORD_REQUIRE_FIXTURES is set.
"""

import json
import os
from pathlib import Path

import grpc
import numpy as np
import pytest
from clients import GrpcClient, RestClient, error_of
from local_server import eventually

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("TENSORD_FIXTURES", ROOT.parent / "shared/fixtures"))
FIXTURES = FOLDER / "tensorflow-serving"

if not FIXTURES.is_dir():
    if os.environ.get("TENSORD_REQUIRE_FIXTURES"):
        raise FileNotFoundError(f"TENSORD_REQUIRE_FIXTURES is set, and {FIXTURES} is not there")
    pytest.skip(f"the published fixtures are absent ({FIXTURES})", allow_module_level=True)

HALF = "saved_model_half_plus_two_cpu"
MODELS = {
    "half": HALF,
    "half_tf2": "saved_model_half_plus_two_tf2_cpu",
    "half_three": "saved_model_half_plus_three",
    "half_config": "saved_model_half_plus_two_cpu_with_saved_model_config",
    "counter": "saved_model_counter",
    "matrix": "matrix_half_plus_two",
}
TWO = "saved_model_half_plus_two_2_versions"


@pytest.fixture(scope="module")
def server(module_servers):
    models = {name: FIXTURES / folder for name, folder in MODELS.items()}
    models["two"] = (FIXTURES / TWO, "model_version_policy { all {} }")
    return module_servers.start(models=models)


@pytest.fixture(scope="module")
def client(server):
    client = GrpcClient(server.grpc)
    # Ready means one version of each model; the second of "two" may still be on its way.
    both = {123: "AVAILABLE", 124: "AVAILABLE"}
    eventually(lambda: client.states("two") == both, "both versions serve")
    yield client
    client.close()


@pytest.fixture(scope="module")
def rest(server, client):
    client = RestClient(server.rest)
    yield client
    client.close()


def test_half_plus_two(client):
    x = np.array([[1.0], [2.0]], np.float32)
    assert client.predict("half", {"x": x})["y"].tolist() == [[2.5], [3.0]]
    assert client.predict("half_config", {"x": x})["y"].tolist() == [[2.5], [3.0]]
    assert client.predict("half_tf2", {"x": x})["y"].tolist() == [[2.5], [3.0]]


def test_half_plus_three(client):
    x = np.array([[1.0]], np.float32)
    assert client.predict("half_three", {"x": x})["y"].tolist() == [[3.5]]


def test_a_matrix(client):
    _, signatures = client.metadata("matrix")
    ((name, _),) = signatures["serving_default"].inputs.items()
    x = np.ones((2, 3, 3), np.float32)
    (y,) = client.predict("matrix", {name: x}).values()
    assert y.tolist() == [[[2.5] * 3] * 3] * 2


def test_the_counter_counts(client):
    _, signatures = client.metadata("counter")
    assert "incr_counter" in signatures
    first = client.predict("counter", {}, signature="incr_counter")["output"]
    second = client.predict("counter", {}, signature="incr_counter")["output"]
    assert second == first + 1


def test_two_versions_of_one_model(client):
    assert client.states("two") == {123: "AVAILABLE", 124: "AVAILABLE"}
    x = np.array([[1.0]], np.float32)
    for version in (123, 124):
        answer = client.predict_raw("two", {"x": x}, version=version)
        assert answer.model_spec.version.value == version


def normalised(text, **spec):
    """The document in one line, each member where it was, but for maps, whose order protobuf leaves
    open; with these values in its model_spec."""
    document = json.loads(text)
    for name, value in spec.items():
        assert name in document["model_spec"]
        document["model_spec"][name] = value
    holder = document["metadata"]["signature_def"]
    for signature in holder["signature_def"].values():
        for side in ("inputs", "outputs"):
            signature[side] = dict(sorted(signature[side].items()))
    holder["signature_def"] = dict(sorted(holder["signature_def"].items()))
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "version", "file"),
    [
        ("half", "123", "half_plus_two_model_metadata.json"),
        ("two", "124", "saved_model_half_plus_two_2_versions_metadata.json"),
        ("two/versions/123", "123", "saved_model_half_plus_two_2_versions_metadata.json"),
    ],
)
def test_rest_metadata_is_the_golden_document(rest, path, version, file):
    answer = rest.get(f"/v1/models/{path}/metadata").text
    golden = (FIXTURES / file).read_text()
    assert normalised(answer) == normalised(golden, name=path.split("/")[0], version=version)


def test_rest_predicts_in_rows_and_columns(rest):
    body = {"instances": [1.0, 2.0, 5.0]}
    assert rest.predict("half", body).json() == {"predictions": [2.5, 3.0, 4.5]}
    assert rest.predict("half", {"inputs": [1.0]}).json() == {"outputs": [2.5]}


def test_a_session_bundle_fails_alone_and_says_what_it_is(servers):
    server = servers.start(
        ready=False,
        models={"bad": FIXTURES / "bad_half_plus_two", "half": FIXTURES / HALF},
        max_num_load_retries=0,
    )
    client = GrpcClient(server.grpc)
    from local_server import eventually

    eventually(lambda: client.states("half") == {123: "AVAILABLE"}, "half is up")
    x = np.array([[1.0]], np.float32)
    assert client.predict("half", {"x": x})["y"].tolist() == [[2.5]]
    eventually(lambda: set(client.states("bad").values()) == {"END"}, "the other has failed")
    (status,) = client.status("bad")
    assert status.status.error_code == grpc.StatusCode.UNIMPLEMENTED.value[0]
    assert "SessionBundle" in status.status.error_message
    assert error_of(lambda: client.predict("bad", {"x": x}))
    client.close()


def test_its_batching_and_monitoring_files_are_understood(servers):
    server = servers.start(
        model_name="half",
        model_base_path=FIXTURES / HALF,
        enable_batching="true",
        batching_parameters_file=FIXTURES / "batching_config.txt",
        monitoring_config_file=FIXTURES / "monitoring_config.txt",
    )
    client = RestClient(server.rest)
    assert client.predict("half", {"instances": [1.0]}).json() == {"predictions": [2.5]}
    assert ":tensorflow:serving:request_count" in client.get("/monitoring/prometheus/metrics").text
    client.close()
