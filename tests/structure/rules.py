# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""The rules that the tree keeps, one function each.

usage: rules.py [--root DIR] RULE...   (no RULE: list them)

A rule takes a tree and yields one line for each breach. A rule that may ask nothing of this tree
(because what it speaks of is not there) yields nothing. Ends with 1 if a rule was broken.
"""

import argparse
import pathlib
import re
import subprocess
import sys

LAYERS = ["base", "files", "exec", "memory", "transport", "kernels", "options", "group", "exchange", "balance", "deepseek"]

# Headers directly in include/ferry belong to a layer too.
API_LAYER = {
    "result.hpp": "base",
    "version.hpp": "base",
    "queue.hpp": "exec",
    "device.hpp": "exec",
    "event.hpp": "exec",
    "graph.hpp": "exec",
    "options.hpp": "options",
    "group.hpp": "group",
    "mpi.hpp": "group",
    "exchange.hpp": "exchange",
    "overlap.hpp": "exchange",
    "overlap_pays.hpp": "exchange",
    "placement.hpp": "balance",
    "ferry.hpp": "top",
}
ORDER = LAYERS + ["top"]

# Public headers without a test of their own, each with the reason.
UNMIRRORED = {
    "base/platform.hpp": "macros only; every other test uses them",
    "balance/expert_store.hpp": "an interface; migrate's test implements it, and the models' stores are held against decode",
    "exec/executor.hpp": "a concept; held against each executor by its own test",
    "exec/gpu/gpu_waits.hpp": "data of gpu_team; its test fills it",
    **{
        f"exec/gpu/{vendor}/{name}.hpp": "instructions and runtime calls; tests/disassembly reads what they become"
        for vendor in ("hip", "cuda")
        for name in ("codes", "device", "launch")
    },
    "exec/team.hpp": "a concept; held against each team by its own test",
    "exec/gpu/cuda/strip_lanes.hpp": "compiled for such GPUs only; lane_strip's test plays its contract on a host",
    "exec/gpu/hip/strip_lanes.hpp": "compiled for such GPUs only; lane_strip's test plays its contract on a host",
    "transport/delivery.hpp": "a concept; held against each delivery by tests/contract",
    "transport/device_verbs/direct_nic.hpp": "an abstract class; tests/nic implements and uses it",
    "transport/device_verbs/queue_pair.hpp": "plain structs; the tests of each format fill and read them",
    "transport/device_verbs/work.hpp": "a plain struct; the tests of each format write it",
    "transport/peer_table.hpp": "data of peer_memory; its test fills it",
    "transport/transport.hpp": "an abstract class; held against each transport by tests/contract",
    "group/bootstrap.hpp": "an abstract class; held against each bootstrap by tests/group",
    "mpi.hpp": "needs mpirun; tests/multiprocess starts it",
    "version.hpp": "one number; tests/install compares it with the package's",
}

# Folders and files of which one may not include another: ways to do the same thing.
SIBLINGS = [
    ("exec", {"cpu", "gpu", "emulated"}),
    ("exec/gpu", {"hip", "cuda"}),
    ("transport", {"loopback", "shared_memory", "peer_memory", "verbs", "device_verbs", "libfabric", "striped"}),
    ("transport/device_verbs", {"mlx5", "bnxt", "ionic"}),
]

TEXT = {".cpp", ".hpp", ".py", ".cmake", ".txt", ".md", ".sh", ".json", ".in", ".svg", ""}
CODE = {".cpp", ".hpp"}
# Data that came from elsewhere, which no rule about our own words can bind.
FOREIGN = ("tests/data/", "examples/decode/model/")
# This folder spells out what the rules forbid.
RULES_THEMSELVES = ("tests/structure/rules.py", "tests/structure/rules_test.py")


class Tree:
    """The repository's own files."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.files = sorted(f for f in self._list() if (self.root / f).is_file())
        self._text = {}

    def _list(self):
        git = ["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        if (self.root / ".git").exists():
            try:
                out = subprocess.run(git, capture_output=True, check=True).stdout.decode()
                return [name for name in out.split("\0") if name]
            except (OSError, subprocess.CalledProcessError):
                pass  # no git here, or not our tree: the file system knows as well
        skip = {".git", "build", ".cache", "__pycache__"}
        return [
            str(f.relative_to(self.root))
            for f in self.root.rglob("*")
            if not skip & set(f.relative_to(self.root).parts)
        ]

    def own(self, *folders, suffixes=None):
        """Paths below the folders ('' for all), foreign data left out."""
        for f in self.files:
            if f.startswith(FOREIGN) or (folders and not f.startswith(folders)):
                continue
            if suffixes is None or pathlib.PurePath(f).suffix in suffixes:
                yield f

    def text(self, path):
        if path not in self._text:
            self._text[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self._text[path]

    def lines(self, path):
        return enumerate(self.text(path).splitlines(), 1)

    def code_lines(self, path):
        """Numbered lines with comments and the insides of strings blanked."""
        return enumerate(without_comments(self.text(path)).splitlines(), 1)

    def includes(self, path):
        """(line, spelling, is_quoted) of every #include."""
        for number, line in self.lines(path):
            found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if found:
                yield number, found.group(2), found.group(1) == '"'


def without_comments(text):
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
    )

    def blank(found):
        what = found.group(0)
        if what.startswith(("//", "/*")):
            return "\n" * what.count("\n") or " "
        # Digit separators look like characters: 1'000'000.
        if what.startswith("'") and found.start() and text[found.start() - 1].isalnum():
            return what
        return '""' + "\n" * what.count("\n")

    return token.sub(blank, text)


def layer_of_header(name):
    """The layer of <ferry/NAME>, or None if it names none."""
    first, _, rest = name.partition("/")
    if rest:
        return first if first in LAYERS else None
    return API_LAYER.get(first)


def layer_of_file(path):
    if path.startswith("include/ferry/"):
        return layer_of_header(path[len("include/ferry/") :])
    if path.startswith("src/"):
        first, _, rest = path[len("src/") :].partition("/")
        return first if rest and first in LAYERS else None
    return None


def included_layer(tree, path, name, quoted):
    """The layer that an #include reaches, or None for a foreign header."""
    if name.startswith("ferry/"):
        return layer_of_header(name[len("ferry/") :])
    if quoted:
        beside = str(pathlib.PurePosixPath(path).parent / name)
        for candidate in ("src/" + name, beside):
            if candidate in tree.files:
                return layer_of_file(candidate)
    return None


def layers(tree):
    """A file includes only layers to the left of its own."""
    for path in tree.own("include/", "src/", suffixes=CODE):
        mine = layer_of_file(path)
        if mine is None:
            yield f"{path}: lies in no layer of {' '.join(LAYERS)}"
            continue
        for number, name, quoted in tree.includes(path):
            theirs = included_layer(tree, path, name, quoted)
            if theirs is None:
                if name.startswith("ferry/"):
                    yield f"{path}:{number}: <{name}> lies in no layer"
            elif ORDER.index(theirs) > ORDER.index(mine):
                yield f"{path}:{number}: layer {mine} includes {theirs} ({name})"


def siblings(tree):
    """No way of doing a thing includes another way of doing it."""
    for path in tree.own("include/ferry/", "src/", suffixes=CODE):
        inner = re.sub(r"^(include/ferry|src)/", "", path)
        for folder, names in SIBLINGS:
            mine = sibling_in(inner, folder, names)
            for number, name, _ in tree.includes(path):
                theirs = sibling_in(re.sub(r"^ferry/", "", name), folder, names)
                if mine and theirs and mine != theirs:
                    yield f"{path}:{number}: {mine} includes its sibling {theirs} ({name})"


def sibling_in(inner, folder, names):
    if not inner.startswith(folder + "/"):
        return None
    first = inner[len(folder) + 1 :].split("/")[0]
    stem = first.split(".")[0]
    matching = [name for name in names if stem == name or stem.startswith(name + "_")]
    return max(matching, key=len, default=None)


def src_is_private(tree):
    """Nothing but src and tests includes what lies in src."""
    for path in tree.own(suffixes=CODE):
        if path.startswith(("src/", "tests/")) and not path.startswith("tests/install/"):
            continue
        for number, name, quoted in tree.includes(path):
            beside = str(pathlib.PurePosixPath(path).parent / name)
            private = "src/" + name in tree.files and not (quoted and beside in tree.files)
            if private or re.search(r"(^|/)src/", name):
                yield f"{path}:{number}: includes {name}, which is private to src"


VENDOR = r"hip|cuda|amd|nvidia|rocm|gfx|mlx|bnxt|ionic|xgmi|nvlink|warp|warps|wave|waves|wavefront|threadidx|blockidx"


def vendor_words(tree):
    """Kernels know no vendor, nor does what the vendors' GPUs share."""
    word = re.compile(rf"(?<![a-z])({VENDOR})(?![a-z])", re.IGNORECASE)
    for path in tree.own("include/ferry/kernels/", "src/kernels/", "include/ferry/exec/gpu/", suffixes=CODE):
        if path.startswith(tuple(f"include/ferry/exec/gpu/{vendor}/" for vendor in GPU_VENDORS)):
            continue
        for number, line in tree.lines(path):
            if re.match(r"\s*#\s*include <ferry/exec/gpu/", line):
                continue
            # camelCase and snake_case words alike
            found = word.search(re.sub(r"([a-z])([A-Z])", r"\1 \2", line)) or word.search(line)
            if found:
                yield f"{path}:{number}: the vendor word {found.group(1)}"


GPU_VENDORS = ("cuda", "hip")


def vendor_files(tree):
    """What a vendor's GPUs need is in files of the same names with the same functions, each in one guard."""
    folder = "include/ferry/exec/gpu/"
    names = {
        vendor: {path[len(f"{folder}{vendor}/") :] for path in tree.own(f"{folder}{vendor}/", suffixes=CODE)}
        for vendor in GPU_VENDORS
    }
    first, second = GPU_VENDORS
    for name in sorted(names[first] ^ names[second]):
        have = first if name in names[first] else second
        yield f"{folder}{have}/{name}: has no counterpart of the other vendor"
    for name in sorted(names[first] & names[second]):
        functions = [public_functions(tree, f"{folder}{vendor}/{name}") for vendor in GPU_VENDORS]
        for function in sorted(functions[0] ^ functions[1]):
            have = first if function in functions[0] else second
            yield f"{folder}{have}/{name}: only this vendor has {function}()"
    for vendor in GPU_VENDORS:
        for name in sorted(names[vendor]):
            lines = [s.strip() for _, s in tree.code_lines(f"{folder}{vendor}/{name}") if s.strip()]
            if not lines or not lines[0].startswith("#if") or lines[-1] != "#endif":
                yield f"{folder}{vendor}/{name}: not in one guard for the whole file"


def public_functions(tree, path):
    """Names of the static functions before `private:`."""
    text = "\n".join(line for _, line in tree.code_lines(path)).split("private:")[0]
    return set(re.findall(r"\bstatic\s[^;={}()]*?\b(\w+)\(", text))


def conditionals(tree):
    """Only base/platform.hpp asks the preprocessor; elsewhere one guard may hold a whole file."""
    for path in tree.own("include/", "src/", suffixes=CODE):
        if path == "include/ferry/base/platform.hpp":
            continue
        significant = [
            (number, line.strip()) for number, line in tree.code_lines(path) if line.strip() and "#pragma" not in line
        ]
        directives = [(n, s) for n, s in significant if re.match(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b", s)]
        directives = without_supplied_constants(directives, significant)
        if not directives:
            continue
        whole = (
            len(directives) == 2
            and directives[0] == significant[0]
            and directives[1] == significant[-1]
        )
        if not whole:
            yield f"{path}:{directives[0][0]}: {directives[0][1]}"


def without_supplied_constants(directives, significant):
    """Leaves out `#ifndef NAME`, `#define NAME value`, `#endif`: what an older system header lacks."""
    kept = list(directives)
    for first, second, third in zip(significant, significant[1:], significant[2:]):
        missing = re.match(r"#\s*ifndef\s+(\w+)$", first[1])
        if missing and re.match(rf"#\s*define\s+{missing.group(1)}\s+\S", second[1]) and third[1] == "#endif":
            kept = [directive for directive in kept if directive not in (first, third)]
    return kept


def literal_lanes(tree):
    """Kernels never write a team's width or a mask of one."""
    speaks = re.compile(r"lane|team|mask|ballot|shuffle|broadcast", re.IGNORECASE)
    width = re.compile(r"(?<![\w.])(31|32|63|64)[uUlL]*(?![\w.])|0x[fF]{8}\b|0x[fF]{16}\b")
    for path in tree.own("include/ferry/kernels/", "src/kernels/", suffixes=CODE):
        for number, line in tree.code_lines(path):
            if speaks.search(line) and width.search(line):
                yield f"{path}:{number}: a literal width of a team: {line.strip()}"
            elif re.search(r"\buint(32|64)_t\s+\w*mask\b", line):
                yield f"{path}:{number}: a mask is a Team::mask: {line.strip()}"


def header_length(tree):
    """A header of more than 500 lines is two."""
    for path in tree.own("include/", "src/", suffixes={".hpp"}):
        length = len(tree.text(path).splitlines())
        if length > 500:
            yield f"{path}: {length} lines, limit 500"


def is_reexport(tree, path):
    """Nothing but includes."""
    rest = [line.strip() for _, line in tree.code_lines(path)]
    rest = [line for line in rest if line and not re.match(r"#\s*(pragma once|include\b)", line)]
    return not rest


def mirrored_tests(tree):
    """include/ferry/x/y.hpp has tests/x/y_test.cpp, which includes it before anything else."""
    for path in tree.own("include/ferry/", suffixes={".hpp"}):
        name = path[len("include/ferry/") :]
        if is_reexport(tree, path):
            continue
        stem = name[: -len(".hpp")]
        places = [f"tests/{stem}_test.cpp"]
        if "/" not in name:
            places.insert(0, f"tests/{layer_of_header(name)}/{stem}_test.cpp")
        test = next((place for place in places if place in tree.files), None)
        if test is None:
            if name not in UNMIRRORED:
                yield f"{path}: no test {places[0]}"
            continue
        first = next((include for _, include, _ in tree.includes(test)), None)
        if first != f"ferry/{name}":
            yield f"{test}: includes {first} first, not ferry/{name}"
    for name in UNMIRRORED:
        exempt = f"tests/{name[: -len('.hpp')]}_test.cpp"
        if exempt in tree.files:
            yield f"{exempt}: exists, so {name} needs no exemption"


def file_names(tree):
    """A file is named by what it defines."""
    banned = {"utils", "util", "common", "helper", "helpers", "misc", "v2", "legacy", "impl2", "pe", "nranks", "stuff"}
    for path in tree.own():
        for part in pathlib.PurePosixPath(path).parts:
            hit = banned & set(re.split(r"[._\-]", part.lower()))
            if hit:
                yield f"{path}: the name says {', '.join(sorted(hit))}"


def is_script(tree, path):
    return pathlib.PurePath(path).suffix == "" and tree.text(path).startswith("#!")


def licence_lines(tree):
    """Every source file says its licence in its first lines."""
    for path in tree.own():
        suffix = pathlib.PurePath(path).suffix
        named = suffix in {".cpp", ".hpp", ".py", ".sh", ".cmake"} or path.endswith(("CMakeLists.txt", ".cmake.in"))
        if not named and not is_script(tree, path):
            continue
        if "SPDX-License-Identifier: MIT" not in "\n".join(tree.text(path).splitlines()[:3]):
            yield f"{path}: no SPDX line within the first three"


def own_text(tree):
    for path in tree.own(suffixes=TEXT):
        if path not in RULES_THEMSELVES:
            yield path


def unfinished_work(tree):
    """Nothing is left for later in a comment."""
    for path in own_text(tree):
        for number, line in tree.lines(path):
            found = re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line)
            if found:
                yield f"{path}:{number}: {found.group(1)}"


def machine_paths(tree):
    """No path of somebody's machine."""
    machine = re.compile(r"(?<![\w.])/(root|home|Users|mnt|srv)/\w")
    for path in own_text(tree):
        for number, line in tree.lines(path):
            found = machine.search(line)
            if found:
                yield f"{path}:{number}: {line.strip()}"


def names(tree):
    """Functions are not called get_, constants not k..., and one word stands for one thing."""
    banned = re.compile(r"(?<!std::)\b(get_[a-z]\w*)\s*\(|\b(k[A-Z]\w+)\b|\b(nranks|n_ranks|world_?[sS]ize|num_pes)\b")
    for path in tree.own("include/", "src/", suffixes=CODE):
        for number, line in tree.code_lines(path):
            # A function of a foreign library is called, never declared, with its namespace or object.
            for found in banned.finditer(line):
                before = line[: found.start()].rstrip()
                if found.group(1) and before.endswith(("::", ".", "->")):
                    continue
                yield f"{path}:{number}: {found.group(0).strip('(')}"


def readme_code(tree):
    """The README's code is the marked region of an example, word for word."""
    example = "examples/02_dispatch_combine/dispatch_combine.cpp"
    if example not in tree.files or "README.md" not in tree.files:
        yield f"{example} or README.md is missing"
        return
    region = re.search(r"^[ \t]*// \[readme\]\n(.*?)^[ \t]*// \[/readme\]", tree.text(example), re.DOTALL | re.MULTILINE)
    if not region:
        yield f"{example}: no region from // [readme] to // [/readme]"
        return
    blocks = re.findall(r"^```cpp\n(.*?)^```", tree.text("README.md"), re.DOTALL | re.MULTILINE)
    if dedent(region.group(1)) not in [dedent(block) for block in blocks]:
        yield f"README.md: no cpp block equals the marked region of {example}"


def dedent(text):
    kept = text.strip("\n").splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in kept if line.strip()), default=0)
    return [line[margin:].rstrip() for line in kept]


