// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a user chooses when making an exchange, checked once, in one place.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/base/types.hpp>
#include <ferry/transport/libfabric.hpp>
#include <ferry/transport/loopback.hpp>
#include <ferry/transport/reach.hpp>
#include <ferry/transport/verbs.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ferry {

/// How received rows lie before the experts.
enum class layout : std::uint8_t {
  grouped,   ///< one expert after the other; each group starts at a multiple of `row_align`
  padded,    ///< [local experts, capacity, hidden], with counts
  in_place,  ///< no copy: an index list into the inbox
};

/// How the experts' rows come home.
enum class reduction : std::uint8_t {
  per_rank,    ///< each rank sums its own experts' weighted rows and returns one row: fewest bytes
  per_choice,  ///< every expert's row travels; summed in choice order, so the result does not
               ///< depend on the number of ranks nor on where experts live
};

/// The fp8 that a rank computes with.
enum class fp8_flavour : std::uint8_t {
  of_device,  ///< its device's own; `either` for a device that has none, as the CPU
  ocp,        ///< codes as NVIDIA and gfx950 read them
  fnuz,       ///< codes as gfx942 reads them
  either,     ///< both: rows come as their wire is named
};

/// The type of the choices' expert ids.
enum class id_type : std::uint8_t { int32, int64 };

/// What carries to peers that cannot be mapped.
enum class carrier : std::uint8_t {
  verbs,      ///< RDMA through libibverbs
  libfabric,  ///< a provider of libfabric: tcp between machines without RDMA
};

/// How records reach ranks of other nodes.
enum class hops : std::uint8_t {
  /// Two where the cost model says that it pays (docs/decisions/0007-two-hops.md), else one.
  automatic,
  /// Every rank is sent to directly.
  one,
  /// Once for each node that a token goes to, to the rank there with the sender's index within its
  /// node, which passes it on. Home the same way; with per_rank one sum a node comes home, with
  /// per_choice the results have the same bits as with one hop.
  two,
};

/// Sizes and formats of an exchange. What travels between ranks must be equal on all of them, and
/// `make_exchange` compares it: the sizes, both wires, the reduction, rounds, chunks, slots and
/// hops. Types of the caller's tensors, layout, capacity and blocks are each rank's own business.
struct exchange_options {
  int num_experts = 0;  ///< of the whole group; rank r owns [r*E/R, (r+1)*E/R)
  int topk = 0;         ///< choices per token, 1..32
  int hidden = 0;       ///< columns of a row
  int max_tokens = 0;   ///< most tokens a rank brings to one step (M)

  /// Places for experts, of all ranks together; rank r has [r*S/R, (r+1)*S/R), which then stand for
  /// "experts" in all that is received. 0: num_experts, each in its own. More of them need
  /// `layers`.
  int expert_slots = 0;
  /// Layers that steps can be of, each with a table of the slots that serve its experts, which can
  /// be changed between steps, and counters of its loads. 0: no tables, choices name slots.
  int layers = 0;
  int sampled_tokens = 0;  ///< of each step, whose choices can be looked at afterwards, 0..64

  dtype tokens = dtype::bf16;  ///< rows given to dispatch: f32, bf16, fp16
  /// Rows in flight to the experts. `fp8_e4m3` reaches each rank in its own flavour (`fp8`);
  /// `fp8_e4m3fnuz` is FNUZ for all.
  ferry::wire wire = wire::bf16;
  dtype expert_rows = dtype::bf16;        ///< rows given to combine: f32, bf16, fp16
  ferry::wire combine_wire = wire::bf16;  ///< likewise home: f32, bf16, fp16, fp8_e4m3(fnuz)
  dtype output = dtype::bf16;             ///< rows written by combine: f32, bf16, fp16
  id_type ids = id_type::int32;

  ferry::layout layout = layout::grouped;
  ferry::reduction reduction = reduction::per_rank;
  int row_align = 1;  ///< grouped: each expert's first row is a multiple of this
  /// grouped, in_place: rows in all; padded: rows per expert. 0 means that nothing can overflow as
  /// long as no token of the padded layout names an expert twice.
  std::int64_t capacity = 0;
  /// In which fp8 this rank receives, experts' rows and its own home; may differ from rank to rank.
  /// FNUZ: rows of `fp8_e4m3` arrive as E4M3 FNUZ with their scales, those of `fp8_ue8m0` with the
  /// same codes and doubled scales. `received::rows.type` says what came.
  fp8_flavour fp8 = fp8_flavour::of_device;

  std::size_t opaque_row_bytes = 0;    ///< wire opaque: bytes of a row, any number
  std::size_t opaque_scale_bytes = 0;  ///< wire opaque: bytes of a row's scales, any number or 0

  /// Most blocks of a call, and those of every call that asks for no fewer (call_options); what can
  /// wait at once is held against a device's room by it. On the CPU threads, and the queues that
  /// the exchange runs on have as many teams.
  int blocks = 1;
  /// Teams per block, each of which moves a row at a time: 0 lets ferry choose; on the CPU one.
  int block_teams = 0;
  /// How peers are reached: mapped, or `network` to send even to those that could be mapped through
  /// the loopback network, which shows what a real one does to a program. Where threads of one
  /// process play several nodes (group_options::ranks_per_node), ranks of one node stay mapped.
  reach via = reach::mapped;
  loopback_faults faults = {};  ///< of the loopback network
  /// What carries to peers that cannot be mapped; the same on all ranks. Its options are each
  /// rank's own business.
  ferry::carrier carrier = carrier::verbs;
  verbs_options network = {};     ///< of verbs; without a `device` one near to the rank is chosen
  libfabric_options fabric = {};  ///< of libfabric
  /// NICs that a rank uses at once, at most, 1 to 16; the same on all ranks. Its nearest by hwloc,
  /// or without hwloc the next in order. Where `network.device`, or the fabric's domain or address,
  /// names a NIC, all rails are connections of that one.
  int rails = 1;
  /// How ranks of other nodes are reached. Two hops need CPU ranks, steps of one round and, where
  /// rows are fp8_e4m3, ranks that all take the same flavour; in a group that is one node they are
  /// the same as one.
  ferry::hops hops = hops::automatic;

  int num_microbatches = 2;  ///< independent slots, 1..64
  int round_tokens = 0;      ///< tokens per round of a long step (M'); 0 means max_tokens
  int chunk_tokens = 0;      ///< tokens that share a flag: 1, 2, 4, 8, 16; 0 lets ferry choose
  std::chrono::milliseconds timeout{0};  ///< 0 means the group's
};

/// Checks everything that can be checked without the group.
/// Errors   invalid_argument naming the field, its value and its limit
result<void> validate(exchange_options const& options, int num_ranks);

}  // namespace ferry
