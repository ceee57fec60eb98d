// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The exchange: dispatch carries tokens to the ranks of their experts, combine brings results
/// home.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/exec/device.hpp>
#include <ferry/exec/queue.hpp>
#include <ferry/group.hpp>
#include <ferry/options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ferry {

/// Expert ids, int32 or int64, [tokens, topk]. -1 means no expert.
struct choice_matrix {
  choice_matrix() = default;
  choice_matrix(matrix<std::int32_t const> m)
      : data(m.data),
        rows(m.rows),
        columns(m.columns),
        row_stride(m.row_stride),
        type(id_type::int32) {}
  choice_matrix(matrix<std::int64_t const> m)
      : data(m.data),
        rows(m.rows),
        columns(m.columns),
        row_stride(m.row_stride),
        type(id_type::int64) {}
  choice_matrix(matrix<std::int32_t> m)
      : choice_matrix(matrix<std::int32_t const>{m.data, m.rows, m.columns, m.row_stride}) {}
  choice_matrix(matrix<std::int64_t> m)
      : choice_matrix(matrix<std::int64_t const>{m.data, m.rows, m.columns, m.row_stride}) {}

  void const* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  id_type type = id_type::int32;
};

/// What a rank brings to a step.
struct dispatch_input {
  const_tensor tokens;                  ///< [T, hidden], or [T, opaque_row_bytes] of bytes
  choice_matrix choices;                ///< [T, topk]
  matrix<float const> weights = {};     ///< [T, topk]; no data means all ones
  matrix<std::byte const> scales = {};  ///< opaque rows only: [T, opaque_scale_bytes]
  /// Device memory, T <= tokens.rows, read when the call runs; null: tokens.rows, in every replay.
  std::int32_t const* num_tokens = nullptr;
  int layer = 0;  ///< equal on all ranks; below options.layers, where there are any
};

/// The slots that serve the experts of one layer, as this rank chooses among them: for expert e one
/// of candidates[first[e]] to before candidates[first[e + 1]], by token (replica_slot). Ranks may
/// choose otherwise, but a slot holds the same expert for all. An expert that is lost has one
/// candidate, -1: its choices are skipped, and counted as ids out of range.
struct expert_table {
  int layer = 0;
  std::span<std::int32_t const> first;       ///< [num_experts + 1], ascending from 0
  std::span<std::int32_t const> candidates;  ///< at most one per slot
};

/// What the local experts have to work on.
/// Order    positions run by (local expert, source rank, token); a token that chose an expert twice
///          stands there twice
/// Lifetime all of it borrows the microbatch's memory until its combine_send or release
struct received {
  /// grouped, padded: the rows at their positions. in_place: the whole inbox.
  tensor rows;
  /// One row of scales for each row; empty (no data) when the wire has none.
  matrix<std::byte> scales;
  /// in_place only: position -> row of `rows`.
  std::int32_t const* index = nullptr;
  int num_local_experts = 0;
  int first_expert = 0;                  ///< global id of local expert 0
  std::int32_t const* starts = nullptr;  ///< [local experts], first position of each
  std::int32_t const* counts = nullptr;  ///< [local experts], rows of each
  std::int32_t const* end = nullptr;     ///< one past the last position used
  std::int64_t capacity = 0;             ///< positions that exist
};

/// Traffic, and input that was not used, of all steps since the exchange was made. What a relay
/// passes on for others (hops::two) is not counted.
struct exchange_counters {
  std::uint64_t steps = 0;
  std::uint64_t dispatch_bytes = 0;       ///< rows, scales and routes sent to other ranks
  std::uint64_t dispatch_self_bytes = 0;  ///< the same, to oneself
  std::uint64_t combine_bytes = 0;
  std::uint64_t combine_self_bytes = 0;
  /// Choices that were neither -1 nor an expert, or one that no slot serves (expert_table).
  std::uint64_t ids_out_of_range = 0;
  std::uint64_t rows_received = 0;  ///< (token, local expert) pairs
};

