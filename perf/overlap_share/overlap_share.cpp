// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// How much of a step's communication is hidden behind compute? Two ranks, each with a thread for
// compute and one for communication; a step is a few layers of compute, dispatch, compute, combine.
// It is timed in four ways, in turn, in one run: whole, one thing after the other; as two
// microbatches that overlap; and as the same two microbatches with the compute, or the
// communication, left out. The last two say what the overlapped step cannot go below: one
// microbatch alone communicates in more time than two that are under way together.
//
// usage: ferry_overlap_share [--layers n] [--compute-us n] [--delay-us n] [--turns n]

#include <ferry/exec/graph.hpp>
#include <ferry/ferry.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ferry;
using clock_type = std::chrono::steady_clock;

struct settings {
  int layers = 8;
  int compute_us = 800;  // of a layer's tokens, all of them
  int delay_us = 200;    // longest pause of the network before an operation
  int turns = 30;
};

constexpr int num_ranks = 2, tokens = 32, hidden = 512, topk = 2, experts = 8;

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// Work of a fixed size: sums over memory that stays in a cache.
class busywork {
 public:
  busywork() : values_(8192, 1.0F) {
    for (int turn = 0; turn < 5; ++turn) {
      auto const start = clock_type::now();
      for (int i = 0; i < 200; ++i) pass();
      per_us_ = std::max(per_us_, 200 / (seconds_since(start) * 1e6));
    }
  }
  void run(double us) {
    int const passes = std::max(1, static_cast<int>(us * per_us_));
    for (int i = 0; i < passes; ++i) pass();
  }

 private:
  void pass() {
    for (float& v : values_) v = v * 0.999F + 0.001F;
  }
  std::vector<float> values_;
  double per_us_ = 0;
};

/// One microbatch of one rank.
struct part {
  int count;
  microbatch* slot;
  busywork* work;
  settings const* s;
  bool computes, communicates;
  std::vector<float> x, y, made;
  std::vector<std::int32_t> ids;

  part(int n, microbatch& m, busywork& b, settings const& c, bool with_compute, bool with_exchange)
      : count(n),
        slot(&m),
        work(&b),
        s(&c),
        computes(with_compute),
        communicates(with_exchange),
        x(static_cast<std::size_t>(tokens * hidden), 1.0F),
        y(x.size()) {
    for (int i = 0; i < tokens * topk; ++i) ids.push_back(i * 3 % experts);
  }

  stage_list stages() {
    using enum stage_kind;
    stage_list list;
    // Experts take as long as all that comes before them.
    double const us = s->compute_us / 2.0 * count / tokens;
    auto const busy = [this, us](queue& q) {
      return q.run([this, us]() -> result<void> {
        work->run(us);
        return {};
      });
    };
    for (int layer = 0; layer < s->layers; ++layer) {
      if (computes) list.push_back({"attention", compute, busy, false, layer});
      if (communicates) {
        list.push_back({"dispatch_send", communication,
                        [this](queue& q) {
                          return slot->dispatch_send(q,
                                                     {.tokens = rows_of(x.data(), count, hidden),
                                                      .choices = dense(ids.data(), count, topk)});
                        },
                        true, layer});
        list.push_back({"dispatch_receive", communication,
                        [this](queue& q) -> result<void> {
                          FERRY_TRY(received const in, slot->dispatch_receive(q));
                          made.resize(static_cast<std::size_t>(in.capacity * hidden));
                          return {};
                        },
                        false, layer});
      }
      if (computes) list.push_back({"experts", compute, busy, false, layer});
      if (communicates) {
        list.push_back({"combine_send", communication,
                        [this](queue& q) {
                          return slot->combine_send(
                              q, rows_of(made.data(),
                                         static_cast<std::int64_t>(made.size()) / hidden, hidden));
                        },
                        true, layer});
        list.push_back({"combine_receive", communication,
                        [this](queue& q) {
                          return slot->combine_receive(q, rows_of(y.data(), count, hidden));
                        },
                        false, layer});
      }
    }
    return list;
  }
};

enum way { computing, communicating, in_turn, overlapped, num_ways };

/// Times a way of running the step; the step is captured once.
class runner {
 public:
  runner(group const& ranks, exchange& ep, busywork& work, settings const& s, way w)
      : ranks_(ranks) {
    int const parts = w == in_turn ? 1 : 2;
    queue compute = queue::cpu_stream().value(), other = queue::cpu_stream().value();
    for (int i = 0; i < parts; ++i) {
      parts_.push_back(std::make_unique<part>(tokens / parts, ep.microbatch(i), work, s,
                                              w != communicating, w != computing));
      lists_.push_back(parts_.back()->stages());
    }
    overlap_.emplace(overlap::make(ranks, compute, other, {.microbatches = parts}).value());
    // Once outside of the graph: room for the experts' rows is made then.
    overlap_->run(lists_).value();
    compute.wait(std::chrono::seconds(60)).value();
    graph_.emplace(capture(compute, [&] { return overlap_->run(lists_); }).value());
  }
  double milliseconds() {
    ranks_.barrier().value();
    auto const start = clock_type::now();
    graph_->launch(overlap_->compute()).value();
    overlap_->compute().wait(std::chrono::seconds(60)).value();
    return 1e3 * seconds_since(start);
  }

