// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/agreement.hpp"

#include "base/fail.hpp"
#include "group/packed.hpp"

namespace ferry {

error told_by(int rank, error const& what) {
  return fail(what.code, "on rank {}: {}", rank, what.message);
}

result<void> agree(bootstrap& ranks, result<void> const& mine, std::chrono::milliseconds timeout) {
  FERRY_TRY(auto const all, ranks.all_gather(packer{}.add_outcome(mine).packed(), timeout));
  if (!mine) return mine.error();
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (auto const outcome = unpacker{all[rank]}.take_outcome(); !outcome)
      return told_by(rank, outcome.error());
  return {};
}

}  // namespace ferry
