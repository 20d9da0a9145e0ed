# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The stock gRPC client against the network edge."""

import grpc
import pytest


@pytest.fixture
def call(echo):
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    channel = grpc.insecure_channel(f"127.0.0.1:{echo.port}", options=options)
    yield lambda method: channel.unary_unary(
        f"/echo.Echo/{method}",
        request_serializer=lambda data: data,
        response_deserializer=lambda data: data,
    )
    channel.close()


@pytest.mark.parametrize("size", [0, 1, 65_530, 65_531, 65_536, 602_112, 20_000_000])
def test_messages_of_all_sizes(call, size):
    message = bytes(range(256)) * (size // 256 + 1)
    assert call("Call")(message[:size], timeout=60) == message[:size]


def test_errors_carry_code_and_words(call):
    with pytest.raises(grpc.RpcError) as raised:
        call("Fail")("grüße, 100 %\n".encode())
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert raised.value.details() == "grüße, 100 %\n"
    with pytest.raises(grpc.RpcError) as raised:
        call("Nope")(b"")
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_deadline(call):
    with pytest.raises(grpc.RpcError) as raised:
        call("Hang")(b"", timeout=0.2)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_cancel_reaches_the_service(call, echo):
    future = call("Hang").future(b"")
    echo.wait_for(lambda stats: stats["calls"] == 2)
    future.cancel()
    echo.wait_for(lambda stats: stats["cancelled"] == 1)


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_requests(call, compression):
    assert call("Call")(b"abc" * 300_000, compression=compression) == b"abc" * 300_000


def test_a_thousand_calls_at_once(call):
    futures = [call("Call").future(b"%d" % i * 100) for i in range(1000)]
    assert [future.result(timeout=60) for future in futures] == [
        b"%d" % i * 100 for i in range(1000)
    ]


def test_a_cancel_storm_harms_nobody_else(call, echo):
    """Nine of ten calls are cancelled at once; every other one is answered."""
    kept = []
    for i in range(3000):
        if i % 10 == 0:
            kept.append(call("Call").future(b"kept"))
        else:
            call("Hang").future(b"").cancel()
    assert all(future.result(timeout=60) == b"kept" for future in kept)
    echo.wait_for(lambda stats: stats["calls"] == 1)
