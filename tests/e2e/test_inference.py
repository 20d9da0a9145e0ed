# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Classify, Regress and MultiInference with stock clients, over gRPC and REST."""

import base64

import grpc
import pytest
import tensorflow as tf
from clients import SECONDS, error_of
from local_server import eventually
from tensorflow_serving.apis import classification_pb2, inference_pb2, regression_pb2
from test_metrics import Page

INVALID = grpc.StatusCode.INVALID_ARGUMENT
CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"
NAMES = ["examples", "half_plus_two"]


@pytest.fixture(scope="module")
def server(module_servers, models):
    path = "/monitoring/prometheus/metrics"
    monitoring = module_servers.folder / "monitoring.txt"
    monitoring.write_text(f'prometheus_config {{ enable: true path: "{path}" }}')
    return module_servers.start(
        models={name: models / name for name in NAMES}, monitoring_config_file=monitoring
    )


def example(**features):
    """A tf.Example; a value's type picks the feature's kind."""
    proto = tf.train.Example()
    for name, value in features.items():
        values = value if isinstance(value, list) else [value]
        feature = proto.features.feature[name]
        if isinstance(values[0], float):
            feature.float_list.value.extend(values)
        elif isinstance(values[0], int):
            feature.int64_list.value.extend(values)
        else:
            feature.bytes_list.value.extend(values)
    return proto


def fill(request, examples, context=None):
    if context is None:
        request.input.example_list.examples.extend(examples)
    else:
        request.input.example_list_with_context.examples.extend(examples)
        request.input.example_list_with_context.context.CopyFrom(context)
    return request


def request_of(kind, model, signature, examples, context=None):
    request = kind()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    return fill(request, examples, context)


def classify(client, signature, examples, context=None, model="examples"):
    request = request_of(
        classification_pb2.ClassificationRequest, model, signature, examples, context
    )
    return client.prediction.Classify(request, timeout=SECONDS)


def regress(client, signature, examples, context=None, model="examples"):
    request = request_of(regression_pb2.RegressionRequest, model, signature, examples, context)
    return client.prediction.Regress(request, timeout=SECONDS)


def multi(client, tasks, examples, model="examples"):
    """`tasks`: pairs of signature and method, or triples with a model's name."""
    request = inference_pb2.MultiInferenceRequest()
    for signature, method, *other in tasks:
        task = request.tasks.add(method_name=method)
        task.model_spec.name = other[0] if other else model
        task.model_spec.signature_name = signature
    return client.prediction.MultiInference(fill(request, examples), timeout=SECONDS)


def classes_of(result):
    return [[(c.label, c.score) for c in one.classes] for one in result.classifications]


def values_of(result):
    return [one.value for one in result.regressions]


TWO = [example(x=2.0, shared=0.5, word=b"cat"), example(x=3.0, word=b"dog")]


def test_classes_with_scores(client):
    answer = classify(client, "", TWO)
    assert classes_of(answer.result) == [
        [("cat", 2.0), ("cat?", 0.5)],
        [("dog", 3.0), ("dog?", 0.0)],
    ]
    spec = answer.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == (
        "examples",
        1,
        "serving_default",
    )


def test_what_a_model_does_not_give_is_empty_or_zero(client):
    assert classes_of(classify(client, "classes_only", TWO[:1]).result) == [
        [("cat", 0.0), ("cat?", 0.0)]
    ]
    assert classes_of(classify(client, "scores_only", TWO[:1]).result) == [[("", 2.0), ("", 0.5)]]
    assert classes_of(classify(client, "scores_and_more", TWO[:1]).result) == [
        [("", 2.0), ("", 0.5)]
    ]


def test_a_label_that_is_not_text_does_not_break_the_answer(client):
    assert classes_of(classify(client, "bytes", TWO[:1]).result) == [[("??", 0.0)]]


@pytest.mark.parametrize("signature", ["regress", "regress_column"])
def test_regressions_as_a_vector_and_as_a_column(client, signature):
    answer = regress(client, signature, TWO)
    assert values_of(answer.result) == [2.5, 3.0]
    assert answer.model_spec.signature_name == signature


