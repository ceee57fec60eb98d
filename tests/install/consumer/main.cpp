// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A user's whole program: two ranks as threads send a token each to both experts and get the sum.
#include <ferry/ferry.hpp>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int hidden = 8;

// Expert e of two answers (e + 1) * row; with weights 1 and 1 a token comes home tripled.
bool tripled(ferry::thread_ranks const& ranks, int rank) {
  auto group = ferry::join(ranks.rank(rank)).value();
  auto exchange = ferry::make_exchange(group, {.num_experts = 2,
                                               .topk = 2,
                                               .hidden = hidden,
                                               .max_tokens = 1,
                                               .tokens = ferry::dtype::f32,
                                               .wire = ferry::wire::f32,
                                               .expert_rows = ferry::dtype::f32,
                                               .combine_wire = ferry::wire::f32,
                                               .output = ferry::dtype::f32})
                      .value();
  ferry::queue queue;
  auto& step = exchange.microbatch(0);

  std::vector<float> token(hidden, static_cast<float>(rank + 1));
  std::vector<float> answer(hidden, 0.0F);
  std::array<std::int32_t, 2> const choices{0, 1};
  ferry::const_tensor const tokens{reinterpret_cast<std::byte const*>(token.data()), 1, hidden,
                                   ferry::dtype::f32};
  auto in = step.dispatch(queue, {.tokens = tokens, .choices = ferry::dense(choices.data(), 1, 2)})
                .value();

  std::vector<float> results(static_cast<std::size_t>(in.capacity) * hidden);
  for (std::int64_t position = 0; position < *in.end; ++position)
    for (int column = 0; column < hidden; ++column)
      results[static_cast<std::size_t>(position * hidden + column)] =
          static_cast<float>(in.first_expert + 1) *
          reinterpret_cast<float const*>(in.rows[position])[column];
  ferry::const_tensor const expert_rows{reinterpret_cast<std::byte const*>(results.data()),
                                        in.capacity, hidden, ferry::dtype::f32};
  ferry::tensor const output{reinterpret_cast<std::byte*>(answer.data()), 1, hidden,
                             ferry::dtype::f32};
  step.combine(queue, expert_rows, output).value();
  return answer == std::vector<float>(hidden, 3.0F * static_cast<float>(rank + 1));
}

}  // namespace

int main() {
  if (std::strcmp(FERRY_VERSION, EXPECTED_VERSION) != 0) {
    std::printf("found ferry %s, expected %s\n", FERRY_VERSION, EXPECTED_VERSION);
    return 1;
  }
  auto ranks = ferry::threads(2);
  std::array<bool, 2> right{};
  {
    std::jthread other([&] { right[1] = tripled(ranks, 1); });
    right[0] = tripled(ranks, 0);
  }
  std::printf("rank 0 %s, rank 1 %s\n", right[0] ? "right" : "wrong", right[1] ? "right" : "wrong");
  return right[0] && right[1] ? 0 : 1;
}
