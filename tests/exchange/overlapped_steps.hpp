// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Steps of several slots as lists of stages for `overlap`.
#pragma once

#include "exchange/captured_step.hpp"

#include <ferry/exchange/receive_hook.hpp>
#include <ferry/overlap.hpp>

namespace ferry::oracle {

/// The slots of one rank, each one microbatch.
class overlapped_steps {
 public:
  overlapped_steps(world const& w, int rank, exchange& ep, device const& where, int microbatches)
      : hooks_(static_cast<std::size_t>(microbatches)),
        pending_(static_cast<std::size_t>(microbatches)) {
    for (int i = 0; i < microbatches; ++i) {
      steps_.push_back(
          std::make_unique<captured_step>(w, rank, ep, i, where, w.options.max_tokens));
      lists_.push_back(stages_of(static_cast<std::size_t>(i)));
    }
  }

  std::vector<stage_list>& lists() { return lists_; }
  int hooks_run() const { return hooks_run_; }

  void bring(std::vector<step> const& drawn, int number) {
    for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i]->bring(brought(drawn, number, i));
  }
  void check(std::vector<step> const& drawn, int number, complaints& wrong) {
    for (std::size_t i = 0; i < steps_.size(); ++i)
      steps_[i]->check(brought(drawn, number, i), number, wrong);
  }

 private:
  /// What a hook needs: it holds a pointer to it, for which no function allocates.
  struct pending {
    overlapped_steps* of = nullptr;
    captured_step* step = nullptr;
    queue* on = nullptr;
  };

  static step const& brought(std::vector<step> const& drawn, int number, std::size_t i) {
    return drawn[(static_cast<std::size_t>(number) + 3 * i) % drawn.size()];
  }

  // Receiving is left to a hook, which runs at the next turn.
  stage_list stages_of(std::size_t i) {
    captured_step* const s = steps_[i].get();
    receive_hook* const hook = &hooks_[i];
    pending* const left = &pending_[i];
    *left = {this, s, nullptr};
    using enum stage_kind;
    return {{"dispatch_send", communication,
             [s, hook, left](queue& q) -> result<void> {
               FERRY_CHECK(s->send(q));
               left->on = &q;
               *hook = receive_hook([left] {
                 ++left->of->hooks_run_;
                 return left->step->receive_only(*left->on);
               });
               return {};
             },
             true},
            {"dispatch_receive", communication, [hook](queue&) { return (*hook)(); }},
            {"experts", compute, [s](queue& q) { return s->run_experts(q); }, true},
            {"combine_send", communication, [s](queue& q) { return s->give_back(q); }, true},
            {"combine_receive", communication, [s](queue& q) { return s->gather(q); }, true}};
  }

  std::vector<std::unique_ptr<captured_step>> steps_;
  std::vector<receive_hook> hooks_;
  std::vector<pending> pending_;
  std::vector<stage_list> lists_;
  std::atomic<int> hooks_run_{0};
};

}  // namespace ferry::oracle
