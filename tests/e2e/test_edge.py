# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The edge of the server: health, reflection, compression, CORS, the list of models, odd requests.

What bodies and models say is tested elsewhere; here it is what is around them.
"""

import gzip
import json
import shutil
import signal

import grpc
import numpy as np
import pytest
from clients import GrpcClient, RestClient, error_of, raw_exchange
from local_server import eventually
from test_worker_death import settings_for

X = np.array([2.0, 4.0], np.float32)
SERVING, NOT_SERVING, SERVICE_UNKNOWN = b"\x08\x01", b"\x08\x02", b"\x08\x03"
SERVICES = [
    "",
    "PredictionService",
    "ModelService",
    "inference.GRPCInferenceService",
    "tensorflow.serving.PredictionService",
    "tensorflow.serving.ModelService",
]


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(
        models={name: models / name for name in ("half", "sleep_ms")},
        settings=settings_for(models, "sleep_ms"),
        rest_api_enable_cors_support="true",
    )


@pytest.fixture(scope="module")
def client(server):
    client = RestClient(server.rest)
    yield client
    client.close()


class Health:
    """The health service by its bytes: a stub of it is in no package that the tests need."""

    def __init__(self, channel):
        self.channel = channel

    @staticmethod
    def request(service):
        name = service.encode()
        return bytes([10, len(name)]) + name if name else b""

    def check(self, service=""):
        method = self.channel.unary_unary("/grpc.health.v1.Health/Check")
        return method(self.request(service), timeout=60)

    def list(self):
        return self.channel.unary_unary("/grpc.health.v1.Health/List")(b"", timeout=60)

    def watch(self, service="", timeout=120):
        method = self.channel.unary_stream("/grpc.health.v1.Health/Watch")
        return method(self.request(service), timeout=timeout)


# ---- Health --------------------------------------------------------------------------------------


def test_health_is_checked_by_service_and_by_model(server, grpc_client):
    health = Health(grpc_client(server).channel)
    for service in [*SERVICES, "half"]:
        assert health.check(service) == SERVING, service
    error = error_of(lambda: health.check("nobody"))
    assert error.code() == grpc.StatusCode.NOT_FOUND
    listed = health.list()
    for service in [*SERVICES, "half", "sleep_ms"]:
        assert service.encode() + b"\x12\x02" + SERVING in listed, service


def test_a_watch_of_an_unknown_service_says_so_and_goes_on(server, grpc_client):
    watch = Health(grpc_client(server).channel).watch("nobody")
    assert next(watch) == SERVICE_UNKNOWN
    watch.cancel()


def test_a_watch_hears_of_a_model_that_comes(servers, models, grpc_client, tmp_path):
    later = tmp_path / "later"
    server = servers.start(
        ready=False,
        models={"half": models / "half", "later": later},
        file_system_poll_wait_seconds=1,
    )
    client = grpc_client(server, options=[("grpc.enable_retries", 0)])
    eventually(lambda: server.status_code("/v1/models/half") == 200, "half is there")
    of_model, of_server = (Health(client.channel).watch(name) for name in ("later", ""))
    assert next(of_model) == NOT_SERVING
    assert next(of_server) == NOT_SERVING
    later.mkdir()
    shutil.copytree(models / "half" / "1", later / ".1")
    (later / ".1").rename(later / "1")
    assert next(of_model) == SERVING
    assert next(of_server) == SERVING


def test_a_drain_tells_watchers_first_and_ends_their_calls(servers, models, grpc_client):
    server = servers.start(models={"half": models / "half"}, drain_lame_duck_ms=500)
    watch = Health(grpc_client(server).channel).watch()
    assert next(watch) == SERVING
    server.signal(signal.SIGTERM)
    assert next(watch) == NOT_SERVING
    error = error_of(lambda: next(watch))
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert server.wait() == 0


# ---- gRPC: compression, limits, metadata ---------------------------------------------------------


@pytest.mark.parametrize("kind", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_calls_are_answered(server, kind):
    client = GrpcClient(server.grpc, options=[("grpc.default_compression_algorithm", int(kind))])
    values = np.arange(20_000, dtype=np.float32)
    result = client.predict("half", {"x": values})["y"]
    np.testing.assert_array_equal(result, values / 2 + 2)
    client.close()


def test_criticality_comes_as_metadata_or_header(server, client, grpc_client):
    call = grpc_client(server)
    request = call.predict_request("half", {"x": X})
    for value in ("critical-plus", "Sheddable"):
        metadata = (("tensord-criticality", value),)
        assert call.prediction.Predict(request, metadata=metadata, timeout=60).outputs
        answer = client.predict("half", {"instances": [2]}, headers=dict(metadata))
        assert answer.status_code == 200
    metadata = (("tensord-criticality", "urgent"),)
    error = error_of(lambda: call.prediction.Predict(request, metadata=metadata, timeout=60))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "sheddable-plus" in error.details()
    answer = client.predict("half", {"instances": [2]}, headers=dict(metadata))
    assert answer.status_code == 400
    assert "sheddable-plus" in answer.json()["error"]


def test_an_error_text_is_cut_as_the_original_cuts_it(server, grpc_client):
    error = error_of(lambda: grpc_client(server).predict("m" * 3000, {"x": X}))
    assert error.code() == grpc.StatusCode.NOT_FOUND
    assert error.details().endswith("...TRUNCATED")
    assert len(error.details()) == 1024 + len("...TRUNCATED")


def test_error_texts_keep_every_letter(server, grpc_client):
    error = error_of(lambda: grpc_client(server).predict("größe 100%\n", {"x": X}))
    assert error.details().startswith("Servable not found for request: Latest(größe 100%\n)")


def test_channel_arguments_bound_messages(servers, models, grpc_client):
    server = servers.start(
        models={"half": models / "half"},
        grpc_channel_arguments="grpc.max_receive_message_length=10000,"
        "grpc.max_send_message_length=5000,grpc.so_reuseport=0",
    )
    client = grpc_client(server)
    large = error_of(lambda: client.predict("half", {"x": np.zeros(10_000, np.float32)}))
    assert large.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert large.details().startswith("Received message larger than max")
    large = error_of(lambda: client.predict("half", {"x": np.zeros(2_000, np.float32)}))
    assert large.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert large.details().startswith("Sent message larger than max")
    assert client.predict("half", {"x": X})["y"].shape == (2,)
    assert "grpc.so_reuseport has no effect" in server.log()


def test_an_old_connection_is_renewed_without_a_failure(servers, models, grpc_client):
    server = servers.start(
        models={"half": models / "half"},
        grpc_channel_arguments="grpc.max_connection_age_ms=1000,"
        "grpc.max_connection_age_grace_ms=5000,grpc.keepalive_time_ms=1000",
    )
    client = grpc_client(server)
    states = []
    client.channel.subscribe(states.append)

    def renewed():
        client.predict("half", {"x": X})
        return states.count(grpc.ChannelConnectivity.READY) >= 3

    eventually(renewed, "the client has connected three times", 60)


def test_a_channel_argument_without_a_value_ends_the_start(servers, models):
    server = servers.create(
        models={"half": models / "half"}, grpc_channel_arguments="grpc.x=1,grpc.lonely"
    )
    server.start()
    assert server.wait() != 0
    assert "grpc.lonely" in server.log()


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_both_versions_of_reflection_answer(server, version):
    method = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    with grpc.insecure_channel(server.grpc) as channel:
        (answer,) = channel.stream_stream(method)(iter([b"\x3a\x00"]), timeout=60)
    assert b"tensorflow.serving.PredictionService" in answer  # They were asked for.


# ---- REST: the list, CORS, methods, transport ----------------------------------------------------


def test_the_list_names_every_model(client):
    answer = client.get("/v1/models")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    listed = {model["name"]: model for model in answer.json()["models"]}
    assert set(listed) == {"half", "sleep_ms"}
    assert listed["half"]["labels"] == {}
    status = client.get("/v1/models/half").json()
    assert listed["half"]["model_version_status"] == status["model_version_status"]
    [details] = listed["half"]["details"]
    assert details["version"] == "3"
    assert details["stateful"] == ""
    assert details["sandbox"]
    assert (details["warm_up"], details["replicas"]) == ("zeros", 1)
    assert details["memory_bytes"] > 0


CORS = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "POST, GET",
    "access-control-allow-headers": "Content-Type",
}


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.get("/v1/models/half"),
        lambda c: c.get("/v1/models"),
        lambda c: c.get("/v1/models/nobody"),
        lambda c: c.get("/v1/foo"),
        lambda c: c.predict("half", {"instances": [2]}),
        lambda c: c.predict("half", {"instances": []}),
        lambda c: c.session.options(
            c.base + "/v1/models/half:predict", headers={"Origin": "http://a"}
        ),
    ],
)
def test_every_answer_under_v1_allows_other_origins(client, ask):
    headers = ask(client).headers
    assert {name: headers.get(name) for name in CORS} == CORS


REFUSED = {
    "a target that is too long": (414, b"GET /v1/models/" + 9000 * b"x" + b" HTTP/1.1", []),
    "too many headers": (431, b"GET /v1/models/half HTTP/1.1", 200 * [b"a: b"]),
    "two hosts": (400, b"GET /v1/models/half HTTP/1.1", [b"Host: b"]),
    "a body over the limit": (
        413,
        b"POST /v1/models/half:predict HTTP/1.1",
        [b"Content-Length: 99999999999"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_request_that_the_connection_refuses_allows_other_origins_too(server, case):
    status, line, headers = REFUSED[case]
    answer = raw_exchange(server.rest_port, b"\r\n".join([line, b"Host: a", *headers, b"", b""]))
    head = answer.partition(b"\r\n\r\n")[0].decode().lower().splitlines()
    assert head[0].startswith(f"http/1.1 {status} ")
    got = dict(line.split(": ", 1) for line in head[1:])
    assert {n: got.get(n) for n in CORS} == {n: v.lower() for n, v in CORS.items()}


def test_a_refusal_outside_the_api_names_no_origin(server):
    head = b"POST /elsewhere HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n"
    answer = raw_exchange(server.rest_port, head)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"access-control" not in answer.lower()


def test_a_preflight_needs_a_web_origin(client):
    url = client.base + "/v1/models/half:predict"
    good = client.session.options(url, headers={"Origin": "https://page"})
    assert (good.status_code, good.content) == (200, b"")
    assert "content-type" not in good.headers
    bad = client.session.options(url)
    assert (bad.status_code, bad.content) == (400, b"")


def test_without_the_flag_no_header_is_added_and_preflights_are_answered(servers, models):
    server = servers.start(models={"half": models / "half"})
    client = RestClient(server.rest)
    for answer in (
        client.get("/v1/models/half"),
        client.session.options(server.rest + "/v1/x", headers={"Origin": "http://a"}),
    ):
        assert answer.status_code == 200
        assert not set(CORS) & {name.lower() for name in answer.headers}
    client.close()


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("HEAD", "/v1/models/half", 400, ""),
        ("PUT", "/v1/models/half", 400, "Malformed request: PUT /v1/models/half"),
        ("DELETE", "/v1/models", 400, "Malformed request: DELETE /v1/models"),
        ("PATCH", "/v1/models/half:predict", 400, "Malformed request: PATCH"),
        ("POST", "/v1/models/half", 400, "Malformed request: POST /v1/models/half"),
        ("GET", "/v1/models/half:predict", 400, "Malformed request: GET"),
        ("GET", "/v1/models/half/", 400, "Malformed request: GET /v1/models/half/"),
        ("GET", "/v1/models/half?x=1", 404, "Could not find any versions of model half?x=1"),
        ("GET", "/v1/models/%68alf", 200, "AVAILABLE"),
        ("GET", "/V1/MODELS/half/LABELS/any", 200, "AVAILABLE"),
        ("GET", "/v1/models/half/versions/99999999999999999999", 400, "Failed to convert version"),
        ("GET", "/v1/models/half/versions/7", 404, "Could not find version 7 of model half"),
        ("GET", "/v1/foo", 400, "Malformed request: GET /v1/foo"),
        ("GET", "/v1", 404, ""),
        ("GET", "/", 404, ""),
        ("GET", "/livez", 200, "live"),
        ("GET", "/readyz", 200, "ready"),
    ],
)
def test_each_path_and_method_has_its_status(client, method, path, status, text):
    answer = client.session.request(method, client.base + path, timeout=60)
    assert answer.status_code == status
    assert text in answer.text
    if path.startswith("/v1/") and method != "HEAD":
        assert answer.headers["content-type"] == "application/json"


def test_a_body_on_a_get_is_read_and_ignored(client):
    for _ in range(2):  # The second one shows that the connection is in step.
        answer = client.get("/v1/models/half", data=b"x" * 100_000)
        assert answer.status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-protobuf", None])
def test_the_content_type_of_a_request_is_never_looked_at(client, kind):
    answer = client.predict("half", b'{"instances": [2]}', headers={"Content-Type": kind})
    assert answer.json() == {"predictions": [3.0]}


def test_a_gzip_body_that_is_none_counts_as_empty(client):
    headers = {"Content-Encoding": "gzip"}
    good = client.predict("half", gzip.compress(b'{"instances": [2]}'), headers=headers)
    assert good.json() == {"predictions": [3.0]}
    bad = client.predict("half", b"no gzip", headers=headers)
    assert bad.status_code == 400
    assert "document is empty" in bad.json()["error"]


def exchange(server, head, body=b""):
    """The status line and the rest of what comes back for a raw request that closes."""
    got = raw_exchange(server.rest_port, head.replace("\n", "\r\n").encode() + b"\r\n" + body)
    return got.split(b"\r\n", 1)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /v1/models/half HTTP/1.1\nConnection: close\n", b"HTTP/1.1 400"),
        ("GET /v1/models/half HTTP/1.0\n", b"HTTP/1.1 200"),
        ("GET /v1/models/half HTTP/1.1\nHost: a\nHost: b\n", b"HTTP/1.1 400"),
        ("GET /v1/models/half HTTP/2.0\nHost: a\n", b"HTTP/1.1 505"),
        ("GET /v1/models/half HTTP/1.1\nHost: a\nExpect: tea\n", b"HTTP/1.1 417"),
        ("BREW /v1/models/half HTTP/1.1\nHost: a\nConnection: close\n", b"HTTP/1.1 400"),
        ("GET http://a/v1/models/half HTTP/1.1\nHost: a\nConnection: close\n", b"HTTP/1.1 200"),
        ("GET /v1/models/half HTTP/1.1\nHost: a\nConnection: close\n", b"HTTP/1.1 200"),
    ],
)
def test_heads_that_few_clients_send(server, head, status):
    assert exchange(server, head)[0].startswith(status)


def test_a_client_that_waits_for_100_continue_gets_it(server):
    body = json.dumps({"instances": [2]}).encode()
    head = (
        "POST /v1/models/half:predict HTTP/1.1\nHost: a\nExpect: 100-continue\n"
        f"Connection: close\nContent-Length: {len(body)}\n"
    )
    line, rest = exchange(server, head, body)
    # The body was there already, so there was nothing to continue.
    assert line.startswith((b"HTTP/1.1 200", b"HTTP/1.1 100"))
    assert b"3.0" in rest


def test_the_rest_port_takes_no_grpc_call(server):
    """Who may reach that port may ask models, and not change which are served."""
    client = GrpcClient(f"127.0.0.1:{server.rest_port}")
    for call in (lambda: client.status("half"), lambda: client.reload("model_config_list {}")):
        error = error_of(call)
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED
        assert "REST port" in error.details()
    client.close()


def test_one_port_serves_both_protocols(servers, models):
    server = servers.create(models={"half": models / "half"})
    server.options["rest_api_port"] = server.rest_port = server.grpc_port
    server.start().wait_ready()
    grpc_client, rest = GrpcClient(server.grpc), RestClient(server.rest)
    assert grpc_client.predict("half", {"x": np.array([2.0], np.float32)})["y"].tolist() == [3.0]
    assert rest.predict("half", {"instances": [2.0]}).json() == {"predictions": [3.0]}
    assert "gRPC and REST on" in server.log()
    grpc_client.close()
    rest.close()
