// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/proxy.hpp>

#include "transport/proxied_ranks.hpp"
#include "transport/team_doubles.hpp"

#include <ferry/transport/loopback.hpp>

#include <gtest/gtest.h>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;

make_net loopback(loopback_faults f) {
  return [f](std::vector<mapped_window> w) { return make_loopback_transport(0, std::move(w), f); };
}

TEST(proxy, refuses_rings_and_memory_that_cannot_be) {
  auto const refused = [](proxy_options o, std::size_t bytes, std::size_t from,
                          std::string const& named) {
    window const own = window::plain(4096).value(), memory = window::plain(1 << 20).value();
    auto const r = proxy::start(make_loopback_transport(0, {{own.bytes()}}, {}), 1,
                                memory.bytes().subspan(from, bytes), o);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::invalid_argument);
    EXPECT_NE(r.error().message.find(named), std::string::npos) << r.error().message;
  };
  refused({.num_requests = 2}, 1 << 19, 0, "2");
  refused({.num_requests = 48}, 1 << 19, 0, "48");
  refused({.num_requests = 4, .put_bytes = 100}, 1 << 19, 0, "100");
  refused({.num_requests = 4, .put_bytes = 1u << 31}, 1 << 19, 0, std::to_string(1u << 31));
  proxy_options const small{.num_requests = 4, .put_bytes = 64};
  refused(small, proxy::memory_bytes(small) - 1, 0, std::to_string(proxy::memory_bytes(small)));
  refused(small, 1 << 19, 8, "64");
}

TEST(proxy, waits_at_its_end_for_what_was_asked_for) {
  for (int run = 0; run < 20; ++run) {
    std::optional<proxied_ranks> ranks(
        std::in_place, loopback({.seed = static_cast<std::uint64_t>(run) + 1, .delay = 500}));
    std::uint64_t const row = 7;
    for (std::size_t i = 0; i < 30; ++i)
      ranks->net.put(idle_team{}, 1, 64 + 8 * i, reinterpret_cast<std::byte const*>(&row), 8);
    ranks->net.publish(idle_team{}, 1, flag::done, 0, 1);
    ranks->through.reset();
    EXPECT_EQ(ranks->word(1, 0), 1u);
    for (std::size_t i = 0; i < 30; ++i) ASSERT_EQ(ranks->word(1, 64 + 8 * i), 7u);
  }
}

TEST(proxy, ends_with_the_transports_first_error) {
  proxied_ranks ranks(loopback({.fail = 1024}));
  std::uint64_t const row = 7;
  auto const end = std::chrono::steady_clock::now() + 20s;
  while (!ranks.through->first_error() && std::chrono::steady_clock::now() < end)
    ranks.net.put(idle_team{}, 1, 64, reinterpret_cast<std::byte const*>(&row), 8);
  ASSERT_TRUE(ranks.through->first_error());
  EXPECT_EQ(ranks.through->first_error()->code, error_code::transport);
  // Nobody waits for room in a ring that has failed.
  auto const start = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) ranks.net.publish(idle_team{}, 1, flag::done, 0, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_EQ(ranks.word(1, 0), 0u);
}

TEST(proxy, says_which_rank_does_not_take_what_it_is_sent) {
  // One put is lost without a word: its bytes are never read, as far as anybody knows.
  proxied_ranks ranks(loopback({.drop = 1024}),
                      {.num_requests = 8, .put_bytes = 64, .timeout = 200ms});
  std::uint64_t const row = 7;
  auto const* const from = reinterpret_cast<std::byte const*>(&row);
  for (int i = 0; i < 100; ++i) ranks.net.put(idle_team{}, 2, 64, from, 8);
  auto const end = std::chrono::steady_clock::now() + 20s;
  while (!ranks.through->first_error() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  auto const e = ranks.through->first_error();
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, error_code::timeout);
  EXPECT_NE(e->message.find("rank 2"), std::string::npos) << e->message;
}

TEST(proxy, lets_nothing_out_once_it_was_given_up) {
  proxied_ranks ranks(loopback({}));
  ranks.net.publish(idle_team{}, 1, flag::done, 0, 1);
  ASSERT_TRUE(ranks.arrives(1, 0, 1));
  ranks.through->give_up({error_code::timeout, "rank 1 did not come"});
  for (int i = 0; i < 100; ++i) ranks.net.publish(idle_team{}, 1, flag::done, 0, 2);
  ASSERT_TRUE(ranks.through->first_error());
  EXPECT_EQ(ranks.through->first_error()->message, "rank 1 did not come");
  ranks.through.reset();
  EXPECT_EQ(ranks.word(1, 0), 1u);
}

TEST(proxy, goes_round_its_ring_many_times) {
  proxied_ranks ranks(loopback({.reorder = 900}),
                      {.num_requests = 4, .put_bytes = 64, .timeout = 20s});
  for (std::uint64_t n = 1; n <= 3000; ++n) {
    ranks.net.put(idle_team{}, 1, 64, reinterpret_cast<std::byte const*>(&n), 8);
    ranks.net.publish(idle_team{}, 1, flag::done, 0, n);
  }
  EXPECT_TRUE(ranks.arrives(1, 0, 3000));
  EXPECT_EQ(ranks.word(1, 64), 3000u);
  EXPECT_FALSE(ranks.through->first_error());
}

}  // namespace
}  // namespace ferry::test
