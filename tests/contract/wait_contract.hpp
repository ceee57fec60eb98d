// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How waits of kernels on devices end: by their word, at their deadline, or when their rank has
/// given up.
#pragma once

#include "contract/contract_case.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace ferry::test {

class wait_contract : public contract_case {
 protected:
  static constexpr lane_grid grid{2, 2};

  /// Waits in kernels for a word of the host's memory, while `meanwhile` runs.
  template <class Body>
  void wait_for(awaited const& what, std::chrono::milliseconds timeout, Body const& meanwhile) {
    contract_place place(where(), timeout);
    contract_array<std::uint64_t> word(where(), 1, memory_kind::pinned), seen(where(), 1);
    contract_array<std::uint32_t> arrived(where(), 1), failed(where(), 1);
    queue q = place.make_queue(grid.blocks);
    place.run(q, grid, await_word{what, word.data(), seen.data(), arrived.data(), failed.data()})
        .value();
    meanwhile(place, q, *word.data());
    finish(q);
    seen_ = seen.read().front();
    arrived_ = arrived.read().front();
    failed_ = failed.read().front();
    told_ = place.told();
    status_ = place.status();
  }
  static std::uint32_t all_lanes() {
    return static_cast<std::uint32_t>(grid.blocks * grid.teams * where().lanes());
  }

  std::uint64_t seen_ = 0;
  std::uint32_t arrived_ = 0, failed_ = 0;
  bool told_ = false;
  status_record status_{};
};

TEST_P(wait_contract, end_on_every_lane_when_the_word_comes) {
  wait_for({flag::arrived, 1, 0, 3}, contract_place::longest,
           [&](contract_place&, queue& q, std::uint64_t& word) {
             EXPECT_FALSE(q.done().value()) << "nothing has come";
             // An earlier epoch is not the one.
             std::atomic_ref(word).store(std::uint64_t{2} << 16 | 9);
             std::this_thread::sleep_for(std::chrono::milliseconds(5));
             EXPECT_FALSE(q.done().value());
             std::atomic_ref(word).store(std::uint64_t{3} << 16 | 5);
           });
  EXPECT_EQ(arrived_, all_lanes());
  EXPECT_EQ(seen_, std::uint64_t{3} << 16 | 5);
  EXPECT_EQ(failed_, 0u);
  EXPECT_FALSE(told_);
  EXPECT_EQ(status_.failed, 0u);
}

TEST_P(wait_contract, record_a_word_that_does_not_come_and_give_up_everywhere) {
  auto const start = std::chrono::steady_clock::now();
  wait_for({flag::header, 4, -1, 3}, std::chrono::milliseconds(50),
           [&](contract_place&, queue&, std::uint64_t& word) {
             std::atomic_ref(word).store(std::uint64_t{2} << 24);
           });
  // The device's clock runs no faster than it is said to.
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(49));
  EXPECT_EQ(arrived_, 0u);
  EXPECT_EQ(failed_, all_lanes());
  EXPECT_TRUE(told_);
  EXPECT_EQ(status_.failed, status_record::complete);
  EXPECT_EQ(status_.record.code, error_code::timeout);
  EXPECT_EQ(status_.record.rank, 4);
  EXPECT_EQ(status_.record.slot, 7);
  EXPECT_EQ(status_.record.wait.kind, flag::header);
  EXPECT_EQ(status_.record.wait.epoch, 3u);
  EXPECT_EQ(status_.waiting, 0u);
}

TEST_P(wait_contract, say_whom_they_wait_for_and_leave_when_the_host_gives_up) {
  wait_for({flag::done, 2, -1, 1}, contract_place::longest,
           [&](contract_place& place, queue&, std::uint64_t&) {
             auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
             while (place.status().waiting != 3 && std::chrono::steady_clock::now() < end)
               std::this_thread::sleep_for(std::chrono::milliseconds(2));
             EXPECT_EQ(place.status().waiting, 3u);
             place.give_up();
           });
  EXPECT_EQ(arrived_, 0u);
  EXPECT_EQ(failed_, all_lanes());
  EXPECT_FALSE(told_) << "nothing was recorded";
  EXPECT_EQ(status_.failed, 0u);
}

}  // namespace ferry::test