def test_the_classic_model(client):
    answer = regress(
        client, "regress_x_to_y", [example(x=2.0), example(x=4.0)], None, "half_plus_two"
    )
    assert values_of(answer.result) == [3.0, 4.0]
    assert answer.model_spec.version.value == 123
    answer = classify(client, "classify_x_to_y", [example(x=2.0)], None, "half_plus_two")
    assert classes_of(answer.result) == [[("", 3.0)]]


def test_a_context_is_shared_and_an_example_overrides_it(client):
    context = example(shared=10.0, x=1.0)
    answer = regress(client, "regress", [example(x=2.0), example(shared=0.0), example()], context)
    assert values_of(answer.result) == [12.0, 1.0, 11.0]


def test_many_examples_in_one_call(client):
    answer = regress(client, "regress_number", [example(n=i) for i in range(2000)])
    assert values_of(answer.result) == list(map(float, range(2000)))


def test_mixed_tasks_on_one_input_in_one_run(client, rest):
    tasks = [("regress", REGRESS), ("serving_default", CLASSIFY), ("regress_column", REGRESS)]
    before = runs(rest)
    answer = multi(client, tasks, TWO)
    assert runs(rest) == before + 1
    kinds = [one.WhichOneof("result") for one in answer.results]
    assert kinds == ["regression_result", "classification_result", "regression_result"]
    assert [one.model_spec.signature_name for one in answer.results] == [t[0] for t in tasks]
    assert {one.model_spec.version.value for one in answer.results} == {1}
    assert values_of(answer.results[0].regression_result) == [2.5, 3.0]
    assert values_of(answer.results[2].regression_result) == [2.5, 3.0]
    assert classes_of(answer.results[1].classification_result) == [
        [("cat", 2.0), ("cat?", 0.5)],
        [("dog", 3.0), ("dog?", 0.0)],
    ]


def runs(rest):
    page = rest.get("/monitoring/prometheus/metrics").text
    lines = [
        line
        for line in page.splitlines()
        if line.startswith("tensord_batch_rows_count") and '"examples"' in line
    ]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def test_one_task_is_enough(client):
    answer = multi(client, [("regress_x_to_y2", REGRESS)], [example(x=2.0)], "half_plus_two")
    assert values_of(answer.results[0].regression_result) == [4.0]


def test_many_different_unions_are_all_answered(client):
    """More than the runtime keeps compiled: those beyond run one signature after the other."""
    names = ["serving_default", "classes_only", "scores_only", "bytes"]
    extra = ["regress", "regress_column", "regress_number"]
    for bits in range(1, 1 << 7):
        chosen = [n for i, n in enumerate(names + extra) if bits >> i & 1]
        tasks = [(n, CLASSIFY if n in names else REGRESS) for n in chosen]
        answer = multi(client, tasks, TWO[:1])
        assert [one.model_spec.signature_name for one in answer.results] == chosen
        for one in answer.results:
            if one.model_spec.signature_name == "regress":
                assert values_of(one.regression_result) == [2.5]


def refusal(call):
    error = error_of(call)
    return error.code(), error.details()


