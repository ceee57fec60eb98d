// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// One step of expert parallelism on four ranks, which are threads here: every token goes to the
// ranks of its two experts and comes home as the weighted sum of what they made of it.

#include <ferry/ferry.hpp>

#include <cstdio>
#include <thread>
#include <vector>

namespace {
constexpr int num_ranks = 4, experts = 8, topk = 2, hidden = 16, tokens = 3;

// Expert e multiplies by e + 1.
std::vector<float> run_experts(ferry::received const& in) {
  std::vector<float> made(static_cast<std::size_t>(*in.end * hidden));
  for (int e = 0; e < in.num_local_experts; ++e)
    for (int p = in.starts[e]; p < in.starts[e] + in.counts[e]; ++p)
      for (int i = 0; i < hidden; ++i)
        made[static_cast<std::size_t>(p * hidden + i)] =
            reinterpret_cast<float const*>(in.rows[p])[i] *
            static_cast<float>(in.first_expert + e + 1);
  return made;
}

void run_rank(ferry::bootstrap_factory how) {
  // [readme]
  ferry::group const group = ferry::join(how).value();
  ferry::exchange_options options{.num_experts = experts, .topk = topk, .hidden = hidden};
  options.max_tokens = tokens;
  options.tokens = options.expert_rows = options.output = ferry::dtype::f32;
  options.wire = options.combine_wire = ferry::wire::f32;
  ferry::exchange ep = ferry::make_exchange(group, options).value();
  ferry::microbatch& mb = ep.microbatch(0);
  ferry::queue queue;

  std::vector<float> x(tokens * hidden, 1.0f + static_cast<float>(group.rank())), y(x.size());
  std::vector<std::int32_t> ids = {0, 5, 3, 7, 2, -1};  // per token; -1 is no expert
  std::vector<float> w = {0.5f, 0.5f, 1.0f, 2.0f, 1.0f, 0.0f};
  ferry::received in = mb.dispatch(queue, {.tokens = ferry::rows_of(x.data(), tokens, hidden),
                                           .choices = ferry::dense(ids.data(), tokens, topk),
                                           .weights = ferry::dense(w.data(), tokens, topk)})
                           .value();
  std::vector<float> made = run_experts(in);
  mb.combine(queue, ferry::rows_of(made.data(), *in.end, hidden),
             ferry::rows_of(y.data(), tokens, hidden))
      .value();
  // [/readme]
  std::printf("rank %d: %g %g %g\n", group.rank(), y[0], y[hidden], y[2 * hidden]);
}

}  // namespace

int main() {
  auto const ranks = ferry::threads(num_ranks);
  std::vector<std::jthread> threads;
  for (int r = 0; r < num_ranks; ++r) threads.emplace_back(run_rank, ranks.rank(r));
}
