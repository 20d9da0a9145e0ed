# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Small grey pictures in a terminal: two pixels a character, one above the other."""

import os
import sys

SHADES = " .:-=+*%@@"


def in_colour():
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def grey(value):
    """The number of a grey in the 256-colour palette, for 0 to 16."""
    return 232 + min(23, int(value / 16 * 23))


def half_blocks(image):
    """An 8 x 8 picture as lines, twice its size so that it can be seen."""
    big = image.reshape(8, 8).repeat(2, axis=0).repeat(2, axis=1)
    if not in_colour():
        return ["".join(SHADES[int(v / 16 * 9)] for v in row) for row in big[::2]]
    lines = []
    for above, below in zip(big[::2], big[1::2], strict=True):
        cells = (
            f"\x1b[38;5;{grey(a)};48;5;{grey(b)}m\u2580" for a, b in zip(above, below, strict=True)
        )
        lines.append("".join(cells) + "\x1b[0m")
    return lines


def print_row(images, captions):
    """Pictures side by side, each with the lines of its caption below, 16 characters wide."""
    for lines in zip(*(half_blocks(image) for image in images), strict=True):
        print("   " + "   ".join(lines))
    for lines in zip(*captions, strict=True):
        print("   " + "   ".join(f"{line:<16}" for line in lines))
