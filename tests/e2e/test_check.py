# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord check`, and that what it says of files is what a start says."""

import json
import os
import resource
import shutil
import subprocess

import pytest
import tensorflow as tf
from clients import error_of
from local_server import BIN, eventually, free_port
from tensorflow.core.protobuf import saved_model_pb2

TENSORD = BIN / "tensord"
ALIAS = BIN / "tensorflow_model_server"


def run(*command):
    return subprocess.run(
        [str(c) for c in command], check=False, capture_output=True, text=True, timeout=60
    )


def check(*arguments):
    """The exit code and the report."""
    result = run(TENSORD, "check", "--json", *arguments)
    return result.returncode, json.loads(result.stdout)


def test_a_good_command_line_says_what_would_happen(models):
    port = free_port()
    code, report = check(f"--port={port}", "--model_name=half", f"--model_base_path={models}/half")
    assert (code, report["ok"]) == (0, True), report
    assert any(str(port) in line for line in report["listeners"])
    (model,) = report["models"]
    assert model["policy"] == "latest(1)"
    loads = {v["number"]: v["loads"] for v in model["versions"]}
    assert loads["3"] is True
    assert not any(v for n, v in loads.items() if n != "3")
    assert report["differences"] == []
    text = run(TENSORD, "check", f"--port={port}", f"--model_base_path={models}/half")
    assert text.returncode == 0
    assert "version 3: complete" in text.stdout
    assert "The server would start" in text.stdout


def test_every_difference_of_a_deployment_is_listed(models, tmp_path):
    (tmp_path / "batching").write_text("max_batch_size { value: 8 } allowed_batch_sizes: [4, 8]")
    code, report = check(
        "tensorflow_model_server",
        f"--port={free_port()}",
        f"--model_base_path={models}/half",
        "--enable_batching",
        f"--batching_parameters_file={tmp_path}/batching",
        "--grpc_max_threads=8",
        "--no_such_flag",
    )
    assert code == 0, report
    assert {f["name"]: f["state"] for f in report["flags"]} == {"grpc_max_threads": "not needed"}
    areas = {row["area"] for row in report["differences"]}
    assert "Batching" in areas
    assert "REST" not in areas
    # Which is no difference to the server whose place this one takes.
    assert "Open Inference Protocol" not in areas
    assert "unknown argument: --no_such_flag" in report["warnings"]
    (platform,) = report["platforms"]
    assert "batching: padded to 4, 8 rows" in platform["lines"]


FILES = [
    ("model_config_file", "tensorflow.serving.ModelServerConfig", []),
    ("batching_parameters_file", "tensorflow.serving.BatchingParameters", ["--enable_batching"]),
    ("platform_config_file", "tensorflow.serving.PlatformConfigMap", []),
    ("monitoring_config_file", "tensorflow.serving.MonitoringConfig", []),
    ("tensorflow_session_config_file", "tensorflow.ConfigProto", []),
    ("model_settings_file", "tensord.ModelSettingsFile", []),
]


@pytest.mark.parametrize(("flag", "message", "more"), FILES)
def test_a_bad_file_is_named_with_line_and_column(models, tmp_path, flag, message, more):
    path = tmp_path / "bad.txt"
    path.write_text("\n  nonsense: 1\n")
    arguments = [
        f"--port={free_port()}",
        f"--rest_api_port={free_port()}",
        f"--model_base_path={models}/half",
        f"--{flag}={path}",
        *more,
    ]
    words = f"Error parsing text-format {message}: {path}:2:"
    result = run(ALIAS, *arguments)
    assert result.returncode == 255
    assert words in result.stdout
    result = run(TENSORD, "serve", *arguments)
    assert result.returncode == 1
    assert words in result.stderr
    code, report = check(*arguments)
    assert code == 1
    assert any(words in error for error in report["errors"]), report["errors"]


