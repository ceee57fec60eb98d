// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The exchange's own host code and kernels, on ranks that a schedule steps through and windows
/// that a slow memory writes.
#pragma once

#include "exchange/exchange_state.hpp"
#include "protocol/schedule.hpp"
#include "protocol/slow_memory.hpp"

#include <ferry/base/float8_codes.hpp>
#include <ferry/exchange.hpp>
#include <ferry/exec/team.hpp>
#include <ferry/memory/window.hpp>
#include <ferry/transport/delivery.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ferry::protocol_test {

/// The sizes of a run.
struct run_shape {
  int ranks = 2;
  int blocks = 1;
  int slots = 1;
  int steps = 16;
  int max_tokens = 3;
  int chunk_tokens = 1;
  int round_tokens = 0;
  ferry::layout layout = layout::grouped;
  ferry::reduction reduction = reduction::per_rank;
  int ranks_per_node = 0;           ///< records take two hops between nodes of so many ranks
  bool release_some = true;         ///< some steps end without results
  bool slow_self = true;            ///< a rank's stores to itself are late too
  std::uint64_t epochs_before = 0;  ///< as if so many epochs had passed
  bool check_ahead = true;          ///< a word whose epoch is ahead of its reader ends the run (R5)
};

/// How a run ended.
enum class outcome {
  right,       ///< every row and every sum was what the routing says
  wrong_data,  ///< something else was received or summed
  stuck,       ///< nobody can go on
  ahead,       ///< a reader saw a later epoch than its own
  refused,     ///< a call returned an error
};
char const* to_string(outcome o);

struct verdict {
  outcome what = outcome::right;
  std::string text;
};

struct run;

/// What one rank brings to one step: a function of the seed, which all ranks can compute.
struct step_plan {
  int tokens = 0;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
};

/// One rank: an exchange without a group behind it.
struct stepped_rank {
  stepped_rank(run& r, int rank);
  /// As if all counters and flags had come to this epoch.
  void start_after(std::uint64_t epoch);
  std::byte* own() const { return memory.data(); }
  step_frame const& frame(int slot) const { return states[static_cast<std::size_t>(slot)]->frame; }
  /// Runs a kernel on all blocks, as an executor does.
  void on_all_blocks(std::function<void(int)> const& work);
  void help(int block);

  run& all;
  int index;
  exchange_core core;
  window memory;
  queue work_queue;
  std::vector<microbatch::state*> states;
  std::vector<microbatch> slots;
  std::vector<std::vector<float>> tokens, made, output;  ///< by slot
  std::vector<step_plan> plans;                          ///< by slot

  std::function<void(int)> const* task = nullptr;
  int generation = 0;
  int busy = 0;
  bool over = false;
};

/// A block of a rank: what a kernel's team and delivery stand for.
struct agent {
  stepped_rank& rank;
  int block;
};

/// What ranks do wherever they touch each other: the protocol. A mutant overrides one of these.
/// Every call returns false when the run is over.
class conduct {
 public:
  virtual ~conduct() = default;
  /// Before the rank's first step.
  virtual void begin(stepped_rank&) {}
  /// Step n of all slots.
  virtual bool step(stepped_rank& r, int n);
  virtual bool give_back(stepped_rank& r, int slot, int n);

  virtual bool wait(agent const& a, awaited const& what, std::uint64_t const* word,
                    std::uint64_t& value);
  virtual void put(agent const& a, int to, std::size_t offset, std::byte const* from,
                   std::size_t bytes);
  virtual void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word);

 protected:
  bool send(stepped_rank& r, int slot, int n);
  bool receive(stepped_rank& r, int slot, int n);
  bool gather(stepped_rank& r, int slot, int n);
  /// A store of the word that promises nothing.
  void publish_plainly(agent const& a, int to, std::size_t offset, std::uint64_t word);
};

/// A whole run: all ranks, from the first step to the last.
struct run {
  /// `reused`: windows of an earlier run, by rank; none: fresh ones.
  run(run_shape const& s, conduct& c, std::uint64_t seed_of_all, std::vector<window> reused = {});
  verdict play();

