# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Who may do what: tokens, client certificates, rules, the admin listener, and what is logged."""

import hashlib
import json
import re
import socket
import subprocess

import grpc
import numpy as np
import pytest
import requests
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from clients import SECONDS, GrpcClient, error_of, raw_exchange
from local_server import eventually, free_port, model_config
from test_tls import Authority, files, trusting
from tritonclient.utils import InferenceServerException

X = np.array([2.0, 4.0], np.float32)
BODY = {"instances": [2.0]}
OIP_BODY = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [2]}]}
DENIED, UNKNOWN = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED


def identity(name):
    """Its token is its name with -token behind it."""
    digest = hashlib.sha256(f"{name}-token".encode()).hexdigest()
    return f'identity {{ name: "{name}" token_sha256: "{digest}" }}\n'


RULES = (
    identity("alice")
    + identity("operator")
    + identity("keeper")
    + identity("caller")
    + """
rule { identity: "alice" model: "half" allow: [INFER, READ] }
rule { identity: "operator" allow: [READ, ADMIN] }
rule { identity: "keeper" model: "half" allow: [INFER, READ, ADMIN] }
rule { identity: "caller" allow: INFER }
"""
)


def bearer(name):
    return {"Authorization": f"Bearer {name}-token"}


def metadata(name):
    return (("authorization", f"Bearer {name}-token"),)


class Caller:
    """Both APIs with one token, or none."""

    def __init__(self, server, name=None):
        self.base = server.rest
        self.headers = bearer(name) if name else {}
        self.metadata = metadata(name) if name else ()
        self.grpc = GrpcClient(server.grpc)

    def get(self, path):
        return requests.get(self.base + path, headers=self.headers, timeout=SECONDS)

    def post(self, path, body):
        return requests.post(self.base + path, json=body, headers=self.headers, timeout=SECONDS)

    def grpc_code(self, call, request):
        try:
            call(request, metadata=self.metadata, timeout=SECONDS)
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    def predict_code(self, model):
        request = self.grpc.predict_request(model, {"x": X})
        return self.grpc_code(self.grpc.prediction.Predict, request)


@pytest.fixture(scope="module")
def rules_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "access.rules"
    path.write_text(RULES)
    return path


@pytest.fixture(scope="module")
def server(module_servers, models, rules_file):
    return module_servers.start(
        models={name: models / name for name in ("half", "two_in")}, access_rules_file=rules_file
    )


# ---- Tokens ---------------------------------------------------------------------------


def test_a_token_opens_what_its_rules_say_in_every_api(server):
    alice = Caller(server, "alice")
    assert alice.post("/v1/models/half:predict", BODY).json() == {"predictions": [3.0]}
    assert alice.post("/v2/models/half/infer", OIP_BODY).status_code == 200
    assert alice.get("/v1/models/half").status_code == 200
    assert alice.get("/v2/models/half").status_code == 200
    assert alice.predict_code("half") == grpc.StatusCode.OK
    client = triton_grpc.InferenceServerClient(server.grpc)
    tensor = triton_grpc.InferInput("x", [2], "FP32")
    tensor.set_data_from_numpy(X)
    headers = {"authorization": "Bearer alice-token"}
    result = client.infer("half", [tensor], headers=headers)
    np.testing.assert_array_equal(result.as_numpy("y"), X / 2 + 2)
    client.close()


@pytest.mark.parametrize(
    ("name", "status", "code"), [(None, 401, UNKNOWN), ("mallory", 401, UNKNOWN)]
)
def test_without_a_token_of_ours_nothing_opens(server, name, status, code):
    nobody = Caller(server, name)
    for answer in (
        nobody.post("/v1/models/half:predict", BODY),
        nobody.post("/v2/models/half/infer", OIP_BODY),
        nobody.get("/v1/models/half"),
        nobody.get("/v1/models/half/metadata"),
        nobody.get("/v1/models"),
        nobody.get("/v2"),
        nobody.get("/v2/models/half"),
        nobody.post("/v2/repository/index", {}),
        nobody.post("/v2/repository/models/half/unload", {}),
    ):
        assert answer.status_code == status, answer.url
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert nobody.predict_code("half") == code


