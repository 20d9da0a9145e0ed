# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Twenty models in one server, asked by the stock gRPC client."""

import numpy as np
import pytest
import tensorflow as tf

TWENTY = [
    "half_plus_two",
    "half",
    "keras_mlp",
    "two_in",
    "strings",
    "lookup",
    "counter",
    "echo",
    "odd",
    "const_out",
    "scalar_out",
    "seqsum",
    "rank2",
    "defaults",
    "slow_ms",
    "fill",
    "big_64",
    "bench_identity",
    "bench_image",
    "bench_mlp",
]


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(models={name: models / name for name in TWENTY})


def float32(values):
    return np.array(values, np.float32)


def test_all_twenty_are_available_at_once(client):
    states = {name: client.states(name) for name in TWENTY}
    assert all("AVAILABLE" in s.values() for s in states.values()), states


def test_each_version_has_a_process_of_its_own(server):
    assert len(server.workers()) == len(TWENTY)
    assert len(server.zygotes()) == 1


def test_a_v1_model_answers_with_its_name_version_and_signature(client):
    answer = client.predict_raw("half_plus_two", {"x": float32([[1.0], [2.0], [-4.0]])})
    assert tf.make_ndarray(answer.outputs["y"]).tolist() == [[2.5], [3.0], [0.0]]
    assert answer.model_spec.name == "half_plus_two"
    assert answer.model_spec.version.value == 123
    assert answer.model_spec.signature_name == "serving_default"
    # As the original: typed values, not packed bytes, are what answers carry.
    assert list(answer.outputs["y"].float_val) == [2.5, 3.0, 0.0]


def test_a_v2_model_serves_its_latest_version(client):
    answer = client.predict_raw("half", {"x": float32([2.0])})
    assert answer.model_spec.version.value == 3
    assert list(answer.outputs["y"].float_val) == [3.0]


def test_what_keras_exports_is_served_and_its_rows_sum_to_one(client):
    outputs = client.predict("keras_mlp", {"features": np.ones((5, 4), np.float32)})
    (rows,) = outputs.values()
    assert rows.shape == (5, 3)
    assert np.allclose(rows.sum(axis=1), 1.0, atol=1e-5)


def test_several_inputs_and_outputs_keep_their_names(client):
    outputs = client.predict("two_in", {"a": float32([5.0, 1.0]), "b": float32([2.0, 3.0])})
    assert outputs["sum"].tolist() == [7.0, 4.0]
    assert outputs["difference"].tolist() == [3.0, -2.0]


def test_an_output_filter_leaves_only_what_it_names(client):
    inputs = {"a": float32([5.0]), "b": float32([2.0])}
    assert list(client.predict("two_in", inputs, outputs=["sum"])) == ["sum"]


def test_text_of_any_bytes_and_lengths_goes_through(client):
    words = [b"", b"abc", "gr\u00fc\u00dfe".encode(), b"\x00\xff\xfe", b"x" * 100_000]
    outputs = client.predict("strings", {"s": np.array(words, object)})
    assert outputs["echo"].tolist() == words
    assert outputs["length"].tolist() == [len(word) for word in words]
    assert outputs["upper"][1] == b"ABC"


def test_a_lookup_table_finds_its_asset_file(client):
    outputs = client.predict("lookup", {"word": np.array([b"cherry", b"apple", b"plum"], object)})
    assert outputs["id"].tolist() == [2, 0, -1]


def test_a_counter_counts_each_call_once(client):
    client.predict("counter", {}, signature="reset_counter")
    for expected in (1.0, 2.0, 3.0):
        outputs = client.predict("counter", {}, signature="incr_counter")
        assert outputs["output"] == expected
    outputs = client.predict("counter", {"delta": np.float32(10)}, signature="incr_counter_by")
    assert outputs["output"] == 13.0
    assert client.predict("counter", {}, signature="get_counter")["output"] == 13.0


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_come_back_as_they_went_up_to_their_edges(client, name):
    dtype = tf.as_dtype(name)
    values = np.array([[dtype.min, 0, 1], [2, 3, dtype.max]], dtype.as_numpy_dtype)
    echoed = client.predict("echo", {"x": values}, signature=name)["y"]
    assert echoed.dtype == values.dtype
    assert echoed.tolist() == values.tolist()


