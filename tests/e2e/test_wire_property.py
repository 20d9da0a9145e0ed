# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Random TensorProtos mean to tensord what they mean to TensorFlow and to protobuf.

Each goes through an identity model; TensorFlow's own reader (tf.io.parse_tensor, over the official
protobuf classes) says what it holds, or that it is none. A failure prints its seed; run it again
with TENSORD_SEED=N.
"""

import os
import random

import grpc
import numpy as np
import pytest
import tensorflow as tf
from clients import SECONDS, GrpcClient
from google.protobuf.message import DecodeError
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import predict_pb2

SEED = int(os.environ.get("TENSORD_SEED", random.SystemRandom().randrange(1 << 32)))
PER_DTYPE = 60

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# dtype: the value field, its wire type, values an element.
FIELDS = {
    tf.float32: (5, FIXED32, 1),
    tf.float64: (6, FIXED64, 1),
    tf.int32: (7, VARINT, 1),
    tf.int16: (7, VARINT, 1),
    tf.int8: (7, VARINT, 1),
    tf.uint8: (7, VARINT, 1),
    tf.uint16: (7, VARINT, 1),
    tf.string: (8, BYTES, 1),
    tf.complex64: (9, FIXED32, 2),
    tf.int64: (10, VARINT, 1),
    tf.bool: (11, VARINT, 1),
    tf.complex128: (12, FIXED64, 2),
    tf.half: (13, VARINT, 1),
    tf.bfloat16: (13, VARINT, 1),
    tf.uint32: (16, VARINT, 1),
    tf.uint64: (17, VARINT, 1),
}


@pytest.fixture(scope="module")
def client(module_servers, models):
    server = module_servers.start(models={"echo": models / "echo"})
    client = GrpcClient(server.grpc)
    yield client
    client.close()


# ---- Bytes of a message, in any of the forms that the wire format allows -----------------------


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(field, wire):
    return varint(field << 3 | wire)


def delimited(field, payload):
    return tag(field, BYTES) + varint(len(payload)) + payload


def value_bytes(rng, dtype, wire):
    """One value as it stands in a packed field; varints also beyond what the dtype holds."""
    if wire == FIXED32:
        return rng.choice([rng.randbytes(4), np.float32(rng.gauss(0, 9)).tobytes()])
    if wire == FIXED64:
        return rng.choice([rng.randbytes(8), np.float64(rng.gauss(0, 9)).tobytes()])
    if dtype == tf.bool:
        return varint(rng.choice([0, 1, 1, 2, 1 << 40]))
    bits = rng.choice([1, 7, 8, 15, 16, 31, 32, 63, 64])
    value = rng.getrandbits(bits)
    return varint(value if rng.random() < 0.6 else -value)


def values_field(rng, dtype, count):
    """`count` values: packed, unpacked, or now the one and now the other."""
    field, wire, _ = FIELDS[dtype]
    if wire == BYTES:
        return [delimited(field, rng.randbytes(rng.randrange(12))) for _ in range(count)]
    values = [value_bytes(rng, dtype, wire) for _ in range(count)]
    form = rng.random()
    if form < 0.5:
        return [delimited(field, b"".join(values))] if values or rng.random() < 0.5 else []
    pieces = []
    while values:
        size = rng.randint(1, len(values))
        run, values = values[:size], values[size:]
        if form < 0.75 or rng.random() < 0.5:
            pieces += [tag(field, wire) + one for one in run]
        else:
            pieces.append(delimited(field, b"".join(run)))
    return pieces


def content_field(rng, dtype, elements):
    """tensor_content, most often of the right size."""
    if dtype == tf.string:
        strings = [rng.randbytes(rng.randrange(9)) for _ in range(elements)]
        content = b"".join(varint(len(s)) for s in strings) + b"".join(strings)
    else:
        content = rng.randbytes(elements * dtype.size)
        if dtype == tf.bool:
            content = bytes(b & 1 for b in content)
    if rng.random() < 0.15:
        content = rng.choice([content[:-1], content + b"\0", content * 2])
    return [delimited(4, content)]


def shape_field(dims):
    """Dims of zero with and without their default value on the wire."""
    body = b"".join(delimited(2, tag(1, VARINT) + varint(d)) for d in dims)
    return delimited(2, body)


def junk(rng):
    """Fields that nobody knows, and version_number."""
    return rng.choice(
        [tag(3, VARINT) + varint(5), delimited(99, b"junk"), tag(100, FIXED64) + b"8 bytes."]
    )


def message(rng, dtype):
    dims = [rng.choice([0, 1, 1, 2, 3, 5]) for _ in range(rng.randrange(4))]
    elements = int(np.prod(dims, dtype=np.int64))
    per_element = FIELDS[dtype][2]
    pieces = [tag(1, VARINT) + varint(dtype.as_datatype_enum)]
    if dims or rng.random() < 0.5:
        pieces.append(shape_field(dims))
    if rng.random() < 0.35:
        pieces += content_field(rng, dtype, elements)
    if rng.random() < 0.75:
        count = rng.choice([elements, elements, rng.randint(0, elements + 2), 1])
        pieces += values_field(rng, dtype, count * per_element)
    if rng.random() < 0.3:
        pieces.append(junk(rng))
    if rng.random() < 0.3:
        # Any order is the same message, but for the order of values of one field.
        pieces.insert(rng.randrange(len(pieces)), pieces.pop())
    data = b"".join(pieces)
    return data[: rng.randrange(len(data))] if rng.random() < 0.08 else data


# ---- What it means -----------------------------------------------------------------------------


def expected(data, dtype):
    """The elements as bytes, with their shape; None when it is no tensor of that type."""
    try:
        proto = tensor_pb2.TensorProto.FromString(data)
        shape, elements = elements_of(data, dtype)
    except (DecodeError, tf.errors.OpError):
        return None
    assert list(shape) == [d.size for d in proto.tensor_shape.dim]
    return shape, elements


def elements_of(data, dtype):
    value = tf.io.parse_tensor(data, dtype).numpy()
    if dtype == tf.string:
        value = np.array(value, object)
        return value.shape, value.ravel().tolist()
    return value.shape, value.tobytes()


def answer(channel, data, dtype):
    entry = delimited(1, b"x") + delimited(2, data)
    spec = delimited(1, b"echo") + delimited(3, dtype.name.encode())
    call = channel.unary_unary(
        "/tensorflow.serving.PredictionService/Predict",
        request_serializer=lambda body: body,
        response_deserializer=predict_pb2.PredictResponse.FromString,
    )
    try:
        response = call(delimited(1, spec) + delimited(2, entry), timeout=SECONDS)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.INVALID_ARGUMENT:
            return None
        raise
    return elements_of(response.outputs["y"].SerializeToString(), dtype)


@pytest.mark.parametrize("dtype", list(FIELDS), ids=lambda d: d.name)
def test_a_random_tensor_is_read_as_tensorflow_reads_it(client, dtype):
    rng = random.Random(f"{SEED} {dtype.name}")
    read = 0
    for number in range(PER_DTYPE):
        data = message(rng, dtype)
        want = expected(data, dtype)
        got = answer(client.channel, data, dtype)
        assert got == want, f"TENSORD_SEED={SEED}, {dtype.name} number {number}: {data.hex()}"
        read += want is not None
    assert read > PER_DTYPE / 4, f"TENSORD_SEED={SEED}: most of what was made was nothing"
