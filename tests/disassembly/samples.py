# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Small pieces of code: a good one, and variants that each break one rule.

A sample names what the checker must say of it. Lines of gfx942 are written without addresses; `:name`
is a label, and a branch names one.
"""

GOOD_GCN = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
:item
  global_load_dwordx4 v[4:7], v1, s[6:7]
  global_load_dword v8, v2, s[8:9]
  s_waitcnt vmcnt(0)
:rank
  global_store_dwordx4 v1, v[4:7], s[10:11] sc0 sc1
  global_store_dword v2, v8, s[10:11] sc0 sc1
  s_cbranch_scc1 :rank
  s_waitcnt vmcnt(0)
  s_cbranch_scc1 :item
  s_barrier
  s_waitcnt vmcnt(0)
  global_store_dwordx2 v3, v[10:11], s[12:13] sc0 sc1
:poll
  s_sleep 1
  global_load_dwordx2 v[12:13], v3, s[12:13] sc0 sc1
  s_waitcnt vmcnt(0)
  s_cbranch_scc1 :poll
  buffer_inv sc0 sc1
  global_load_dword v14, v3, s[14:15]
  s_endpgm
"""

# (what is replaced, by what, what must be said)
BAD_GCN = [
    ("global_load_dword v8, v2, s[8:9]", "flat_load_dword v8, v[2:3]", "a flat access"),
    ("global_load_dword v8, v2, s[8:9]", "scratch_load_dword v8, off, off", "an access to scratch"),
    ("s_load_dwordx2 s[4:5], s[0:1], 0x0", "s_swappc_b64 s[30:31], s[4:5]", "a call"),
    # rows of 4 bytes
    ("global_load_dwordx4 v[4:7], v1, s[6:7]", "global_load_dword v4, v1, s[6:7]", "no 16-byte load in a loop"),
    (
        "global_store_dwordx4 v1, v[4:7], s[10:11] sc0 sc1",
        "global_store_dword v1, v4, s[10:11] sc0 sc1",
        "no 16-byte store in a loop",
    ),
    ("global_load_dword v8, v2, s[8:9]", "global_load_ubyte v8, v2, s[8:9]", "a load of less than a word"),
    (
        "global_store_dword v2, v8, s[10:11] sc0 sc1",
        "global_store_short v2, v8, s[10:11] sc0 sc1",
        "a store of less than a word",
    ),
    # nobody waits for the stores of the last item
    ("  s_waitcnt vmcnt(0)\n  s_cbranch_scc1 :item", "  s_cbranch_scc1 :item", "a barrier with stores"),
    # a wait for all but one is none
    (
        "  s_waitcnt vmcnt(0)\n  s_cbranch_scc1 :item",
        "  s_waitcnt vmcnt(1)\n  s_cbranch_scc1 :item",
        "a barrier with stores",
    ),
    # the next item is read while the stores of this one are under way
    (
        "  s_waitcnt vmcnt(0)\n  s_cbranch_scc1 :item\n",
        "  s_cbranch_scc1 :item\n  s_waitcnt vmcnt(0)\n",
        "a vector load between a row's store and its drain",
    ),
    # the route is read again for every rank
    (
        "  global_store_dword v2, v8, s[10:11] sc0 sc1\n",
        "  global_load_dword v8, v2, s[8:9]\n  global_store_dword v2, v8, s[10:11] sc0 sc1\n",
        "a vector load between a row's store and its drain",
    ),
    # one more store behind the barrier, and no wait before the flag
    (
        "  s_barrier\n  s_waitcnt vmcnt(0)\n",
        "  s_barrier\n  global_store_dword v2, v8, s[10:11] sc0 sc1\n",
        "a flag while stores are under way",
    ),
    # rows in a cache, written back, and a flag that overtakes
    ("  s_barrier\n  s_waitcnt vmcnt(0)\n", "  s_barrier\n  buffer_wbl2 sc0 sc1\n", "no wait since the write-back"),
    ("  s_barrier\n", "  buffer_wbl2 sc0 sc1\n  s_waitcnt vmcnt(0)\n  s_barrier\n", "a write-back, though"),
    ("  buffer_inv sc0 sc1\n", "", "before the invalidate"),
    ("  buffer_inv sc0 sc1\n", "  buffer_inv\n", "before the invalidate"),
    # on one way only
    ("  buffer_inv sc0 sc1\n", "  s_cbranch_scc0 :past\n  buffer_inv sc0 sc1\n:past\n", "before the invalidate"),
]

BAD_RESOURCES = [
    ({"vgpr_count": 129}, "129 vector registers, limit 128"),
    ({"private_segment_fixed_size": 16}, "16 bytes of scratch"),
]

