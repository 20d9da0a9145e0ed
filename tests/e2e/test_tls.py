# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""TLS on both ports, with certificates of both sides, and their rotation under load."""

import json
import re
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import grpc
import numpy as np
import pytest
import requests
from clients import SECONDS, GrpcClient, Load, error_of
from local_server import eventually
from test_metrics import Page

X = np.array([2.0], np.float32)
KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """Signs what its folder is asked for."""

    def __init__(self, folder):
        folder.mkdir()
        self.key, self.certificate = folder / "ca.key", folder / "ca.pem"
        named = ["-subj", "/CN=authority", "-days", "2"]
        openssl("req", "-x509", *KEY, *named, "-keyout", self.key, "-out", self.certificate)

    def sign(self, path, name, *, days=1):
        """path.key and path.pem, for 127.0.0.1 and localhost."""
        key, request, certificate = (path.with_suffix(s) for s in (".key", ".csr", ".pem"))
        extensions = path.with_suffix(".ext")
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("req", "-new", *KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        signer = ["-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial"]
        what = ["-in", request, "-out", certificate, "-extfile", extensions]
        openssl("x509", "-req", *what, *signer, "-days", days)
        return Pair(key, certificate)


class Pair:
    def __init__(self, key, certificate):
        self.key, self.certificate = key, certificate

    def copy_to(self, other):
        """Whole files take the old ones' places, as tools that rotate certificates do it."""
        for ours, theirs in ((self.key, other.key), (self.certificate, other.certificate)):
            fresh = theirs.with_suffix(".new")
            shutil.copy(ours, fresh)
            fresh.rename(theirs)

    def ssl_config(self, ca=None):
        def quoted(path):
            return json.dumps(path.read_text())

        lines = [f"server_key: {quoted(self.key)}", f"server_cert: {quoted(self.certificate)}"]
        if ca is not None:
            lines += [f"custom_ca: {quoted(ca)}", "client_verify: true"]
        return "\n".join(lines)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "ca")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "stranger")


@pytest.fixture
def pair(authority, tmp_path):
    return authority.sign(tmp_path / "server", "server one")


def trusting(authority, client=None):
    return grpc.ssl_channel_credentials(
        authority.certificate.read_bytes(),
        client and client.key.read_bytes(),
        client and client.certificate.read_bytes(),
    )


@pytest.fixture
def create(servers, models):
    return lambda **flags: servers.create(models={"half": models / "half"}, **flags)


@pytest.fixture
def start(create):
    def start(**flags):
        server = create(**flags).start()
        up = "model half, version 3: LOADING -> AVAILABLE"
        eventually(lambda: up in server.log(), "it loads")
        eventually(lambda: "listening: gRPC" in server.log(), "its ports are open")
        return server

    return start


def files(pair, ca=None):
    flags = {"tls_certificate_file": pair.certificate, "tls_key_file": pair.key}
    return flags if ca is None else flags | {"tls_client_ca_file": ca}


def ask(server, credentials, model="half"):
    client = GrpcClient(server.grpc, credentials=credentials)
    try:
        return client.predict(model, {"x": X}, timeout=20)["y"].tolist()
    finally:
        client.close()


def refused(server, credentials):
    error = error_of(lambda: ask(server, credentials))
    assert error.code() == grpc.StatusCode.UNAVAILABLE, error
    return error.details()


