# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord doctor` on this machine, on a machine with a fake GPU driver, and on models."""

import json
import os
import shutil
import subprocess
import sys

from local_server import BIN, ROOT

TENSORD = BIN / "tensord"
FAKE_NVML = BIN.parent / "fake_nvml"
SCENARIO = ROOT / "tests/golden/doctor/gpu_machine/nvml.txt"


def doctor(*arguments, **environment):
    """The exit code, and the findings by id."""
    result = subprocess.run(
        [str(TENSORD), "doctor", "--json", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={"VIRTUAL_ENV": sys.prefix, **os.environ, **environment},
    )
    assert result.returncode in (0, 1, 2), result
    report = json.loads(result.stdout)
    return result.returncode, {f["id"]: f for f in report["findings"]}


def test_this_machine_serves():
    code, found = doctor()
    assert code < 2, [f for f in found.values() if f["level"] == "error"]
    assert found["cpu.avx"]["level"] == "ok"
    assert "TensorFlow 2.21" in found["runtime.version"]["seen"]
    assert "grade" in found["sandbox.grade"]["seen"]
    assert "env.TF_CONFIG" in found


def test_the_exit_code_follows_the_worst_finding():
    code, found = doctor(TF_XLA_FLAGS="--tf_xla_no_such_flag=1")
    assert code == 2
    assert found["env.TF_XLA_FLAGS"]["level"] == "error"
    result = subprocess.run([str(TENSORD), "doctor", "--no_such"], check=False, capture_output=True)
    assert result.returncode == 3


def test_flags_called_errors_really_end_tensorflow():
    """And those called good do not: the table of flags is the runtime's."""
    script = "import tensorflow as tf; tf.config.optimizer.set_jit(True); tf.constant(1.0) + 1.0"

    def ends(flags):
        environment = {**os.environ, "TF_XLA_FLAGS": flags}
        command = [sys.executable, "-c", script]
        return subprocess.run(command, check=False, capture_output=True, env=environment).returncode

    for flags, fails in [("--tf_xla_no_such_flag=1", True), ("--tf_xla_min_cluster_size=2", False)]:
        _, found = doctor(TF_XLA_FLAGS=flags)
        assert (found["env.TF_XLA_FLAGS"]["level"] == "error") is fails
        assert (ends(flags) != 0) is fails, flags


def test_a_machine_with_gpus_is_read_through_the_drivers_library():
    _, found = doctor(LD_LIBRARY_PATH=str(FAKE_NVML), TENSORD_FAKE_NVML=str(SCENARIO))
    assert "550.54.15" in found["gpu.driver"]["seen"]
    assert found["gpu.wheel"]["level"] == "warning"  # The tests' wheel is for CPUs.
    assert "power cap, heat" in found["gpu.0.throttled"]["seen"]
    assert "4 PCIe lanes of 16" in found["gpu.1.pcie"]["seen"]


def test_a_good_model(models):
    code, found = doctor(f"--model={models}/half")
    assert code < 2
    assert found["model.complete"]["level"] == "ok"
    assert found["model.ops"]["level"] == "ok"
    assert "will be batched" in found["model.signature.serving_default"]["seen"]


def test_a_model_with_an_op_of_another_package(models):
    code, found = doctor(f"--model={models}/text_op")
    assert code == 2
    (finding,) = [f for i, f in found.items() if i.startswith("model.op.")]
    assert "tensorflow-text" in finding["do"]


def test_an_op_library_brings_its_ops(models):
    code, found = doctor(f"--model={models}/probe")
    assert code == 2
    assert any(i.startswith("model.op.") for i in found)
    library = models / "libtensord_probe_op.so"
    _, found = doctor(f"--model={models}/probe", f"--op_library={library}")
    assert found["model.ops"]["level"] == "ok"


def test_models_that_keep_state_or_have_no_open_dim(models):
    _, found = doctor(f"--model={models}/counter")
    assert "model.state" in found
    _, found = doctor(f"--model={models}/const_out")
    assert any("not batched" in f["seen"] for i, f in found.items() if "signature" in i)


def test_a_model_that_is_not_there():
    for directory in ("", "/no/such"):
        code, found = doctor("--model", directory)
        assert code == 2
        assert f'no directory "{directory}"' in found["model.complete"]["seen"]


def test_an_incomplete_model(models, tmp_path):
    version = tmp_path / "half" / "1"
    shutil.copytree(models / "half" / "3", version)
    (version / "variables" / "variables.index").unlink(missing_ok=True)
    (version / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    code, found = doctor(f"--model={tmp_path}/half")
    assert code == 2
    assert "damaged" in found["model.graph"]["seen"]
