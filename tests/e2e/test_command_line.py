# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord serve` and the alias: parsing, start-up errors, when ports open, what is logged."""

import json
import shutil
import socket
import stat
import subprocess
import sys

import grpc
import numpy as np
import pytest
import requests
from clients import SECONDS, GrpcClient, error_of
from local_server import BIN, ROOT, eventually, free_port

X = np.array([2.0], np.float32)
TENSORD = BIN / "tensord"
ALIAS = BIN / "tensorflow_model_server"


def run(*command, **arguments):
    return subprocess.run(
        [str(c) for c in command],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        **arguments,
    )


NUMBERS = {
    "train": (
        "--nnodes --nproc-per-node --ps --node-rank --max-restarts --grace --join-timeout "
        "--start-timeout --hang-timeout --stopped-timeout --heartbeat --healthy-after "
        "--yield-queue --yield-p99-ms"
    ),
    "top": "--interval",
    "advise": "--seconds --interval --run",
    "doctor": "--port",
    "bench": (
        "--port --rows --zipf --deadline_ms --connections --in_flight --rate --rates --factors "
        "--in_flight_max --threads --seconds --requests --warm_up_seconds --seed "
        "--max_failed_percent --server_pid"
    ),
}


@pytest.mark.parametrize("command", NUMBERS)
def test_what_is_no_number_of_its_range_is_refused_by_every_option(command):
    code = {"doctor": 3}.get(command, 2)
    behind = ["--", "true"] if command == "train" else []
    for option in NUMBERS[command].split():
        for value in ("nan", "NaN", "Nan", "-nan", "inf", "-inf", "-2", "1e999", "9x"):
            given = f"{value}:{value}" if option == "--run" else value
            result = run(TENSORD, command, f"{option}={given}", *behind)
            expected = 1 if option == "--run" else code
            assert result.returncode == expected, (option, value, result.stderr)
            assert option.strip("-") in result.stderr + result.stdout, (option, value)


def test_help_and_version_name_the_server(models):
    result = run(TENSORD, "--help")
    assert result.returncode == 0
    assert "serve" in result.stdout
    result = run(TENSORD, "serve", "--help")
    assert result.returncode == 0
    assert "--model_base_path" in result.stdout
    result = run(ALIAS, "--version")
    assert result.returncode == 0
    assert result.stdout.strip()


def test_the_alias_prints_usage_and_ends_with_255_for_help_and_bad_values():
    for argument in ("--help", "--port=abc", "--enable_batching=maybe"):
        result = run(ALIAS, argument)
        assert result.returncode == 255, argument
        assert "--model_base_path" in result.stdout + result.stderr


def test_starting_with_nothing_to_serve_says_what_to_give():
    result = run(TENSORD, "serve", f"--port={free_port()}")
    assert result.returncode not in {0, None}
    assert "model_base_path" in result.stderr + result.stdout
    result = run(ALIAS, f"--port={free_port()}")
    assert result.returncode == 255
    assert "Failed to start server" in result.stdout


@pytest.mark.parametrize(
    "flag",
    [
        "--use_alts_credentials",
    ],
)
def test_a_flag_whose_neglect_would_change_safety_or_answers_stops_the_start(models, flag):
    result = run(
        TENSORD, "serve", f"--port={free_port()}", f"--model_base_path={models}/half", flag
    )
    assert result.returncode not in {0, None}
    assert flag.split("=")[0].strip("-") in result.stderr + result.stdout


def test_batching_parameters_without_batching_are_an_error(models, tmp_path):
    (tmp_path / "batching").write_text("max_batch_size { value: 8 }")
    result = run(
        ALIAS,
        f"--port={free_port()}",
        f"--model_base_path={models}/half",
        f"--batching_parameters_file={tmp_path}/batching",
    )
    assert result.returncode == 255


def test_a_taken_port_is_named(models):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run(TENSORD, "serve", f"--port={port}", f"--model_base_path={models}/half")
    assert result.returncode not in {0, None}
    assert str(port) in result.stderr + result.stdout


def test_a_missing_runtime_is_named_with_where_it_was_looked_for(models, tmp_path):
    result = run(
        TENSORD,
        "serve",
        f"--port={free_port()}",
        f"--model_base_path={models}/half",
        f"--tensorflow_library_dir={tmp_path}",
    )
    assert result.returncode not in {0, None}
    assert str(tmp_path) in result.stderr + result.stdout


def test_the_original_command_line_serves_one_model(servers, models, grpc_client):
    server = servers.start(
        alias=True,
        model_name="half",
        model_base_path=models / "half",
        thread_pool_factory_config_file="x",
    )
    client = grpc_client(server)
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    assert "thread_pool_factory_config_file" in server.log()


def test_an_unknown_flag_is_warned_of_by_the_alias(servers, models, grpc_client):
    server = servers.start(
        alias=True, model_name="half", model_base_path=models / "half", no_such_flag="1"
    )
    assert grpc_client(server).predict("half", {"x": X})["y"].tolist() == [3.0]
    assert "no_such_flag" in server.log()


