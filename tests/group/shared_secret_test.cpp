// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/shared_secret.hpp"

#include "multiprocess/ranks.hpp"

#include <ferry/group.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
using ferry::error_code;
using ferry::test::reserved_port;

void on_threads(int size, std::function<void(int)> const& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

void expect_refused(ferry::result<ferry::group> const& g, std::string const& why) {
  ASSERT_FALSE(g);
  EXPECT_NE(g.error().message.find(why), std::string::npos) << g.error().message;
}

TEST(shared_secret, lets_ranks_meet_that_know_it) {
  reserved_port const port;
  on_threads(4, [&](int rank) {
    auto const group =
        ferry::join(ferry::tcp(port.address(), rank, 4, "open, sesame"), {.timeout = 5s});
    ASSERT_TRUE(group) << group.error().message;
    EXPECT_TRUE(group->barrier());
  });
}

// Whoever is refused learns why; the others go on waiting, and meet.
TEST(shared_secret, keeps_out_who_knows_another_or_none) {
  reserved_port const port;
  on_threads(4, [&](int who) {
    if (who < 2) {
      if (who == 1) std::this_thread::sleep_for(300ms);
      auto const group = ferry::join(ferry::tcp(port.address(), who, 2, "right"), {.timeout = 10s});
      ASSERT_TRUE(group) << group.error().message;
      EXPECT_TRUE(group->barrier());
      return;
    }
    auto const stranger =
        ferry::join(ferry::tcp(port.address(), 1, 2, who == 2 ? "wrong" : ""), {.timeout = 5s});
    expect_refused(stranger, who == 2 ? "does not know the shared secret" : "asks for one");
    EXPECT_EQ(stranger.error().code, error_code::invalid_argument);
  });
}

TEST(shared_secret, is_not_brought_to_a_rank_0_that_has_none) {
  reserved_port const port;
  on_threads(2, [&](int rank) {
    auto const group = ferry::join(ferry::tcp(port.address(), rank, 2, rank == 1 ? "mine" : ""),
                                   {.timeout = 500ms});
    expect_refused(group, "rank 1 has a shared secret, and rank 0");
  });
}

struct answer {
  ferry::frame_kind kind;
  std::size_t bytes;
};
constexpr answer asks{ferry::frame_kind::challenge, 16}, welcomes{ferry::frame_kind::welcome, 32};

/// Takes one connection as a rank 0 that says `answers` without having been told any secret.
void pose_as_rank_0(reserved_port const& port, std::vector<answer> const& answers) {
  auto const where = ferry::parse_endpoint(port.address()).value();
  auto const listener =
      ferry::listen_at(ferry::resolve(where, ferry::after(1s)).value().front()).value();
  pollfd ready{listener.number(), POLLIN, 0};
  ferry::wait_for({&ready, 1}, ferry::after(5s)).value();
  ferry::socket_address from;
  ferry::link line(ferry::accept_one(listener.number(), from).value());
  for (auto const& [kind, bytes] : answers) {
    line.queue(kind, ferry::bytes(bytes));
    line.write();
  }
  std::this_thread::sleep_for(300ms);
}

TEST(shared_secret, is_asked_of_rank_0_as_well) {
  for (auto const& answers :
       {std::vector{welcomes}, std::vector{asks, welcomes},
        // Behind it what only a rank 0 may send that has proved to be one.
        std::vector{asks, welcomes, answer{ferry::frame_kind::table, 100'000}}}) {
    reserved_port const port;
    on_threads(2, [&](int who) {
      if (who == 0) return pose_as_rank_0(port, answers);
      expect_refused(ferry::join(ferry::tcp(port.address(), 1, 2, "mine"), {.timeout = 3s}),
                     "does not know the shared secret");
    });
  }
}

TEST(shared_secret, lets_nobody_send_much_before_it_is_proved) {
  for (auto const& answers : {std::vector{answer{ferry::frame_kind::welcome, 4097}},
                              std::vector{asks, answer{ferry::frame_kind::welcome, 4097}}}) {
    reserved_port const port;
    on_threads(2, [&](int who) {
      if (who == 0) return pose_as_rank_0(port, answers);
      expect_refused(ferry::join(ferry::tcp(port.address(), 1, 2, "mine"), {.timeout = 10s}),
                     "it sends a frame of 4097 bytes, more than 4096");
    });
  }
}

// Each proof is one for a rank, a question and a purpose.
TEST(shared_secret, proves_one_thing_at_a_time) {
  ferry::hello said;
  said.rank = 3;
  said.nonce = {1, 2};
  ferry::challenge const asked{{3, 4}};
  auto const proof = ferry::proof_of_rank("s", said, asked);
  EXPECT_TRUE(ferry::equal(proof, ferry::proof_of_rank("s", said, asked)));
  EXPECT_FALSE(ferry::equal(proof, ferry::proof_of_host("s", said, asked)));
  EXPECT_FALSE(ferry::equal(proof, ferry::proof_of_rank("t", said, asked)));
  EXPECT_FALSE(ferry::equal(proof, ferry::proof_of_rank("s", said, {{3, 5}})));
  said.rank = 2;
  EXPECT_FALSE(ferry::equal(proof, ferry::proof_of_rank("s", said, asked)));
  EXPECT_NE(ferry::sign_greeting("s", {{1, 1}, 1, 2}), ferry::sign_greeting("s", {{1, 1}, 2, 1}));
}

TEST(shared_secret, is_refused_when_it_is_too_long) {
  auto const group =
      ferry::join(ferry::tcp("127.0.0.1:4711", 0, 2, std::string(4097, 'x')), {.timeout = 100ms});
  expect_refused(group, "4097");
}

// The address names the interface: what listens there is not to be found at another one.
TEST(tcp_ranks, listen_at_the_address_given_and_nowhere_else) {
  reserved_port const port("127.0.0.2");
  std::atomic<bool> met = false;
  on_threads(2, [&](int who) {
    if (who == 0) {
      auto const group = ferry::join(ferry::tcp(port.address(), 0, 2), {.timeout = 800ms});
      EXPECT_FALSE(group);
      return;
    }
    std::this_thread::sleep_for(100ms);
    auto const other = ferry::parse_endpoint("127.0.0.1:" + std::to_string(port.port())).value();
    auto const at = ferry::resolve(other, ferry::after(1s)).value().front();
    if (ferry::connect_to(at, ferry::after(1s))) met = true;
  });
  EXPECT_FALSE(met);
}

}  // namespace