def bad_starts(folder):
    """Flags that no server starts with, and a word of the reason; each by a name."""
    pipe, text, key = folder / "pipe", folder / "text", folder / "key"
    os.mkfifo(pipe)
    text.write_text("this is neither rules nor a certificate")
    key.write_text("nor is this a key")
    nowhere = folder / "none"
    return {
        "rules that do not parse": ([f"--access_rules_file={text}"], "AccessRules"),
        "rules that are a pipe": ([f"--access_rules_file={pipe}"], "no regular file"),
        "models that are a pipe": ([f"--model_config_file={pipe}"], "no regular file"),
        "models that are a device": (["--model_config_file=/dev/zero"], "no regular file"),
        "TLS of a folder": ([f"--ssl_config_file={folder}"], "is a directory"),
        "TLS that is none": (
            [f"--tls_certificate_file={text}", f"--tls_key_file={key}"],
            "TLS for gRPC",
        ),
        "half of a pair": ([f"--tls_certificate_file={text}"], "must be given together"),
        "a socket in no folder": ([f"--grpc_socket_path={nowhere}/s"], "its folder"),
        "an admin socket in no folder": ([f"--admin_socket_path={nowhere}/s"], "its folder"),
        "a socket's long name": ([f"--grpc_socket_path=/{'x' * 200}"], "is longer than"),
        "a socket in a file's place": ([f"--grpc_socket_path={text}"], "is no socket"),
        "a log in no folder": ([f"--access_log={nowhere}/log"], "cannot open --access_log"),
        "a log that is a folder": ([f"--access_log={folder}"], "cannot open --access_log"),
        "no memory": (["--memory_limit_bytes=1"], "must be at least"),
        "no room for requests": (["--request_bytes_budget=1"], "must be at least"),
        "tags without a tag": (["--saved_model_tags=,"], "empty tag"),
    }


def test_what_check_passes_starts_and_what_it_refuses_does_not(models, tmp_path):
    start = [f"--port={free_port()}", f"--model_base_path={models}/half"]
    assert check(*start, f"--access_log={tmp_path}/log")[0] == 0
    assert not (tmp_path / "log").exists()
    for name, (flags, words) in bad_starts(tmp_path).items():
        before = sorted(tmp_path.iterdir())
        code, report = check(*start, *flags)
        assert code == 1, name
        assert any(words in error for error in report["errors"]), (name, report["errors"])
        assert sorted(tmp_path.iterdir()) == before, name
        result = run(TENSORD, "serve", *start, *flags)
        assert result.returncode == 1, name
        assert words in result.stderr, name


def test_a_low_limit_of_the_system_is_named(models, tmp_path):
    def no_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    start = [f"--port={free_port()}", f"--model_base_path={tmp_path}/none"]
    result = subprocess.run(
        [str(TENSORD), "check", "--json", *start],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=no_files,
    )
    assert any("ulimit -f" in warning for warning in json.loads(result.stdout)["warnings"])
    with (tmp_path / "log").open("w") as log:
        result = subprocess.run(
            [str(TENSORD), "serve", *start, "--no_such_file_flag"],
            check=False,
            stdout=log,
            stderr=log,
            timeout=60,
            preexec_fn=no_files,
        )
    assert result.returncode > 0, "ended by a signal"


def test_a_model_that_would_not_be_served_is_an_error(models, tmp_path):
    code, report = check(f"--port={free_port()}", f"--model_base_path={tmp_path}/none")
    assert code == 1
    assert any("does not exist" in error for error in report["errors"])
    half = tmp_path / "half" / "7"
    shutil.copytree(models / "half" / "1", half)
    (half / "saved_model.pb").unlink()
    code, report = check(f"--port={free_port()}", f"--model_base_path={tmp_path}/half")
    assert code == 1
    assert "there is no saved_model.pb" in report["models"][0]["versions"][0]["waits_for"]


def test_wrong_usage_is_told_apart(models):
    assert run(TENSORD, "check", "--help").returncode == 0
    assert run(TENSORD, "check", "sevre").returncode == 2
    result = run(TENSORD, "check", "--prot=1")
    assert result.returncode == 2
    assert "did you mean --port?" in result.stderr


def test_a_graph_of_other_tags_is_served_by_its_tags(servers, models, tmp_path, grpc_client):
    folder = tmp_path / "half" / "1"
    shutil.copytree(models / "half" / "3", folder)
    saved = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    saved.meta_graphs[0].meta_info_def.tags.append("special")
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString())
    server = servers.start(
        model_name="half", model_base_path=tmp_path / "half", saved_model_tags="serve,special"
    )
    outputs = grpc_client(server).predict("half", {"x": tf.constant([2.0]).numpy()})
    assert outputs["y"].tolist() == [3.0]


def test_the_session_config_reaches_the_session(servers, models, tmp_path, grpc_client):
    # The runtime knows no such executor, and says so.
    (tmp_path / "session").write_text('experimental { executor_type: "NO_SUCH_EXECUTOR" }')
    server = servers.start(
        models={"half": models / "half"},
        tensorflow_session_config_file=tmp_path / "session",
        mixed_precision="bfloat16",
        max_num_load_retries=0,
        ready=False,
    )
    client = grpc_client(server)

    def complaint():
        states = client.states("half")
        if not states or "LOADING" in states.values() or "START" in states.values():
            return ""
        if states.get(3) != "AVAILABLE":
            return client.status("half")[0].status.error_message
        return error_of(lambda: client.predict("half", {"x": [2.0]})).details()

    assert "NO_SUCH_EXECUTOR" in eventually(complaint, "the runtime complains")
