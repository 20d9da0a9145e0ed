# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The REST API as the original answers it: documents, numbers, refusals, transport."""

import base64
import gzip
import json
import math

import numpy as np
import pytest
from clients import RestClient, raw_exchange

NAMES = [
    "half_plus_two",
    "half",
    "two_in",
    "strings",
    "echo",
    "odd",
    "const_out",
    "scalar_out",
    "lookup",
    "keras_mlp",
]


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(models={name: models / name for name in NAMES})


@pytest.fixture(scope="module")
def client(server):
    client = RestClient(server.rest)
    yield client
    client.close()


def predict(client, model, body, code=200):
    answer = client.predict(model, body)
    assert answer.status_code == code, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    return answer.json() if code == 200 else answer.json()["error"]


def test_rows_are_answered_with_predictions(client):
    assert predict(client, "half", {"instances": [1.0, 2.0, 5]}) == {"predictions": [2.5, 3.0, 4.5]}


def test_columns_are_answered_with_outputs(client):
    assert predict(client, "half", {"inputs": [1.0, 2.0]}) == {"outputs": [2.5, 3.0]}
    assert predict(client, "half", {"inputs": {"x": [6]}}) == {"outputs": [5.0]}


def test_named_rows_and_columns_of_several_inputs(client):
    rows = [{"a": 1, "b": 2}, {"a": 3, "b": 5}]
    assert predict(client, "two_in", {"instances": rows})["predictions"] == [
        {"sum": 3.0, "difference": -1.0},
        {"sum": 8.0, "difference": -2.0},
    ]
    outputs = predict(client, "two_in", {"inputs": {"a": [1, 3], "b": [2, 5]}})["outputs"]
    assert outputs == {"sum": [3.0, 8.0], "difference": [-1.0, -2.0]}


def test_a_version_and_a_signature_can_be_named(client):
    path = "/v1/models/half_plus_two/versions/123:predict"
    body = {"signature_name": "serving_default", "instances": [[1.0]]}
    assert client.post(path, body).json() == {"predictions": [[2.5]]}


def test_numbers_are_printed_as_the_original_prints_them(client):
    text = client.predict("echo", {"instances": [8000000, 123456, 0.25, 0.0002, 0.00004]}).text
    assert [t.strip(" ,[]") for t in text.split("[")[1].split(",")][:3] == [
        "8e+06",
        "123456.0",
        "0.25",
    ]
    assert "0.0002" in text
    assert "4e-05" in text
    text = client.predict("echo", {"instances": [0.1, 0.333333343, 100, 1e6, 16777216, -0.0]}).text
    for token in ("0.1", "0.333333343", "100.0", "1e+06", "16777216.0", "-0.0"):
        assert token in text, text


def test_numbers_that_are_hard_to_print_have_the_original_tokens(client):
    text = client.predict("odd", {"instances": [0]}).text
    row = json.loads(text)["predictions"][0]
    assert math.isnan(row[0])
    assert row[1:3] == [math.inf, -math.inf]
    assert "Infinity" in text
    assert "NaN" in text
    assert np.float32(row[5:]).tolist() == np.float32([6e-07, 1e10, 0.2, 3.4e38]).tolist()
    assert math.copysign(1, row[4]) == -1


def test_numbers_that_are_not_finite_can_be_sent(client):
    text = '{"instances": [NaN, Infinity, -Infinity]}'
    row = json.loads(client.predict("echo", text.encode()).text)["predictions"]
    assert math.isnan(row[0])
    assert row[1:] == [math.inf, -math.inf]


@pytest.mark.parametrize(
    ("signature", "values"),
    [
        ("int8", [-128, 127]),
        ("int16", [-32768, 32767]),
        ("int32", [-(2**31), 2**31 - 1]),
        ("int64", [-(2**63), 9007199254740993, 2**63 - 1]),
        ("uint8", [0, 255]),
        ("uint16", [0, 65535]),
        ("uint32", [0, 2**32 - 1]),
        ("uint64", [0, 2**64 - 1]),
        ("bool", [True, False]),
        ("float16", [0.5, -2.0]),
        ("bfloat16", [0.5, -2.0]),
        ("float32", [0.5, -2.0]),
        ("float64", [0.1, 1e-300]),
        ("string", ["a", "", "\u00fc\u4e16"]),
    ],
)
def test_every_dtype_goes_through_json_and_back(client, signature, values):
    """HALF, BFLOAT16 and UINT16 are more than the original can do."""
    body = {"signature_name": signature, "instances": values}
    assert predict(client, "echo", body) == {"predictions": values}


def test_bytes_go_in_and_out_as_base64(client):
    word = base64.b64encode(b"\x00\xff!").decode()
    row = predict(client, "strings", {"instances": [{"b64": word}]})["predictions"][0]
    assert row["echo_bytes"] == {"b64": word}
    assert row["length"] == 3


def test_an_output_without_a_batch_dim_fails_in_rows_and_works_in_columns(client):
    error = predict(client, "const_out", {"instances": [[1], [2], [3]]}, 400)
    assert "batch size" in error
    outputs = predict(client, "const_out", {"inputs": [[1], [2], [3]]})["outputs"]
    assert outputs == {"keys": [[1], [2], [3]], "constant": [1.5, 2.5]}


