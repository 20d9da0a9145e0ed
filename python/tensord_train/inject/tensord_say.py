# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""How the injected help speaks to people: one line, to standard error, with its name."""

import sys


def say(text):
    print(f"tensord: {text}", file=sys.stderr, flush=True)
