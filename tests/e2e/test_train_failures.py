# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord train` when real TensorFlow fails, waits or hangs."""

import os
import signal

import pytest
from train_runs import EXAMPLES, TENSORFLOW_SECONDS, TrainRuns, results


@pytest.fixture
def runs(tmp_path):
    runs = TrainRuns(tmp_path)
    yield runs
    runs.finish()


def test_a_killed_rank_restarts_the_group_from_the_checkpoint(runs):
    program = ["--steps", "24", "--checkpoints", "saved", "--result", "result_{rank}"]
    script = runs.script(
        (EXAMPLES / "custom_loop.py")
        .read_text()
        .replace(
            "        losses.append", "        __import__('time').sleep(0.1)\n        losses.append"
        )
    )
    run = runs.two(script, "--max-restarts", "1", "--grace", "1", program=program)
    run.wait_for("[worker/0] step 11 ", TENSORFLOW_SECONDS)
    os.kill(run.pid_of("worker/1"), signal.SIGKILL)
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    assert "first failure: worker/1, signal 9 (SIGKILL)" in run.output()
    resumed = [x for x in run.output().splitlines() if "resumed at step" in x]
    assert len(resumed) == 2, "both ranks, at the same step"
    assert len({x.split("resumed")[1] for x in resumed}) == 1
    first, other = results(runs.folder, 2)
    assert other["weights"] == first["weights"]
    assert first["restarts"] == "1"


def test_keras_3_fit_resumes_at_the_newest_epoch_that_any_rank_has_saved(runs):
    """Rank 1 dies by SIGKILL before it saves an epoch that rank 0 has saved by then."""
    script = runs.script(
        """
        import os, signal
        import keras
        import numpy as np
        import tensord_train
        import tensorflow as tf

        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        rows = np.random.default_rng(5).normal(size=(48, 8)).astype(np.float32)
        data = tf.data.Dataset.from_tensor_slices((rows, rows[:, :1])).batch(12)
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.DATA
        )

        class Epochs(keras.callbacks.Callback):
            def on_epoch_end(self, epoch, logs=None):
                if epoch == 2 and os.environ["RANK"] == "1" and os.environ["RESTART_COUNT"] == "0":
                    os.kill(os.getpid(), signal.SIGKILL)
                print("ended epoch", epoch, flush=True)

        def train(callbacks):
            keras.utils.set_random_seed(3)
            with strategy.scope():
                layers = [keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)]
                model = keras.Sequential([keras.Input((8,)), *layers])
                model.compile("adam", loss="mse")  # With state that must be resumed, too.
            sharded = data.with_options(options)
            history = model.fit(sharded, epochs=6, callbacks=callbacks, verbose=0)
            return model.get_weights(), history.history

        whole, logs = train([tensord_train.input_wait_callback()])
        assert len(logs["input_wait"]) == 6 and 0 < min(logs["input_wait"]) < 1, logs
        resumed, _ = train([Epochs(), keras.callbacks.BackupAndRestore("backup")])
        for one, other in zip(whole, resumed, strict=True):
            np.testing.assert_array_equal(one, other)
        print("the same weights", flush=True)
        """
    )
    run = runs.two(script, "--max-restarts", "1", "--grace", "2")
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    assert "first failure: worker/1, signal 9 (SIGKILL)" in run.output()
    assert run.output().count("the same weights") == 2, "as without the interruption"
    lines = [line for line in run.output().splitlines() if "] ended epoch" in line]
    of_rank = [[x[-1] for x in lines if x.startswith(f"[worker/{i}]")] for i in (0, 1)]
    # Rank 1 died as epoch 2 ended. Whether rank 0 had saved it by then is chance; if so, its save
    # serves both.
    assert of_rank in (
        [list("012345"), list("01345")],
        [list("0122345"), list("012345")],
        [list("012345"), list("012345")],
    )
    assert not list((runs.folder / "backup").glob("rank_*")), "Keras deletes it when it is done"


def test_keras_3_fit_goes_on_when_the_number_of_ranks_is_another(runs):
    """The backup of two ranks serves three, and theirs serves one; nothing of it is lost."""
    script = runs.script(
        """
        import sys
        import keras
        import numpy as np
        import tensorflow as tf

        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        rows = np.random.default_rng(5).normal(size=(24, 8)).astype(np.float32)
        data = tf.data.Dataset.from_tensor_slices((rows, rows[:, :1])).batch(12)
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.OFF
        )

        class Epochs(keras.callbacks.Callback):
            def on_epoch_begin(self, epoch, logs=None):
                if epoch == int(sys.argv[1]):
                    sys.exit(3)
                print("begins epoch", epoch, flush=True)

        with strategy.scope():
            model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
            model.compile("adam", loss="mse")
        backup = keras.callbacks.BackupAndRestore("backup")
        model.fit(data.with_options(options), epochs=6, callbacks=[Epochs(), backup], verbose=0)
        """
    )

    def epochs(ranks, stop, code):
        count = ("--standalone", "--nproc-per-node", str(ranks), "--grace", "2")
        run = runs.start(*count, script=script, program=[str(stop)])
        assert run.code(TENSORFLOW_SECONDS) == code, run.output()
        lines = [x for x in run.output().splitlines() if "] begins epoch" in x]
        return [[x[-1] for x in lines if x.startswith(f"[worker/{i}]")] for i in range(ranks)]

    assert epochs(2, 2, 3) == [["0", "1"]] * 2
    assert epochs(3, 4, 3) == [["2", "3"]] * 3
    assert epochs(1, -1, 0) == [["4", "5"]]
    assert not (runs.folder / "backup").exists(), "Keras deletes it when it is done"


def test_a_rank_that_never_connects_is_named(runs):
    """TensorFlow alone would wait an hour."""
    script = runs.script(
        """
        import os, time
        import tensorflow as tf
        if os.environ["RANK"] == "1":
            print("not coming", flush=True)
            time.sleep(600)
        tf.distribute.MultiWorkerMirroredStrategy()
        """
    )
    run = runs.two(script, "--start-timeout", "15", "--grace", "2")
    run.wait_for("not coming", TENSORFLOW_SECONDS)
    # Fifteen seconds from here, or from when rank 0 has imported TensorFlow as well; then two of
    # grace. Nothing like the hour, even where two imports take turns on a slow CPU.
    assert run.code(120) == 1, run.output()
    cause = run.output()
    assert (
        "/job:worker/replica:0/task:1" in cause or "worker/1 has not made its first step" in cause
    )


def test_a_stolen_port_is_no_failure_that_counts(runs):
    """Somebody listens where rank 1 was to serve; the next start has other ports."""
    script = runs.script(
        """
        import json, os, socket, time
        if os.environ["RESTART_COUNT"] == "1":
            raise SystemExit(0)
        if os.environ["RANK"] == "0":
            time.sleep(600)
        config = json.loads(os.environ["TF_CONFIG"])
        thief = socket.socket()
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("0.0.0.0", int(config["cluster"]["worker"][1].split(":")[1])))
        thief.listen()
        import tensorflow as tf
        tf.distribute.MultiWorkerMirroredStrategy()
        """
    )
    run = runs.two(script, "--grace", "1")
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    assert "a reserved port was taken; new ones are used" in run.output()
    assert "Could not start gRPC server" in run.output()
