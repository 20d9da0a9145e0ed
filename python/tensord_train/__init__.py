# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Help for training scripts, all of it optional: `tensord train` runs scripts that know none of it.

Inside `tensord train` the module is importable as it is; elsewhere put its folder's parent on
PYTHONPATH. TensorFlow is imported when a function is called, not before.
"""

from tensord_train.gradients import (
    GradientAccumulator,
    LossScale,
    all_reduce,
    all_reduce_bytes,
)
from tensord_train.input_wait import InputWait, input_wait_callback
from tensord_train.settings import allow_memory_growth, checkpoint_folder, is_chief, rank, world

__all__ = [
    "GradientAccumulator",
    "InputWait",
    "LossScale",
    "all_reduce",
    "all_reduce_bytes",
    "allow_memory_growth",
    "checkpoint_folder",
    "input_wait_callback",
    "is_chief",
    "rank",
    "world",
]
