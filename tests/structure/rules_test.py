# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Shows that each rule of rules.py lets a good tree pass and finds each bad sample.

usage: rules_test.py [RULE]   (no RULE: all of them)
"""

import pathlib
import sys
import tempfile

import rules

SPDX = "// SPDX-License-Identifier: MIT\n// Copyright (c) 2026 the ferry authors\n"
TABLE = "".join(f"| R{n} | what | `suite.case` |\n" for n in range(1, 12))

# Keeps every rule; each bad sample below is this tree with some files put in or replaced.
GOOD = {
    "README.md": "# ferry\n[a page](docs/page.md)\n```cpp\nint x = 1;\n  int y;\n```\n",
    "dev": "#!/bin/sh\n# SPDX-License-Identifier: MIT\n",
    "docs/page.md": "[home](../README.md) [away](https://example.org/x) [here](#part)\n",
    "docs/memory_model.md": TABLE,
    "examples/02_dispatch_combine/dispatch_combine.cpp": SPDX + "// [readme]\n  int x = 1;\n    int y;\n// [/readme]\n",
    "include/ferry/ferry.hpp": SPDX + "#pragma once\n#include <ferry/result.hpp>\n",
    "include/ferry/result.hpp": SPDX + "/// Re-exports.\n#pragma once\n#include <ferry/base/result.hpp>\n",
    "include/ferry/base/result.hpp": SPDX + "#pragma once\nint result();  // TODAY is no to-do\n",
    "include/ferry/base/platform.hpp": SPDX + "#pragma once\n#if defined(X)\n#endif\n",
    "include/ferry/kernels/rows.hpp": SPDX
    + "#pragma once\n#include <ferry/base/result.hpp>\n"
    + "struct rows { std::uint64_t word; int ship; int lanes; };  // any lane of 64\n",
    "include/ferry/group.hpp": SPDX + "#pragma once\n#include <ferry/base/result.hpp>\nint group();\n",
    "src/base/result.cpp": SPDX
    + '#include <ferry/base/result.hpp>\n#include "base/fail.hpp"\n'
    + "#ifndef NEW_FLAG\n#define NEW_FLAG 8\n#endif\nint got = std::get_if<0>(1);\n",
    "src/base/fail.hpp": SPDX + "#pragma once\n",
    **{
        f"include/ferry/exec/gpu/{vendor}/device.hpp": SPDX
        + f"#if defined({vendor})\n#pragma once\nstruct d {{\n  static int lane();\n private:\n  static int {vendor}();\n}};\n#endif\n"
        for vendor in ("hip", "cuda")
    },
    "include/ferry/exec/gpu/native.hpp": SPDX + "#pragma once\n#include <ferry/exec/gpu/hip/device.hpp>\n",
    "src/exec/other_machine.cpp": SPDX + "#if defined(OTHER)\nint all_of_the_file;\n#endif\n",
    "tests/base/result_test.cpp": SPDX + '#include <ferry/base/result.hpp>\n#include "base/fail.hpp"\nTEST(suite, case) {}\n',
    "tests/kernels/rows_test.cpp": SPDX + "#include <ferry/kernels/rows.hpp>\n",
    "tests/group/group_test.cpp": SPDX + "#include <ferry/group.hpp>\n",
    "tests/data/legacy/TODO.txt": "data is not ours: /srv/x\n",
}


def include(name):
    return SPDX + f"#pragma once\n#include {name}\n"


KERNEL = "include/ferry/kernels/rows.hpp"

# rule -> {what is wrong: the files that make it so}. None takes a file away.
BAD = {
    "layers": {
        "base includes kernels": {"include/ferry/base/result.hpp": include("<ferry/kernels/rows.hpp>")},
        "base includes an API header of a later layer": {"include/ferry/base/result.hpp": include("<ferry/group.hpp>")},
        "src/base includes src/group": {"src/base/result.cpp": include('"group/tcp.hpp"'), "src/group/tcp.hpp": SPDX},
        "a header includes everything": {"include/ferry/group.hpp": include("<ferry/ferry.hpp>")},
        "a new folder is no layer": {"include/ferry/sundry/x.hpp": SPDX},
        "an API header without a layer": {"include/ferry/extra.hpp": SPDX},
    },
    "siblings": {
        "hip includes cuda": {"include/ferry/exec/gpu/hip/warp.hpp": include("<ferry/exec/gpu/cuda/warp.hpp>")},
        "cpu includes gpu": {"src/exec/cpu/x.cpp": include("<ferry/exec/gpu/stream.hpp>")},
        "verbs includes shared memory": {"src/transport/verbs.cpp": include('"transport/shared_memory.hpp"')},
    },
    "src_is_private": {
        "an example includes src": {"examples/02_dispatch_combine/dispatch_combine.cpp": include('"../../src/base/fail.hpp"')},
        "a public header includes src": {"include/ferry/group.hpp": include('"base/fail.hpp"')},
        "the installed consumer includes src": {"tests/install/main.cpp": include('"base/fail.hpp"')},
    },
    "vendor_words": {
        "a vendor in a comment": {KERNEL: "// as on NVIDIA\n"},
        "a vendor in an identifier": {KERNEL: "int hip_stream;\n"},
        "a vendor in camel case": {KERNEL: "int myCudaStream;\n"},
        "a lane group's trade name": {KERNEL: "int wave32;\n"},
        "an architecture": {KERNEL: "int for_gfx942;\n"},
        "a vendor in what both share": {"include/ferry/exec/gpu/native.hpp": "int hip_team;\n"},
    },
    "vendor_files": {
        "a file of one vendor": {"include/ferry/exec/gpu/hip/more.hpp": SPDX + "#if X\nint a;\n#endif\n"},
        "a function of one vendor": {
            "include/ferry/exec/gpu/hip/device.hpp": SPDX
            + "#if X\nstruct d {\n  static int lane();\n  static int wave();\n};\n#endif\n"
        },
        "no guard": {"include/ferry/exec/gpu/hip/device.hpp": SPDX + "struct d {\n  static int lane();\n};\n"},
    },
    "conditionals": {
        "a conditional in a kernel": {KERNEL: "int a;\n#if defined(__x86_64__)\nint b;\n#endif\n"},
        "an else": {"src/base/result.cpp": "#ifdef X\nint a;\n#else\nint b;\n#endif\n"},
        "a whole-file guard with something behind it": {"src/exec/x.cpp": "#if X\nint a;\n#endif\nint b;\n"},
        "a constant that is not the one asked for": {"src/exec/x.cpp": "#ifndef A\n#define B 1\n#endif\nint b;\n"},
    },
    "literal_lanes": {
        "a comparison": {KERNEL: "if (Team::lanes == 32) {}\n"},
        "a mask of lanes": {KERNEL: "auto me = lane & 63;\n"},
        "a full mask": {KERNEL: "auto all = team.ballot(0xffffffff);\n"},
        "a mask's type": {KERNEL: "std::uint32_t mask = f();\n"},
    },
    "header_length": {"501 lines": {"src/base/fail.hpp": "\n" * 501}},
    "mirrored_tests": {
        "no test": {"tests/kernels/rows_test.cpp": None},
        "no test of an API header": {"tests/group/group_test.cpp": None},
        "the test includes another header first": {"tests/kernels/rows_test.cpp": include("<vector>")},
        "an exemption that is not needed": {"tests/base/platform_test.cpp": include("<ferry/base/platform.hpp>")},
    },
    "file_names": {
        "utils": {"src/base/string_utils.cpp": SPDX},
        "a folder": {"src/common/x.cpp": SPDX},
        "a second version": {"src/base/send_v2.cpp": SPDX},
    },
    "licence_lines": {
        "a source file": {"src/base/result.cpp": "int x;\n"},
        "a build file": {"src/CMakeLists.txt": "project(x)\n"},
        "a script without a suffix": {"dev": "#!/bin/sh\n"},
        "too late": {"src/base/result.cpp": "\n\n\n" + SPDX},
    },
    "unfinished_work": {
        "a to-do": {"src/base/result.cpp": SPDX + "// TODO: later\n"},
        "in a document": {"docs/page.md": "FIXME\n"},
    },
    "machine_paths": {
        "a home": {"README.md": "see /home/ann/ferry\n"},
        "a data folder": {"src/base/result.cpp": SPDX + 'auto x = "/srv/data";\n'},
    },
    "names": {
        "get_": {"include/ferry/group.hpp": "int get_rank();\n"},
        "k constant": {KERNEL: "constexpr int kChunk = 4;\n"},
        "a banned synonym": {"src/base/result.cpp": "int nranks;\n"},
    },
    "readme_code": {
        "another code": {"README.md": "```cpp\nint x = 2;\n  int y;\n```\n"},
        "no region": {"examples/02_dispatch_combine/dispatch_combine.cpp": "int x = 1;\n"},
        "no example": {"examples/02_dispatch_combine/dispatch_combine.cpp": None},
    },
    "links": {"a page that is gone": {"docs/page.md": None}},
    "memory_model_tests": {
        "a rule without a row": {"docs/memory_model.md": TABLE.replace("| R7 |", "| S7 |")},
        "a rule without a test": {"docs/memory_model.md": TABLE.replace("| R7 | what | `suite.case` |", "| R7 | what | |")},
        "a test that does not exist": {"docs/memory_model.md": TABLE.replace("suite.case", "suite.other", 1)},
        "no page": {"docs/memory_model.md": None},
    },
    "data_size": {"one byte too many": {"tests/data/big.bin": "x" * 12_000_001}},
}


def breaches(rule, changes):
    files = {**GOOD, **changes}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            if text is not None:
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        return list(rule(rules.Tree(folder)))


def main(chosen):
    wrong = []
    for rule in rules.RULES:
        name = rule.__name__
        if chosen and name not in chosen:
            continue
        wrong += [f"{name}: finds fault with a good tree: {line}" for line in breaches(rule, {})]
        if not BAD.get(name):
            wrong.append(f"{name}: has no bad sample")
        for what, changes in BAD.get(name, {}).items():
            found = breaches(rule, changes)
            print(f"{name}, {what}: {found[0] if found else 'NOT FOUND'}")
            if not found:
                wrong.append(f"{name}: does not see: {what}")
    unknown = set(chosen) | set(BAD)
    unknown -= {rule.__name__ for rule in rules.RULES}
    wrong += [f"no rule {name}" for name in sorted(unknown)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
