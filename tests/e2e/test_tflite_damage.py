# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged model.tflite files, copied into a server that runs: each costs its own version at most.

By hand, for longer: TENSORD_DAMAGE=SEED:FILES in the environment.
"""

import math
import os
import random
import shutil
from collections import Counter

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from local_server import eventually

SEED, FILES = map(int, os.environ.get("TENSORD_DAMAGE", "1:40").split(":"))
NAMES = ["half", "plain", "two", "strings", "echo", "matrix", "counter", "where"]
ELEMENTS_MAX = 1_000_000
WORDS = [0, 1, 0x100, 0x7FFFFFFF, 0xFFFFFFFF]
# The limits that end what never returns; a load takes milliseconds.
LIMITS = "load_timeout_ms: 3000 run_timeout_ms: 1000 executors: 1"


def cut(whole, rng):
    return whole[: rng.randrange(len(whole))]


def flip_bits(whole, rng):
    for _ in range(rng.randint(1, 3)):
        whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
    return whole


def replace_bytes(whole, rng):
    for _ in range(rng.randint(1, 20)):
        whole[rng.randrange(len(whole))] = rng.randrange(256)
    return whole


def replace_words(whole, rng):
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(0, len(whole) - 4, 4)
        whole[at : at + 4] = rng.choice(WORDS).to_bytes(4, "little")
    return whole


def shift_a_word(whole, rng):
    at = rng.randrange(0, len(whole) - 4, 4)
    moved = int.from_bytes(whole[at : at + 4], "little") + rng.choice([-8, -4, -1, 1, 4, 8, 1000])
    whole[at : at + 4] = (moved % 2**32).to_bytes(4, "little")
    return whole


def copy_a_piece(whole, rng):
    size = rng.randint(1, 64)
    source, target = (rng.randrange(len(whole) - size) for _ in range(2))
    whole[target : target + size] = whole[source : source + size]
    return whole


DAMAGES = [cut, flip_bits, replace_bytes, replace_words, shift_a_word, copy_a_piece]


def damaged(models, count, seed):
    """(name, version, content) of `count` files; the same for the same seed."""
    rng = random.Random(seed)
    for i in range(count):
        name = NAMES[i % len(NAMES)]
        whole = bytearray((models / f"lite_{name}/1/model.tflite").read_bytes())
        yield name, 100 + i, bytes(rng.choice(DAMAGES)(whole, rng))


def request_for(signature):
    """Inputs as the signature says, two in each open dim."""
    inputs = {}
    for name, info in signature.inputs.items():
        shape = [2 if d.size < 0 else d.size for d in info.tensor_shape.dim]
        if math.prod(shape) > ELEMENTS_MAX:
            raise ValueError("no request should be that large")
        dtype = tf.dtypes.as_dtype(info.dtype).as_numpy_dtype
        inputs[name] = np.full(shape, b"yes" if dtype is object else 1, dtype)
    return inputs


def ask(client, name, version):
    """One call of a version that took its damage: any end will do, but it has an end."""
    try:
        _, signatures = client.metadata(name, version=version)
        signature = sorted(signatures)[0]
        inputs = request_for(signatures[signature])
        client.predict(name, inputs, version=version, signature=signature, timeout=20)
    except grpc.RpcError as error:
        return error.code().name
    except (ValueError, TypeError, DecodeError):
        return "no request fits its signature"  # A huge shape, a type that is none, odd names.
    return "OK"


def test_a_damaged_file_costs_its_version_alone(servers, models, grpc_client, tmp_path):
    for name in NAMES:
        shutil.copytree(models / f"lite_{name}/1", tmp_path / name / "1")
    server = servers.start(
        models={n: (tmp_path / n, "model_version_policy { all {} }") for n in NAMES},
        settings="\n".join(f'model {{ key: "{n}" value {{ {LIMITS} }} }}' for n in NAMES),
        prefer_tflite_model="true",
        max_num_load_retries=0,
    )
    client = grpc_client(server)
    processes = {p.pid for p in [server.front(), *server.zygotes()]}
    placed = []
    for name, version, content in damaged(models, FILES, SEED):
        fresh = tmp_path / "incoming"
        fresh.mkdir()
        (fresh / "model.tflite").write_bytes(content)
        fresh.rename(tmp_path / name / str(version))
        placed.append((name, version))

    outcomes, answers = Counter(), Counter()
    for name, version in placed:
        state = eventually(
            lambda n=name, v=version: (
                client.states(n).get(v, "") in ("AVAILABLE", "END") and client.states(n)[v]
            ),
            f"the load of {name}/{version} has an end",
            60,
        )
        outcomes[state] += 1
        if state == "END":
            assert client.status(name, version)[0].status.error_message, (name, version)
        else:
            answers[ask(client, name, version)] += 1
    print(f"seed {SEED}: {dict(outcomes)}, then {dict(answers)}")
    assert outcomes.total() == FILES
    assert outcomes["END"] > FILES / 2  # Most damage is seen.

    assert {p.pid for p in [server.front(), *server.zygotes()]} == processes
    assert all(client.states(name)[1] == "AVAILABLE" for name in NAMES)
    x = np.array([1.0, 2.0], np.float32)
    np.testing.assert_array_equal(client.predict("half", {"x": x}, version=1)["y"], x / 2 + 2)
    assert client.predict("two", {"a": x, "b": x}, version=1)["sum"].tolist() == [2.0, 4.0]