CLASSIFY_ERRORS = [
    ("nonsense", "No signature was found with the name: nonsense"),
    ("three_outputs", "Expected one or two output Tensors, found 3"),
    (
        "no_classes",
        'Expected classification signature outputs to contain at least one of "classes"',
    ),
    ("named_x", "No classification inputs found in SignatureDef:"),
    ("two_inputs", "Expected one input Tensor."),
    ("scores_of_rank_1", "Expected Tensor shape: [batch_size num_classes] but got [1]"),
    ("scores_of_int64", "Expected scores Tensor of DT_FLOAT. Got: DT_INT64"),
    ("scores_of_other_rows", "Expected scores output batch size of 1. Got: 2"),
    ("classes_of_rank_1", "Expected Tensor shape: [batch_size num_classes] but got [1]"),
    ("classes_of_floats", "Expected classes Tensor of DT_STRING. Got: DT_FLOAT"),
    ("classes_of_other_rows", "Expected classes output batch size of 1. Got: 2"),
    ("widths_differ", "Tensors class and score should match in dim_size(1). Got 2 vs. 1"),
    ("regress", "Expected classification signature outputs to contain at least one of"),
]
REGRESS_ERRORS = [
    ("nonsense", "No signature was found with the name: nonsense"),
    ("regress_two", "Expected one output Tensor."),
    ("regress_named_y", "No regression outputs found in SignatureDef:"),
    ("regress_of_x", "No regression inputs found in SignatureDef:"),
    ("two_inputs", "Expected one input Tensor."),
    ("regress_wide", "Expected output Tensor shape to be either [batch_size] or [batch_size, 1]"),
    ("regress_scalar", "Expected output Tensor shape to be either [batch_size] or [batch_size, 1]"),
    ("regress_other_rows", "Input batch size did not match output batch size: 1 vs. 2"),
    ("regress_int64", "Expected output Tensor of DT_FLOAT.  Got: DT_INT64"),
    ("regress_floats", "Expects arg[0] to be float but string is provided"),
    ("serving_default", "Expected one output Tensor."),
]


