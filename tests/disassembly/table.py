# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""A table in Markdown, as docs/performance.md shows it."""


def show(columns, rows):
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