/// Experts' rows that the experts have weighted and summed already, as kernels do that end with a
/// reduction: one row for each token that came, at source rank * max_tokens + token. Rows of
/// tokens that did not come are not read.
struct token_sums {
  const_tensor rows;  ///< [ranks * max_tokens, hidden] of the type of expert rows
};

/// What may differ from call to call of a microbatch.
struct call_options {
  /// Blocks of this call's kernels: a budget of compute units (CPU: threads), so that what runs
  /// beside them has the others. 1 to exchange_options::blocks, which is what 0 means; a graph
  /// keeps the number of the captured call.
  int blocks = 0;
};

class exchange;

/// An independent slot of an exchange: one step at a time, in the order dispatch_send,
/// dispatch_receive, then combine_send, combine_receive or release. Slots may interleave, in the
/// same order on all ranks (R8). One thread at a time per slot.
/// Order    on queues that run later than the call (streams, and any queue while it is captured)
/// the
///          host looks at nothing in memory: token counts out of range and overflows are reported
///          by `wait`; expert rows are given for all `received::capacity` positions, output rows
///          for all rows of tokens. A captured step is whole: from dispatch_send to combine_receive
///          or release in one capture; a launch of its graph is a step
/// Errors   every call: invalid_argument more blocks than the exchange was made for, or fewer than
///          0; invalid_state out of order (nothing changed, may be repeated) or on a broken group,
///          with the first cause; unreachable, timeout naming the rank to blame, transport a
///          network that failed: after each of these the group is broken
class microbatch {
 public:
  /// Sends every token to the ranks that own its chosen experts, each rank once.
  /// Collective: every rank of the group, same order, also with 0 tokens.
  /// Shapes   see dispatch_input; T <= options.max_tokens
  /// Units    strides in elements, `row_stride_bytes` in bytes
  /// Order    reads its input until the call has run on the queue; when a step takes rounds
  ///          (options.round_tokens < max_tokens) `tokens` and `scales` until dispatch_receive has
  /// Lifetime keeps its own copy of choices and weights for the gather
  /// Errors   invalid_argument a shape, type, stride or T > max_tokens
  result<void> dispatch_send(queue& q, dispatch_input const& input, call_options const& with = {});

  /// Waits for every rank's tokens and lays them before the local experts.
  /// Errors   capacity an expert received more rows than the layout holds: none was written past
  ///          the end, the rest is in `last_received()`, the step goes on and must be ended
  result<received> dispatch_receive(queue& q, call_options const& with = {});
  result<received> dispatch(queue& q, dispatch_input const& input, call_options const& with = {});
  received const& last_received() const;

  /// Sends the experts' results home, weighted and summed (per_rank) or row by row (per_choice).
  /// Shapes   expert_rows [positions, hidden] at the positions of `received`, for all layouts
  /// Order    reads `expert_rows` until the call has run on the queue; when a step takes rounds,
  ///          until combine_receive has
  result<void> combine_send(queue& q, const_tensor expert_rows, call_options const& with = {});
  /// The same of sums: a row whose type is that of the wire is copied once, from where it lies.
  /// Errors   invalid_argument the exchange was made for per_choice
  result<void> combine_send(queue& q, token_sums const& sums, call_options const& with = {});

  /// Sums the results of each own token into `output`.
  /// Shapes   output [T, hidden]; `added` [T, hidden] of the output's type, or no rows: a row that
  ///          is added last (residual, shared expert). `added` may be `output` itself
  /// Order    tokens without any expert get `added`, or zeros
  result<void> combine_receive(queue& q, tensor output, const_tensor added = {},
                               call_options const& with = {});
  result<void> combine(queue& q, const_tensor expert_rows, tensor output, const_tensor added = {},
                       call_options const& with = {});

  /// Ends a step whose results nobody wants. Collective, in place of combine.
  result<void> release(queue& q, call_options const& with = {});

  /// Waits until all calls of this slot on the queue are done, and says how they went. Calls on
  /// queues that run by themselves return before that: what went wrong in them, and in launches of
  /// graphs, is reported here, or by a later call.
  /// Errors   capacity as dispatch_receive; invalid_argument a token count in memory was out
  ///          of range, and was cut: both once, the steps themselves are as they should be; timeout
  ///          the queue is not done after twice the exchange's timeout; device
  result<void> wait(queue& q);

