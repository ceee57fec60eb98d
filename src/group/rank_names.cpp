// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/rank_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <span>

namespace ferry {

std::string names_of(std::vector<int> const& ranks) {
  constexpr std::size_t most = 16;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.size() <= most) return fmt::format("ranks {}", fmt::join(ranks, ", "));
  return fmt::format("ranks {} and {} more", fmt::join(std::span(ranks).first(most), ", "),
                     ranks.size() - most);
}

}  // namespace ferry