def test_other_models_and_other_kinds_of_calls_stay_shut(server):
    alice, operator = Caller(server, "alice"), Caller(server, "operator")
    assert alice.post("/v1/models/two_in:predict", BODY).status_code == 403
    assert alice.post("/v2/models/two_in/infer", OIP_BODY).status_code == 403
    assert alice.get("/v1/models/two_in").status_code == 403
    assert alice.predict_code("two_in") == DENIED
    # Whether there is such a model is not told, either.
    assert alice.get("/v1/models/nobody").status_code == 403
    assert operator.get("/v1/models/nobody").status_code == 404
    assert operator.post("/v1/models/half:predict", BODY).status_code == 403
    assert alice.post("/v2/repository/models/half/unload", {}).status_code == 403
    assert operator.post("/v2/repository/index", {}).status_code == 200


def test_lists_show_what_the_caller_may_read(server):
    def names(caller):
        return [model["name"] for model in caller.get("/v1/models").json()["models"]]

    assert names(Caller(server, "alice")) == ["half"]
    assert names(Caller(server, "operator")) == ["half", "two_in"]
    readyz = Caller(server).get("/readyz")
    assert (readyz.status_code, readyz.text) == (200, "ready\n")
    assert "two_in" in Caller(server, "operator").get("/readyz").text


def test_probes_stay_open(server):
    nobody = Caller(server)
    for path in ("/livez", "/readyz", "/v2/health/live", "/v2/health/ready"):
        assert nobody.get(path).status_code == 200, path
    client = triton_grpc.InferenceServerClient(server.grpc)
    assert client.is_server_live()
    assert client.is_model_ready("half")
    client.close()


def test_probes_can_be_behind_rules(servers, models, tmp_path):
    path = tmp_path / "access.rules"
    path.write_text(
        RULES
        + """probes_need_rule: true
rule { identity: "alice" model: "half" allow: PROBE }"""
    )
    names = ("half", "two_in")
    server = servers.start(
        ready=False, models={name: models / name for name in names}, access_rules_file=path
    )
    alice = Caller(server, "alice")
    eventually(lambda: "model two_in, version 1: LOADING -> AVAILABLE" in server.log(), "it loads")
    eventually(lambda: "model half, version 3: LOADING -> AVAILABLE" in server.log(), "it loads")
    assert Caller(server).get("/readyz").status_code == 401
    assert Caller(server, "operator").get("/readyz").status_code == 403
    assert (alice.get("/readyz").status_code, "two_in" in alice.get("/readyz").text) == (200, False)
    assert alice.get("/v2/models/half/ready").status_code == 200
    assert alice.get("/v2/models/two_in/ready").status_code == 403
    client = triton_grpc.InferenceServerClient(server.grpc)
    headers = {"authorization": "Bearer alice-token"}
    assert client.is_model_ready("half", headers=headers)
    with pytest.raises(InferenceServerException) as refused:
        client.is_model_ready("two_in", headers=headers)
    assert refused.value.status() == "StatusCode.PERMISSION_DENIED"
    call = client._channel.unary_unary("/grpc.health.v1.Health/Check")
    assert call(b"\x0a\x04half", metadata=metadata("alice"), timeout=SECONDS) == b"\x08\x01"
    error = error_of(lambda: call(b"\x0a\x06two_in", metadata=metadata("alice"), timeout=SECONDS))
    assert error.code() == DENIED
    client.close()


TRICKS = [
    "//v1/models/two_in",
    "/v1//models/two_in",
    "/v1/models//two_in",
    "/V1/MODELS/two_in",
    "/v1/models/TWO_IN",
    "/v1/models/%74wo_in",
    "/v1/models/two%5fin",
    "/v1/models/two_in.",
    "/v1/models/two_in/",
    "/v1/models/two_in%00",
    "/v1/models/two_in%2f",
    "/v1/models/half/../two_in",
    "/v1/models/half%2f..%2ftwo_in",
    "/v1/models/half/versions/1/../../two_in",
    "/v1/models/two_in?half",
    "/v1/models/half?/two_in",
    "/v1/models/two_in;half",
    "/v1/./models/two_in",
    "/v2/models/%74wo_in",
    "/v2/models/two_in/",
    "/v2//models/two_in",
    "/v2/models/half/../two_in",
    "/V2/models/two_in",
    "/v2/models/two_in/versions/1",
    "/v2/models/two_in?x=half",
]


@pytest.mark.parametrize("target", TRICKS)
def test_no_spelling_of_a_path_passes_the_rules(server, target):
    lines = [f"GET {target} HTTP/1.1", "Host: x", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in bearer("alice").items()]
    answer = raw_exchange(server.rest_port, ("\r\n".join(lines) + "\r\n\r\n").encode())
    status = int(answer.split()[1])
    assert status in (400, 403, 404), answer
    assert b"AVAILABLE" not in answer
    assert b"difference" not in answer


