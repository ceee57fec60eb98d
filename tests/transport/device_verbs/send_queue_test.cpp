// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/send_queue.hpp>

#include "kernels/emulated_teams.hpp"
#include "nic/direct_queue.hpp"

#include <ferry/exec/cpu/cpu_team.hpp>

#include <gtest/gtest.h>

#include <string>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;

/// An access that writes down in which order memory and registers are stored, and has the NIC work
/// at the very moment when its register is written.
struct watched_access : device_verbs::cpu_nic_access {
  struct watch {
    queue_pair pair;
    emulated_nic* nic = nullptr;
    std::string order;
  };
  watch* seen = nullptr;

  template <class T>
  void store(T* at, T value) const {
    cpu_nic_access::store(at, value);
    auto const* const where = reinterpret_cast<std::byte const*>(at);
    auto const* const words = reinterpret_cast<void const*>(at);
    queue_pair const& p = seen->pair;
    if (where >= p.entries && where < p.entries + p.num_entries * 64)
      seen->order += 'e';
    else if (p.search_table && words >= p.search_table && words < p.search_table + p.num_entries)
      seen->order += 's';
    else if (p.doorbell_record && words == p.doorbell_record + 1)
      seen->order += 'r';
  }
  void fence() const {
    cpu_nic_access::fence();
    seen->order += 'f';
  }
  void ring(std::uint64_t* at, std::uint64_t value) const {
    cpu_nic_access::ring(at, value);
    seen->order += at == seen->pair.doorbell ? 'd' : 'c';
    if (at == seen->pair.doorbell)
      while (seen->nic->turn()) {
      }
  }
};

class send_queue : public ::testing::TestWithParam<nic_vendor> {};

TEST_P(send_queue, writes_data_then_index_then_fence_then_doorbell) {
  device_verbs::with_format(GetParam(), [&]<class Format>(Format) {
    direct_queue<Format> q(GetParam(), {}, false);
    watched_access::watch seen{q.queue.pair, &q.nic, {}};
    watched_access access;
    access.seen = &seen;
    device_verbs::send_queue<Format, watched_access> const queue{q.queue.pair, &q.counters, access};
    device_verbs::host_patience patience(5s);
    ASSERT_TRUE(queue.post_alone(
        3, [&](std::uint32_t i) { return q.word_of(8 * i, i + 1); }, patience));
    // Everything was there when the register was written: the NIC took all of it just then.
    EXPECT_TRUE(q.nic.refusals().empty());
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(q.remote_word(8 * i), i + 1);
    switch (GetParam()) {
      case nic_vendor::mlx5: EXPECT_EQ(seen.order, "rfd"); break;
      case nic_vendor::bnxt: EXPECT_EQ(seen.order, "sssfd"); break;
      case nic_vendor::ionic: EXPECT_EQ(seen.order, "eeefd"); break;
    }
    seen.order.clear();
    EXPECT_EQ(queue.poll(), 3u);
    EXPECT_EQ(seen.order, GetParam() == nic_vendor::mlx5 ? "" : "c");
  });
}

TEST_P(send_queue, gives_credits_back_when_there_are_too_few) {
  device_verbs::with_format(GetParam(), [&]<class Format>(Format) {
    direct_queue<Format> q(GetParam(), {}, false);
    std::uint32_t first = 7;
    EXPECT_FALSE(q.queue.try_reserve(q.most() + 1, first));
    EXPECT_EQ(q.counters.credits, q.most());
    EXPECT_EQ(q.counters.reserved, 0u);
    EXPECT_EQ(first, 7u);
    EXPECT_TRUE(q.queue.try_reserve(q.most(), first));
    EXPECT_EQ(first, 0u);
    EXPECT_EQ(q.counters.credits, 0u);
  });
}

TEST_P(send_queue, keeps_the_first_failure) {
  device_verbs::with_format(GetParam(), [&]<class Format>(Format) {
    direct_queue<Format> q(GetParam(), {}, false);
    q.queue.fail(nic_status::remote_access);
    q.queue.fail(nic_status::flushed);
    EXPECT_EQ(q.queue.status(), nic_status::remote_access);
    EXPECT_FALSE(q.post({q.word_of(0, 1)}));
    EXPECT_EQ(q.nic.counts().doorbells, 0u);
  });
}

/// A kernel whose team posts batches together.
template <class Queue, class Make>
struct post_batches {
  Queue queue;
  Make make;
  std::uint32_t batches, size;
  int* failed;

  template <class Team, class Net>
  void operator()(Team const& t, Net const&) const {
    device_verbs::host_patience patience(20s);
    for (std::uint32_t b = 0; b < batches; ++b)
      if (!queue.post(
              t, size, [&](std::uint32_t i) { return make(b * size + i); }, patience))
        ++*failed;
  }
};

template <int Lanes, class Format>
void post_by_lanes(nic_vendor vendor) {
  SCOPED_TRACE(Lanes);
  direct_queue<Format> q(vendor, {.seed = 2, .late = 100}, true);
  int failed = 0;
  // More than the lanes, fewer than the lanes, and not a multiple of them; far more than fits.
  auto const make = [&](std::uint32_t i) { return q.word_of(8 * (i % 1000), i); };
  post_batches<decltype(q.queue), decltype(make)> const kernel{q.queue, make, 30, 41, &failed};
  std::uint32_t asleep[1] = {};
  status_record status{};
  waiter waits({}, asleep, &status, {});
  std::byte scratch[64];
  if constexpr (Lanes == 1) {
    struct level {};
    kernel(cpu_team<level>(0, 1, waits, scratch, nullptr), 0);
  } else {
    ASSERT_TRUE(run_on_teams<Lanes>({}, 5, {}, [&](auto const& t) { kernel(t, 0); }));
  }
  q.wait_idle();
  EXPECT_EQ(failed, 0);
  EXPECT_TRUE(q.nic.refusals().empty());
  EXPECT_EQ(q.nic.counts().entries, 30u * 41);
  EXPECT_LE(q.nic.counts().doorbells, 30u) << "one ring a batch; the NIC may see fewer";
  for (std::uint32_t i = 1230 - 1000; i < 1000; ++i) ASSERT_EQ(q.remote_word(8 * i), i);
}

TEST_P(send_queue, is_posted_to_by_teams_of_any_width) {
  device_verbs::with_format(GetParam(), [&]<class Format>(Format) {
    post_by_lanes<1, Format>(GetParam());
    post_by_lanes<32, Format>(GetParam());
    post_by_lanes<64, Format>(GetParam());
  });
}

INSTANTIATE_TEST_SUITE_P(every, send_queue, ::testing::ValuesIn(all_vendors),
                         [](auto const& c) { return device_verbs::to_string(c.param); });

}  // namespace
}  // namespace ferry::test
