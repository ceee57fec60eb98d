// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/overlap.hpp>

#include "base/fail.hpp"
#include "exchange/baton.hpp"
#include "exec/capture_record.hpp"

#include <ferry/exec/cpu/cpu_executor.hpp>
#include <ferry/exec/event.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <string>

namespace ferry {
namespace {

constexpr int most_microbatches = 64;

/// One microbatch on its way through its stages.
struct walk {
  event compute_done, communication_done;
  stage_kind last = stage_kind::compute;
  bool begun = false;
  std::size_t next = 0;
};

std::uint64_t hash_of(std::vector<std::string> const& order) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (std::string const& call : order)
    for (std::size_t i = 0; i <= call.size(); ++i) {  // the ending zero too
      hash ^= static_cast<unsigned char>(call.c_str()[i]);
      hash *= 0x100000001B3u;
    }
  return hash;
}

/// What a rank brings to the vote.
struct ballot {
  std::int64_t tokens = 0;
  std::int64_t wants = 0;
  std::int64_t microbatches = 0;
  std::uint64_t order = 0;
};

}  // namespace

struct overlap::state {
  state(group const& g, queue c, queue n, overlap_options const& o)
      : ranks(g),
        compute(std::move(c)),
        communication(std::move(n)),
        options(o),
        workers(o.driver == overlap_driver::interleaved ? 1 : o.microbatches) {}

  group ranks;
  queue compute, communication;
  overlap_options options;
  cpu_executor workers;
  std::vector<walk> walks;
  std::array<bool, most_microbatches> done{};
  std::vector<std::vector<int>> numbers;  ///< of each stage in the order of communication, or -1
  stage_watcher* watcher = nullptr;

  std::span<bool> flags() { return std::span(done).first(walks.size()); }
  // A call that communicates may last until peers come, and all microbatches may be in one.
  std::chrono::milliseconds timeout() const {
    return options.timeout.count() ? options.timeout : ranks.timeout() * (options.microbatches + 1);
  }
  queue& on(stage_kind kind) { return kind == stage_kind::compute ? compute : communication; }

  /// Calls visit(microbatch, stage) for every stage in the order of turns.
  template <class Visit>
  void plan(std::span<stage_list const> lists, Visit const& visit) const;
  result<void> begin();
  result<void> put_stage(int index, stage const& s);
  /// Puts stages up to the next yield point. Returns  whether there are more.
  result<bool> take_turn(int index, stage_list const& stages);
  result<void> join();

  result<void> run_interleaved(std::span<stage_list const> lists);
  result<void> run_handed_over(std::span<stage_list const> lists);
  result<void> run_concurrent(std::span<stage_list const> lists);
};

template <class Visit>
void overlap::state::plan(std::span<stage_list const> lists, Visit const& visit) const {
  std::array<bool, most_microbatches> over{};
  std::array<std::size_t, most_microbatches> at{};
  std::span<bool> const left = std::span(over).first(lists.size());
  turn_order turns = options.turns;
  turns.restart();
  for (;;) {
    int const one = turns.next(left);
    if (one < 0) return;
    auto const i = static_cast<std::size_t>(one);
    while (at[i] < lists[i].size()) {
      std::size_t const now = at[i]++;
      visit(one, now);
      if (lists[i][now].yields) break;
    }
    over[i] = at[i] == lists[i].size();
  }
}

// The first microbatch's events fork the communication off from compute, so that a capture holds
// both queues.
result<void> overlap::state::begin() {
  for (walk& w : walks) {
    w.next = 0;
    w.begun = false;
    w.last = stage_kind::compute;
    FERRY_CHECK(w.compute_done.record(compute));
  }
  return {};
}

result<void> overlap::state::put_stage(int index, stage const& s) {
  walk& w = walks[static_cast<std::size_t>(index)];
  queue& q = on(s.on);
  auto const put = [&]() -> result<void> {
    if (s.on != w.last || (!w.begun && s.on == stage_kind::communication))
      FERRY_CHECK((s.on == stage_kind::compute ? w.communication_done : w.compute_done).hold(q));
    w.begun = true;
    w.last = s.on;
    if (watcher) FERRY_CHECK(watcher->before(q, index, s));
    FERRY_CHECK(s.put(q));
    if (watcher) FERRY_CHECK(watcher->after(q, index, s));
    return (s.on == stage_kind::compute ? w.compute_done : w.communication_done).record(q);
  };
  try {
    result<void> const done = put();
    if (done) return {};
    return fail(done.error().code, "stage {} of microbatch {}: {}", s.name, index,
                done.error().message);
  } catch (std::exception const& e) {
    return fail(error_code::invalid_state, "stage {} of microbatch {} threw: {}", s.name, index,
                e.what());
  }
}