def links(tree):
    """Links within the documents lead somewhere."""
    for path in tree.own(suffixes={".md"}):
        for number, line in tree.lines(path):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:|#", target):
                    continue
                place = (tree.root / path).parent / target.split("#")[0]
                if not place.exists():
                    yield f"{path}:{number}: {target} does not exist"


def memory_model_tests(tree):
    """docs/memory_model.md has a row for each rule R1-R11, and the tests it names exist."""
    page = "docs/memory_model.md"
    if page not in tree.files:
        yield f"{page} is missing"
        return
    known = set()
    for path in tree.own("tests/", suffixes=CODE):
        for suite, case in re.findall(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", tree.text(path)):
            known.add(f"{suite}.{case}")
    rows = {}
    for number, line in tree.lines(page):
        row = re.match(r"\|\s*(R\d+)\s*\|", line)
        if row:
            rows[row.group(1)] = (number, re.findall(r"`(\w+\.\w+)`", line.split("|")[-2]))
    for rule in (f"R{n}" for n in range(1, 12)):
        if rule not in rows:
            yield f"{page}: no row for {rule}"
    for rule, (number, tests) in rows.items():
        if not tests:
            yield f"{page}:{number}: {rule} names no test"
        for test in tests:
            if test not in known:
                yield f"{page}:{number}: no test {test}"


def data_size(tree):
    """The tests' data stays below 12 MB."""
    size = sum((tree.root / f).stat().st_size for f in tree.files if f.startswith("tests/data/"))
    if size > 12_000_000:
        yield f"tests/data: {size} bytes, limit 12000000"


RULES = [
    layers,
    siblings,
    src_is_private,
    vendor_words,
    vendor_files,
    conditionals,
    literal_lanes,
    header_length,
    mirrored_tests,
    file_names,
    licence_lines,
    unfinished_work,
    machine_paths,
    names,
    readme_code,
    links,
    memory_model_tests,
    data_size,
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("rule", nargs="*")
    chosen = parser.parse_args()
    by_name = {rule.__name__: rule for rule in RULES}
    if not chosen.rule:
        for name, rule in by_name.items():
            print(f"{name}: {rule.__doc__.splitlines()[0]}")
        return 0
    tree = Tree(chosen.root)
    if not tree.files:
        print(f"no files below {tree.root}")
        return 1
    breaches = [line for name in chosen.rule for line in by_name[name](tree)]
    print("\n".join(breaches))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
