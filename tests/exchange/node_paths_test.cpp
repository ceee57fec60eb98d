// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/node_paths.hpp"

#include <gtest/gtest.h>

#include <set>

namespace {

using namespace ferry;

// Nodes whose ranks stand in order, and nodes whose ranks are mixed.
std::vector<node_map> some_maps() {
  std::vector<node_map> maps;
  for (int ranks : {1, 2, 3, 5, 8, 12})
    for (int per_node : {0, 1, 2, 3, 4, 8}) maps.push_back(node_map::of_equal(ranks, per_node));
  maps.push_back(node_map::of({0, 1, 0, 1, 0, 1}));
  maps.push_back(node_map::of({0, 1, 0, 0, 4, 0, 1, 4, 0}));
  maps.push_back(node_map::of({0, 0, 0, 0, 0, 5, 5, 7}));
  return maps;
}

TEST(node_paths, number_the_ranks_of_a_node_in_order) {
  node_map const nodes = node_map::of({0, 1, 0, 0, 4, 0, 1});
  EXPECT_EQ(nodes.size(), 3);
  EXPECT_EQ(nodes.node, (std::vector<std::int32_t>{0, 1, 0, 0, 2, 0, 1}));
  EXPECT_EQ(nodes.member, (std::vector<std::int32_t>{0, 0, 1, 2, 0, 3, 1}));
  EXPECT_EQ(nodes.members[0], (std::vector<std::int32_t>{0, 2, 3, 5}));
  EXPECT_EQ(nodes.most_members(), 4);
}

TEST(node_paths, send_by_the_rank_with_the_same_index_counted_round) {
  node_map const nodes = node_map::of_equal(8, 3);  // 3, 3 and 2 ranks
  EXPECT_EQ(nodes.relay(1, 1), 4);
  EXPECT_EQ(nodes.relay(5, 0), 2);
  EXPECT_EQ(nodes.relay(5, 2), 6);
  EXPECT_EQ(nodes.relay(7, 0), 1);
}

TEST(node_paths, say_the_same_on_both_ends) {
  for (node_map const& nodes : some_maps()) {
    auto const ranks = static_cast<int>(nodes.node.size());
    std::vector<node_paths> of;
    for (int r = 0; r < ranks; ++r) of.emplace_back(nodes, r);
    for (int s = 0; s < ranks; ++s)
      for (int d = 0; d < ranks; ++d) {
        auto const i = static_cast<std::size_t>(s), j = static_cast<std::size_t>(d);
        way const out = of[i].out[j], in = of[j].in[i];
        ASSERT_EQ(out.place, in.place) << s << " to " << d;
        if (nodes.node[i] == nodes.node[j]) {
          ASSERT_TRUE(out.direct() && in.direct());
          ASSERT_EQ(out.rank, d);
          ASSERT_EQ(in.rank, s);
          continue;
        }
        ASSERT_EQ(out.rank, in.rank) << "the relay that s sends to is the one that d hears";
        auto const relay = static_cast<std::size_t>(out.rank);
        ASSERT_EQ(nodes.node[relay], nodes.node[j]);
        ASSERT_LT(out.place, static_cast<int>(of[relay].sources.size()));
        ASSERT_EQ(of[relay].sources[static_cast<std::size_t>(out.place)], s);
      }
  }
}

TEST(node_paths, serve_every_source_once_in_each_other_node) {
  for (node_map const& nodes : some_maps()) {
    auto const ranks = static_cast<int>(nodes.node.size());
    relay_shape const most = nodes.shape();
    int largest = 0, served = 0;
    for (int r = 0; r < ranks; ++r) {
      node_paths const p(nodes, r);
      relay_tables const t = p.view();
      ASSERT_LE(t.num_sources, most.sources);
      ASSERT_TRUE(nodes.size() < 2 || t.num_members <= most.members);
      largest = std::max(largest, t.num_sources);
      served += t.num_sources;
      ASSERT_EQ(std::set<std::int32_t>(p.sources.begin(), p.sources.end()).size(),
                p.sources.size());
      ASSERT_TRUE(std::is_sorted(p.sources.begin(), p.sources.end()));
      ASSERT_EQ(p.members[static_cast<std::size_t>(p.member[static_cast<std::size_t>(r)])], r);
    }
    EXPECT_EQ(served, ranks * (nodes.size() - 1));
    EXPECT_EQ(largest, most.sources);
    EXPECT_EQ(most.empty(), nodes.size() < 2);
  }
}

}  // namespace
