# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""What is expected of each exchange kernel.

registers   most vector registers on AMD
rows        how rows go: "registers" (a part is read whole before it is stored), "moved" (within the
            rank's own memory), "memory" (any type at any address, through scratch: a row's pieces are
            read and stored in turn), None (no rows)
puts        whether rows go to peers
narrow      accesses of fewer than 4 bytes that a kernel in registers needs, and why
"""


class Expected:
    def __init__(self, rows, puts, registers=128, narrow=()):
        self.rows = rows
        self.puts = puts
        self.registers = registers
        self.narrow = set(narrow)


KERNELS = {
    "ferry_send": Expected("memory", True),
    "ferry_send_copied": Expected("registers", True),
    "ferry_send_e4m3": Expected("registers", True, 168),
    "ferry_send_e4m3fnuz": Expected("registers", True, 168),
    # a scale is one byte, and so is each rank's flavour
    "ferry_send_power": Expected("registers", True, 168, ["store", "load"]),
    # each rank's flavour is one byte
    "ferry_send_both": Expected("registers", True, 168, ["load"]),
    # maps of chunks have 16 bits
    "ferry_receive": Expected("moved", False, 128, ["store"]),
    "ferry_credit": Expected(None, False),
    # writes a word into each peer's rows, then its flag
    "ferry_probe": Expected(None, False),
    "ferry_return": Expected("memory", True),
    # maps of chunks have 16 bits
    "ferry_return_bf16": Expected("registers", True, 128, ["load"]),
    "ferry_gather": Expected("memory", False),
    "ferry_gather_bf16": Expected("registers", False),
}
