// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A rank that takes steps, and after an error goes on with those who are left. Every expert is
/// another affine function of small whole numbers; the expected sums are worked out from what all
/// ranks know, so that a lost, doubled, stale or swapped row shows.
#pragma once

#include <ferry/ferry.hpp>
#include <ferry/placement.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ferry::test {

/// Where a rank is; what happens to it there is the test's business.
enum class moment {
  before_send,
  before_receive,
  before_return,
  before_gather,
  before_without,
  before_new_windows,
  after_new_windows,
};

class recovering_rank {
 public:
  static constexpr int hidden = 16, topk = 3, tokens = 6;
  using watcher = std::function<void(moment, int step)>;

  recovering_rank(group g, int joined, std::chrono::milliseconds deadline, watcher at = {},
                  reach via = reach::mapped)
      : group_(std::move(g)), joined_(joined), deadline_(deadline), at_(std::move(at)), via_(via) {}

  /// Two experts for each rank that joined, and a replica of the next rank's first one.
  static placement placed(int ranks) {
    placement p{1, 2 * ranks, ranks, 1, 3 * ranks, {}};
    for (int r = 0; r < ranks; ++r)
      for (int e : {2 * r, 2 * r + 1, (2 * r + 2) % (2 * ranks)}) p.experts.push_back(e);
    return p;
  }
  int experts() const { return 2 * joined_; }
  group const& ranks() const { return group_; }
  int next_step() const { return next_; }
  std::uint64_t choices_lost() const { return lost_choices_; }
  std::uint64_t choices_counted() const { return exchange_->counters().ids_out_of_range; }

  /// Windows, tables and the number of the next step. Collective.
  result<void> prepare() {
    tell(moment::before_new_windows);
    FERRY_TRY(left_, surviving_experts::of(placed(joined_), group_));
    exchange_options o;
    o.num_experts = experts();
    o.expert_slots = left_->expert_slots();
    o.layers = 1;
    o.topk = topk;
    o.hidden = hidden;
    o.max_tokens = tokens;
    o.tokens = o.expert_rows = o.output = dtype::f32;
    o.wire = o.combine_wire = wire::f32;
    o.chunk_tokens = 2;
    o.num_microbatches = 1;
    o.timeout = deadline_;
    o.via = via_;
    FERRY_TRY(exchange made, make_exchange(group_, o));
    FERRY_CHECK(left_->apply(made, replica_choice::hash));
    // The old windows stay where they are: a rank that is only late may still write to them.
    if (exchange_) old_.push_back(std::move(*exchange_));
    exchange_.emplace(std::move(made));
    lost_choices_ = 0;
    FERRY_TRY(auto const all, group_.all_gather(std::as_bytes(std::span(&next_, 1))));
    for (bytes const& theirs : all) {
      int n = 0;
      std::memcpy(&n, theirs.data(), sizeof n);
      next_ = std::max(next_, n);
    }
    tell(moment::after_new_windows);
    return {};
  }

  /// One step, checked. Errors   internal a sum is wrong
  result<void> step() {
    int const n = next_;
    auto const me = group_.joined_as(group_.rank());
    brought const mine = bring(n, me);
    std::vector<float> y(mine.rows.size());
    microbatch& mb = exchange_->microbatch(0);
    tell(moment::before_send);
    FERRY_CHECK(mb.dispatch_send(queue_, {.tokens = rows_of(mine.rows.data(), tokens, hidden),
                                          .choices = dense(mine.ids.data(), tokens, topk),
                                          .weights = dense(mine.weights.data(), tokens, topk)}));
    tell(moment::before_receive);
    FERRY_TRY(received const in, mb.dispatch_receive(queue_));
    std::vector<float> const made = run_experts(in);
    tell(moment::before_return);
    FERRY_CHECK(mb.combine_send(queue_, rows_of(made.data(), *in.end, hidden)));
    tell(moment::before_gather);
    FERRY_CHECK(mb.combine_receive(queue_, rows_of(y.data(), tokens, hidden)));
    FERRY_CHECK(check(n, mine, y));
    ++next_;
    return {};
  }

  /// What a program does after `unreachable` or `timeout`: until it has a group and windows again.
  /// Errors   that of `without`, when this rank cannot go on
  result<void> recover() {
    for (;;) {
      tell(moment::before_without);
      auto left = group_.without(group_.lost());
      if (!left && left.error().code == error_code::timeout) continue;
      if (!left) return left.error();
      group_ = *std::move(left);
      auto const ready = prepare();
      if (ready) return {};
      if (ready.error().code != error_code::unreachable &&
          ready.error().code != error_code::timeout)
        return ready;
    }
  }

 private:
  struct brought {
    std::vector<float> rows, weights;
    std::vector<std::int32_t> ids;
  };

  void tell(moment m) const {
    if (at_) at_(m, next_);
  }
  brought bring(int n, int joined_as) const {
    brought b;
    for (int t = 0; t < tokens; ++t) {
      for (int i = 0; i < hidden; ++i)
        b.rows.push_back(static_cast<float>((n * 7 + joined_as * 31 + t * 5 + i) % 101));
      for (int k = 0; k < topk; ++k) {
        b.ids.push_back((n + 3 * t + joined_as + k * (1 + n % 3)) % experts());
        b.weights.push_back(static_cast<float>(1 + (n + t + 2 * k) % 5));
      }
    }
    return b;
  }
  static float expert(int e, float x) {
    return static_cast<float>(2 + e % 7) * x + static_cast<float>(3 * e + 1);
  }
  std::vector<float> run_experts(received const& in) const {
    std::vector<float> made(static_cast<std::size_t>(*in.end) * hidden);
    for (int s = 0; s < in.num_local_experts; ++s) {
      int const e = left_->where().layer(0)[static_cast<std::size_t>(in.first_expert + s)];
      EXPECT_TRUE(e >= 0 || in.counts[s] == 0) << "rows for a slot that holds nothing";
      for (int p = in.starts[s]; p < in.starts[s] + in.counts[s]; ++p)
        for (int i = 0; i < hidden; ++i)
          made[static_cast<std::size_t>(p * hidden + i)] =
              expert(e, reinterpret_cast<float const*>(in.rows[p])[i]);
    }
    return made;
  }
  result<void> check(int n, brought const& mine, std::vector<float> const& y) {
    for (int t = 0; t < tokens; ++t) {
      for (int i = 0; i < hidden; ++i) {
        auto const at = static_cast<std::size_t>(t * hidden + i);
        float wanted = 0;
        for (int k = 0; k < topk; ++k) {
          auto const c = static_cast<std::size_t>(t * topk + k);
          if (!left_->is_lost(0, mine.ids[c]))
            wanted += mine.weights[c] * expert(mine.ids[c], mine.rows[at]);
        }
        if (y[at] != wanted)
          return error{error_code::internal, "step " + std::to_string(n) + ", token " +
                                                 std::to_string(t) + ": " + std::to_string(y[at]) +
                                                 " instead of " + std::to_string(wanted)};
      }
      for (int k = 0; k < topk; ++k)
        lost_choices_ += left_->is_lost(0, mine.ids[static_cast<std::size_t>(t * topk + k)]);
    }
    return {};
  }

  group group_;
  int const joined_;
  std::chrono::milliseconds const deadline_;
  watcher const at_;
  reach const via_;
  queue queue_;
  std::optional<surviving_experts> left_;
  std::optional<exchange> exchange_;
  std::vector<exchange> old_;
  int next_ = 1;
  std::uint64_t lost_choices_ = 0;
};

}  // namespace ferry::test
