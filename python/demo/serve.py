# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""./run serve: `tensord serve` with the options given; without a model named, the demo's digits."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

from local_server import BIN, ROOT

BASE = ROOT / "build/demo/models/digits"
EXAMPLE = """Serving the digits demo. Try, in another terminal:

  curl {url}/v1/models/digits
  curl {url}/v1/models/digits/metadata
  curl {url}/v1/models/digits:predict -d '{{"instances": [[{zeros}]]}}'
"""


def has_model():
    return BASE.is_dir() and any(p.name.isdigit() for p in BASE.iterdir())


def make_model():
    """What the demo makes, without the rest of it."""
    import main

    import train

    print("training the demo's classifier once …", flush=True)
    train.make_versions(train.load_digits(), main.FOLDER / "store")
    main.install(2)


def named(arguments, option):
    """The value of --option=value or --option value; None when it is not given."""
    for argument, following in zip(arguments, [*arguments, ""][1:], strict=True):
        if argument == f"--{option}":
            return following
        if argument.startswith(f"--{option}="):
            return argument.split("=", 1)[1]
    return None


def main():
    arguments = sys.argv[1:]
    if not any(named(arguments, o) for o in ("model_base_path", "model_config_file")):
        if "--help" not in arguments and not has_model():
            make_model()
        arguments = ["--model_name=digits", f"--model_base_path={BASE}", *arguments]
        if named(arguments, "rest_api_port") is None:
            arguments = ["--rest_api_port=8501", *arguments]
        url = f"http://127.0.0.1:{named(arguments, 'rest_api_port')}"
        print(EXAMPLE.format(url=url, zeros=", ".join(["0"] * 64)), flush=True)
    os.execv(BIN / "tensord", [str(BIN / "tensord"), "serve", *arguments])


if __name__ == "__main__":
    main()