def test_an_output_of_rank_zero_fails_in_rows_and_works_in_columns(client):
    assert "no shape information" in predict(client, "scalar_out", {"instances": [1, 2]}, 400)
    assert predict(client, "scalar_out", {"inputs": [1, 2]}) == {"outputs": 3.0}


@pytest.mark.parametrize(
    ("model", "body", "words"),
    [
        ("half", b"", "document is empty"),
        ("half", b"inputs = 3", "JSON Parse error: Invalid value"),
        ("half", b"[1]", "Is not object"),
        ("half", b"{}", "Missing 'inputs' or 'instances' key"),
        ("half", b'{"instances": 3}', "to be an list/array"),
        ("half", b'{"instances": []}', "No values in 'instances' array"),
        ("half", b'{"instances": [1], "inputs": [1]}', "Not formatted correctly"),
        ("half", b'{"instances": [1], "signature_name": 7}', "must be a string value"),
        ("half", b'{"instances": ["a"]}', "not of expected type: float"),
        ("echo", b'{"instances": [[1, 2], [3, 4, 5]]}', "Expecting tensor size"),
        ("echo", b'{"instances": [1, [1]]}', "Expecting shape"),
        ("two_in", b'{"instances": [1, 2]}', "instances is a plain list"),
        ("two_in", b'{"inputs": [1, 2]}', "inputs is a plain value/list"),
        ("two_in", b'{"instances": [{"a": 1}]}', "keys must be equal to: a,b"),
        ("two_in", b'{"instances": [{"a": 1, "b": 2}, 3]}', "Expecting object but got list"),
        ("two_in", b'{"inputs": {"a": [1]}}', "Missing named input"),
        ("strings", b'{"instances": [{"b64": "!"}]}', "Unable to base64 decode"),
        ("half", b'{"instances": [1], "signature_name": "no"}', "not found in signature def"),
    ],
)
def test_a_bad_request_is_refused_in_the_original_words(client, model, body, words):
    assert words in predict(client, model, body, 400)


@pytest.mark.parametrize(
    ("signature", "value"),
    [("uint8", 256), ("uint8", -1), ("int32", 3000000000), ("int32", 1.5), ("bool", 1)],
)
def test_a_value_outside_its_dtype_is_refused(client, signature, value):
    predict(client, "echo", {"signature_name": signature, "instances": [value]}, 400)


def test_an_unknown_model_or_version_is_not_found(client):
    assert "Servable not found" in predict(client, "nobody", {"instances": [1]}, 404)
    answer = client.post("/v1/models/half/versions/99:predict", {"instances": [1]})
    assert answer.status_code == 404
    # The document is read first: broken text to nobody is a bad request.
    assert client.predict("nobody", b"{").status_code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/nonsense"),
        ("GET", "/v1/models/half:predict"),
        ("POST", "/v1/models/half"),
        ("POST", "/v1/models/half/version/5:predict"),
        ("PUT", "/v1/models/half"),
        ("DELETE", "/v1/models/half"),
        ("POST", "/v1/models/half:predict?x=1"),
    ],
)
def test_a_request_that_fits_no_route_is_a_bad_request(client, method, path):
    answer = client.session.request(method, client.base + path, timeout=60)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_a_path_of_nobody_is_not_found(client):
    assert client.get("/nowhere").status_code == 404
    metrics = client.get("/metrics")
    assert metrics.status_code == 404
    assert "--monitoring_config_file" in metrics.text, "and it says how to have them"


def test_text_after_the_document_is_ignored_as_the_original_does(client):
    assert client.predict("half", b'{"instances": [1]} trailing').status_code == 200


def test_a_gzip_body_is_inflated(client):
    body = gzip.compress(json.dumps({"instances": [1.0] * 200_000}).encode())
    answer = client.predict("half", body, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 200
    assert len(answer.json()["predictions"]) == 200_000


def test_a_chunked_body_is_read(client):
    def pieces():
        yield b'{"instances": '
        yield b"[1.0, "
        yield b"2.0]}"

    assert client.predict("half", pieces()).json() == {"predictions": [2.5, 3.0]}


def test_one_connection_carries_many_requests(client, server):
    request = (
        b"POST /v1/models/half:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n"
        b'{close}\r\n{"instances": [1]}'
    )
    first = request.replace(b"{close}", b"")
    last = request.replace(b"{close}", b"Connection: close\r\n")
    answer = raw_exchange(server.rest_port, first + first + last)
    assert answer.count(b"HTTP/1.1 200") == 3
    assert answer.count(b"2.5") == 3


def test_a_body_announced_is_waited_for_when_the_client_asks_first(server):
    head = (
        b"POST /v1/models/half:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n"
        b"Expect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    answer = raw_exchange(server.rest_port, head + b'{"instances": [1]}')
    assert b"200 OK" in answer


def test_an_image_as_json_goes_through(client):
    values = np.random.default_rng(3).random((1, 64, 64, 3)).astype(np.float32)
    outputs = predict(client, "echo", {"inputs": values.tolist()})["outputs"]
    assert np.array_equal(np.float32(outputs), values)
