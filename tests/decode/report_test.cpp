// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <report.hpp>

#include "files/scratch_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <thread>

namespace ferry::decode {
namespace {

TEST(report, weighs_latencies_by_tokens) {
  // 90 tokens after 1 ms, 9 after 5 ms, 1 after 100 ms; an idle step counts nothing.
  auto p = inter_token_latency({{0.1, 1}, {0.001, 90}, {0.005, 9}, {9.0, 0}});
  EXPECT_DOUBLE_EQ(p.p50, 1);
  EXPECT_DOUBLE_EQ(p.p90, 1);
  EXPECT_DOUBLE_EQ(p.p99, 5);
  EXPECT_EQ(inter_token_latency({}).p99, 0);
}

contribution of_rank(int rank) {
  auto r = static_cast<std::size_t>(rank);
  contribution c;
  for (std::size_t i = r; i < 5; i += 3) {
    c.prompts.push_back(i);
    c.new_tokens.push_back({static_cast<std::int32_t>(10 * i), 7});
    c.digests.push_back(1000 + i);
  }
  c.prefilled = {rank + 1, 0.5 - 0.1 * rank};
  c.decoded = {2 * rank, 1.0 + rank};
  c.steps = {{0.002, 2 * rank}};
  c.traffic.dispatch_bytes = 100;
  c.traffic.dispatch_self_bytes = 10;
  c.traffic.combine_bytes = 1000;
  c.traffic.combine_self_bytes = 1;
  c.traffic.rows_received = 30 * (r + 1);
  return c;
}

TEST(report, brings_every_ranks_numbers_together) {
  auto ranks = threads(3);
  report at_first;
  std::vector<std::jthread> running;
  for (int rank = 0; rank < 3; ++rank)
    running.emplace_back([&, rank] {
      auto group = join(ranks.rank(rank)).value();
      auto r = gather(group, of_rank(rank)).value();
      if (rank == 0) at_first = r;
    });
  running.clear();
  using testing::ElementsAre;
  EXPECT_THAT(at_first.tokens,
              ElementsAre(ElementsAre(0, 7), ElementsAre(10, 7), ElementsAre(20, 7),
                          ElementsAre(30, 7), ElementsAre(40, 7)));
  EXPECT_THAT(at_first.digests, ElementsAre(1000u, 1001u, 1002u, 1003u, 1004u));
  EXPECT_EQ(at_first.prefilled.tokens, 6);
  EXPECT_EQ(at_first.prefilled.seconds, 0.5);
  EXPECT_EQ(at_first.decoded.tokens, 6);
  EXPECT_EQ(at_first.decoded.seconds, 3.0);
  EXPECT_EQ(at_first.decode_tokens_per_second(), 2.0);
  EXPECT_EQ(at_first.latency.p50, 2.0);
  EXPECT_EQ(at_first.dispatch_bytes, 300u);
  EXPECT_EQ(at_first.combine_bytes, 3000u);
  EXPECT_THAT(at_first.expert_load, ElementsAre(30u, 60u, 90u));
  EXPECT_DOUBLE_EQ(at_first.load_max_over_mean(), 1.5);
}

TEST(report, writes_one_json_object) {
  test::scratch_directory directory;
  options o;
  o.model = "some/model";
  o.json_file = directory / "out.json";
  report r;
  r.tokens = {{1, 2}, {3}};
  r.texts = {"a\n", "\u00e9"};
  r.decoded = {4, 2.0};
  r.expert_load = {3, 1};
  r.digests = {0xfeed, ~std::uint64_t{0}};
  ASSERT_TRUE(write_json(r, o, 2));
  auto j = nlohmann::json::parse(std::ifstream(*o.json_file));
  EXPECT_EQ(j.at("ranks"), 2);
  EXPECT_EQ(j.at("model"), "some/model");
  EXPECT_EQ(j.at("dtype"), "f32");
  EXPECT_EQ(j.at("decode_tokens_per_second"), 2.0);
  EXPECT_EQ(j.at("tokens"), nlohmann::json({{1, 2}, {3}}));
  EXPECT_EQ(j.at("text"), nlohmann::json({"a\n", "\u00e9"}));
  EXPECT_EQ(j.at("logits_digests"), nlohmann::json({"000000000000feed", "ffffffffffffffff"}));
  EXPECT_EQ(j.at("expert_load_max_over_mean"), 1.5);
  for (auto const* name : {"prefill_tokens", "prefill_seconds", "decode_tokens", "decode_seconds",
                           "itl_ms", "dispatch_bytes", "dispatch_self_bytes", "combine_bytes",
                           "combine_self_bytes", "expert_load"})
    EXPECT_TRUE(j.contains(name)) << name;
  o.json_file = directory.path();
  EXPECT_EQ(write_json(r, o, 2).error().code, error_code::io);
  EXPECT_EQ(check_writable(directory.path()).error().code, error_code::io);
  EXPECT_TRUE(check_writable(directory / "new.json"));
}

}  // namespace
}  // namespace ferry::decode
