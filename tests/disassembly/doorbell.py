# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""The order in which a kernel hands entries to a NIC: data, then index, then a fence, then the doorbell.

Followed over all ways through a kernel. `data`: part of an entry may be stored that no fence covers yet.
`index`: likewise an index or record. `nothing shown`: an entry is there, and no index since. Before an entry is
stored there is none to be shown: words are counters of the rank's own, doorbells those of completions.
"""

import re

import flow
import gcn
import ptx


class Gcn:
    read = staticmethod(gcn.read)

    @staticmethod
    def kind(i):
        stores = i.op.startswith(("global_store", "flat_store"))
        if stores and " nt" in i.args:
            return "doorbell"
        if stores and "sc0 sc1" in i.args:
            return "word"
        if stores:
            return "data"
        if i.op == "buffer_wbl2" and "sc0 sc1" in i.args:
            return "write-back"
        if gcn.waits_for_all(i):
            return "wait"
        return None


class Ptx:
    read = staticmethod(ptx.read)

    @staticmethod
    def kind(i):
        if i.op.startswith("st.mmio."):
            return "doorbell"
        if i.op.startswith("st.relaxed.sys"):
            return "word"
        if re.match(r"st\.(global|volatile|weak|[uvb])", i.op):
            return "data"
        if ptx.fence(i):
            return "fence"
        return None


def step_of(kind):
    def step(i, facts):
        facts = set(facts)
        what = kind(i)
        if what == "data":
            facts |= {"posting", "data", "data in cache", "nothing shown"}
        elif what == "word":
            if "posting" in facts:
                facts.add("index")
            facts.discard("nothing shown")
        elif what == "doorbell":
            facts -= {"posting", "index", "nothing shown"}
        elif what == "write-back":
            facts.discard("data in cache")
        elif what == "wait":
            facts.discard("index")
            if "data in cache" not in facts:
                facts.discard("data")
        elif what == "fence":
            facts -= {"data", "data in cache", "index"}
        return frozenset(facts)

    return step


def breaches(code, of, has_index):
    """One line for each breach. `has_index`: whether the NIC takes an index or record beside the doorbell."""
    before = flow.reaching(code, step_of(of.kind))
    doorbells = 0
    for i, facts in zip(code, before):
        what = of.kind(i)
        if facts is None or what not in ("word", "doorbell"):
            continue
        if "data" in facts:
            yield f"a {what} while part of an entry is under way: {i.text()}"
        if what == "word":
            continue
        doorbells += "posting" in facts
        if "index" in facts:
            yield f"a doorbell with no fence since the index: {i.text()}"
        if has_index and "nothing shown" in facts:
            yield f"a doorbell for an entry whose index was not stored: {i.text()}"
    if not doorbells:
        yield "no doorbell"
    if not any(of.kind(i) == "data" for i in code):
        yield "no entry is stored"