result<bool> overlap::state::take_turn(int index, stage_list const& stages) {
  walk& w = walks[static_cast<std::size_t>(index)];
  while (w.next < stages.size()) {
    stage const& s = stages[w.next++];
    FERRY_CHECK(put_stage(index, s));
    if (s.yields) break;
  }
  return w.next < stages.size();
}

result<void> overlap::state::join() {
  for (walk& w : walks)
    if (w.last == stage_kind::communication) FERRY_CHECK(w.communication_done.hold(compute));
  return {};
}

result<void> overlap::state::run_interleaved(std::span<stage_list const> lists) {
  std::span<bool> const left = flags();
  std::fill(left.begin(), left.end(), false);
  turn_order& turns = options.turns;
  turns.restart();
  for (;;) {
    int const one = turns.next(left);
    if (one < 0) return {};
    auto const i = static_cast<std::size_t>(one);
    FERRY_TRY(bool const more, take_turn(one, lists[i]));
    left[i] = !more;
  }
}

result<void> overlap::state::run_handed_over(std::span<stage_list const> lists) {
  baton turns(options.turns, flags(), timeout());
  capture_record* const captured = capture_record::current();
  workers.run([&](int index, int) {
    capture_record::scope const joined(captured);
    stage_list const& stages = lists[static_cast<std::size_t>(index)];
    result<void> mine = turns.wait(index);
    while (mine) {
      result<bool> const more = take_turn(index, stages);
      if (!more) {
        mine = more.error();
        break;
      }
      if (!*more) return turns.finish(index);
      mine = turns.yield(index);
    }
    turns.fail(std::move(mine).error());
  });
  if (std::optional<error> failed = turns.failed()) return *failed;
  return {};
}

result<void> overlap::state::run_concurrent(std::span<stage_list const> lists) {
  call_gate gate(timeout());
  capture_record* const captured = capture_record::current();
  workers.run([&](int index, int) {
    capture_record::scope const joined(captured);
    auto const i = static_cast<std::size_t>(index);
    for (std::size_t s = 0; s < lists[i].size(); ++s) {
      int const number = numbers[i][s];
      result<void> step = gate.failed() ? result<void>{*gate.failed()} : result<void>{};
      if (step && number >= 0) step = gate.enter(number);
      if (step) step = put_stage(index, lists[i][s]);
      if (!step) return gate.fail(std::move(step).error());
      if (number >= 0) gate.leave();
    }
  });
  if (std::optional<error> failed = gate.failed()) return *failed;
  return {};
}

result<overlap> overlap::make(group const& ranks, queue compute, queue communication,
                              overlap_options const& options) {
  if (options.microbatches < 1 || options.microbatches > most_microbatches)
    return fail(error_code::invalid_argument, "{} microbatches; 1 to {} are possible",
                options.microbatches, most_microbatches);
  if (!(compute.where() == communication.where()))
    return fail(error_code::invalid_argument,
                "a queue of {} for compute and one of {} for the rest", compute.where().name(),
                communication.where().name());
  try {
    device const where = compute.where();
    auto s = std::make_unique<state>(ranks, std::move(compute), std::move(communication), options);
    for (int i = 0; i < options.microbatches; ++i) {
      FERRY_TRY(event first, event::on(where));
      FERRY_TRY(event second, event::on(where));
      s->walks.push_back(
          {.compute_done = std::move(first), .communication_done = std::move(second)});
    }
    return overlap(std::move(s));
  } catch (std::exception const& e) {
    return fail(error_code::out_of_memory, "cannot start {} threads: {}", options.microbatches - 1,
                e.what());
  }
}

std::vector<std::string> overlap::planned_order(std::span<stage_list const> lists) const {
  std::vector<std::string> order;
  state_->plan(lists, [&](int one, std::size_t at) {
    stage const& s = lists[static_cast<std::size_t>(one)][at];
    if (s.on == stage_kind::communication) order.push_back(fmt::format("{}.{}", one, s.name));
  });
  return order;
}

