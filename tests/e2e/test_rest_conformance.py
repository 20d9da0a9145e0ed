# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""REST calls, row by row of what the original does with them, through a running server.

Numbers are those of the corner cases known of TensorFlow Serving; the values are our own. Where
ours is meant to differ, docs/differences.md says so.
"""

import base64
import gzip
import json
import math

import pytest
from clients import RestClient

INF = math.inf


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(models={n: models / n for n in ("mixed", "echo", "half")})


@pytest.fixture(scope="module")
def client(server):
    client = RestClient(server.rest)
    yield client
    client.close()


def body(signature, text):
    """A document whose other members are given as text, so that every odd number survives."""
    name = f'"signature_name": "{signature}", ' if signature else ""
    return f"{{{name}{text}}}".encode()


def same(got, want):
    """Equal, NaN to NaN and -0 to -0."""
    if isinstance(want, dict):
        return (
            isinstance(got, dict)
            and got.keys() == want.keys()
            and all(same(got[k], want[k]) for k in want)
        )
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, float) and isinstance(got, float):
        if math.isnan(want):
            return math.isnan(got)
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return type(got) is type(want) and got == want


def rows(*values):
    return {"predictions": list(values)}


def columns(value):
    return {"outputs": value}


B64 = '{"b64": "Zm9v"}'
DEEP = "[" * 100_000 + "]" * 100_000

ACCEPTED = [
    ("1", "one_int", '"instances": [[7,8],[9,10],[11,12]]', rows([7, 8], [9, 10], [11, 12])),
    ("2", "one_int", '"instances": [[4,4]]', rows([4, 4])),
    ("3", "one_float", '"instances": [3, 2.5, 0, 0.125]', rows(3.0, 2.5, 0.0, 0.125)),
    ("4", "one_float", '"instances": [987654321]', rows(987654336.0)),
    ("4 as decimal", "one_float", '"instances": [987654321.0]', rows(987654336.0)),
    (
        "5",
        "one_float",
        '"instances": [1.7976931348623157e308, -1.7976931348623157e308]',
        rows(INF, -INF),
    ),
    (
        "5 small",
        "one_float",
        '"instances": [2.2250738585072014e-308, -2.2250738585072014e-308]',
        rows(0.0, -0.0),
    ),
    ("6", "one_string", f'"instances": [{B64}, {{"b64": "YmFy"}}]', rows("foo", "bar")),
    ("7", "one_string", f'"instances": [[{B64}], [{{"b64":"YmFy"}}]]', rows(["foo"], ["bar"])),
    ("8", "one_string", f'"instances": [{{"s": [[{B64}], [{B64}]]}}]', rows([["foo"], ["foo"]])),
    (
        "9",
        "four",
        '"instances": [{"i":1,"s":"p","f":[NaN,1.5],"d":Infinity},'
        ' {"s":"q","d":-Infinity,"i":2,"f":[Inf,-Inf]}]',
        rows(
            {"d_out": INF, "f_out": [math.nan, 1.5], "i_out": 1, "s_out": "p"},
            {"d_out": -INF, "f_out": [INF, -INF], "i_out": 2, "s_out": "q"},
        ),
    ),
    ("10", "one_int", '"inputs": {"i": [[[1,2],[3,4]]]}', columns([[[1, 2], [3, 4]]])),
    ("10 bare", "one_int", '"inputs": [[[1,2],[3,4]]]', columns([[[1, 2], [3, 4]]])),
    (
        "11",
        "three",
        f'"inputs": {{"i": [[5]], "s": ["x","y","z"], "b": {B64}}}',
        columns({"b_out": "foo", "i_out": [[5]], "s_out": ["x", "y", "z"]}),
    ),
    ("13", "one_int", f'"other": {DEEP}, "instances": [1]', rows(1)),
    ("15", "one_int", '"inputs": 6', columns(6)),
    ("15 empty", "one_int", '"inputs": []', columns([])),
    ("15 base64", "one_string", f'"inputs": {B64}', columns("foo")),
    ("16", "one_int", '"instances": [[],[]]', rows([], [])),
    ("17", "one_int", '"inputs": {"zzz": {"a": [1]}, "i": [1]}', columns([1])),
    ("a key that is not ours", "one_int", '"instances": [1], "x": null', rows(1)),
    ("names by escapes", "one_int", r'"\u0069nstances": [1]', rows(1)),
    (
        "text by escapes",
        "one_string",
        r'"instances": ["\u00fc\ud83d\ude00\"\\\/\n"]',
        rows('\u00fc\U0001f600"\\/\n'),
    ),
    ("both alphabets", "one_string", '"instances": [{"b64":"8J-YgA"}]', rows("\U0001f600")),
    ("and padding", "one_string", '"instances": [{"b64":"8J+YgA=="}]', rows("\U0001f600")),
    ("no inputs by column name", "one_int", '"inputs": {"i": [-0]}', columns([0])),
]


@pytest.mark.parametrize(
    ("signature", "text", "want"), [r[1:] for r in ACCEPTED], ids=[r[0] for r in ACCEPTED]
)
def test_a_document_that_is_accepted(client, signature, text, want):
    answer = client.predict("mixed", body(signature, text))
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert same(answer.json(), want), answer.text


REFUSED = [
    ("20", "", '"instances": [1], "signature_name": 7', "must be a string value"),
    ("20 list", "", '"signature_name": [], "instances": [1]', "must be a string value"),
    ("20 deep", "", f'"signature_name": {DEEP}, "instances": [1]', "must be a string value"),
    ("21", "one_int", '"instances": [1], "inputs": [1]', "Not formatted correctly"),
    ("22", "one_int", '"x": 1', "Missing 'inputs' or 'instances' key"),
    ("22 object", "one_int", '"instances": {"i": 1}', "to be an list/array"),
    ("22 none", "one_int", '"instances": []', "No values in 'instances' array"),
    ("23", "one_int", '"instances": [[1,2],[3,4,5]]', "Expecting tensor size"),
    ("24", "one_int", '"instances": [[1,2],[[3,4]]]', "Expecting shape"),
    ("24 scalar", "one_int", '"instances": [1,[1]]', "Expecting shape"),
    ("25", "one_int", '"instances": [[[1,2],[3]]]', "Encountered list at unexpected size"),
    ("25 list", "one_int", '"instances": [[1,[2]]]', "Encountered list at unexpected level"),
    ("25 value", "one_int", '"instances": [[[1],2]]', "found at incorrect level"),
    ("26", "one_int", '"instances": [[1,2],["p","q"]]', "not of expected type: int32"),
    ("26 float", "one_float", '"instances": ["p"]', "not of expected type: float"),
    ("27", "one_int", '"instances": [4.0]', "not of expected type"),
    ("27 null", "one_int", '"instances": [null]', "not of expected type"),
    ("27 bool", "one_int", '"instances": [true]', "not of expected type"),
    ("27 large", "one_int", '"instances": [3000000000]', "not of expected type"),
    (
        "28",
        "two",
        '"instances": [{"i":[1],"f":[2]},{"i":[1],"f":[[2]]}]',
        "Expecting shape",
    ),
    (
        "28 count",
        "two",
        '"instances": [{"i":[1],"f":[2]},{"i":[1],"f":[2,3]}]',
        "Expecting tensor size",
    ),
    ("29", "two", '"instances": [{"i":1,"f":2}, [1]]', "Expecting object but got list"),
    ("29 reverse", "one_int", '"instances": [1, {"i":1}]', "Expecting value/list but got object"),
    ("30", "two", '"instances": [1]', "instances is a plain list"),
    ("30 columns", "two", '"inputs": [1]', "inputs is a plain value/list"),
    ("31", "two", '"instances": [{"i":1}]', "keys must be equal to: f,i"),
    ("31 unknown", "two", '"instances": [{"i":1,"f":2,"z":3}]', "does not have named input"),
    ("32", "two", '"inputs": {"i":[1]}', "Missing named input"),
    ("34", "one_int", f'"instances": [{B64}]', "not of expected type"),
    ("34 bad", "one_string", '"instances": [{"b64": "!"}]', "Unable to base64 decode"),
    ("34 two members", "one_string", '"instances": [{"b64":"Zg==","x":1}]', "named input"),
    ("35", "two", f'"instances": [{B64}]', ""),
    ("37", "none", '"instances": [1]', "Failed to get input map for signature"),
    ("37 unknown", "nonsense", '"instances": [1]', 'Serving signature name: "nonsense" not found'),
    ("43", "complex", '"instances": [1]', "Failed to write JSON value for tensor type: complex64"),
    ("45", "rows_differ", '"instances": [1, 2]', "inconsistent batch size"),
]


@pytest.mark.parametrize(
    ("signature", "text", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_a_document_that_is_refused(client, signature, text, words):
    answer = client.predict("mixed", body(signature, text))
    assert answer.status_code == 400, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert words in answer.json()["error"]
    assert list(answer.json()) == ["error"]
    assert len(answer.text) < 4096, "an error echoes no more than an excerpt"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "JSON Parse error: The document is empty"),
        (b"  ", "JSON Parse error: The document is empty"),
        (b"inputs = 3", "JSON Parse error: Invalid value"),
        (b'{"instances": [1]', "JSON Parse error: Missing a comma or }"),
        (b'{"instances": [1,]}', "JSON Parse error: Invalid value"),
        (b'{"instances": [01]}', "JSON Parse error"),
        (b'{"instances": [1e400]}', "JSON Parse error: Number too big to be stored in double."),
        (b'{"instances": ["\\x"]}', "JSON Parse error: Invalid escape character in string."),
        (b"{instances: [1]}", "JSON Parse error: Missing a name for object member."),
        (b"[1]", "Is not object"),
        (b"null", "Is not object"),
    ],
)
def test_what_is_no_document(client, document, words):
    answer = client.predict("half", document)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_14_what_stands_around_the_document_is_ignored(client):
    document = b'{"instances": [1]}'
    for text in (document + b" trailing", b"\xef\xbb\xbf" + document, b"\n\t " + document + b"\0"):
        assert client.predict("half", text).json() == {"predictions": [2.5]}


def test_18_a_narrow_integer_out_of_range_is_refused(client):
    """The original takes 300 and gives the model 44."""
    answer = client.predict("echo", body("uint8", '"instances": [300]'))
    assert answer.status_code == 400
    assert "out of range" in answer.json()["error"]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "uint16"])
def test_33_types_that_the_original_cannot_read_or_print(client, name):
    for key, answer in (("instances", "predictions"), ("inputs", "outputs")):
        got = client.predict("echo", body(name, f'"{key}": [1, 2]'))
        assert got.status_code == 200, got.text
        assert got.json() == {answer: [1, 2]}


@pytest.mark.parametrize("key", ["instances", "inputs"])
def test_33_types_without_a_form_in_json(client, key):
    answer = client.predict("echo", body("complex64", f'"{key}": [1]'))
    assert answer.status_code == (400 if key == "instances" else 501)
    assert "complex64" in answer.json()["error"]


# ---- Answers, byte by byte ---------------------------------------------------------------------


def test_38_rows_are_a_line_each_and_columns_a_line_a_number(client):
    answer = client.predict("mixed", body("one_int", '"instances": [[1,2],[3,4]]'))
    assert answer.text == '{\n    "predictions": [[1, 2], [3, 4]\n    ]\n}'
    answer = client.predict("mixed", body("one_int", '"inputs": [1, 2]'))
    assert answer.text == '{\n    "outputs": [\n        1,\n        2\n    ]\n}'
    answer = client.predict("mixed", body("one_int", '"inputs": 5'))
    assert answer.text == '{\n    "outputs": 5\n}'


def test_40_outputs_called_bytes_are_base64_and_others_are_raw(client):
    words = [b"ab", b"\x00\xfe", b"", b"c"]
    encoded = [base64.b64encode(word).decode() for word in words]
    values = [{"b64": word} for word in encoded]
    text = f'"instances": {json.dumps([values[:2], values[2:]])}'
    answer = client.predict("mixed", body("bytes", text))
    document = json.loads(answer.content.decode("latin-1"))
    assert document["predictions"] == [
        {"tok": ["ab", "\x00\xfe"], "tok_bytes": [{"b64": encoded[0]}, {"b64": encoded[1]}]},
        {"tok": ["", "c"], "tok_bytes": [{"b64": encoded[2]}, {"b64": encoded[3]}]},
    ]
    answer = client.predict("mixed", body("bytes_only", f'"inputs": {B64}'))
    assert answer.text == '{\n    "outputs": {\n        "b64": "Zm9v"\n    }\n}'


@pytest.mark.parametrize(
    ("signature", "sent", "printed"),
    [
        ("float32", "8000000", "8e+06"),
        ("float32", "123456", "123456.0"),
        ("float32", "0.25", "0.25"),
        ("float32", "0.0002", "0.0002"),
        ("float32", "0.00004", "4e-05"),
        ("float32", "333333.5", "333333.5"),
        ("float32", "0.1", "0.1"),
        ("float32", "0.3333333333333333", "0.333333343"),
        ("float32", "100", "100.0"),
        ("float32", "1000000", "1e+06"),
        ("float32", "1234567", "1234567.0"),
        ("float32", "16777216", "16777216.0"),
        ("float32", "1e10", "1e+10"),
        ("float32", "-0.0", "-0.0"),
        ("float32", "0.000025", "2.5e-05"),
        ("float32", "NaN", "NaN"),
        ("float32", "Inf", "Infinity"),
        ("float32", "-Infinity", "-Infinity"),
        ("float32", "6", "6.0"),
        ("float64", "0.3333333333333333", "0.33333333333333331"),
        ("float64", "0.30000000000000004", "0.30000000000000004"),
        ("float64", "1e6", "1e+06"),
        ("float16", "0.1", "0.0999755859"),
        ("int64", "9007199254740993", "9007199254740993"),
        ("uint64", "18446744073709551615", "18446744073709551615"),
        ("int8", "-128", "-128"),
        ("bool", "true", "true"),
        ("string", r'"\u0001\"/\t"', r'"\u0001\"/\t"'),
    ],
)
def test_41_values_are_printed_as_the_original_prints_them(client, signature, sent, printed):
    answer = client.predict("echo", body(signature, f'"inputs": {sent}'))
    assert answer.text == f'{{\n    "outputs": {printed}\n}}'


def test_44_five_outputs_of_other_types_and_ranks(client):
    answer = client.predict("mixed", body("five", '"instances": [0, 3]'))
    assert answer.json()["predictions"] == [
        {"bool": False, "double": 0.0, "grid": [0, 0], "int64": 0, "text": "0"},
        {"bool": True, "double": 1.0, "grid": [3, 6], "int64": 30_000_000_000, "text": "3"},
    ]
    answer = client.predict("mixed", body("five", '"inputs": [3]'))
    assert answer.json()["outputs"] == {
        "bool": [True],
        "double": [1.0],
        "grid": [[3, 6]],
        "int64": [30_000_000_000],
        "text": ["3"],
    }


def test_45_leading_dims_that_differ_are_free_by_column(client):
    answer = client.predict("mixed", body("rows_differ", '"inputs": [1, 2]'))
    assert answer.json()["outputs"] == {"a": [1, 2], "b": [1, 2, 1, 2]}


def test_46_no_rows(client):
    answer = client.predict("mixed", body("empty", '"instances": [1]'))
    assert answer.text == '{\n    "predictions": []\n}'


def test_37_a_signature_without_inputs_cannot_be_called(client):
    answer = client.predict("mixed", body("none", '"inputs": {}'))
    assert answer.status_code == 400


def test_53_an_error_is_one_member_with_its_quotes_escaped(client):
    answer = client.predict("mixed", body('q\\"q', '"instances": [1]'))
    text = answer.json()["error"]
    assert text.startswith('Serving signature name: "q"q" not found')
    assert answer.text == json.dumps({"error": text}, indent=4)


# ---- URLs and models ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/foo"),
        ("POST", "/v1/foo"),
        ("GET", "/v1/models/x/y"),
        ("POST", "/v1/models"),
        ("POST", "/v1/models/m/metadata"),
        ("POST", "/v1/models/m/version/5:predict"),
        ("POST", "/v1/models/m/label/l:predict"),
        ("POST", "/v1/models/m/versions/abc:regress"),
        ("POST", "/v1/models/m/versions/5/labels/l:regress"),
        ("POST", "/v1/models/m:Predict"),
        ("POST", "/v1/models/m:explain"),
        ("POST", "/v1/models/half:predict?x=1"),
        ("GET", "/v1/models/half/"),
        ("PUT", "/v1/models/half"),
        ("DELETE", "/v1/models/half:predict"),
        ("PATCH", "/v1/models/half"),
    ],
)
def test_54_what_fits_no_route_is_malformed(client, method, path):
    answer = client.session.request(method, client.base + path, data=b"{}", timeout=60)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(f"Malformed request: {method} {path}")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/half:predict",
        "/V1/MODELS/half:predict",
        "/v1/models/h%61lf:predict",
        "/v1/models/half/versions/3:predict",
        "/v1/models/half/VERSIONS/003:predict",
    ],
)
def test_55_paths_match_in_any_case_and_names_are_decoded(client, path):
    assert client.post(path, {"instances": [1.0]}).json() == {"predictions": [2.5]}


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("nobody:predict", 404, "Servable not found for request: Latest(nobody)"),
        ("nobody/versions/1:predict", 404, "Servable not found for request: Specific(nobody, 1)"),
        ("half/versions/99:predict", 404, "Servable not found for request: Specific(half, 99)"),
        ("half/labels/none:predict", 400, "Unrecognized servable version label"),
        ("half/versions/99999999999999999999:predict", 400, "Failed to convert version"),
        ("half%3Fx:predict", 404, "Servable not found for request: Latest(half?x)"),
    ],
)
def test_56_a_model_or_version_that_is_not_there(client, path, code, words):
    answer = client.post(f"/v1/models/{path}", {"instances": [1]})
    assert answer.status_code == code
    assert answer.json()["error"].startswith(words)


def test_the_document_is_read_before_the_model_is_looked_up_and_the_tensors_after(client):
    assert client.predict("nobody", b"{").status_code == 400
    assert client.predict("nobody", b'{"signature_name": 5}').status_code == 400
    assert client.predict("nobody", b'{"instances": ["x", 5]}').status_code == 404
    answer = client.predict("half", b'{"signature_name": "no", "instances": "x"}')
    assert "not found in signature def" in answer.json()["error"]


def test_59_the_status_document(client):
    want = {
        "model_version_status": [
            {
                "version": "3",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }
    for path in ("half", "half/versions/3"):
        assert client.get(f"/v1/models/{path}").json() == want
    answer = client.get("/v1/models/half/versions/7")
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("Could not find version 7 of model half")
    answer = client.get("/v1/models/nobody")
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("Could not find any versions of model nobody")


def test_the_metadata_document(client):
    document = client.get("/v1/models/half/metadata").json()
    assert document["model_spec"] == {"name": "half", "signature_name": "", "version": "3"}
    default = document["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert default["inputs"]["x"]["tensor_shape"] == {
        "dim": [{"size": "-1", "name": ""}],
        "unknown_rank": False,
    }
    assert default["defaults"] == {}
    open_shape = client.get("/v1/models/echo/metadata").json()
    shape = open_shape["metadata"]["signature_def"]["signature_def"]["int8"]["inputs"]["x"]
    assert shape["tensor_shape"] == {"dim": [], "unknown_rank": True}


def test_60_a_body_that_is_no_gzip_is_an_empty_one_and_a_good_one_is_inflated(client):
    head = {"Content-Encoding": "gzip"}
    answer = client.predict("half", b"not gzip", headers=head)
    assert answer.status_code == 400
    assert "The document is empty" in answer.json()["error"]
    answer = client.predict("half", gzip.compress(b'{"instances": [1]}'), headers=head)
    assert answer.json() == {"predictions": [2.5]}


def test_the_content_type_of_a_request_does_not_matter(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = client.predict("half", b'{"instances": [1]}', headers={"Content-Type": kind})
        assert answer.json() == {"predictions": [2.5]}
