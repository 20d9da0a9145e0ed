# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of text that line up, and of Markdown for the documents. Pure functions."""


def cell(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        if abs(value) >= 100:
            return f"{value:,.0f}"
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return str(value)


def text_table(header, rows):
    """Columns of words to the left, of numbers to the right."""
    lines = [[cell(v) for v in row] for row in rows]
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    right = [
        bool(rows) and all(isinstance(row[i], (int, float, type(None))) for row in rows)
        for i in range(len(header))
    ]

    def join(line):
        parts = [
            word.rjust(width) if to_right else word.ljust(width)
            for word, width, to_right in zip(line, widths, right, strict=True)
        ]
        return "  ".join(parts).rstrip()

    return "\n".join([join(header), "-" * len(join(header)), *map(join, lines)])


def markdown_table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(cell(v) for v in row) + " |" for row in rows]
    return "\n".join(lines)
