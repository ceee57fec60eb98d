// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/weight_pool.hpp"

#include "base/fail.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ferry::deepseek {
namespace {

std::size_t bytes_in_window(packed_weights const& w) {
  return (w.memory.get_desc().get_size() + 63) / 64 * 64;
}

/// What a rank says before each turn.
struct offer {
  std::size_t bytes = 0;
  bool has_own = false;  ///< it still holds copies that it would like to share
};

result<std::vector<offer>> gather(group const& ranks, offer const& mine) {
  FERRY_TRY(std::vector<bytes> const all, ranks.all_gather(std::as_bytes(std::span(&mine, 1))));
  std::vector<offer> offers(all.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].size() != sizeof(offer)) {
      return fail(error_code::malformed_input, "rank {} says {} bytes of its weights instead of {}",
                  r, all[r].size(), sizeof(offer));
    }
    std::memcpy(&offers[r], all[r].data(), sizeof(offer));
  }
  return offers;
}

}  // namespace

void weight_pool::add(std::shared_ptr<packed_weights> weights) {
  bytes_ += bytes_in_window(*weights);
  all_.push_back(std::move(weights));
}

std::vector<void const*> weight_pool::places() const {
  std::vector<void const*> all;
  for (auto const& one : all_) all.push_back(one->memory.get_data_handle());
  return all;
}

void weight_pool::copy_to(window const& w) const {
  std::byte* at = w.data();
  for (auto const& one : all_) {
    std::memcpy(at, one->memory.get_data_handle(), one->memory.get_desc().get_size());
    at += bytes_in_window(*one);
  }
}

void weight_pool::take_from(window const& w) {
  std::byte* at = w.data();
  for (auto const& one : all_) {
    auto const description = one->memory.get_desc();
    std::size_t const step = bytes_in_window(*one);
    if (std::memcmp(at, one->memory.get_data_handle(), description.get_size()) == 0) {
      one->memory = dnnl::memory(description, one->memory.get_engine(), at);
      one->where = w;
    }
    at += step;
  }
}

result<void> weight_pool::share(group const& ranks) {
  offer mine{bytes_, bytes_ > 0 && ranks.ranks_on_this_machine() > 1};
  for (;;) {
    FERRY_TRY(std::vector<offer> const offers, gather(ranks, mine));
    auto const first =
        std::find_if(offers.begin(), offers.end(), [](offer o) { return o.has_own; });
    if (first == offers.end()) return {};
    // One rank of one machine offers; whoever reaches its window takes from it. Another processor
    // may pack otherwise: such a rank offers its own in turn.
    int const giver = static_cast<int>(first - offers.begin());
    FERRY_TRY(shared_windows const shared, ranks.share_window(ranks.rank() == giver ? bytes_ : 0));
    window const& w = shared.windows[static_cast<std::size_t>(giver)];
    if (ranks.rank() == giver) copy_to(w);
    FERRY_CHECK(ranks.barrier());
    if (shared.reach_of(giver) == reach::network || first->bytes != bytes_) continue;
    take_from(w);
    mine.has_own = false;
  }
}

}  // namespace ferry::deepseek
