# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Clients of other languages, the tools that people have, and the conformance tests for HTTP/2,
against the real server."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from local_server import ROOT, eventually
from test_tls import Authority, files
from test_worker_death import settings_for

BUILT = Path(ROOT) / "build/clients"
CPP = Path(ROOT) / "build/release/tests/clients/tensord_grpc_client"
EXPECTED = ["ok health", "ok predict", "ok failure", "ok deadline", "ok predict again"]


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(
        models={name: models / name for name in ("half", "sleep_ms")},
        settings=settings_for(models, "sleep_ms"),
    )


def absent(words):
    """Skips the test, or fails it where nothing may be left out."""
    if os.environ.get("TENSORD_REQUIRE_CLIENTS"):
        pytest.fail(f"TENSORD_REQUIRE_CLIENTS is set, and {words}")
    pytest.skip(words)


def program_of(name):
    """The path of a program that ./run builds, or that the machine has."""
    path = BUILT / name
    if path.exists():
        return path
    found = shutil.which(name)
    if found is None:
        absent(f"{name} was not built and is not installed")
    return Path(found)


def run(*command, code=0, **arguments):
    result = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, **arguments
    )
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("name", ["C++", "go_client", "java_client", "node_client"])
def test_a_stock_client_predicts_fails_waits_and_asks_for_health(server, name):
    if name == "C++" and not CPP.exists():
        absent(f"{CPP} was not built")
    program = CPP if name == "C++" else program_of(name)
    assert run(program, server.grpc).splitlines() == EXPECTED


KSERVE_EXPECTED = [
    "ok REST live",
    "ok REST ready",
    "ok REST model ready",
    "ok REST model not ready",
    "ok REST metadata",
    "ok REST infer, JSON",
    "ok REST infer, binary",
    "ok REST error",
    "ok gRPC live",
    "ok gRPC ready",
    "ok gRPC model ready",
    "ok gRPC model not ready",
    "ok gRPC infer, typed",
    "ok gRPC infer, raw",
    "ok gRPC error",
]


def test_the_client_of_kserve_is_served_over_rest_and_grpc(server):
    program = program_of("kserve_client")
    assert run(program, server.grpc, server.rest).splitlines() == KSERVE_EXPECTED


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_the_load_generator_of_triton_measures_it(server, protocol):
    options = ["--shape", "x:1", "--concurrency-range", "2", "--measurement-mode", "count_windows"]
    options += ["--stability-percentage", "999", "--max-trials", "3"]  # Others use the machine.
    address = server.grpc if protocol == "grpc" else server.rest
    said = run(program_of("perf_analyzer"), "-m", "half", "-i", protocol, "-u", address, *options)
    asked = int(re.search(r"Request count: (\d+)", said)[1])
    answered = int(re.search(r"Successful request count: (\d+)", said)[1])  # By ModelStatistics.
    assert asked > 50
    assert answered > 0.5 * asked
    assert "Failed" not in said


# ---- grpcurl: all it knows comes from server reflection ----------------------


def grpcurl(server, *arguments):
    *options, what = arguments
    return run(program_of("grpcurl"), "-plaintext", *options, server.grpc, *what.split())


SERVICES = {
    "grpc.health.v1.Health": {"Check", "List", "Watch"},
    "grpc.reflection.v1.ServerReflection": {"ServerReflectionInfo"},
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo"},
    "inference.GRPCInferenceService": {
        "ModelConfig",
        "ModelInfer",
        "ModelMetadata",
        "ModelReady",
        "ModelStatistics",
        "RepositoryIndex",
        "RepositoryModelLoad",
        "RepositoryModelUnload",
        "ServerLive",
        "ServerMetadata",
        "ServerReady",
    },
    "tensorflow.serving.ModelService": {"GetModelStatus", "HandleReloadConfigRequest"},
    "tensorflow.serving.PredictionService": {
        "Classify",
        "GetModelMetadata",
        "MultiInference",
        "Predict",
        "Regress",
    },
}


def test_grpcurl_lists_and_describes_everything(server):
    assert set(grpcurl(server, "list").split()) == set(SERVICES)
    for service, methods in SERVICES.items():
        assert set(grpcurl(server, f"list {service}").split()) == {
            f"{service}.{m}" for m in methods
        }
        assert f"{service} is a service" in grpcurl(server, f"describe {service}")
    tensor = grpcurl(server, "describe tensorflow.TensorProto")
    assert "bytes tensor_content = 4;" in tensor