def test_tensord_serve_refuses_an_unknown_flag(models):
    result = run(TENSORD, "serve", f"--model_base_path={models}/half", "--no_such_flag=1")
    assert result.returncode not in {0, None}
    assert "no_such_flag" in result.stderr + result.stdout


def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def test_tensord_serve_listens_at_once_and_says_that_the_model_is_not_there_yet(
    servers, models, tmp_path, grpc_client
):
    server = servers.start(ready=False, model_name="half", model_base_path=tmp_path / "later")
    eventually(lambda: connects(server.grpc_port), "the port is open", 20)
    client = grpc_client(server)
    error = error_of(lambda: client.predict("half", {"x": X}, timeout=20))
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    waits = requests.post(
        server.rest + "/v1/models/half:predict", json={"instances": [2]}, timeout=SECONDS
    )
    assert waits.status_code == 503
    assert int(waits.headers["Retry-After"]) >= 1
    assert server.status_code("/livez") == 200
    assert server.status_code("/readyz") == 503
    shutil.copytree(models / "half/1", tmp_path / "later/1")
    server.wait_ready()
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]


def test_the_alias_opens_its_port_when_the_model_is_there(servers, models, tmp_path):
    server = servers.start(
        ready=False, alias=True, model_name="half", model_base_path=tmp_path / "later"
    )
    for _ in range(20):
        assert not connects(server.grpc_port)
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(timeout=0.1)
    shutil.copytree(models / "half/1", tmp_path / "later/1")
    eventually(lambda: connects(server.grpc_port), "the port opens")
    client = GrpcClient(server.grpc)
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    client.close()


def test_the_alias_ends_when_a_model_fails_for_good(servers, models, tmp_path):
    (tmp_path / "bad/1").mkdir(parents=True)
    (tmp_path / "bad/1/saved_model.pb").write_bytes(b"no model")
    server = servers.create(
        alias=True,
        model_name="bad",
        model_base_path=tmp_path / "bad",
        max_num_load_retries=0,
    )
    server.start()
    assert server.wait(60) == 255
    assert "did not become available" in server.log()


def test_a_unix_socket_serves_grpc(servers, models, tmp_path):
    path = tmp_path / "grpc.sock"
    server = servers.start(
        model_name="half", model_base_path=models / "half", grpc_socket_path=path
    )
    assert stat.S_ISSOCK(path.stat().st_mode)
    for address in (f"unix:{path}", server.grpc):
        client = GrpcClient(address)
        assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
        client.close()


def test_grpc_over_a_unix_socket_alone(servers, models, tmp_path):
    path = tmp_path / "grpc.sock"
    servers.start(model_name="half", model_base_path=models / "half", grpc_socket_path=path, port=0)
    client = GrpcClient(f"unix:{path}")
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    client.close()


def test_a_stale_unix_socket_is_replaced_at_the_next_start(servers, models, tmp_path):
    path = tmp_path / "grpc.sock"
    arguments = {
        "model_name": "half",
        "model_base_path": models / "half",
        "grpc_socket_path": path,
    }
    first = servers.start(**arguments)
    first.kill()
    servers.start(**arguments)
    client = GrpcClient(f"unix:{path}")
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    client.close()


def test_json_logs_are_one_object_a_line_and_name_the_model(servers, models):
    server = servers.start(model_name="half", model_base_path=models / "half", log_format="json")
    lines = [json.loads(line) for line in server.log().splitlines() if line.strip()]
    assert lines
    assert any("half" in json.dumps(line) for line in lines)


def test_what_a_model_prints_is_labelled_with_model_and_version(servers, models, grpc_client):
    from test_worker_death import probe, settings_for

    server = servers.start(
        models={"probe": models / "probe"}, settings=settings_for(models, "probe")
    )
    probe(grpc_client(server), "print", "3")

    def labelled():
        lines = [line for line in server.log().splitlines() if "probe says 2 on" in line]
        return len(lines) == 2 and all("probe" in line.replace("probe says", "") for line in lines)

    eventually(labelled, "both streams are in the log", 20)


def test_a_flood_of_lines_is_capped(servers, models, grpc_client):
    from test_worker_death import probe, settings_for

    server = servers.start(
        models={"probe": models / "probe"}, settings=settings_for(models, "probe")
    )
    client = grpc_client(server)
    probe(client, "print", "20000")
    assert probe(client, "hello") == "hello"
    assert server.log().count("probe says") < 5000


def test_run_serve_takes_any_number_of_options():
    lists = [], ["--port"], ["--port", "1"], ["--port=2"], ["--other", "--port=3", "--last"]
    code = f"import serve; print([serve.named(words, 'port') for words in {lists}])"
    answer = run(sys.executable, "-c", code, cwd=ROOT / "python/demo")
    assert answer.stdout == "[None, '', '1', '2', '3']\n", answer.stderr
