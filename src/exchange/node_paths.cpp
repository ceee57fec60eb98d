// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/node_paths.hpp"

#include "base/fail.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace ferry {

node_map node_map::of(std::vector<std::int32_t> const& first) {
  node_map made;
  for (std::size_t r = 0; r < first.size(); ++r) {
    auto const rank = static_cast<std::int32_t>(r);
    if (first[r] == rank) {
      made.node.push_back(made.size());
      made.members.emplace_back();
    } else {
      made.node.push_back(made.node[static_cast<std::size_t>(first[r])]);
    }
    auto& mates = made.members[static_cast<std::size_t>(made.node.back())];
    made.member.push_back(static_cast<std::int32_t>(mates.size()));
    mates.push_back(rank);
  }
  return made;
}

node_map node_map::of_equal(int ranks, int ranks_per_node) {
  std::vector<std::int32_t> first;
  for (int r = 0; r < ranks; ++r)
    first.push_back(ranks_per_node == 0 ? 0 : r / ranks_per_node * ranks_per_node);
  return of(first);
}

int node_map::most_members() const {
  std::size_t most = 0;
  for (auto const& m : members) most = std::max(most, m.size());
  return static_cast<int>(most);
}

std::int32_t node_map::relay(int rank, int to) const {
  auto const& there = members[static_cast<std::size_t>(to)];
  return there[static_cast<std::size_t>(member[static_cast<std::size_t>(rank)]) % there.size()];
}

relay_shape node_map::shape() const {
  if (size() < 2) return {};
  int most = 0;
  for (int n = 0; n < size(); ++n) {
    std::vector<int> served(members[static_cast<std::size_t>(n)].size());
    for (std::size_t r = 0; r < node.size(); ++r)
      if (node[r] != n) ++served[static_cast<std::size_t>(member[r]) % served.size()];
    most = std::max(most, *std::max_element(served.begin(), served.end()));
  }
  return {most, most_members()};
}

result<node_map> find_nodes(group const& ranks) {
  std::int32_t lowest = 0;
  while (!ranks.same_node(lowest)) ++lowest;
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(&lowest, 1))));
  std::vector<std::int32_t> first(all.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].size() == sizeof lowest) std::memcpy(&first[r], all[r].data(), sizeof lowest);
    bool const sound = all[r].size() == sizeof lowest && first[r] >= 0 &&
                       first[r] <= static_cast<std::int32_t>(r) &&
                       first[static_cast<std::size_t>(first[r])] == first[r];
    if (!sound)
      return fail(error_code::malformed_input, "rank {} names rank {} as the first of its node", r,
                  first[r]);
  }
  return node_map::of(first);
}

node_paths::node_paths(node_map const& nodes, int rank)
    : shape(nodes.shape()), member(nodes.member) {
  auto const me = static_cast<std::size_t>(rank);
  std::int32_t const own = nodes.node[me];
  std::size_t const ranks = nodes.node.size();
  members = nodes.members[static_cast<std::size_t>(own)];
  // Places go by rank: who comes before counts.
  std::vector<way> to_node(nodes.members.size());
  for (int n = 0; n < nodes.size(); ++n)
    if (n != own) to_node[static_cast<std::size_t>(n)] = {nodes.relay(rank, n), 0};
  for (int s = 0; s < rank; ++s)
    for (int n = 0; n < nodes.size(); ++n) {
      way& w = to_node[static_cast<std::size_t>(n)];
      if (n != own && nodes.node[static_cast<std::size_t>(s)] != n && nodes.relay(s, n) == w.rank)
        ++w.place;
    }
  std::vector<std::int32_t> served(members.size());
  for (std::size_t r = 0; r < ranks; ++r) {
    auto const peer = static_cast<std::int32_t>(r);
    if (nodes.node[r] == own) {
      out.push_back({peer, -1});
      in.push_back({peer, -1});
      continue;
    }
    out.push_back(to_node[static_cast<std::size_t>(nodes.node[r])]);
    std::int32_t const by = nodes.relay(peer, own);
    in.push_back({by, served[static_cast<std::size_t>(member[static_cast<std::size_t>(by)])]++});
    if (by == rank) sources.push_back(peer);
  }
}

relay_tables node_paths::view() const {
  return {out.data(),
          in.data(),
          member.data(),
          sources.data(),
          members.data(),
          static_cast<std::int32_t>(sources.size()),
          static_cast<std::int32_t>(members.size())};
}

}  // namespace ferry
