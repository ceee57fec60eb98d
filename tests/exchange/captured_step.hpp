// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A whole step of one slot as a graph of one padded size, held against the oracle: between
/// launches only data changes.
#pragma once

#include "exchange/rank_run.hpp"

#include <ferry/exec/graph.hpp>

#include <functional>

namespace ferry::oracle {

/// A world whose numbers are all f32, so that every sum is exact.
inline world exact_world(int ranks, int round_tokens = 0) {
  world w;
  w.ranks = ranks;
  w.fnuz.assign(static_cast<std::size_t>(ranks), false);
  exchange_options& o = w.options;
  o.num_experts = 3 * ranks;
  o.topk = 3;
  o.hidden = 8;
  o.max_tokens = 8;
  o.round_tokens = round_tokens;
  o.tokens = o.expert_rows = o.output = dtype::f32;
  o.wire = o.combine_wire = wire::f32;
  return w;
}

/// Memory of a device, with its twin on the host, which captured copies read and write.
class twin_memory {
 public:
  twin_memory(device const& where, std::size_t bytes)
      : there_(where.allocate(memory_kind::local, bytes).value()), here_(bytes) {}

  template <class T>
  T* here() {
    return reinterpret_cast<T*>(here_.data());
  }
  template <class T>
  T* there() const {
    return reinterpret_cast<T*>(there_.data());
  }
  result<void> send(queue& q) { return q.copy(there_.data(), here_.data(), here_.size()); }
  result<void> fetch(queue& q) { return q.copy(here_.data(), there_.data(), here_.size()); }
  result<void> fetch_from(queue& q, void const* from) {
    return q.copy(here_.data(), from, here_.size());
  }

 private:
  device_memory there_;
  std::vector<std::byte> here_;
};

class captured_step {
 public:
  /// For up to `rows` tokens. The world's layout is grouped and all f32.
  captured_step(world const& w, int rank, exchange& ep, int slot, device const& where, int rows)
      : w_(w),
        rank_(rank),
        slot_(slot),
        at_(ep.microbatch(slot)),
        rows_(rows),
        capacity_(expect_received(w, nobody(w), rank).capacity),
        experts_(static_cast<std::size_t>(w.first_expert(rank + 1) - w.first_expert(rank))),
        tokens_(where, bytes(rows, w.options.hidden)),
        ids_(where, bytes(rows, w.options.topk)),
        weights_(where, bytes(rows, w.options.topk)),
        num_tokens_(where, sizeof(std::int32_t)),
        received_(where, bytes(capacity_, w.options.hidden)),
        starts_(where, experts_ * sizeof(std::int32_t)),
        counts_(where, experts_ * sizeof(std::int32_t)),
        made_(where, bytes(capacity_, w.options.hidden)),
        added_(where, bytes(rows, w.options.hidden)),
        output_(where, bytes(rows, w.options.hidden)) {}

  /// The calls of a step, the first `num_calls` of four.
  result<void> put(queue& q, int num_calls = 4) {
    FERRY_CHECK(send(q));
    if (num_calls < 2) return {};
    FERRY_CHECK(receive(q));
    if (num_calls < 3) return {};
    FERRY_CHECK(give_back(q));
    return num_calls < 4 ? result<void>{} : gather(q);
  }
  result<void> send(queue& q) {
    for (twin_memory* m : {&tokens_, &ids_, &weights_, &num_tokens_, &added_})
      FERRY_CHECK(m->send(q));
    exchange_options const& o = w_.options;
    return at_.dispatch_send(
        q,
        {.tokens = rows_of(tokens_.there<float>(), rows_, o.hidden),
         .choices = dense<std::int32_t const>(ids_.there<std::int32_t>(), rows_, o.topk),
         .weights = dense<float const>(weights_.there<float>(), rows_, o.topk),
         .num_tokens = counted_here_ ? nullptr : num_tokens_.there<std::int32_t>()},
        with_);
  }
  result<void> receive(queue& q) {
    FERRY_CHECK(receive_only(q));
    return run_experts(q);
  }
  result<void> receive_only(queue& q) {
    result<received> const in = at_.dispatch_receive(q, with_);
    return in ? result<void>{} : in.error();
  }
  result<void> run_experts(queue& q) {
    received const& in = at_.last_received();
    FERRY_CHECK(received_.fetch_from(q, in.rows.data));
    FERRY_CHECK(starts_.fetch_from(q, in.starts));
    FERRY_CHECK(counts_.fetch_from(q, in.counts));
    FERRY_CHECK(q.run([this]() -> result<void> {
      work();
      return {};
    }));
    return made_.send(q);
  }
  result<void> give_back(queue& q) {
    return at_.combine_send(q, rows_of(made_.there<float>(), capacity_, w_.options.hidden), with_);
  }
  result<void> gather(queue& q) {
    int const hidden = w_.options.hidden;
    FERRY_CHECK(at_.combine_receive(q, rows_of(output_.there<float>(), rows_, hidden),
                                    rows_of(added_.there<float>(), rows_, hidden), with_));
    return output_.fetch(q);
  }

