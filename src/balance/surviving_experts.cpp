// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/surviving_experts.hpp>

#include "balance/write_placement.hpp"
#include "base/fail.hpp"

#include <algorithm>

namespace ferry {
namespace {

std::vector<bool> lost_experts(placement const& joined, std::vector<bool> const& goes_on) {
  auto const experts = static_cast<std::size_t>(joined.num_experts);
  std::vector<bool> lost(static_cast<std::size_t>(joined.num_layers) * experts, true);
  for (int l = 0; l < joined.num_layers; ++l)
    for (int s = 0; s < joined.num_slots; ++s)
      if (goes_on[static_cast<std::size_t>(joined.rank_of(s))])
        lost[static_cast<std::size_t>(l) * experts +
             static_cast<std::size_t>(joined.layer(l)[static_cast<std::size_t>(s)])] = false;
  return lost;
}

// A lost expert takes one entry of a table as well, and a table has one for every slot.
int slots_of_each(placement const& joined, std::vector<int> const& ranks,
                  std::vector<bool> const& lost) {
  int most = 0;
  for (int const r : ranks) most = std::max(most, joined.slots_of(r));
  std::int64_t most_lost = 0;
  for (int l = 0; l < joined.num_layers; ++l) {
    auto const first = lost.begin() + std::int64_t{l} * joined.num_experts;
    most_lost =
        std::max<std::int64_t>(most_lost, std::count(first, first + joined.num_experts, true));
  }
  return most + ceil_div(static_cast<int>(most_lost), static_cast<int>(ranks.size()));
}

}  // namespace

result<surviving_experts> surviving_experts::of(placement const& joined, group const& now) {
  FERRY_CHECK(validate(joined));
  std::vector<int> ranks;
  std::vector<bool> goes_on(static_cast<std::size_t>(joined.num_ranks));
  for (int r = 0; r < now.size(); ++r) {
    int const before = now.joined_as(r);
    if (before >= joined.num_ranks)
      return fail(error_code::invalid_argument, "rank {} joined as {}, and the placement is of {}",
                  r, before, joined.num_ranks);
    ranks.push_back(before);
    goes_on[static_cast<std::size_t>(before)] = true;
  }
  surviving_experts made;
  made.lost_ = lost_experts(joined, goes_on);
  int const each = slots_of_each(joined, ranks, made.lost_);
  made.where_ = {joined.num_layers, joined.num_experts, now.size(), 1, now.size() * each, {}};
  for (int l = 0; l < joined.num_layers; ++l)
    for (int const before : ranks) {
      auto const held = joined.layer(l).subspan(static_cast<std::size_t>(joined.first_slot(before)),
                                                static_cast<std::size_t>(joined.slots_of(before)));
      made.where_.experts.insert(made.where_.experts.end(), held.begin(), held.end());
      made.where_.experts.resize(
          made.where_.experts.size() + static_cast<std::size_t>(each) - held.size(), -1);
    }
  return made;
}

std::int64_t surviving_experts::num_lost() const {
  return std::count(lost_.begin(), lost_.end(), true);
}

result<void> surviving_experts::apply(exchange& to, replica_choice rule) const {
  FERRY_CHECK(check_sizes(to, where_));
  return write_placement(to, where_, rule, nullptr, {});
}

std::int64_t surviving_experts::renormalise(int layer, matrix<std::int32_t const> choices,
                                            matrix<float> weights) const {
  std::int64_t lost = 0;
  for (std::int64_t t = 0; t < choices.rows; ++t) {
    float all = 0, kept = 0;
    std::int64_t lost_here = 0;
    for (std::int64_t k = 0; k < choices.columns; ++k) {
      std::int32_t const expert = choices[t][k];
      if (expert < 0 || expert >= where_.num_experts) continue;
      all += weights[t][k];
      if (is_lost(layer, expert))
        ++lost_here;
      else
        kept += weights[t][k];
    }
    lost += lost_here;
    if (lost_here == 0 || kept == 0) continue;
    for (std::int64_t k = 0; k < choices.columns; ++k) weights[t][k] *= all / kept;
  }
  return lost;
}

}  // namespace ferry
