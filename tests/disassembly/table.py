# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""A table in Markdown, and the document that shows it.

The document has a line `TARGET, COMPILER:` and behind it the table. A table that another compiler made
says nothing of this one's.
"""


def lines_of(columns, rows):
    return [
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows),
    ]


def place_of(document, target):
    """(index of the target's line, index of its table, index past the table)."""
    at = next((n for n, line in enumerate(document) if line.startswith(f"{target}, ")), None)
    if at is None:
        return None
    first = at + 2
    end = first
    while end < len(document) and document[end].startswith("|"):
        end += 1
    return at, first, end


def breaches(document, target, compiler, table):
    """One line for each way in which the document does not show this table."""
    place = place_of(document, target)
    if place is None:
        yield f"the document has no line '{target}, {compiler}:'"
        return
    at, first, end = place
    if document[at] != f"{target}, {compiler}:":
        print(f"not compared with the document, which is of: {document[at]}")
        return
    shown = document[first:end]
    for line in table:
        if line not in shown:
            yield f"the document does not show: {line}"
    for line in shown:
        if line not in table:
            yield f"only the document shows: {line}"


def updated(document, target, compiler, table):
    at, first, end = place_of(document, target)
    return document[:at] + [f"{target}, {compiler}:", ""] + table + document[end:]


def show(target, compiler, columns, rows, document, update):
    """Prints the table, and returns what is wrong with the document (a path, or None)."""
    table = lines_of(columns, rows)
    print(f"{target}, {compiler}:\n\n" + "\n".join(table))
    if document is None:
        return []
    with open(document, encoding="utf-8") as file:
        text = file.read().split("\n")
    if update:
        with open(document, "w", encoding="utf-8") as file:
            file.write("\n".join(updated(text, target, compiler, table)))
        return []
    wrong = list(breaches(text, target, compiler, table))
    return wrong + (["write it anew with --update"] if wrong else [])
