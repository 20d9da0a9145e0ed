# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Found by Python at its start in a rank of `tensord train`: arms the help, costs nothing else.

Nothing of TensorFlow is imported here. The names in tensord_help.HOOKS get their patches when, and
if, the script imports them. A sitecustomize that this file hides runs as well.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_the_hidden_one():
    others = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def _arm():
    if "TENSORD_TRAIN_TASK" not in os.environ:
        return
    # Last, so that it hides no module of the script's: `import tensord_train` works in ranks.
    sys.path.append(os.path.dirname(os.path.dirname(_HERE)))
    import tensord_help

    tensord_help.arm()


_run_the_hidden_one()
_arm()
