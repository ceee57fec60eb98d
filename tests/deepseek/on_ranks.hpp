// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Ranks as threads of the test.
#pragma once

#include <ferry/group.hpp>

#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace ferry::test {

/// Runs `body` on every rank of a group of `size` threads. What it throws on one rank comes out
/// here, once all ranks have ended.
inline void on_ranks(int size, std::function<void(group const&)> const& body) {
  auto const meeting = threads(size);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        body(join(meeting.rank(rank), {.timeout = std::chrono::seconds(20)}).value());
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (std::exception_ptr const& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace ferry::test