 private:
  group ranks_;
  std::vector<std::unique_ptr<part>> parts_;
  std::vector<stage_list> lists_;
  std::optional<overlap> overlap_;
  std::optional<graph> graph_;
};

/// Of values in order, the one that `part` of them lie below.
double quantile(std::vector<double> v, double part) {
  std::sort(v.begin(), v.end());
  return v[static_cast<std::size_t>(part * static_cast<double>(v.size() - 1) + 0.5)];
}

/// What an overlapped step cannot go below: the longer of the two kinds of work, and the ends that
/// nothing is left to hide behind: of the shorter kind, a stage of one microbatch. Where compute is
/// longer that is the last way home, where communication is, the first compute.
double bound_of(double computing_ms, double communicating_ms, int layers) {
  constexpr double stages_of_a_layer = 2, microbatches = 2;
  return std::max(computing_ms, communicating_ms) +
         std::min(computing_ms, communicating_ms) / (stages_of_a_layer * microbatches * layers);
}

/// Of the time between a step in turn and the bound, how much the overlapped one saves. NaN where
/// there is none to save.
double share_of(double in_turn_ms, double overlapped_ms, double bound) {
  return in_turn_ms > bound ? (in_turn_ms - overlapped_ms) / (in_turn_ms - bound)
                            : std::numeric_limits<double>::quiet_NaN();
}

std::string number_or_null(double x) {
  return std::isnan(x) ? "null" : fmt::format("{:.3f}", x);
}

void report(settings const& s, std::array<std::vector<double>, num_ways> const& seen) {
  constexpr char const* names[] = {"computing", "communicating", "in_turn", "overlapped"};
  for (std::size_t w = 0; w < num_ways; ++w)
    fmt::print(
        "{{\"way\":\"{}\",\"ms\":{:.3f},\"least\":{:.3f},\"low\":{:.3f},\"high\":{:.3f},"
        "\"steps\":{}}}\n",
        names[w], quantile(seen[w], 0.5), quantile(seen[w], 0), quantile(seen[w], 0.25),
        quantile(seen[w], 0.75), seen[w].size());
  // A bound is the least that was seen: whatever else the machine does only adds to it, and adds
  // most to work that never waits.
  double const bound =
      bound_of(quantile(seen[computing], 0), quantile(seen[communicating], 0), s.layers);
  double const in_turn_ms = quantile(seen[in_turn], 0.5);
  double const overlapped_ms = quantile(seen[overlapped], 0.5);
  std::vector<double> shares;
  for (std::size_t turn = 0; turn < seen[in_turn].size(); ++turn) {
    double const share = share_of(seen[in_turn][turn], seen[overlapped][turn], bound);
    if (!std::isnan(share)) shares.push_back(share);
  }
  double const none = std::numeric_limits<double>::quiet_NaN();
  fmt::print(
      "{{\"bound_ms\":{:.3f},\"hidden_ms\":{:.3f},\"share_hidden\":{},\"share_low\":{},"
      "\"share_high\":{},\"cores\":{}}}\n",
      bound, in_turn_ms - overlapped_ms, number_or_null(share_of(in_turn_ms, overlapped_ms, bound)),
      number_or_null(shares.empty() ? none : quantile(shares, 0.25)),
      number_or_null(shares.empty() ? none : quantile(shares, 0.75)),
      std::thread::hardware_concurrency());
}

void run_rank(group const& ranks, settings const& s) {
  exchange_options o{.num_experts = experts, .topk = topk, .hidden = hidden, .max_tokens = tokens};
  o.tokens = o.expert_rows = o.output = dtype::f32;
  o.wire = o.combine_wire = wire::f32;
  o.via = reach::network;
  o.faults = {.reorder = 0, .delay = 100, .longest_delay = std::chrono::microseconds(s.delay_us)};
  exchange ep = make_exchange(ranks, o).value();
  busywork work;
  std::vector<std::unique_ptr<runner>> ways;
  for (int w = 0; w < num_ways; ++w)
    ways.push_back(std::make_unique<runner>(ranks, ep, work, s, static_cast<way>(w)));
  std::array<std::vector<double>, num_ways> seen;
  for (int turn = 0; turn < s.turns; ++turn)
    for (std::size_t w = 0; w < num_ways; ++w) seen[w].push_back(ways[w]->milliseconds());
  ranks.barrier().value();
  if (ranks.rank() == 0) report(s, seen);
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string const name = argv[i];
    int const value = std::atoi(argv[i + 1]);
    if (name == "--layers" && value > 0)
      s.layers = value;
    else if (name == "--compute-us" && value > 0)
      s.compute_us = value;
    else if (name == "--delay-us" && value >= 0)
      s.delay_us = value;
    else if (name == "--turns" && value > 0)
      s.turns = value;
    else {
      fmt::print(stderr, "ferry_overlap_share: what is {} {}?\n", name, argv[i + 1]);
      return 2;
    }
  }
  thread_ranks const meeting = threads(num_ranks);
  std::vector<std::thread> ranks;
  for (int r = 0; r < num_ranks; ++r)
    ranks.emplace_back([&, r] {
      try {
        run_rank(join(meeting.rank(r)).value(), s);
      } catch (std::exception const& e) {
        fmt::print(stderr, "ferry_overlap_share: rank {}: {}\n", r, e.what());
        std::exit(1);
      }
    });
  for (std::thread& t : ranks) t.join();
}