  struct state;
  explicit microbatch(std::unique_ptr<state> s);
  microbatch(microbatch&&) noexcept;
  ~microbatch();

 private:
  friend class exchange;
  std::unique_ptr<state> state_;
};

/// Everything that steps of one shape need: windows, slots, and the kernels for this device.
/// Lifetime keeps its group alive; destroy it on every rank before the group is left
class exchange {
 public:
  /// Slot `index`, 0 to num_microbatches() - 1.
  ferry::microbatch& microbatch(int index);
  int num_microbatches() const;
  /// As given, but `hops` says what was chosen: one or two.
  exchange_options const& options() const;
  group const& ranks() const;
  /// First expert of `rank`, 0 to the number of ranks; that of the number of ranks is num_experts.
  /// Slots are counted where options.expert_slots says so.
  int first_expert(int rank) const;
  /// On a device, copied from there; a device that does not answer breaks the group.
  exchange_counters counters() const;

  /// Changes the tables of some layers; steps that follow, replays of graphs too, use the new ones.
  /// Not collective, but a step must find tables on all ranks that fit the experts in the slots.
  /// Order    waits for what slots have put on queues; until it returns no slot may be called
  /// Errors   invalid_state options.layers is 0, or a step is open on a slot; invalid_argument a
  ///          table that is none, naming layer and expert: then none has changed; timeout; device,
  ///          which breaks the group
  result<void> write_tables(std::span<expert_table const> tables);
  /// How many choices each of this rank's slots has served, [layers, slots of this rank], since
  /// the exchange was made. -1, and tokens that were not there, are not counted.
  /// Errors   invalid_state options.layers is 0; device
  result<std::vector<std::uint64_t>> slot_loads() const;
  /// Experts that sampled tokens chose in each slot's last step of each layer, each step's once:
  /// [num_microbatches, sampled_tokens, layers, topk]; -1 is no expert, no token, or no new step.
  /// Token i of n is token i*T/n of the step's T, or token i where T is at most n.
  /// Order    all that was put on queues has run
  /// Errors   as slot_loads
  result<std::vector<std::int32_t>> sampled_choices() const;

  exchange(exchange&&) noexcept;
  ~exchange();

  struct state;

 private:
  friend result<exchange> make_exchange(group const&, device const&, exchange_options const&);
  explicit exchange(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

/// Makes an exchange. Collective: every rank, same options.
/// Errors   invalid_argument an option out of its limits, or different on two ranks; out_of_memory;
///          unsupported a peer that cannot be reached; unreachable, timeout, io. All ranks get an
///          error, or none does
/// Example  examples/02_dispatch_combine
result<exchange> make_exchange(group const& ranks, exchange_options const& options);

/// The same on a device: tokens, choices, weights, expert rows and outputs lie in its memory, calls
/// take queues of it and return when their work stands there; `received` points into its memory.
/// The calls check what the host knows. `dispatch_receive` reports no overflow and `num_tokens` out
/// of range is no error there: `wait` reports both. Expert rows must be given for all
/// `received::capacity` positions, output rows for all rows of tokens. All ranks need the same kind
/// of device, on this machine; they are threads of one process or processes. Several ranks may
/// share a device as threads.
/// Lifetime over RDMA, and on devices of ranks that are processes, its end waits for that of the
///          peers, at most the timeout
/// Errors   invalid_argument also blocks of which more could wait at once than half of what the
///          device holds; unsupported also ranks on other kinds of devices; device
result<exchange> make_exchange(group const& ranks, device const& where,
                               exchange_options const& options);

/// Bytes of the window that `make_exchange` would make on each of `num_ranks` ranks, on this kind
/// of device, with nodes of `ranks_per_node` ranks in order (the last may have fewer; 0: one node),
/// which count where records take two hops. Allocates nothing.
/// Errors   invalid_argument as make_exchange, ranks_per_node below 0; unsupported two hops on
/// devices
result<std::size_t> window_bytes(exchange_options const& options, int num_ranks,
                                 device_kind kind = device_kind::cpu, int ranks_per_node = 0);

}  // namespace ferry
