# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What comes with a model: op libraries, assets, session overrides, signatures nobody can call."""

import os
import shutil
import signal

import grpc
import numpy as np
import pytest
import tensorflow as tf
from clients import GrpcClient, Load, RestClient, error_of
from local_server import eventually

X = np.array([2.0], np.float32)
CODE = grpc.StatusCode


@pytest.fixture
def library(models):
    return models / "libtensord_probe_op.so"


@pytest.fixture(scope="module")
def composite(module_servers, models):
    server = module_servers.start(models={"composite": models / "composite"})
    client, rest = GrpcClient(server.grpc), RestClient(server.rest)
    yield client, rest
    client.close()
    rest.close()


def probe(client, what, argument="", timeout=60.0):
    inputs = {
        "what": np.array([what.encode()], object),
        "argument": np.array([str(argument).encode()], object),
    }
    return client.predict("probe", inputs, timeout=timeout)["answer"][0].decode()


def test_an_op_library_by_flag_serves_every_model(servers, models, library, grpc_client):
    server = servers.start(
        models={n: models / n for n in ("probe", "sleep_ms", "half")}, op_library=library
    )
    client = grpc_client(server)
    assert probe(client, "hello") == "hello"
    assert client.predict("sleep_ms", {"ms": np.array([1], np.int32)})["ms"].tolist() == [1]


def test_a_missing_op_is_named_with_what_to_do(servers, models, grpc_client):
    server = servers.start(
        ready=False, models={n: models / n for n in ("probe", "text_op", "half")}
    )
    client = grpc_client(server)
    for model, words in (
        ("probe", ["TensordProbe", "--op_library"]),
        ("text_op", ["TFText>RoundRobinTrim", "package tensorflow-text", "--op_library"]),
    ):
        eventually(lambda m=model: client.states(m) == {1: "END"}, f"{model} has failed")
        (status,) = client.status(model)
        for word in words:
            assert word in status.status.error_message
    eventually(lambda: "AVAILABLE" in client.states("half").values(), "the good one serves")
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]


def test_the_format_before_saved_model_is_named(servers, models, tmp_path, grpc_client):
    (tmp_path / "old/1").mkdir(parents=True)
    (tmp_path / "old/1/export.meta").write_bytes(b"x")
    server = servers.start(ready=False, models={"old": tmp_path / "old", "half": models / "half"})
    client = grpc_client(server)
    eventually(lambda: client.states("old") == {1: "END"}, "it has failed")
    (status,) = client.status("old")
    assert status.status.error_code == CODE.UNIMPLEMENTED.value[0]
    assert "export.meta" in status.status.error_message
    assert server.log().count("model old, version 1: loading") == 1, "another try would not help"


def test_an_op_library_that_is_none_is_named(servers, models, tmp_path, grpc_client):
    broken = tmp_path / "libbroken.so"
    broken.write_text("no library")
    server = servers.start(
        ready=False,
        models={"half": models / "half", "two_in": models / "two_in"},
        settings=f'model {{ key: "half" value {{ op_libraries: "{broken}" }} }}',
        max_num_load_retries=0,
    )
    client = grpc_client(server)
    eventually(lambda: set(client.states("half").values()) == {"END"}, "half has failed")
    (status, *_) = client.status("half")
    assert str(broken) in status.status.error_message
    eventually(lambda: client.states("two_in") == {1: "AVAILABLE"}, "the other model serves")
    assert client.predict("two_in", {"a": X, "b": X})["sum"].tolist() == [4.0]


def test_d4_a_kernel_that_aborts_costs_its_own_call_alone(servers, models, library, grpc_client):
    server = servers.start(models={n: models / n for n in ("probe", "half")}, op_library=library)
    client = grpc_client(server)
    with Load(lambda _: client.predict("half", {"x": X})) as others:
        error = error_of(lambda: probe(client, "abort"))
        assert error.code() == CODE.UNAVAILABLE
        assert "SIGABRT" in error.details()

        def back():
            try:
                return probe(client, "hello", timeout=5) == "hello"
            except grpc.RpcError:
                return False

        eventually(back, "the model is started again")
    assert others.failed == 0, others.errors[:5]
    assert "its worker died" in server.log()


def test_tables_and_assets_are_restored_in_each_worker(servers, models, grpc_client):
    server = servers.start(models={"lookup": models / "lookup"})
    client = grpc_client(server)
    words = {"word": np.array([b"cherry", b"durian", b"apple"], object)}
    assert client.predict("lookup", words)["id"].tolist() == [2, -1, 0]
    (worker,) = server.workers()
    os.kill(worker.pid, signal.SIGKILL)
    eventually(lambda: any(w != worker for w in server.workers()), "it is started again")

    def right():
        try:
            return client.predict("lookup", words, timeout=5)["id"].tolist() == [2, -1, 0]
        except grpc.RpcError:
            return False

    eventually(right, "the table is there again")


def copy_with_overrides(models, base, content):
    shutil.copytree(models / "half/1", base / "1")
    extra = base / "1/assets.extra"
    extra.mkdir()
    (extra / "saved_model_config.pb").write_bytes(content)
    return base