@pytest.mark.parametrize("name", FLOATS)
def test_floats_come_back_bit_by_bit(client, name):
    dtype = tf.as_dtype(name)
    values = np.array([0.0, -0.0, 1.5, np.inf, -np.inf, np.nan], dtype.as_numpy_dtype)
    values = np.append(values, np.array([dtype.min, dtype.max], dtype.as_numpy_dtype))
    echoed = client.predict("echo", {"x": values}, signature=name)["y"]
    assert echoed.dtype == values.dtype
    assert echoed.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("bool", np.array([True, False, True])),
        ("complex64", np.array([1 + 2j, -3.5j], np.complex64)),
        ("complex128", np.array([1 + 2j, -3.5j], np.complex128)),
        ("string", np.array([b"", b"\x00bytes"], object)),
    ],
)
def test_the_other_dtypes_come_back_as_they_went(client, name, values):
    echoed = client.predict("echo", {"x": values}, signature=name)["y"]
    assert echoed.tolist() == values.tolist()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (2, 3, 4, 5), (1,) * 8])
def test_shapes_come_back_as_they_went(client, shape):
    values = np.zeros(shape, np.float32)
    assert client.predict("echo", {"x": values})["y"].shape == shape


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        ([7.0], [7.0, 7.0, 7.0]),  # The last value is repeated.
        ([1.0, 2.0], [1.0, 2.0, 2.0]),
        ([], [0.0, 0.0, 0.0]),
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0]),  # Surplus is dropped.
    ],
)
def test_short_and_long_value_lists_are_read_as_tensorflow_reads_them(client, sent, got):
    proto = tf.make_tensor_proto(np.zeros(3, np.float32))
    proto.ClearField("tensor_content")
    proto.ClearField("float_val")
    proto.float_val.extend(sent)
    assert client.predict("echo", {"x": proto})["y"].tolist() == got


def test_packed_and_typed_tensors_mean_the_same(client):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    packed = tf.make_tensor_proto(values)
    typed = tf.make_tensor_proto(values)
    typed.ClearField("tensor_content")
    typed.float_val.extend(values.ravel().tolist())
    for proto in (packed, typed):
        assert client.predict("echo", {"x": proto})["y"].tolist() == values.tolist()


def test_numbers_that_are_hard_to_print_are_exact_over_grpc(client):
    row = client.predict("odd", {"x": float32([0.0])})["y"][0]
    expected = float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-07, 1e10, 0.2, 3.4e38])
    assert row.tobytes() == expected.tobytes()


def test_outputs_without_a_batch_dim_and_of_rank_zero_are_answered(client):
    outputs = client.predict("const_out", {"keys": np.array([[1], [2], [3]], np.int32)})
    assert outputs["keys"].tolist() == [[1], [2], [3]]
    assert outputs["constant"].tolist() == [1.5, 2.5]
    assert client.predict("scalar_out", {"x": float32([1, 2, 3])})["sum"] == 6.0


def test_inputs_with_defaults_may_be_left_out(client):
    a = float32([1.0, 2.0])
    assert client.predict("defaults", {"a": a})["y"].tolist() == [11.0, 21.0]
    outputs = client.predict("defaults", {"a": a, "scale": np.float32(2)})
    assert outputs["y"].tolist() == [3.0, 5.0]
    outputs = client.predict("defaults", {"a": a, "scale": np.float32(2), "offset": np.float32(0)})
    assert outputs["y"].tolist() == [2.0, 4.0]


def test_a_tensor_larger_than_a_segment_goes_both_ways(client):
    """16 MB in, 16 MB out: larger than the standard segments of the channel."""
    values = np.arange(4 << 20, dtype=np.float32)
    assert np.array_equal(client.predict("echo", {"x": values})["y"], values)


def test_a_large_answer_comes_from_a_small_request(client):
    outputs = client.predict("fill", {"dims": np.array([64 << 10, 256], np.int32)})
    assert outputs["y"].shape == (64 << 10, 256)
    assert outputs["y"].sum() == (64 << 10) * 256


def test_an_image_goes_through(client):
    image = np.random.default_rng(1).random((1, 224, 224, 3)).astype(np.float32)
    outputs = client.predict("bench_image", {"image": image})
    assert outputs["y"].tolist() == image[:, 0, 0, :].tolist()


def test_many_calls_on_one_connection_are_each_answered_with_their_own(client):
    calls = []
    for i in range(500):
        request = client.predict_request("half", {"x": float32([i, -i])})
        calls.append((i, client.prediction.Predict.future(request, timeout=60)))
    for i, call in calls:
        assert list(call.result().outputs["y"].float_val) == [i / 2 + 2, -i / 2 + 2]
