// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Queues of the three vendors against the emulated NIC: what is carried out, what is refused and
// by which name, and counters that wrap.

#include "nic/direct_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;

class nic_queue : public ::testing::TestWithParam<nic_vendor> {
 protected:
  /// Calls body with a queue of the vendor at hand.
  template <class Body>
  void with_queue(nic_faults f, bool with_thread, Body const& body) {
    device_verbs::with_format(GetParam(), [&]<class Format>(Format) {
      direct_queue<Format> q(GetParam(), f, with_thread);
      body(q);
    });
  }
};

TEST_P(nic_queue, carries_every_verb_out) {
  with_queue({}, false, [](auto& q) {
    auto const bytes = q.pattern(5000);
    std::copy(bytes.begin(), bytes.end(), q.local.data());
    // Sizes around packets and none at all.
    std::uint32_t place = 0;
    for (std::uint32_t const size : {1u, 0u, 8u, 1023u, 1024u, 1025u, 2048u, 5000u}) {
      ASSERT_TRUE(q.post({q.write_of(0, place, size)}));
      q.finish();
      ASSERT_EQ(std::memcmp(q.remote.data() + place, bytes.data(), size), 0) << size;
      place += size;
    }
    for (std::size_t i = place; i < q.remote.size(); ++i)
      ASSERT_EQ(q.remote.data()[i], std::byte{0});
    ASSERT_TRUE(q.post({q.word_of(32, 0x1122334455667788)}));
    q.finish();
    EXPECT_EQ(q.remote_word(32), 0x1122334455667788u);
    ASSERT_TRUE(q.post({q.add_of(32, 0x10), q.add_of(32, 0xffffffffffffffff)}));
    q.finish();
    EXPECT_EQ(q.remote_word(32), 0x1122334455667797u);
    EXPECT_EQ(q.local_word(0), 0x1122334455667798u) << "the old value came back";
    q.memory->post_receives(2, 0x1234, 1);
    work w = q.write_of(8, 64, 16);
    w.what = verb::write_with_immediate;
    w.immediate = 0xcafe1234;
    ASSERT_TRUE(q.post({w}));
    q.finish();
    EXPECT_EQ(std::memcmp(q.remote.data() + 64, q.local.data() + 8, 16), 0);
    EXPECT_EQ(q.memory->immediates(2, 0x1234), std::vector<std::uint32_t>{0xcafe1234});
    EXPECT_TRUE(q.nic.refusals().empty());
    EXPECT_EQ(q.queue.status(), nic_status::ok);
  });
}

TEST_P(nic_queue, says_that_no_receive_was_posted_for_an_immediate) {
  with_queue({}, false, [](auto& q) {
    work w = q.write_of(0, 0, 8);
    w.what = verb::write_with_immediate;
    ASSERT_TRUE(q.post({w}));
    q.finish();
    EXPECT_EQ(q.queue.status(), nic_status::receiver_not_ready);
  });
}

TEST_P(nic_queue, rings_once_for_a_batch) {
  with_queue({}, false, [](auto& q) {
    ASSERT_TRUE(q.post(std::vector<work>(7, q.word_of(0, 1))));
    q.finish();
    EXPECT_EQ(q.nic.counts().doorbells, 1u);
    EXPECT_EQ(q.nic.counts().entries, 7u);
  });
}

TEST_P(nic_queue, completes_unsignalled_entries_with_the_next_that_is_signalled) {
  with_queue({}, false, [](auto& q) {
    std::vector<work> batch(6, q.word_of(0, 1));
    for (int i : {0, 1, 2, 4}) batch[static_cast<std::size_t>(i)].signalled = false;
    ASSERT_TRUE(q.post(batch));
    q.finish();
    EXPECT_EQ(q.nic.counts().completions, 2u);
    EXPECT_EQ(q.counters.completed, 6u);
    EXPECT_EQ(q.counters.credits, q.most());
  });
}

TEST_P(nic_queue, never_holds_more_than_it_has_room_for) {
  with_queue({}, false, [](auto& q) {
    std::uint32_t first = 0;
    for (std::uint32_t i = 0; i < q.most(); ++i) ASSERT_TRUE(q.post({q.word_of(0, i)}));
    EXPECT_FALSE(q.queue.try_reserve(1, first));
    device_verbs::host_patience short_wait(5ms);
    EXPECT_FALSE(q.queue.reserve(1, first, short_wait)) << "the NIC stands still";
    EXPECT_EQ(q.queue.status(), nic_status::ok) << "a full queue is no failure";
    EXPECT_EQ(q.counters.credits, 0u);
    q.finish();
    EXPECT_EQ(q.counters.credits, q.most());
    EXPECT_FALSE(q.queue.try_reserve(q.most() + 1, first));
    EXPECT_TRUE(q.nic.refusals().empty());
  });
}