  /// The next calls have such options.
  captured_step& with(call_options const& options) {
    with_ = options;
    return *this;
  }
  /// The next calls are given as many tokens as there are rows.
  captured_step& count_on_host() {
    counted_here_ = true;
    return *this;
  }
  /// What the count in memory says from now on.
  void say_tokens(int tokens) { *num_tokens_.here<std::int32_t>() = tokens; }

  /// Lays out what this rank brings.
  void bring(step const& s) {
    rank_step const& mine = s.brought[static_cast<std::size_t>(rank_)];
    *num_tokens_.here<std::int32_t>() = mine.tokens;
    std::copy(mine.rows.begin(), mine.rows.end(), tokens_.here<float>());
    std::copy(mine.weights.begin(), mine.weights.end(), weights_.here<float>());
    for (std::size_t i = 0; i < mine.ids.size(); ++i)
      ids_.here<std::int32_t>()[i] = static_cast<std::int32_t>(mine.ids[i]);
    std::fill_n(added_.here<float>(), rows_ * w_.options.hidden, 0.0F);
    std::copy(mine.added.begin(), mine.added.end(), added_.here<float>());
    std::fill_n(output_.here<float>(), rows_ * w_.options.hidden, -1e30f);
  }
  /// Compares what came home with the oracle, in whole numbers.
  void check(step const& s, int number, complaints& wrong) {
    std::vector<std::int64_t> const& want = s.exact[static_cast<std::size_t>(rank_)];
    for (std::size_t i = 0; i < want.size(); ++i) {
      double const got = output_.here<float>()[i];
      if (got * 4 != static_cast<double>(want[i]))
        wrong.add(fmt::format("rank {} slot {} step {}: token {} is {}, not {} / 4", rank_, slot_,
                              number, i / static_cast<std::size_t>(w_.options.hidden), got,
                              want[i]));
    }
  }
  int rows() const { return rows_; }

 private:
  static std::size_t bytes(std::int64_t rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * sizeof(float);
  }
  static step nobody(world const& w) {
    step s;
    s.brought.resize(static_cast<std::size_t>(w.ranks));
    return s;
  }

  void work() {
    auto const hidden = static_cast<std::size_t>(w_.options.hidden);
    for (std::size_t e = 0; e < experts_; ++e) {
      auto const first = static_cast<std::size_t>(starts_.here<std::int32_t>()[e]) * hidden;
      auto const end = first + static_cast<std::size_t>(counts_.here<std::int32_t>()[e]) * hidden;
      for (std::size_t i = first; i < end; ++i)
        made_.here<float>()[i] =
            expert(w_.first_expert(rank_) + static_cast<int>(e), received_.here<float>()[i]);
    }
  }

  world const& w_;
  int rank_, slot_;
  microbatch& at_;
  int rows_;
  std::int64_t capacity_;
  std::size_t experts_;
  call_options with_;
  bool counted_here_ = false;
  twin_memory tokens_, ids_, weights_, num_tokens_, received_, starts_, counts_, made_, added_,
      output_;
};

}  // namespace ferry::oracle
