# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What a user sees of `tensord serve` and of the alias when they start, and when they cannot."""

import signal
import socket
import subprocess
import time

import pytest
from conftest import PATIENCE_S, free_port, wait_until


@pytest.fixture
def run(fakes):
    """Runs a program to its end and gives what came of it."""

    def runner(program, *arguments):
        command = [fakes / program, *arguments]
        return subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=PATIENCE_S
        )

    return runner


def test_port_in_use_is_said_at_once_with_what_to_do(run):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        begin = time.monotonic()
        result = run("tensord", "serve", f"--port={port}", "--model_base_path=/m")
        # The promise is 1 s; a machine under load gets more, and a retry loop would take longer.
        assert time.monotonic() - begin < 10
        assert result.returncode == 1
        assert (
            f"gRPC cannot listen on 0.0.0.0:{port}: port {port} is in use by another program; "
            "stop that one (`ss -ltnp` names it) or choose another port with --port"
        ) in result.stderr
        original = run("tensorflow_model_server", f"--port={port}", "--model_base_path=/m")
        assert original.returncode == 255
        words = "Failed to start server. Error: FAILED_PRECONDITION: gRPC"
        assert original.stdout.startswith(words)


def test_second_server_on_the_same_port_is_refused(start, run):
    server = start()
    server.wait_for_front()
    result = run("tensord", "serve", f"--port={server.port}", "--model_base_path=/m")
    assert result.returncode == 1
    assert f"port {server.port} is in use" in result.stderr


def test_alias_fails_as_the_original_does(run):
    result = run("tensorflow_model_server", f"--port={free_port()}")
    assert result.returncode == 255
    assert result.stdout == (
        "Failed to start server. Error: INVALID_ARGUMENT: Both server_options.model_base_path and "
        "server_options.model_config_file are empty!\n"
    )


def test_alias_prints_usage_for_a_bad_value(run):
    result = run("tensorflow_model_server", "--port=x")
    assert result.returncode == 255
    assert "tensorflow_model_server\nFlags:\n\t--port=8500" in result.stdout
    assert '--port takes a value of type int32, not "x"' in result.stderr


def test_alias_names_the_place_of_an_error_in_a_file(run, tmp_path):
    config = tmp_path / "models.config"
    config.write_text("model_config_list {\n  config: 1\n}\n")
    result = run(
        "tensorflow_model_server", f"--port={free_port()}", f"--model_config_file={config}"
    )
    assert result.returncode == 255
    words = f"Error parsing text-format tensorflow.serving.ModelServerConfig: {config}:2:11: "
    assert words in result.stdout
    # The original's tests look for it here.
    assert words in result.stderr


def test_alias_goes_on_with_an_unknown_flag_and_opens_its_port_when_the_front_does(start):
    server = start(["--no_such_flag=1"], program="tensorflow_model_server")
    server.wait_for_front()
    assert server.process.stdout.readline() == b"unknown argument: --no_such_flag=1\n"
    wait_until(
        lambda: f"Running gRPC ModelServer at 0.0.0.0:{server.port} ..." in server.log(),
        "the original's line",
    )
    server.send(signal.SIGTERM)
    assert server.exit_code() == 0


def test_serve_refuses_what_it_does_not_know(run):
    result = run("tensord", "serve", "--rest_port=1")
    assert result.returncode == 2
    words = "there is no option --rest_port; did you mean --rest_api_port?"
    assert result.stderr == f"tensord: {words}\n"


def test_serve_refuses_what_would_change_safety(run):
    result = run(
        "tensord",
        "serve",
        f"--port={free_port()}",
        "--model_base_path=/m",
        "--use_alts_credentials",
    )
    assert result.returncode == 1
    assert "--use_alts_credentials=true is refused: ALTS is not supported" in result.stderr


def test_options_without_effect_get_one_line_each(start):
    server = start(["--thread_pool_factory_config_file=/x", "--grpc_max_threads=8"])
    server.wait_for_front()
    log = server.log()
    assert log.count("--thread_pool_factory_config_file has no effect") == 1
    assert "grpc_max_threads" not in log  # What it asks for holds anyway.


def test_help_and_usage(run):
    assert run("tensord").returncode == 2
    assert "serve " in run("tensord", "--help").stdout
    assert run("tensord", "serve", "--help").returncode == 0
    result = run("tensord", "sevre")
    assert result.returncode == 2
    assert 'there is no command "sevre"' in result.stderr
    assert run("tensord", "front").returncode == 2


def test_log_can_be_json(start):
    import json

    server = start(["--log_format=json"])
    server.wait_for_front()
    lines = [json.loads(line) for line in server.log().splitlines()]
    assert {line["process"] for line in lines} == {"supervisor"}
    assert any("starts (CPUs" in line["message"] for line in lines)