TEST_P(nic_queue, waits_for_whoever_reserved_before_and_not_for_ever) {
  with_queue({}, false, [](auto& q) {
    std::uint32_t mine = 0, other = 0;
    ASSERT_TRUE(q.queue.try_reserve(1, other));
    ASSERT_TRUE(q.queue.try_reserve(1, mine));
    q.queue.write(mine, q.word_of(0, 1));
    device_verbs::host_patience short_wait(5ms);
    EXPECT_FALSE(q.queue.publish(mine, 1, short_wait));
    EXPECT_EQ(q.queue.status(), nic_status::stuck);
    EXPECT_EQ(q.nic.counts().doorbells, 0u) << "nothing was shown out of turn";
  });
}

// 100,000 entries from several threads, with all counters near their ends: 32 bits of indices, 24
// of messages and packets, 16 of entry numbers.
TEST_P(nic_queue, carries_a_hundred_thousand_entries_while_counters_wrap) {
  with_queue({.seed = 3, .reorder = 300, .late = 20}, true, [](auto& q) {
    constexpr std::uint32_t threads = 4, batches = FERRY_THREAD_SANITIZER ? 1500 : 5000, batch = 5;
    constexpr std::uint32_t round = 2 * q.entries, all = threads * batches * batch;
    q.start_at(0u - all / 2 / round * round, 0xffff00);
    std::atomic<int> failed{0};
    std::vector<std::thread> posting;
    for (std::uint32_t thread = 0; thread < threads; ++thread)
      posting.emplace_back([&, thread] {
        for (std::uint32_t n = 1; n <= batches && failed == 0; ++n) {
          std::size_t const at = 4096 + thread * 256;
          // Two rows of what this batch is, an addition, the word that covers them.
          device_verbs::host_patience patience(20s);
          bool const posted = q.queue.post_alone(
              batch,
              [&](std::uint32_t i) {
                work w = i < 2    ? q.write_of(i * 8, at + 64 + i * 8, 8)
                         : i == 2 ? q.add_of(at + 128, 1)
                         : i == 3 ? q.add_of(at, 0)
                                  : q.word_of(at, n);
                w.signalled = i == 4;
                w.fenced = i == 4;
                return w;
              },
              patience);
          if (!posted) ++failed;
        }
      });
    for (std::thread& t : posting) t.join();
    EXPECT_EQ(failed, 0) << static_cast<int>(q.queue.status());
    q.wait_idle();
    ASSERT_TRUE(q.nic.refusals().empty())
        << to_string(q.nic.refusals()[0].why) << " at " << q.nic.refusals()[0].index;
    EXPECT_EQ(q.nic.counts().entries, all);
    EXPECT_LT(q.counters.reserved, 1u << 31) << "the 32-bit counters went round";
    EXPECT_EQ(q.counters.credits, q.most());
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      EXPECT_EQ(q.remote_word(4096 + thread * 256), batches);
      EXPECT_EQ(q.remote_word(4096 + thread * 256 + 128), batches);
    }
  });
}

// A word may be seen only after everything that a fetch_add covered, whatever overtakes what.
TEST_P(nic_queue, shows_a_fenced_word_only_after_what_it_covers) {
  with_queue({.seed = 7, .reorder = 1024}, false, [](auto& q) {
    for (std::uint64_t n = 1; n <= 300; ++n) {
      for (std::size_t i = 0; i < 8; ++i) std::memcpy(q.local.data() + 8 * i, &n, 8);
      std::vector<work> batch;
      for (std::size_t i = 0; i < 8; ++i) batch.push_back(q.write_of(8 * i, 64 + 8 * i, 8));
      batch.push_back(q.add_of(0, 0));
      batch.push_back(q.word_of(0, n));
      batch.back().fenced = true;
      ASSERT_TRUE(q.post(batch));
      while (q.remote_word(0) != n) {
        ASSERT_TRUE(q.nic.turn());
        if (q.remote_word(0) == n) break;
      }
      for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(q.remote_word(64 + 8 * i), n);
      q.finish();
    }
    EXPECT_GT(q.nic.counts().out_of_order, 300u);
  });
}

TEST_P(nic_queue, ends_with_an_error_and_flushes_what_was_behind_it) {
  with_queue({}, false, [](auto& q) {
    work wrong = q.write_of(0, 0, 8);
    wrong.remote_key ^= 1;
    ASSERT_TRUE(q.post({q.word_of(0, 1), wrong, q.word_of(8, 2)}));
    q.finish();
    EXPECT_EQ(q.queue.status(), nic_status::remote_access) << "not the flush that follows";
    EXPECT_EQ(q.nic.refusals().at(0).why, refusal::wrong_remote_key);
    EXPECT_FALSE(q.post({q.word_of(0, 3)}));
  });
}

INSTANTIATE_TEST_SUITE_P(every, nic_queue, ::testing::ValuesIn(all_vendors),
                         [](auto const& c) { return device_verbs::to_string(c.param); });

}  // namespace
}  // namespace ferry::test
