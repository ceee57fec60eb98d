// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Two or more microbatches of one step, of which one communicates while another computes.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exchange/turn_order.hpp>
#include <ferry/exec/queue.hpp>
#include <ferry/group.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ferry {

/// Where a stage's work is put.
enum class stage_kind : std::uint8_t { compute, communication };

/// A part of a step that runs in one piece on one queue.
struct stage {
  char const* name = "";  ///< equal on all ranks; must outlive the stage
  stage_kind on = stage_kind::compute;
  /// Puts the work on the queue that it is given. Called once a step, whoever drives.
  std::function<result<void>(queue&)> put;
  bool yields = false;  ///< whether another microbatch may have its turn after it
  int layer = -1;       ///< for pictures
};

/// The stages of one microbatch, in order.
using stage_list = std::vector<stage>;

/// How stages of several microbatches are put on their queues.
enum class overlap_driver : std::uint8_t {
  /// The calling thread takes stages of one microbatch after the other.
  interleaved,
  /// A thread per microbatch; one runs at a time and hands over at yield points.
  handed_over,
  /// A thread per microbatch, all at once; only calls that communicate wait for each other, because
  /// their order is the same on all ranks.
  concurrent,
};

struct overlap_options {
  int microbatches = 2;  ///< 1 to 64
  overlap_driver driver = overlap_driver::interleaved;
  turn_order turns = {};
  /// Of a wait for one's turn; 0: the group's, once for each microbatch and once more.
  std::chrono::milliseconds timeout{0};
};

/// What the group has agreed upon for one step.
struct agreed_step {
  bool overlapped = false;
  /// Tokens that every microbatch is padded to, on all ranks: of a step that is not overlapped the
  /// most that any rank has, else the share of that.
  int padded = 0;
  int microbatches = 1;

  /// Tokens of this rank's microbatch `index` when it has `tokens` in all: the first ones are full,
  /// later ones may be empty.
  int tokens_of(int index, int tokens) const {
    int const left = tokens - index * padded;
    return left < 0 ? 0 : left < padded ? left : padded;
  }
  int first_of(int index, int tokens) const {
    return index * padded < tokens ? index * padded : tokens;
  }
};

/// Sees every stage as it is put, from the thread that puts it; may put work of its own around it.
class stage_watcher {
 public:
  virtual ~stage_watcher() = default;
  virtual result<void> before(queue& q, int microbatch, stage const& s) = 0;
  virtual result<void> after(queue& q, int microbatch, stage const& s) = 0;
};

/// Runs steps as microbatches on a queue for compute and one for communication. What follows within
/// a microbatch waits for what came before, by events; between microbatches only the queues' order
/// holds. An engine that drives itself can do without: slots, hooks, queues and events are all that
/// this is made of.
/// Order    the calls that communicate come in the same order on all ranks (R8), whatever the
/// driver;
///          `agree` proves it before any of them is made
/// Example  examples/decode
class overlap {
 public:
  /// `compute` and `communication` may be the same queue; capture starts on `compute`, which ends
  /// last.
  /// Errors   invalid_argument microbatches out of range, queues of two devices; out_of_memory
  static result<overlap> make(group const& ranks, queue compute, queue communication,
                              overlap_options const& options);

  /// Decides about the next step: it is overlapped if every rank wants that, and all pad to the
  /// same size. Compares the order in which the stages' communication will be put. Collective; not
  /// within a capture.
  /// Errors   invalid_argument a negative number of tokens; invalid_state naming the first call
  /// that
  ///          differs, on all ranks: nothing was put; those of the group
  result<agreed_step> agree(int tokens, bool wants, std::span<stage_list const> microbatches) const;

  /// Puts all stages of a step. May be captured, on `compute`.
  /// Errors   invalid_argument another number of lists than microbatches; the first error of any
  ///          stage, with its name, invalid_state if it threw: the other microbatches stop at their
  ///          next turn, and steps that are open then stay so. On plain CPU queues what failed
  ///          while it ran; on others that comes with the queues' `wait`. timeout no turn came
  result<void> run(std::span<stage_list const> microbatches);

  /// The calls that communicate, in the order in which `run` will put them, e.g. "1.dispatch_send".
  std::vector<std::string> planned_order(std::span<stage_list const> microbatches) const;

  /// `watcher` sees all following stages; null ends it.
  void watch(stage_watcher* watcher);

  overlap_options const& options() const;
  queue& compute();
  queue& communication();

  overlap(overlap&&) noexcept;
  overlap& operator=(overlap&&) noexcept;
  ~overlap();

 private:
  struct state;
  explicit overlap(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace ferry