GOOD_PTX = """
.visible .entry sample(
	.param .align 8 .b8 sample_param_0[8]
)
{
	.reg .pred 	%p<3>;
	ld.param.u64 	%rd1, [sample_param_0];
$L__BB0_1:
	ld.global.v4.u32 	{%r1, %r2, %r3, %r4}, [%rd2];
$L__BB0_2:
	st.global.v4.u32 	[%rd3], {%r1, %r2, %r3, %r4};
	st.global.u32 	[%rd3+64], %r5;
	@%p1 bra 	$L__BB0_2;
	@%p2 bra 	$L__BB0_1;
	bar.sync 	0;
	// begin inline asm
	fence.acq_rel.sys;
	// end inline asm
	st.relaxed.sys.global.u64 [%rd4], %rd5;
$L__BB0_3:
	ld.relaxed.sys.global.u64 %rd6, [%rd7];
	@%p1 bra 	$L__BB0_3;
	fence.acq_rel.sys;
	ld.global.u32 	%r6, [%rd8];
	ret;

}
"""

BAD_PTX = [
    ("st.global.u32 	[%rd3+64], %r5;", "st.u32 	[%rd3+64], %r5;", "an access to no known space"),
    ("st.global.u32 	[%rd3+64], %r5;", "st.local.u32 	[%rd3+64], %r5;", "memory of a thread's own"),
    (".reg .pred 	%p<3>;", ".local .align 8 .b8 	__local_depot0[40];", "memory of a thread's own"),
    ("ld.param.u64 	%rd1, [sample_param_0];", "call.uni (retval0), f, (param0);", "a call"),
    ("ld.global.v4.u32 	{%r1, %r2, %r3, %r4}, [%rd2];", "ld.global.u32 	%r1, [%rd2];", "no 16-byte load"),
    ("st.global.v4.u32 	[%rd3], {%r1, %r2, %r3, %r4};", "st.global.u32 	[%rd3], %r1;", "no 16-byte store"),
    ("st.global.u32 	[%rd3+64], %r5;", "st.global.u8 	[%rd3+64], %rs5;", "a store of less than a word"),
    (
        "	fence.acq_rel.sys;\n	// end inline asm\n	st.relaxed",
        "	st.relaxed",
        "a flag with no fence since a row's store",
    ),
    (
        "	fence.acq_rel.sys;\n	ld.global.u32",
        "	@%p1 bra 	$L__BB0_4;\n	fence.acq_rel.sys;\n$L__BB0_4:\n	ld.global.u32",
        "before the fence",
    ),
]

GOOD_POST_GCN = """
  flat_store_dwordx4 v[0:1], v[4:7]
  flat_store_dwordx4 v[18:19], v[8:11]
  buffer_wbl2 sc0 sc1
  s_waitcnt vmcnt(0)
  global_store_dword v[2:3], v12, off sc0 sc1
  buffer_wbl2 sc0 sc1
  s_waitcnt vmcnt(0)
  global_store_dwordx2 v[14:15], v[16:17], off sc0 sc1 nt
  s_endpgm
"""

BAD_POST_GCN = [
    ("  buffer_wbl2 sc0 sc1\n  s_waitcnt vmcnt(0)\n  global_store_dword v[2:3]", "  global_store_dword v[2:3]",
     "a word while part of an entry"),
    ("  buffer_wbl2 sc0 sc1\n  s_waitcnt vmcnt(0)\n  global_store_dword v[2:3]",
     "  s_waitcnt vmcnt(0)\n  global_store_dword v[2:3]", "a word while part of an entry"),
    ("  s_waitcnt vmcnt(0)\n  global_store_dwordx2", "  global_store_dwordx2", "no fence since the index"),
    ("  global_store_dword v[2:3], v12, off sc0 sc1\n", "", "whose index was not stored"),
    (" nt\n", "\n", "no doorbell"),
    ("  global_store_dword v[2:3], v12, off sc0 sc1\n",
     "  global_store_dword v[2:3], v12, off sc0 sc1\n  flat_store_dword v[18:19], v4\n",
     "a doorbell for an entry whose index"),
]

GOOD_POST_PTX = """
.visible .entry sample(
	.param .align 8 .b8 sample_param_0[8]
)
{
	st.v4.u32 	[%rd1], {%r1, %r2, %r3, %r4};
	fence.acq_rel.sys;
	st.relaxed.sys.global.u32 [%rd2], %r5;
	fence.acq_rel.sys;
	st.mmio.relaxed.sys.global.u64 [%rd3], %rd4;
	ret;

}
"""

BAD_POST_PTX = [
    ("%r4};\n	fence.acq_rel.sys;", "%r4};", "a word while part of an entry"),
    ("%r5;\n	fence.acq_rel.sys;", "%r5;", "no fence since the index"),
    ("	st.relaxed.sys.global.u32 [%rd2], %r5;\n", "", "whose index was not stored"),
    ("st.mmio.relaxed", "st.relaxed", "no doorbell"),
]