  /// The first finding ends the run.
  void report(outcome what, std::string text);
  bool stopped() const { return order.stopped(); }
  int num_experts() const { return 2 * shape.ranks + 1; }
  step_plan plan(int slot, int n, int rank) const;
  bool is_released(int slot, int n) const;
  void check_received(stepped_rank& r, int slot, int n, received const& in);
  void check_output(stepped_rank& r, int slot, int n);

  run_shape shape;
  conduct& habits;
  std::uint64_t seed;
  std::vector<window> reused_windows;
  slow_memory memory;
  schedule order;
  std::vector<std::unique_ptr<stepped_rank>> ranks;
  verdict found;
};

/// Runs the protocol of `habits` and says what became of it.
verdict play(run_shape const& shape, conduct& habits, std::uint64_t seed);

/// Columns of a row; each tells its source, token, step and column.
inline constexpr int hidden = 8;
inline constexpr int topk = 2;

/// A block as the team concept wants it, with a point of the schedule at every operation.
class stepping_team {
 public:
  static constexpr int lanes = 1;
  static constexpr int columns = scale_block;
  struct chunk {
    std::byte bytes[16];
  };
  using mask = std::uint8_t;
  static constexpr int row_pieces = 1;
  using codes = software_codes;

  stepping_team(agent const& a, std::byte* scratch, std::byte* block_scratch)
      : agent_(&a), scratch_(scratch), block_scratch_(block_scratch) {}

  int lane() const { return 0; }
  bool leader() const { return true; }
  int index() const { return 0; }
  int count() const { return 1; }
  int block() const { return agent_->block; }
  int blocks() const { return agent_->rank.all.shape.blocks; }
  template <class T>
  T broadcast(T value, int) const {
    return value;
  }
  bool any(bool b) const { return b; }
  mask ballot(bool b) const { return b; }
  template <int Group>
  float max_over(float value) const {
    return value;
  }
  std::int64_t sum_to(std::int64_t value) const { return value; }
  piece load_piece(std::byte const* from) const { return *reinterpret_cast<piece const*>(from); }
  void store_piece(std::byte* to, piece const& v) const { *reinterpret_cast<piece*>(to) = v; }
  void sync() const { pause(); }
  void drain() const { pause(); }
  void block_sync() const { pause(); }
  bool block_all(bool b) const { return b; }
  template <class T>
  T fetch_add(T* at, T value) const {
    T const before = *at;
    *at += value;
    return before;
  }
  bool wait(awaited const& what, std::uint64_t const* word, std::uint64_t& value) const {
    return agent_->rank.all.habits.wait(*agent_, what, word, value);
  }
  bool failed() const { return agent_->rank.all.stopped(); }
  std::byte* row_scratch() const { return scratch_; }
  std::byte* block_scratch() const { return block_scratch_; }

 private:
  void pause() const { agent_->rank.all.order.pause(); }
  agent const* agent_;
  std::byte* scratch_;
  std::byte* block_scratch_;
};

/// Delivery through the slow memory.
struct slow_delivery {
  agent const* from;

  std::byte* own_flags() const { return from->rank.own(); }
  std::byte* own_rows() const { return from->rank.own(); }
  template <team Team, class T>
  void put_value(Team const&, int to, std::size_t offset, std::uint32_t lane_offset,
                 T const& value) const {
    from->rank.all.habits.put(*from, to, offset + lane_offset,
                              reinterpret_cast<std::byte const*>(&value), sizeof value);
  }
  template <team Team>
  void release(Team const&) const {}
  template <team Team>
  void put(Team const&, int to, std::size_t offset, std::byte const* row, std::size_t bytes) const {
    from->rank.all.habits.put(*from, to, offset, row, bytes);
  }
  template <team Team>
  void publish(Team const&, int to, flag kind, std::size_t offset, std::uint64_t word) const {
    from->rank.all.habits.publish(*from, to, kind, offset, word);
  }
};

static_assert(team<stepping_team>);
static_assert(delivery<slow_delivery, stepping_team>);

/// The kernels over these two, as an exchange calls them.
cpu_kernels const& stepped_kernels();
relay_kernels const& stepped_relays();
/// What the running agent's kernels are launched with.
cpu_launch launch_of(stepped_rank& r, int slot);

}  // namespace ferry::protocol_test