@pytest.mark.parametrize(("signature", "words"), CLASSIFY_ERRORS)
def test_a_signature_that_cannot_classify(client, rest, signature, words):
    code, said = refusal(lambda: classify(client, signature, TWO[:1]))
    assert code == INVALID
    assert said.startswith(words)
    body = {"signature_name": signature, "examples": [{"x": 2.0}]}
    answer = rest.post("/v1/models/examples:classify", body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(words)


@pytest.mark.parametrize(("signature", "words"), REGRESS_ERRORS)
def test_a_signature_that_cannot_regress(client, rest, signature, words):
    code, said = refusal(lambda: regress(client, signature, TWO[:1]))
    assert code == INVALID
    assert said.startswith(words)
    body = {"signature_name": signature, "examples": [{"x": 2.0}]}
    answer = rest.post("/v1/models/examples:regress", body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(words)


def test_no_examples(client):
    for context in (None, example(x=1.0)):
        code, said = refusal(lambda c=context: regress(client, "regress", [], c))
        assert (code, said) == (INVALID, "Input is empty.")
    code, said = refusal(lambda: multi(client, [("regress", REGRESS)], []))
    assert (code, said) == (INVALID, "Input is empty.")


def test_a_request_without_a_model(client):
    request = classification_pb2.ClassificationRequest()
    fill(request, TWO)
    call = lambda: client.prediction.Classify(request, timeout=SECONDS)  # noqa: E731
    assert refusal(call) == (INVALID, "Missing ModelSpec")
    request.model_spec.signature_name = "regress"
    assert refusal(call) == (INVALID, "ModelSpec has no name specified.")
    request.model_spec.name = "nobody"
    assert refusal(call)[0] == grpc.StatusCode.NOT_FOUND


def test_an_example_that_the_model_cannot_parse(client):
    code, said = refusal(lambda: regress(client, "regress", [example(x=[1.0, 2.0])]))
    assert code == INVALID
    assert "x" in said
    # Its neighbours are not harmed.
    assert values_of(regress(client, "regress", TWO).result) == [2.5, 3.0]


@pytest.mark.parametrize(
    ("tasks", "code", "words"),
    [
        (
            [("regress", REGRESS), ("regress", REGRESS, "half_plus_two")],
            INVALID,
            "All ModelSpecs in a MultiInferenceRequest must access the same model name",
        ),
        (
            [("regress", REGRESS), ("regress", REGRESS, "")],
            INVALID,
            "Found ModelSpec with an empty model name.",
        ),
        (
            [("regress", REGRESS), ("regress", CLASSIFY)],
            INVALID,
            "Duplicate evaluation of signature: regress",
        ),
        (
            [("", CLASSIFY), ("serving_default", CLASSIFY)],
            INVALID,
            "Duplicate evaluation of signature: serving_default",
        ),
        (
            [("regress", "tensorflow/serving/predict")],
            grpc.StatusCode.UNIMPLEMENTED,
            "Unsupported signature method_name: tensorflow/serving/predict",
        ),
        (
            [("nonsense", REGRESS)],
            INVALID,
            "Requested signature not found in model graph: nonsense",
        ),
        (
            [("regress", REGRESS), ("regress_elsewhere", REGRESS)],
            INVALID,
            "Input tensor must be the same for all Signatures.",
        ),
        ([("regress", REGRESS), ("no_classes", CLASSIFY)], INVALID, "Expected classification"),
        (
            [("regress", REGRESS), ("regress_wide", REGRESS)],
            INVALID,
            "Expected output Tensor shape",
        ),
        ([], INVALID, "ModelSpec has no name specified."),
        ([("regress", REGRESS, "nobody")], grpc.StatusCode.NOT_FOUND, "Servable not found"),
    ],
)
def test_tasks_that_cannot_be_run(client, tasks, code, words):
    got, said = refusal(lambda: multi(client, tasks, TWO))
    assert got == code
    assert said.startswith(words)


# ---- REST ------------------------------------------------------------------------------------


def post(rest, verb, body, code=200):
    answer = rest.post(f"/v1/models/examples:{verb}", body)
    assert answer.status_code == code, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    return answer if code == 200 else answer.json()["error"]


def test_rest_classifies(rest):
    body = {"examples": [{"x": 2.0, "shared": 0.5, "word": "cat"}, {"x": [3.0], "word": ["dog"]}]}
    assert post(rest, "classify", body).text == (
        '{\n    "results": [[["cat", 2.0], ["cat?", 0.5]], [["dog", 3.0], ["dog?", 0.0]]\n    ]\n}'
    )


def test_rest_classifies_by_a_signature_that_gives_scores_alone(rest):
    """The original's own model."""
    body = {"signature_name": "classify_x_to_y", "examples": [{"x": 2.0}, {"x": 5.0}]}
    answer = rest.post("/v1/models/half_plus_two:classify", body)
    assert answer.json() == {"results": [[["", 3.0]], [["", 4.5]]]}


def test_rest_regresses(rest):
    body = {"signature_name": "regress", "examples": [{"x": 0.25}, {"x": -1e20}, {"x": 7.0}]}
    assert post(rest, "regress", body).text == '{\n    "results": [0.25, -1e+20, 7.0]\n}'


def test_rest_prints_what_is_not_finite(rest):
    text = b'{"signature_name": "regress", "examples": [{"x": NaN}, {"x": -Infinity}]}'
    assert post(rest, "regress", text).text == '{\n    "results": [NaN, -Infinity]\n}'


def test_rest_takes_integers_bytes_and_a_context(rest):
    body = {"signature_name": "regress_number", "examples": [{"n": 20}, {"n": [True]}]}
    assert post(rest, "regress", body).json() == {"results": [20.0, 1.0]}
    word = base64.b64encode(b"bird").decode()
    body = {
        "signature_name": "classes_only",
        "context": {"word": {"b64": word}},
        "examples": [{}, {"word": "fish"}],
    }
    assert post(rest, "classify", body).json() == {
        "results": [[["bird", 0.0], ["bird?", 0.0]], [["fish", 0.0], ["fish?", 0.0]]]
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "JSON Parse error: The document is empty"),
        (b'{"examples": [{"x": 1.0}', "JSON Parse error"),
        (b"[]", "Is not object"),
        (b"{}", "When method is classify, key 'examples' is expected and was not found"),
        (b'{"examples": {}}', "list/array"),
        (b'{"examples": []}', "value is an empty array"),
        (b'{"examples": [[{}]]}', "Example must be JSON object but got JSON Array"),
        (b'{"context": [], "examples": [{}]}', "Example must be JSON object"),
        (b'{"signature_name": [1], "examples": [{}]}', "must be a string value"),
        (b'{"examples": [{"x": [3, null]}]}', "unexpected JSON type: Null"),
        (b'{"examples": [{"x": [3, 3.0]}]}', "expecting type: int64"),
        (b'{"examples": [{"x": [3, {"k": 1}]}]}', "type: Object"),
        (b'{"examples": [{"x": [[3], 4]}]}', "type: Array"),
        (b'{"examples": [{"x": [3, 18446744073709551615]}]}', "Only int64_t is supported"),
    ],
)
def test_rest_refuses_in_the_original_words(rest, body, words):
    for verb in ("classify", "regress"):
        assert words in post(rest, verb, body, 400)


