# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord top`: this machine, the fake GPU driver, a real server, a terminal."""

import json
import os
import pty
import subprocess
import threading

import numpy as np
import requests
from local_server import BIN, ROOT, eventually

TENSORD = BIN / "tensord"
SCENARIO = ROOT / "tests/golden/doctor/gpu_machine/nvml.txt"
MONITORING = "prometheus_config { enable: true }"


def top(*arguments, **environment):
    result = subprocess.run(
        [str(TENSORD), "top", "--once", "--json", "--interval=0.3", *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    return json.loads(result.stdout)


def test_it_works_without_a_gpu_and_says_so():
    view = top()
    assert view["gpus"] == []
    assert "NVIDIA" in view["gpu_problem"]
    assert view["host"]["memory_bytes"] > view["host"]["memory_available_bytes"] > 0
    assert 0 <= view["host"]["cpu_share"] <= 1


def test_gpus_come_from_the_drivers_library():
    view = top(LD_LIBRARY_PATH=str(BIN.parent / "fake_nvml"), TENSORD_FAKE_NVML=str(SCENARIO))
    assert [g["utilisation_percent"] for g in view["gpus"]] == [35, 0]
    assert view["gpus"][0]["slowed_down_by"] == "power cap, heat (software)"
    assert view["gpus"][1]["processes"] == [
        {"pid": 5151, "bytes": 500000000},
        {"pid": 5152, "bytes": None},
    ]


def test_a_servers_models_are_shown(servers, models, tmp_path):
    config = tmp_path / "monitoring"
    config.write_text(MONITORING)
    server = servers.start(models={"half": models / "half"}, monitoring_config_file=config)
    url = f"{server.rest}/v1/models/half:predict"
    body = json.dumps({"instances": np.arange(4.0).tolist()})
    stop = threading.Event()

    def load():
        while not stop.is_set():
            assert requests.post(url, data=body, timeout=60).status_code == 200

    thread = threading.Thread(target=load)
    thread.start()
    try:

        def busy():
            view = top(f"--server=127.0.0.1:{server.rest_port}")
            rows = [m for m in view["models"] if m["model"] == "half"]
            return [m for m in rows if m["requests_per_second"] > 0 and m["p99_us"] > 0]

        (row,) = eventually(busy, "top shows the model's requests")
    finally:
        stop.set()
        thread.join()
    assert row["batch_rows_mean"] >= 4


def test_a_server_that_is_not_there_is_said():
    assert "nobody answers" in top("--server=127.0.0.1:1")["server_problem"]


def test_the_terminal_is_left_as_it_was():
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(TENSORD), "top", "--interval=0.2"], stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    seen = b""
    while b"Memory" not in seen:
        seen += os.read(master, 65536)
    os.write(master, b"q")
    while b"\x1b[?1049l" not in seen:
        seen += os.read(master, 65536)
    assert process.wait(timeout=30) == 0
    os.close(master)