def serial(server, authority, port=None, client=None):
    """Of the certificate that new connections get."""
    context = ssl.create_default_context(cafile=authority.certificate)
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    with (
        socket.create_connection(("127.0.0.1", port or server.rest_port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        return connection.getpeercert()["serialNumber"]


# ---- gRPC by the original's file ---------------------------------------------


def test_a_stock_client_trusts_the_authority_and_predicts(
    start, authority, stranger, pair, tmp_path
):
    config = tmp_path / "ssl.config"
    config.write_text(pair.ssl_config())
    server = start(ssl_config_file=config)
    assert ask(server, trusting(authority)) == [3.0]
    refused(server, trusting(stranger))
    # Nobody is served in plain on that port, and REST is as plain as the original's.
    error = error_of(lambda: ask(server, None))
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert requests.get(f"{server.rest}/v1/models/half", timeout=SECONDS).status_code == 200
    assert "the REST port has no TLS" in server.log()


def test_with_client_verify_only_known_clients_come_in(start, authority, stranger, pair, tmp_path):
    config = tmp_path / "ssl.config"
    config.write_text(pair.ssl_config(ca=authority.certificate))
    server = start(ssl_config_file=config)
    known = authority.sign(tmp_path / "client", "client")
    assert ask(server, trusting(authority, known)) == [3.0]
    refused(server, trusting(authority))
    refused(server, trusting(authority, stranger.sign(tmp_path / "other", "client")))
    refused(server, trusting(authority, authority.sign(tmp_path / "old", "client", days=-1)))
    assert ask(server, trusting(authority, known)) == [3.0]


# ---- Both ports by PEM files ---------------------------------------------------


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_curl_asks_over_tls_in_both_versions_of_http(start, authority, pair, version):
    server = start(**files(pair))
    url = f"https://localhost:{server.rest_port}/v1/models/half:predict"
    command = ["curl", "-sS", version, "--cacert", authority.certificate, url]
    told = ["-d", '{"instances": [2.0]}', "-w", "%{http_version} %{http_code}"]
    done = subprocess.run([*command, *told], capture_output=True, text=True, check=True)
    body, version_of, code = done.stdout.rsplit("}", 1)[0] + "}", *done.stdout.split()[-2:]
    assert json.loads(body) == {"predictions": [3.0]}
    assert (version_of.removeprefix("}"), code) == (version.removeprefix("--http"), "200")


def test_large_bodies_and_many_calls_go_through(start, authority, pair):
    server = start(**files(pair))
    session = requests.Session()
    trusted = str(authority.certificate)
    url = f"https://127.0.0.1:{server.rest_port}/v1/models/half:predict"
    many = list(range(200_000))
    for body in ({"instances": many}, {"instances": [1.0]}, {"instances": many}):
        answer = session.post(url, json=body, timeout=SECONDS, verify=trusted)
        assert answer.json()["predictions"] == [x / 2 + 2 for x in body["instances"]]
    client = GrpcClient(server.grpc, credentials=trusting(authority))
    large = np.arange(2_000_000, dtype=np.float32)
    np.testing.assert_array_equal(client.predict("half", {"x": large})["y"], large / 2 + 2)
    calls = [
        client.prediction.Predict.future(client.predict_request("half", {"x": X}))
        for _ in range(200)
    ]
    assert all(call.result(timeout=SECONDS) for call in calls)
    client.close()


def test_one_port_serves_both_protocols_over_tls(create, authority, pair):
    server = create(**files(pair))
    server.options["rest_api_port"] = server.rest_port = server.grpc_port
    server.start()
    eventually(lambda: "model half, version 3: LOADING -> AVAILABLE" in server.log(), "it loads")
    assert ask(server, trusting(authority)) == [3.0]
    url = f"https://127.0.0.1:{server.rest_port}/v1/models/half"
    answer = requests.get(url, verify=str(authority.certificate), timeout=SECONDS)
    assert answer.status_code == 200


@pytest.mark.parametrize("mutual", [False, True], ids=["tls", "mtls"])
def test_calls_over_tls_are_counted_exactly(start, authority, pair, tmp_path, mutual):
    (tmp_path / "monitoring.config").write_text("prometheus_config { enable: true }")
    known = authority.sign(tmp_path / "known", "client") if mutual else None
    flags = files(pair, authority.certificate if mutual else None)
    server = start(**flags, monitoring_config_file=tmp_path / "monitoring.config")
    session = requests.Session()
    session.trust_env = False
    session.verify = str(authority.certificate)
    session.cert = (str(known.certificate), str(known.key)) if mutual else None
    url = f"https://127.0.0.1:{server.rest_port}"
    client = GrpcClient(server.grpc, credentials=trusting(authority, known))
    for _ in range(6):
        client.predict("half", {"x": X})
        call = {"instances": [1.0]}
        session.post(f"{url}/v1/models/half:predict", json=call, timeout=SECONDS).raise_for_status()
    for _ in range(3):
        error_of(lambda: client.predict("half", {"nonsense": X}))
    client.close()

    def count(**labels):
        page = session.get(url + "/monitoring/prometheus/metrics", timeout=SECONDS).text
        return Page(page).value("tensord_requests_total", model_name="half", **labels)

    assert count(protocol="rest", status="OK") == 6
    assert count(protocol="grpc", status="OK") == 6
    eventually(lambda: count(protocol="grpc", status="INVALID_ARGUMENT") == 3, "three are bad", 10)
    assert count() == 15
    if mutual:
        with pytest.raises(requests.exceptions.RequestException):
            requests.get(url + "/v1/models", verify=session.verify, timeout=SECONDS)
        assert count() == 15  # Who is turned away makes no call.


def test_plain_http_on_a_tls_port_is_told_that_it_is_one(start, authority, pair):
    server = start(**files(pair))
    for port in (server.rest_port, server.grpc_port):
        answer = requests.get(f"http://127.0.0.1:{port}/v1/models/half", timeout=SECONDS)
        assert (answer.status_code, "speaks TLS" in answer.text) == (400, True)
        answer = requests.post(f"http://127.0.0.1:{port}/x", data=b"x" * 300_000, timeout=SECONDS)
        assert (answer.status_code, "speaks TLS" in answer.text) == (400, True)
    assert ask(server, trusting(authority)) == [3.0]


def test_noise_on_a_tls_port_gets_no_answer_and_harms_nobody(start, authority, pair):
    server = start(**files(pair))
    for noise in (
        b"\x16\x03\x01\x00\x05hello",
        b"\x00" * 500,
    ):
        with socket.create_connection(("127.0.0.1", server.rest_port), timeout=20) as plain:
            plain.sendall(noise)
            plain.shutdown(socket.SHUT_WR)
            assert b"HTTP/1.1" not in plain.recv(4096)
    assert ask(server, trusting(authority)) == [3.0]


# ---- A new front -----------------------------------------------------------------


def test_a_new_front_serves_with_the_certificate_in_use_and_then_with_the_one_that_came(
    start, authority, pair, tmp_path
):
    server = start(**files(pair))
    before = serial(server, authority)
    pair.key.write_text("half of a k")
    said = "the certificates in use stay"
    for turn in (1, 2):
        server.kill_front()
        eventually(lambda: works(server, trusting(authority)), "it serves")
        assert serial(server, authority) == before
        eventually(lambda t=turn: server.log().count(said) >= t, "it says what it found")
    authority.sign(tmp_path / "next", "server two").copy_to(pair)
    server.kill_front()
    eventually(lambda: serial(server, authority) != before, "the new one is served", 60)


def works(server, credentials):
    try:
        return ask(server, credentials) == [3.0]
    except grpc.RpcError:
        return False


# ---- Rotation --------------------------------------------------------------------


def test_a_rotated_certificate_is_served_while_old_connections_live_on(
    start, authority, pair, tmp_path
):
    server = start(**files(pair))
    before = serial(server, authority)
    client = GrpcClient(server.grpc, credentials=trusting(authority))
    with Load(lambda _turn: client.predict("half", {"x": X}), threads=2, pause=0.01) as load:
        authority.sign(tmp_path / "next", "server two").copy_to(pair)
        eventually(lambda: serial(server, authority) != before, "the new one is served", 60)
        assert serial(server, authority, server.grpc_port) != before
    assert load.failed == 0, load.errors[:5]
    client.close()
    assert "TLS for gRPC: CN = server two" in server.log()


def test_a_broken_rotation_keeps_the_old_certificate_and_is_said_once(
    start, authority, pair, tmp_path
):
    server = start(**files(pair))
    before = serial(server, authority)
    good = authority.sign(tmp_path / "good", "server two")
    pair.key.write_text("no key at all")
    server.process.send_signal(1)  # SIGHUP: look now.
    eventually(lambda: "the certificates in use stay" in server.log(), "it is said")
    server.process.send_signal(1)
    assert serial(server, authority) == before
    assert server.log().count("the certificates in use stay") == 1
    good.copy_to(pair)
    server.process.send_signal(1)
    eventually(lambda: serial(server, authority) != before, "the good one is served", 60)


def put_in_place(case, pair, authority, folder):
    """What a rotation that went wrong leaves behind."""
    if case == "expired":
        authority.sign(folder / "old", "server of old", days=-1).copy_to(pair)
    elif case == "another key":
        shutil.copy(authority.sign(folder / "other", "other").key, pair.key)
    elif case == "garbage":
        pair.certificate.write_bytes(bytes(range(256)) * 8)
    else:
        whole = pair.certificate.read_bytes()
        pair.certificate.write_bytes(whole[: len(whole) // 2])


BAD_ROTATIONS = {
    "expired": "has expired",
    "another key": "do not belong together",
    "garbage": "cannot be read",
    "half-written": "cannot be read",
}


@pytest.mark.parametrize("case", BAD_ROTATIONS)
def test_a_bad_certificate_under_load_drops_no_call_and_the_old_one_stays(
    start, authority, pair, tmp_path, case
):
    server = start(**files(pair))
    trusted = trusting(authority)
    before = serial(server, authority)
    client = GrpcClient(server.grpc, credentials=trusted)
    with (
        Load(lambda _turn: client.predict("half", {"x": X}), threads=1, pause=0.01) as kept,
        Load(lambda _turn: ask(server, trusted), threads=1, pause=0.05) as new,
    ):
        put_in_place(case, pair, authority, tmp_path)
        server.signal(1)  # SIGHUP: look now.
        eventually(lambda: "the certificates in use stay" in server.log(), "it is said")
        served = len(new.seconds)
        eventually(lambda: len(new.seconds) > served + 3, "new connections come in")
        assert serial(server, authority) == before
        assert serial(server, authority, server.grpc_port) == before
        authority.sign(tmp_path / "good", "server two").copy_to(pair)
        server.signal(1)
        eventually(lambda: serial(server, authority) != before, "the good one is served", 60)
    client.close()
    assert kept.failed == 0, kept.errors[:5]
    assert new.failed == 0, new.errors[:5]
    [said] = [li for li in server.log().splitlines() if "the certificates in use stay" in li]
    assert BAD_ROTATIONS[case] in said


# ---- Bad material ------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", ["no file", "noise", "another key", "half a pair", "bad authority"]
)
def test_bad_material_ends_the_start_and_opens_no_port(create, authority, pair, tmp_path, case):
    flags = files(pair)
    if case == "no file":
        flags["tls_key_file"] = tmp_path / "nothing"
    elif case == "noise":
        pair.certificate.write_text("noise")
    elif case == "another key":
        flags["tls_key_file"] = authority.sign(tmp_path / "other", "other").key
    elif case == "half a pair":
        del flags["tls_key_file"]
    else:
        flags["tls_client_ca_file"] = Path("/etc/hostname")
    server = create(**flags).start()
    assert server.process.wait(60) not in {0, None}
    log = server.log()
    assert "tls_" in log or "TLS" in log
    assert "listening: gRPC" not in log


def test_an_expired_certificate_at_the_start_is_served_and_warned_about(start, authority, tmp_path):
    old = authority.sign(tmp_path / "old", "server of old", days=-1)
    server = start(**files(old))
    for port in ("gRPC", "REST"):
        assert (
            f"TLS for {port}: the certificate has expired; clients will refuse it" in server.log()
        )
    refused(server, trusting(authority))
    url = f"https://127.0.0.1:{server.rest_port}/v1/models/half"
    with pytest.raises(requests.exceptions.SSLError, match="expired"):
        requests.get(url, verify=str(authority.certificate), timeout=SECONDS)
    # The first good one is taken.
    authority.sign(tmp_path / "next", "server two").copy_to(old)
    server.signal(1)
    eventually(lambda: works(server, trusting(authority)), "the good one is served")


BAD_CONFIGS = {
    "no file": ("there is no such file", None),
    "no such text": (
        "parsing text-format tensorflow.serving.SSLConfig",
        lambda good, other: "server_key {",
    ),
    "no key": ("private key", lambda good, other: 'server_key: "" server_cert: "x"'),
    "garbage": (
        "certificate cannot be read",
        lambda good, other: good.ssl_config().split("server_cert")[0] + 'server_cert: "noise"',
    ),
    "another key": (
        "do not belong together",
        lambda good, other: Pair(other.key, good.certificate).ssl_config(),
    ),
}


@pytest.mark.parametrize("alias", [False, True], ids=["tensord serve", "tensorflow_model_server"])
@pytest.mark.parametrize("case", BAD_CONFIGS)
def test_a_bad_ssl_config_file_ends_the_start_by_either_name(
    create, authority, tmp_path, case, alias
):
    pair = authority.sign(tmp_path / "server", "server one")
    words, text = BAD_CONFIGS[case]
    config = tmp_path / "ssl.config"
    if text is not None:
        config.write_text(text(pair, authority.sign(tmp_path / "other", "other")))
    server = create(ssl_config_file=config, alias=alias).start()
    # As the original: main() returns -1.
    assert server.wait() == (255 if alias else 1), server.log()
    assert ("Failed to start server. Error: " in server.log()) == alias
    assert re.search(words, server.log()), server.log()
    assert "listening" not in server.log()