def test_rest_reads_the_document_before_it_looks_for_the_model(rest):
    assert rest.post("/v1/models/nobody:classify", b"{}").status_code == 400
    assert rest.post("/v1/models/nobody:classify", {"examples": [{}]}).status_code == 404
    answer = rest.post("/v1/models/examples/versions/9:regress", {"examples": [{}]})
    assert answer.status_code == 404


def test_rest_finds_versions(rest):
    body = {"signature_name": "regress_x_to_y", "examples": [{"x": 2.0}]}
    answer = rest.post("/v1/models/half_plus_two/versions/123:regress", body)
    assert answer.json() == {"results": [3.0]}


# ---- Method names ----------------------------------------------------------------------------


def test_method_names_are_checked_only_when_asked(
    servers, models, grpc_client, rest_client, client
):
    assert client.predict("examples", {"inputs": [b""]}, signature="unusual")
    assert values_of(regress(client, "unusual", TWO).result) == [2.5, 3.0]
    server = servers.start(
        models={"examples": models / "examples"}, enable_signature_method_name_check="true"
    )
    strict, rest = grpc_client(server), rest_client(server)
    code, said = refusal(lambda: strict.predict("examples", {"inputs": [b""]}, signature="unusual"))
    assert code == grpc.StatusCode.INTERNAL
    assert said.startswith("Expected prediction signature method_name to be one of {")
    code, said = refusal(lambda: regress(strict, "unusual", TWO))
    assert code == INVALID
    assert said.startswith("Expected regression signature method_name to be " + REGRESS)
    code, said = refusal(lambda: classify(strict, "regress", TWO))
    assert said.startswith("Expected classification signature method_name to be " + CLASSIFY)
    # All three known methods may be predicted with, and their own call works.
    assert strict.predict("examples", {"inputs": [b""]}, signature="regress")
    assert values_of(regress(strict, "regress", TWO).result) == [2.5, 3.0]
    body = {"signature_name": "unusual", "instances": [""]}
    assert rest.predict("examples", body).status_code == 500
    body = {"signature_name": "unusual", "examples": [{}]}
    assert rest.post("/v1/models/examples:regress", body).status_code == 400


def test_examples_of_multi_inference_are_counted(client, rest):
    def counted(name):
        page = Page(rest.get("/monitoring/prometheus/metrics").text)
        return page.value(f":tensorflow:serving:request_example_{name}", model="examples")

    calls, examples = counted("counts_count"), counted("count_total")
    multi(client, [("serving_default", CLASSIFY), ("regress", REGRESS)], TWO)
    eventually(lambda: counted("count_total") == examples + 2, "both are counted", 10)
    assert counted("counts_count") == calls + 1


def test_calls_are_counted_by_what_they_ask(client, rest):
    regress(client, "regress", TWO)
    post(rest, "classify", {"examples": [{}]})
    page = rest.get("/monitoring/prometheus/metrics").text
    for api, entry in (("Regress", "GRPC"), ("classify", "REST")):
        assert any(
            line.startswith(":tensorflow:serving:request_latency_count")
            and f'API="{api}"' in line
            and f'entrypoint="{entry}"' in line
            and '"examples"' in line
            for line in page.splitlines()
        ), api