namespace {

// Names the first call that differs. All ranks come here, or none.
result<void> compare_orders(group const& ranks, std::vector<std::string> const& mine) {
  std::string text;
  for (std::string const& call : mine) text += call + "\n";
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(text))));
  auto const lines_of = [&](std::size_t rank) {
    std::vector<std::string> lines(1);
    for (std::byte const b : all[rank]) {
      if (b == std::byte{'\n'})
        lines.emplace_back();
      else
        lines.back() += static_cast<char>(b);
    }
    lines.back() = "nothing more";
    return lines;
  };
  std::vector<std::string> const first = lines_of(0);
  for (std::size_t r = 1; r < all.size(); ++r) {
    std::vector<std::string> const theirs = lines_of(r);
    for (std::size_t i = 0; i < std::min(first.size(), theirs.size()); ++i)
      if (first[i] != theirs[i])
        return fail(error_code::invalid_state,
                    "the order of communication differs between ranks: call {} is {} on rank 0 and "
                    "{} on rank {}",
                    i, first[i], theirs[i], r);
  }
  return {};
}

}  // namespace

result<agreed_step> overlap::agree(int tokens, bool wants,
                                   std::span<stage_list const> microbatches) const {
  if (tokens < 0) return fail(error_code::invalid_argument, "{} tokens", tokens);
  std::vector<std::string> const order = planned_order(microbatches);
  ballot const mine{tokens, wants, state_->options.microbatches, hash_of(order)};
  group const& ranks = state_->ranks;
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(&mine, 1))));
  agreed_step step{.overlapped = true, .padded = 0, .microbatches = state_->options.microbatches};
  bool same_order = true;
  std::int64_t most = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    ballot theirs;
    if (all[r].size() != sizeof theirs)
      return fail(error_code::invalid_state, "rank {} votes on something else", r);
    std::memcpy(&theirs, all[r].data(), sizeof theirs);
    if (theirs.microbatches != mine.microbatches)
      return fail(error_code::invalid_state, "rank {} has {} microbatches, rank {} has {}", r,
                  theirs.microbatches, ranks.rank(), mine.microbatches);
    step.overlapped = step.overlapped && theirs.wants != 0;
    same_order = same_order && theirs.order == mine.order;
    most = std::max(most, theirs.tokens);
  }
  if (!same_order) FERRY_CHECK(compare_orders(ranks, order));
  if (!step.overlapped) step.microbatches = 1;
  step.padded = static_cast<int>((most + step.microbatches - 1) / step.microbatches);
  return step;
}

result<void> overlap::run(std::span<stage_list const> microbatches) {
  state& s = *state_;
  if (microbatches.size() != s.walks.size())
    return fail(error_code::invalid_argument, "{} lists of stages for {} microbatches",
                microbatches.size(), s.walks.size());
  FERRY_CHECK(s.ranks.usable());
  FERRY_CHECK(s.begin());
  switch (s.options.driver) {
    case overlap_driver::interleaved: FERRY_CHECK(s.run_interleaved(microbatches)); break;
    case overlap_driver::handed_over: FERRY_CHECK(s.run_handed_over(microbatches)); break;
    case overlap_driver::concurrent: {
      s.numbers.resize(microbatches.size());
      for (std::size_t i = 0; i < microbatches.size(); ++i)
        s.numbers[i].assign(microbatches[i].size(), -1);
      int number = 0;
      s.plan(microbatches, [&](int one, std::size_t at) {
        auto const i = static_cast<std::size_t>(one);
        if (microbatches[i][at].on == stage_kind::communication) s.numbers[i][at] = number++;
      });
      FERRY_CHECK(s.run_concurrent(microbatches));
    }
  }
  return s.join();
}

void overlap::watch(stage_watcher* watcher) {
  state_->watcher = watcher;
}
overlap_options const& overlap::options() const {
  return state_->options;
}
queue& overlap::compute() {
  return state_->compute;
}
queue& overlap::communication() {
  return state_->communication;
}

overlap::overlap(std::unique_ptr<state> s) : state_(std::move(s)) {}
overlap::overlap(overlap&&) noexcept = default;
overlap& overlap::operator=(overlap&&) noexcept = default;
overlap::~overlap() = default;

}  // namespace ferry