NAMES = [
    "two_in",
    "/two_in",
    "./two_in",
    "%2e/two_in",
    "TWO_IN",
    "%74wo_in",
    "two%5fin",
    "two%255fin",
    "two_in.",
    "two_in/",
    "two_in%00",
    "two_in%2f",
    "two_in%20",
    "two_in;half",
    "two_in?half",
    "half?/two_in",
    "half/../two_in",
    "half%2f..%2ftwo_in",
    "half/versions/1/../../two_in",
]
ONES = [1.0, 1.0]
TWO_IN_BODY = json.dumps({"inputs": {"a": ONES, "b": ONES}})
TWO_IN_OIP_BODY = json.dumps(
    {
        "inputs": [
            {"name": name, "shape": [2], "datatype": "FP32", "data": ONES} for name in ("a", "b")
        ]
    }
)
POSTS = {
    "/v1/models/{}:predict": TWO_IN_BODY,
    "/v1/models/{}/versions/1:predict": TWO_IN_BODY,
    "/v2/models/{}/infer": TWO_IN_OIP_BODY,
    "/v2/models/{}/versions/1/infer": TWO_IN_OIP_BODY,
    "/v2/repository/models/{}/unload": "{}",
}


def posted(server, version, targets_and_bodies, name):
    """Statuses and bodies as curl sees them, which changes nothing of a target."""
    command = ["curl", "-sS", "--noproxy", "*", "--path-as-is", "--globoff", version]
    answers = []
    for target, body in targets_and_bodies:
        told = ["-H", f"Authorization: Bearer {name}-token", "-d", body, "-w", "\n%{http_code}"]
        done = subprocess.run(
            [*command, *told, server.rest + target], capture_output=True, text=True, check=True
        )
        text, _, code = done.stdout.rpartition("\n")
        answers.append((int(code), text))
    return answers


HTTP_VERSIONS = ["--http1.1", "--http2-prior-knowledge"]


@pytest.mark.parametrize("version", HTTP_VERSIONS)
def test_no_spelling_of_a_name_passes_the_rules_in_what_is_posted(server, version):
    plain = [(form.format("two_in"), body) for form, body in POSTS.items()]
    right = [code for code, _ in posted(server, version, plain[:4], "caller")]
    assert right == [200] * 4  # So it is the rules that say no.
    tricks = [(form.format(name), body) for name in NAMES for form, body in POSTS.items()]
    for spelled in ("//v1", "/V1", "/v1/", "/v1/.", "/v1/../v1", "/%761"):
        tricks.append((f"{spelled}/models/two_in:predict", TWO_IN_BODY))
    for spelled in ("//v2", "/V2", "/v2/", "/v2/.", "/v2/../v2", "/%762"):
        tricks.append((f"{spelled}/models/two_in/infer", TWO_IN_OIP_BODY))
        tricks.append((f"{spelled}/repository/models/two_in/unload", "{}"))
    for (target, _), (code, text) in zip(
        tricks, posted(server, version, tricks, "keeper"), strict=True
    ):
        assert code in (400, 403, 404, 405), (target, text)
        assert "difference" not in text, target
    assert [code for code, _ in posted(server, version, plain[:4], "caller")] == [200] * 4


@pytest.mark.parametrize("target", TRICKS)
def test_no_spelling_of_a_path_passes_the_rules_over_http_2(server, target):
    command = ["curl", "-sS", "--noproxy", "*", "--path-as-is", "--globoff"]
    command += ["--http2-prior-knowledge", "-H", "Authorization: Bearer alice-token"]
    told = ["-w", "\n%{http_code}", server.rest + target]
    done = subprocess.run([*command, *told], capture_output=True, text=True, check=True)
    assert done.stdout.rpartition("\n")[2] in ("400", "403", "404"), done.stdout
    assert "AVAILABLE" not in done.stdout
    assert "difference" not in done.stdout


METHOD_TRICKS = [
    "/{}/{}",
    "//{}/{}",
    "/{}//{}",
    "/./{}/{}",
    "/{}/./{}",
    "/{}/{}/",
    "/{}/{}.",
    "/{}./{}",
    "/.{}/{}",
    "/{}/{}?",
    "/{}/{}%00",
    "/{}%2f{}",
    "/%2f{}/{}",
    "/x/../{}/{}",
]


