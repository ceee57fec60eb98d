// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Corrupt queues: a bounded run of what nic_fuzz does without an end.

#include "nic/corrupt_queue.hpp"

#include <gtest/gtest.h>

#include <random>

namespace ferry::test {
namespace {

class nic_corrupt : public ::testing::TestWithParam<nic_vendor> {};

TEST_P(nic_corrupt, leaves_what_is_not_registered_alone_and_never_crashes) {
  std::minstd_rand random(42);
  std::uint64_t refusals = 0, carried_out = 0;
  for (int run = 0; run < 1500; ++run) {
    std::vector<std::uint8_t> bytes(20 + random() % 400);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random() >> 8);
    // Half of the runs mostly post and ring as they should, so that corruption meets live queues.
    if (run % 2)
      for (std::size_t i = 0; i + 8 < bytes.size(); i += 9)
        bytes[i] = static_cast<std::uint8_t>(random() % 2 ? 0 : 3);
    device_verbs::with_format(GetParam(), [&]<class Format>(Format) {
      corrupt_result const r = run_corrupt_queue<Format>(GetParam(), bytes);
      ASSERT_TRUE(r.guard_intact) << "run " << run;
      refusals += r.refusals;
      carried_out += r.carried_out;
    });
  }
  // It met both: entries that were right, and such that were not.
  EXPECT_GT(refusals, 300u);
  EXPECT_GT(carried_out, 300u);
}

TEST_P(nic_corrupt, ends_a_poller_that_reads_random_completions_with_a_named_failure) {
  std::minstd_rand random(7);
  int failed = 0;
  for (int run = 0; run < 2000; ++run)
    device_verbs::with_format(GetParam(), [&]<class Format>(Format) {
      direct_queue<Format> q(GetParam(), {}, false);
      ASSERT_TRUE(q.post({q.word_of(0, 1), q.word_of(0, 2)}));
      auto const& p = q.queue.pair;
      for (std::uint32_t i = 0; i < p.num_completions * Format::completion_bytes; ++i)
        p.completions[i] = static_cast<std::byte>(random() >> 8);
      q.queue.poll();
      // More can never come back than went out.
      ASSERT_LE(q.counters.credits, q.most());
      ASSERT_LE(q.counters.completed, 2u);
      failed += q.queue.status() != nic_status::ok;
    });
  EXPECT_GT(failed, 700);
}

INSTANTIATE_TEST_SUITE_P(every, nic_corrupt, ::testing::ValuesIn(all_vendors),
                         [](auto const& c) { return device_verbs::to_string(c.param); });

}  // namespace
}  // namespace ferry::test
