# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 frames by hand, so that wrong ones can be sent too."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, _, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(
    10
)
END_STREAM, END_HEADERS, ACK = 1, 4, 1
ENHANCE_YOUR_CALM = 11


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def integer(value, bits, first=0):
    """HPACK's integers (RFC 7541, 5.1)."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out = [first | most]
    value -= most
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


def literal(name, value):
    """A header that enters no table."""
    name, value = name.encode(), value.encode()
    return b"\0" + integer(len(name), 7) + name + integer(len(value), 7) + value


def request(path="/echo.Echo/Call", more=(), method="POST"):
    fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "test")]
    return b"".join(literal(*field) for field in [*fields, *more])


GRPC = (("te", "trailers"), ("content-type", "application/grpc"))


def message(body):
    return b"\0" + struct.pack(">I", len(body)) + body


def hello(settings=()):
    payload = b"".join(struct.pack(">HI", key, value) for key, value in settings)
    return PREFACE + frame(SETTINGS, 0, 0, payload)


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        some = connection.recv(size - len(data))
        if not some:
            raise ConnectionError("closed")
        data += some
    return data


def read_frame(connection):
    head = read_exactly(connection, 9)
    size = int.from_bytes(head[:3], "big")
    stream = int.from_bytes(head[5:9], "big") & 0x7FFFFFFF
    return head[3], head[4], stream, read_exactly(connection, size)


def read_until_closed(connection):
    """All frames; an abrupt end is an end too."""
    frames = []
    try:
        while True:
            frames.append(read_frame(connection))
    except TimeoutError:
        raise AssertionError("the connection stays open") from None
    except ConnectionError:
        pass
    return frames


def flood(connection, chunks):
    """Sends until the server cuts the connection. How many chunks went, and whether it did."""
    sent = 0
    try:
        for chunk in chunks:
            connection.sendall(chunk)
            sent += 1
    except (ConnectionError, BrokenPipeError):
        return sent, True
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        return sent, True
    except TimeoutError:
        return sent, False
    return sent, True