def test_no_spelling_of_a_method_passes_the_rules_over_grpc(server):
    keeper = Caller(server, "keeper")
    predict = keeper.grpc.predict_request("two_in", {"a": X, "b": X}).SerializeToString()
    unload = b"\x12\x06two_in"  # Of RepositoryModelUnloadRequest: model_name.
    methods = [
        ("tensorflow.serving.PredictionService", "Predict", predict),
        ("inference.GRPCInferenceService", "RepositoryModelUnload", unload),
    ]

    def code(path, request, name):
        call = keeper.grpc.channel.unary_unary(path)
        try:
            call(request, metadata=metadata(name), timeout=SECONDS)
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    assert code("/" + "/".join(methods[0][:2]), predict, "caller") == grpc.StatusCode.OK
    for service, method, request in methods:
        spelled = [trick.format(service, method) for trick in METHOD_TRICKS]
        spelled += [f"/{service.upper()}/{method}", f"/{service}/{method.lower()}"]
        spelled += [f"/{service}/%{ord(method[0]):x}{method[1:]}"]
        codes = {path: code(path, request, "keeper") for path in spelled}
        assert codes.pop(spelled[0]) == DENIED
        # What is no method's name is none, whoever asks.
        assert set(codes.values()) == {grpc.StatusCode.UNIMPLEMENTED}, codes
    for name in ("TWO_IN", "two_in.", "two_in/", "/two_in", "./two_in", "half/../two_in"):
        assert keeper.predict_code(name) == DENIED, name
    for name in ("%74wo_in", "two%5fin", "two_in\0", "half\0two_in", " two_in", ""):
        assert keeper.predict_code(name) in (DENIED, grpc.StatusCode.INVALID_ARGUMENT), name
    assert code("/" + "/".join(methods[0][:2]), predict, "caller") == grpc.StatusCode.OK


def test_what_is_refused_and_what_is_managed_is_one_line_each(server):
    before = server.log().count("audit:")
    Caller(server).post("/v1/models/half:predict", BODY)
    Caller(server, "alice").get("/v1/models/two_in")
    Caller(server, "operator").post("/v2/repository/index", {})
    Caller(server, "alice").post("/v1/models/half:predict", BODY)
    eventually(lambda: server.log().count("audit:") == before + 3, "three lines")
    lines = [line for line in server.log().splitlines() if "audit:" in line][-3:]
    assert "audit: refused" in lines[0]
    assert "nobody" in lines[0]
    assert all(word in lines[1] for word in ("audit: refused", "alice", "two_in", "read"))
    assert all(word in lines[2] for word in ("audit: admin call", "operator", "admin"))
    assert "-token" not in server.log()


def test_rules_are_read_again_and_a_broken_file_changes_nothing(servers, models, tmp_path):
    path = tmp_path / "access.rules"
    path.write_text(RULES)
    server = servers.start(models={"half": models / "half"}, access_rules_file=path)
    assert Caller(server, "alice").predict_code("half") == grpc.StatusCode.OK
    path.write_text("rule {")
    server.signal(1)  # SIGHUP: look now.
    eventually(lambda: "the rules in use stay" in server.log(), "it is said")
    assert Caller(server, "alice").predict_code("half") == grpc.StatusCode.OK
    path.write_text(RULES.replace('identity: "alice" model', 'identity: "operator" model'))
    server.signal(1)
    eventually(lambda: Caller(server, "alice").predict_code("half") == DENIED, "it is taken back")
    assert server.log().count("the rules in use stay") == 1


def test_without_rules_all_is_open_and_the_log_says_so(servers, models):
    server = servers.start(models={"half": models / "half"})
    assert Caller(server).predict_code("half") == grpc.StatusCode.OK
    assert "access: open, as the original" in server.log()


def test_a_rules_file_that_cannot_be_used_ends_the_start(servers, models, tmp_path):
    path = tmp_path / "access.rules"
    path.write_text('rule { identity: "bob" allow: READ }')
    server = servers.create(models={"half": models / "half"}, access_rules_file=path).start()
    assert server.wait() == 1
    assert re.search("names the identity .*bob", server.log())


# ---- Certificates -------------------------------------------------------------------------