def test_grpcurl_predicts_and_reads_metadata_and_status(server):
    tensor = {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": 2}]}, "float_val": [2, 4]}
    request = {"model_spec": {"name": "half"}, "inputs": {"x": tensor}}
    method = "tensorflow.serving.PredictionService/Predict"
    answer = json.loads(grpcurl(server, "-d", json.dumps(request), method))
    assert answer["outputs"]["y"]["floatVal"] == [3, 4]
    request = {"model_spec": {"name": "half"}, "metadata_field": ["signature_def"]}
    method = "tensorflow.serving.PredictionService/GetModelMetadata"
    answer = json.loads(grpcurl(server, "-d", json.dumps(request), method))
    assert "serving_default" in answer["metadata"]["signature_def"]["signatureDef"]
    method = "tensorflow.serving.ModelService/GetModelStatus"
    answer = json.loads(grpcurl(server, "-d", '{"model_spec": {"name": "half"}}', method))
    assert answer["model_version_status"][0]["state"] == "AVAILABLE"


def test_grpcurl_lists_health(server):
    statuses = json.loads(grpcurl(server, "grpc.health.v1.Health/List"))["statuses"]
    assert statuses["half"] == {"status": "SERVING"}
    assert statuses["tensorflow.serving.PredictionService"] == {"status": "SERVING"}


# ---- grpcurl, both sides with certificates -----------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("mtls") / "ca")


@pytest.fixture(scope="module")
def mutual(module_servers, models, authority, tmp_path_factory):
    pair = authority.sign(tmp_path_factory.mktemp("mtls") / "server", "server")
    flags = files(pair, ca=authority.certificate)
    server = module_servers.start(ready=False, models={"half": models / "half"}, **flags)
    eventually(lambda: "model half, version 3: LOADING -> AVAILABLE" in server.log(), "it loads")
    return server


def secure_grpcurl(server, authority, client, *arguments):
    command = [program_of("grpcurl"), "-cacert", authority.certificate]
    if client is not None:
        command += ["-cert", client.certificate, "-key", client.key]
    *options, what = arguments
    command += [*options, server.grpc, *what.split()]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_grpcurl_with_a_client_certificate_lists_describes_and_predicts(
    mutual, authority, tmp_path
):
    known = authority.sign(tmp_path / "known", "client")

    def said(*arguments):
        done = secure_grpcurl(mutual, authority, known, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert set(said("list").split()) == set(SERVICES)
    service = "tensorflow.serving.PredictionService"
    assert f"{service} is a service" in said(f"describe {service}")
    tensor = {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": 2}]}, "float_val": [2, 4]}
    request = {"model_spec": {"name": "half"}, "inputs": {"x": tensor}}
    answer = json.loads(said("-d", json.dumps(request), f"{service}/Predict"))
    assert answer["outputs"]["y"]["floatVal"] == [3, 4]


@pytest.mark.parametrize("case", ["no certificate", "a stranger's", "an expired one"])
def test_grpcurl_without_a_good_certificate_is_told_nothing(mutual, authority, tmp_path, case):
    client = None
    if case == "a stranger's":
        client = Authority(tmp_path / "stranger").sign(tmp_path / "other", "client")
    elif case == "an expired one":
        client = authority.sign(tmp_path / "old", "client", days=-1)
    for what in ("list", "tensorflow.serving.PredictionService/Predict"):
        done = secure_grpcurl(mutual, authority, client, "-connect-timeout", "5", what)
        assert done.returncode == 1, done.stdout
        assert "Failed to dial" in done.stderr
        assert done.stdout == ""


# ---- grpc-health-probe, curl --------------------------------------------------


def test_the_health_probe_tells_serving_from_unknown(server):
    probe = program_of("grpc_health_probe")
    for service in ("", "half", "tensorflow.serving.ModelService"):
        run(probe, "-addr", server.grpc, "-service", service)
    run(probe, "-addr", server.grpc, "-service", "nobody", code=3)


@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
def test_curl_speaks_both_versions_of_http(server, version):
    curl = [program_of("curl"), "-sS", "--noproxy", "*", version]
    url = f"{server.rest}/v1/models"
    assert {m["name"] for m in json.loads(run(*curl, url))["models"]} == {"half", "sleep_ms"}
    body = '{"instances": [2, 4]}'
    assert json.loads(run(*curl, "-d", body, f"{url}/half:predict")) == {"predictions": [3, 4]}
    assert run(*curl, "-o", "/dev/null", "-w", "%{http_code}", f"{url}/nobody:predict") == "400"
    assert run(*curl, f"{server.rest}/readyz").startswith("ready")


# It sends a HEADERS frame of 20 KB and wants it refused, as if no server announced a larger frame
# size than the smallest; ours is larger.
EXPECTED_FAILURES = ["Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE"]


def test_h2spec_passes_but_for_a_frame_size_that_it_does_not_read(server):
    """All of generic, hpack and RFC 7540, against the health service's path."""
    program = program_of("h2spec")
    command = [program, "-h", "127.0.0.1", "-p", str(server.grpc_port), "-P"]
    command += ["/grpc.health.v1.Health/Check", "-o", "5"]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=280)
    print(result.stdout[-6000:])
    counts = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", result.stdout)
    assert counts, result.stdout + result.stderr
    assert int(counts[1]) > 100
    failures = re.findall(
        r"^ +\u00d7 \d+: (.*)$", result.stdout.split("Failures:")[-1], re.MULTILINE
    )
    assert failures == EXPECTED_FAILURES