@pytest.mark.parametrize(
    "case",
    [
        (b"\x0a\x02\x18\x01", None),  # session_overrides { disable_meta_optimizer: true }
        (b"\x0a\x02\x12\x00", "batch_op_rewriter_config has no effect"),
        (b"this is no message", "saved_model_config.pb is ignored"),
    ],
)
def test_session_overrides_are_read_and_a_broken_file_is_a_warning(
    servers, models, tmp_path, grpc_client, case
):
    content, words = case
    base = copy_with_overrides(models, tmp_path / "half", content)
    server = servers.start(models={"half": base})
    assert grpc_client(server).predict("half", {"x": X})["y"].tolist() == [3.0]
    assert ("saved_model_config.pb" in server.log()) == (words is not None)
    if words:
        assert words in server.log()


def details_of(rest):
    """What the list of models says of its one model's one version."""
    (model,) = rest.get("/v1/models").json()["models"]
    return model["details"][0]


def test_signatures_that_no_client_can_call_are_said_at_load_and_the_others_serve(
    servers, models, grpc_client, rest_client
):
    server = servers.start(models={"composite": models / "composite"})
    client = grpc_client(server)
    warnings = details_of(rest_client(server))["warnings"]
    assert client.predict("composite", {"x": X})["y"].tolist() == [4.0]
    log = server.log()
    for signature, words in (
        ("sparse", "a sparse tensor, which no request can carry"),
        ("ragged", "a ragged tensor, which no request can carry"),
        ("resource", "a resource, which no request can carry"),
    ):
        (line,) = [li for li in log.splitlines() if f"signature '{signature}' cannot be" in li]
        assert words in line
        assert any(f"'{signature}' cannot be" in w and words in w for w in warnings)
        error = error_of(
            lambda s=signature: client.predict("composite", {"x": X}, signature=s, timeout=10)
        )
        assert error.code() == CODE.INVALID_ARGUMENT
    assert client.states("composite") == {1: "AVAILABLE"}


@pytest.mark.parametrize(
    "beside",
    [
        ("variant", "a variant, which no answer can carry", "is variant and cannot be fetched"),
        ("untyped", "declared without a type", "declared without a type and cannot be fetched"),
        ("deep", "a tensor of rank 9", "with a rank above 8"),
        ("lied", None, "with another type than float"),
    ],
    ids=lambda beside: beside[0],
)
def test_an_output_that_no_answer_can_carry_leaves_the_others_to_be_asked_for(composite, beside):
    """By output_filter, as both texts advise; and no such call costs the worker."""
    client, rest = composite
    output, said, refused = beside
    signature = f"{output}_beside"
    for _ in range(3):
        error = error_of(lambda: client.predict("composite", {"x": X}, signature=signature))
        assert error.code() == CODE.INVALID_ARGUMENT
        assert f'output "{output}"' in error.details()
        assert refused in error.details()
        assert "output_filter" in error.details()
        answer = client.predict("composite", {"x": X}, signature=signature, outputs=["y"])
        assert {k: v.tolist() for k, v in answer.items()} == {"y": [4.0]}
    details = details_of(rest)
    assert details["restarts"] == 0
    lines = [w for w in details["warnings"] if f"'{signature}'" in w]
    assert (said is None) == (lines == [])
    assert said is None or (said in lines[0] and "output_filter" in lines[0])


def test_a_version_of_links_into_a_store_is_loaded(servers, models, tmp_path, grpc_client):
    """As DVC, build systems and content caches publish: each file once, and links to it."""
    store, version = tmp_path / "store", tmp_path / "half" / "3"
    source = models / "half" / "3"
    store.mkdir()
    for number, file in enumerate(f for f in source.rglob("*") if f.is_file()):
        kept = store / f"blob{number}"
        shutil.copy(file, kept)
        link = version / file.relative_to(source)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(kept)
    client = grpc_client(servers.start(models={"half": version.parent}))
    assert client.predict("half", {"x": np.array([2.0], np.float32)})["y"].tolist() == [3.0]


def save_with_an_endless_start(path):
    """A SavedModel whose initialisation goes round for ever; its version is 1."""
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], name="x")
        build, info = v1.saved_model.build_signature_def, v1.saved_model.build_tensor_info
        signature = build({"x": info(x)}, {"y": info(tf.identity(x))}, "predict")
        turns = tf.while_loop(lambda i: i >= 0.0, lambda i: 1.0 - i, [v1.random_uniform([])])
        builder = v1.saved_model.Builder(str(path / "1"))
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, main_op=tf.group(turns)
        )
        builder.save()


def test_a_load_that_never_ends_is_ended_and_keeps_nobody_else(
    servers, models, tmp_path, grpc_client
):
    save_with_an_endless_start(tmp_path / "endless")
    server = servers.start(
        ready=False,
        models={"endless": tmp_path / "endless", "half": models / "half"},
        settings='model { key: "endless" value { load_timeout_ms: 2000 } }',
        max_num_load_retries=0,
    )
    client = grpc_client(server)
    eventually(lambda: client.states("half").get(3) == "AVAILABLE", "the other model serves")
    eventually(lambda: client.states("endless") == {1: "END"}, "the load was ended", 30)
    (status,) = client.status("endless")
    assert "did not load within 2s (load_timeout_ms" in status.status.error_message
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    assert len(server.workers()) == 1