def test_a_client_certificate_is_an_identity(servers, models, tmp_path):
    authority = Authority(tmp_path / "ca")
    pair = authority.sign(tmp_path / "server", "server one")
    path = tmp_path / "access.rules"
    path.write_text(
        'identity { name: "pod" certificate_name: "pod one" }\n'
        'rule { identity: "pod" model: "half" allow: [INFER, READ] }'
    )
    flags = files(pair, ca=authority.certificate) | {"access_rules_file": path}
    server = servers.create(models={"half": models / "half"}, **flags).start()
    eventually(lambda: "model half, version 3: LOADING -> AVAILABLE" in server.log(), "it loads")

    def outcome(name):
        pair = authority.sign(tmp_path / name.replace(" ", "_"), name)
        client = GrpcClient(server.grpc, credentials=trusting(authority, pair))
        url = f"https://localhost:{server.rest_port}/v1/models/half:predict"
        answer = requests.post(
            url,
            json=BODY,
            cert=(str(pair.certificate), str(pair.key)),
            verify=str(authority.certificate),
            timeout=SECONDS,
        )
        try:
            client.predict("half", {"x": X})
        except grpc.RpcError as error:
            return answer.status_code, error.code()
        finally:
            client.close()
        return answer.status_code, grpc.StatusCode.OK

    assert outcome("pod one") == (200, grpc.StatusCode.OK)
    assert outcome("pod two") == (401, UNKNOWN)


# ---- The admin listener ----------------------------------------------------------------------


def reload_code(address, config, token=None):
    client = GrpcClient(address)
    try:
        from google.protobuf import text_format
        from tensorflow_serving.apis import model_management_pb2

        request = model_management_pb2.ReloadConfigRequest()
        text_format.Parse(config, request.config)
        more = metadata(token) if token else ()
        client.models.HandleReloadConfigRequest(request, metadata=more, timeout=SECONDS)
    except grpc.RpcError as error:
        return error.code()
    finally:
        client.close()
    return grpc.StatusCode.OK


def test_admin_calls_move_to_their_listener(servers, models, tmp_path):
    port, path = free_port(), tmp_path / "admin.sock"
    server = servers.start(
        models={"half": models / "half"}, admin_port=port, admin_socket_path=path
    )
    config = model_config({"half": models / "half"})
    assert "admin calls are served on the admin listener alone" in server.log()
    assert reload_code(server.grpc, config) == DENIED
    assert reload_code(f"127.0.0.1:{port}", config) == grpc.StatusCode.OK
    assert reload_code(f"unix:{path}", config) == grpc.StatusCode.OK
    client = triton_http.InferenceServerClient(f"127.0.0.1:{port}")
    client.unload_model("half")
    eventually(lambda: not client.is_model_ready("half"), "it is unloaded")
    client.load_model("half")
    assert client.is_model_ready("half")
    client.close()
    with pytest.raises(InferenceServerException) as refused:
        triton_http.InferenceServerClient(f"127.0.0.1:{server.rest_port}").unload_model("half")
    assert refused.value.status() == "403"
    command = ["curl", "-sS", "--unix-socket", path, "http://x/v2/repository/index", "-d", ""]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[0]["name"] == "half"
    with socket.socket() as probe:  # Nobody else reaches that port.
        host = socket.gethostbyname(socket.gethostname())
        if not host.startswith("127."):
            assert probe.connect_ex((host, port)) != 0


def test_web_pages_make_no_admin_calls(servers, models):
    port = free_port()
    servers.start(models={"half": models / "half"}, admin_port=port)
    url = f"http://127.0.0.1:{port}/v2/repository/models/half/unload"
    answer = requests.post(url, headers={"Origin": "https://evil.example"}, timeout=SECONDS)
    assert (answer.status_code, "web pages" in answer.text) == (403, True)
    assert requests.get(f"http://127.0.0.1:{port}/v2/models/half/ready", timeout=20).ok


def test_an_admin_listener_that_others_reach_wants_to_know_who_calls(servers, models, rules_file):
    flags = {"admin_port": free_port(), "admin_bind_address": "0.0.0.0"}
    shut = servers.create(models={"half": models / "half"}, **flags).start()
    assert shut.wait() == 1
    assert re.search("its callers need a token or a client certificate", shut.log())
    server = servers.start(models={"half": models / "half"}, access_rules_file=rules_file, **flags)
    config = model_config({"half": models / "half"})
    admin = f"127.0.0.1:{flags['admin_port']}"
    assert reload_code(admin, config) == UNKNOWN
    assert reload_code(admin, config, token="alice") == DENIED
    assert reload_code(admin, config, token="operator") == grpc.StatusCode.OK
    assert reload_code(server.grpc, config, token="operator") == DENIED
    assert error_of(lambda: GrpcClient(server.grpc).predict("half", {"x": X})).code() == UNKNOWN
