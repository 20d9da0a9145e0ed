# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Where this process sits in the job, and what to set before TensorFlow starts."""

import os


def rank() -> int:
    """This process's number in the job, from 0."""
    return int(os.environ.get("RANK", "0"))


def world() -> int:
    """The number of processes of the job."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_chief() -> bool:
    """Whether this process writes what the job keeps: rank 0."""
    return rank() == 0


def checkpoint_folder(folder: str) -> str:
    """Where this rank saves: `folder` for the chief, a folder to throw away for the others.

    Saving under MultiWorkerMirroredStrategy must be called on all ranks; only the chief's copy
    counts, and two ranks in one folder would overwrite each other. Restore from `folder` on all.
    """
    if is_chief():
        return folder
    return os.path.join(folder, f".of_rank_{rank()}")


def allow_memory_growth() -> int:
    """GPU memory as needed instead of all of it at once; the number of GPUs that this is set for.

    Must come before anything that uses a GPU; `tensord train` sets it for its ranks.
    """
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    return len(gpus)
