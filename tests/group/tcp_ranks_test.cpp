// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/group.hpp>

#include "group/link.hpp"
#include "group/rendezvous_messages.hpp"
#include "group/socket.hpp"
#include "multiprocess/ranks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;
using ferry::bytes;
using ferry::error_code;
using ferry::presence;
using ferry::test::reserved_port;

void on_threads(int size, std::function<void(int)> const& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

bytes of(std::string const& text) {
  auto const* at = reinterpret_cast<std::byte const*>(text.data());
  return {at, at + text.size()};
}

bool mentions(ferry::error const& e, std::string const& text) {
  return e.message.find(text) != std::string::npos;
}

/// Somebody who is no rank: connects to `address` (until somebody listens there) and sends `text`.
ferry::descriptor stranger(std::string const& address, std::string const& text) {
  auto const where = ferry::parse_endpoint(address).value();
  auto const at = ferry::resolve(where, ferry::after(1s)).value().front();
  for (;;) {
    if (auto socket = ferry::connect_to(at, ferry::after(1s))) {
      ::send(socket->number(), text.data(), text.size(), MSG_NOSIGNAL);
      return *std::move(socket);
    }
    std::this_thread::sleep_for(1ms);
  }
}

TEST(tcp_ranks, join_and_gather_in_rank_order) {
  for (int size = 1; size <= 9; ++size) {
    reserved_port const port;
    on_threads(size, [&](int rank) {
      auto const group = ferry::join(ferry::tcp(port.address(), rank, size)).value();
      EXPECT_EQ(group.rank(), rank);
      EXPECT_EQ(group.size(), size);
      EXPECT_EQ(group.ranks_on_this_machine(), size);
      for (int round = 0; round < 20; ++round) {
        auto const all = group.all_gather(of(std::string(static_cast<std::size_t>(rank), 'x')));
        ASSERT_TRUE(all) << all.error().message;
        for (int peer = 0; peer < size; ++peer)
          EXPECT_EQ((*all)[peer], of(std::string(static_cast<std::size_t>(peer), 'x')));
      }
    });
  }
}

TEST(tcp_ranks, gather_more_than_a_socket_holds) {
  reserved_port const port;
  on_threads(3, [&](int rank) {
    auto const group = ferry::join(ferry::tcp(port.address(), rank, 3)).value();
    bytes const mine(std::size_t{5} << 20, std::byte(rank + 1));
    auto const all = group.all_gather(mine).value();
    for (int peer = 0; peer < 3; ++peer)
      EXPECT_EQ(all[peer], bytes(std::size_t{5} << 20, std::byte(peer + 1)));
    auto const too_much = group.all_gather(bytes((std::size_t{64} << 20) + 1));
    ASSERT_FALSE(too_much);
    EXPECT_EQ(too_much.error().code, error_code::invalid_argument);
    EXPECT_TRUE(group.barrier()) << "what was refused breaks nothing";
  });
}

TEST(tcp_ranks, meet_by_name_and_by_ipv6) {
  for (std::string const host : {"localhost", "[::1]", "127.0.0.1"}) {
    reserved_port const port;
    auto const address = host + ":" + std::to_string(port.port());
    on_threads(2, [&](int rank) {
      auto const group = ferry::join(ferry::tcp(address, rank, 2), {.timeout = 5s});
      ASSERT_TRUE(group) << group.error().message;
      EXPECT_TRUE(group->barrier());
    });
  }
}

TEST(tcp_ranks, wait_for_a_rank_0_that_comes_late) {
  reserved_port const port;
  on_threads(3, [&](int rank) {
    if (rank == 0) std::this_thread::sleep_for(300ms);
    EXPECT_TRUE(ferry::join(ferry::tcp(port.address(), rank, 3), {.timeout = 5s}));
  });
}

TEST(tcp_ranks, all_learn_which_ranks_did_not_come) {
  reserved_port const port;
  on_threads(4, [&](int rank) {
    if (rank == 1 || rank == 3) return;
    auto const start = clock_type::now();
    auto const group = ferry::join(ferry::tcp(port.address(), rank, 4), {.timeout = 400ms});
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, error_code::timeout);
    EXPECT_TRUE(mentions(group.error(), "ranks 1, 3 did not come")) << group.error().message;
    EXPECT_GE(clock_type::now() - start, 390ms);
    EXPECT_LT(clock_type::now() - start, 1400ms);
  });
}

TEST(tcp_ranks, the_least_patient_rank_ends_the_meeting_for_all) {
  reserved_port const port;
  on_threads(2, [&](int rank) {
    auto const start = clock_type::now();
    auto const group =
        ferry::join(ferry::tcp(port.address(), rank, 3), {.timeout = rank == 0 ? 20000ms : 300ms});
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, error_code::timeout);
    EXPECT_TRUE(mentions(group.error(), "rank 2 did not come")) << group.error().message;
    EXPECT_LT(clock_type::now() - start, 1500ms);
  });
}

TEST(tcp_ranks, a_missing_rank_0_is_named) {
  reserved_port const port;
  auto const group = ferry::join(ferry::tcp(port.address(), 1, 2), {.timeout = 200ms});
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, error_code::timeout);
  EXPECT_TRUE(mentions(group.error(), "rank 0 did not come to " + port.address()))
      << group.error().message;
}

TEST(tcp_ranks, strangers_neither_break_nor_hold_up_the_meeting) {
  reserved_port const port;
  std::vector<ferry::descriptor> strangers;
  auto const start = clock_type::now();
  on_threads(4, [&](int who) {
    if (who < 3) {
      if (who > 0) std::this_thread::sleep_for(200ms);
      auto const group = ferry::join(ferry::tcp(port.address(), who, 3), {.timeout = 5s});
      ASSERT_TRUE(group) << group.error().message;
      EXPECT_TRUE(group->barrier());
      return;
    }
    ferry::packer half;
    half.add(std::array{'f', 'r', 'y', '1'}).add(std::uint32_t{1}).add(std::uint64_t{0});
    auto huge = half;
    huge.add(~std::uint64_t{0});
    auto wrong_kind = half;
    wrong_kind.add(std::uint64_t{8}).add(std::uint64_t{0});
    auto const text = [](ferry::packer const& p) {
      return std::string(reinterpret_cast<char const*>(p.packed().data()), p.packed().size());
    };
    for (auto const& said :
         {std::string{}, std::string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n"}, std::string{"f"},
          std::string(100000, '\0'), text(half), text(huge), text(wrong_kind)})
      strangers.push_back(stranger(port.address(), said));
    stranger(port.address(), "");  // comes and goes
  });
  EXPECT_LT(clock_type::now() - start, 3s);
}

TEST(tcp_ranks, a_duplicate_rank_is_refused_and_the_others_meet) {
  reserved_port const port;
  std::atomic<int> joined = 0;
  std::atomic<int> refused = 0;
  on_threads(4, [&](int who) {
    int const rank = who == 3 ? 1 : who;  // two of them say that they are rank 1
    if (who == 2) std::this_thread::sleep_for(200ms);
    auto const group = ferry::join(ferry::tcp(port.address(), rank, 3), {.timeout = 5s});
    if (group) {
      ++joined;
      EXPECT_TRUE(group->barrier());
    } else {
      ++refused;
      EXPECT_EQ(group.error().code, error_code::invalid_argument);
      EXPECT_TRUE(mentions(group.error(), "turned away by rank 0: rank 1 has joined already"))
          << group.error().message;
    }
  });
  EXPECT_EQ(joined, 3);
  EXPECT_EQ(refused, 1);
}

TEST(tcp_ranks, a_rank_that_expects_another_size_is_told_so) {
  reserved_port const port;
  on_threads(2, [&](int rank) {
    auto const group =
        ferry::join(ferry::tcp(port.address(), rank, rank == 0 ? 2 : 5), {.timeout = 500ms});
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, rank == 0 ? error_code::timeout : error_code::invalid_argument);
    EXPECT_TRUE(mentions(group.error(), "rank 1 expects 5 ranks, rank 0 2"))
        << group.error().message;
  });
}

TEST(tcp_ranks, a_server_that_is_no_rank_0_is_an_error) {
  reserved_port const port;
  auto const where = ferry::parse_endpoint(port.address()).value();
  auto const listener =
      ferry::listen_at(ferry::resolve(where, ferry::after(1s)).value().front()).value();
  std::jthread const server([&] {
    pollfd ready{listener.number(), POLLIN, 0};
    ferry::wait_for({&ready, 1}, ferry::after(5s)).value();
    ferry::socket_address from;
    auto const guest = ferry::accept_one(listener.number(), from).value();
    std::string const answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
    ::send(guest.number(), answer.data(), answer.size(), MSG_NOSIGNAL);
    std::this_thread::sleep_for(100ms);
  });
  auto const group = ferry::join(ferry::tcp(port.address(), 1, 2), {.timeout = 3s});
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, error_code::malformed_input) << group.error().message;
  EXPECT_TRUE(mentions(group.error(), port.address()));
}

TEST(tcp_ranks, rank_0_names_the_address_at_which_it_cannot_listen) {
  reserved_port const port;
  auto const where = ferry::parse_endpoint(port.address()).value();
  auto const taken =
      ferry::listen_at(ferry::resolve(where, ferry::after(1s)).value().front()).value();
  auto const group = ferry::join(ferry::tcp(port.address(), 0, 2), {.timeout = 1s});
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, error_code::io);
  EXPECT_TRUE(mentions(group.error(), port.address())) << group.error().message;
}

TEST(tcp_ranks, addresses_that_are_none_are_refused) {
  for (auto const* address : {"", "host", "host:", "host:0", "host:65536", "host:-1", "host:1x",
                              ":4711", "::1:4711", "[]:1"}) {
    auto const group = ferry::join(ferry::tcp(address, 0, 2), {.timeout = 100ms});
    ASSERT_FALSE(group) << address;
    EXPECT_EQ(group.error().code, error_code::invalid_argument) << address;
  }
  for (auto [rank, size] : {std::pair{2, 2}, {-1, 2}, {0, 0}, {0, -3}, {0, 65537}}) {
    auto const group = ferry::join(ferry::tcp("127.0.0.1:4711", rank, size), {.timeout = 100ms});
    ASSERT_FALSE(group) << rank << " of " << size;
    EXPECT_EQ(group.error().code, error_code::invalid_argument);
  }
}

TEST(tcp_ranks, a_name_that_does_not_exist_ends_with_the_deadline) {
  auto const start = clock_type::now();
  auto const group = ferry::join(ferry::tcp("no-such-host.invalid:4711", 1, 2), {.timeout = 300ms});
  ASSERT_FALSE(group);
  EXPECT_TRUE(mentions(group.error(), "no-such-host.invalid")) << group.error().message;
  EXPECT_LT(clock_type::now() - start, 1300ms);
}

TEST(tcp_ranks, a_rank_that_left_is_seen_without_waiting) {
  reserved_port const port;
  std::barrier seen(2);
  on_threads(3, [&](int rank) {
    auto const group = ferry::join(ferry::tcp(port.address(), rank, 3)).value();
    for (int peer = 0; peer < 3; ++peer) EXPECT_EQ(group.look(peer), presence::here);
    group.barrier().value();
    if (rank == 2) return;
    auto const end = clock_type::now() + 2s;
    while (group.look(2) == presence::here && clock_type::now() < end)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(group.look(2), presence::left);
    EXPECT_EQ(group.look(1 - rank), presence::here);
    seen.arrive_and_wait();
    auto const outcome = group.all_gather({});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, error_code::unreachable);
    EXPECT_TRUE(mentions(outcome.error(), "rank 2")) << outcome.error().message;
  });
}

TEST(tcp_ranks, looks_from_several_threads_while_a_collective_runs) {
  reserved_port const port;
  on_threads(3, [&](int rank) {
    auto const group = ferry::join(ferry::tcp(port.address(), rank, 3)).value();
    std::atomic<bool> over = false;
    {
      std::vector<std::jthread> lookers;
      for (int i = 0; i < 2; ++i)
        lookers.emplace_back([&] {
          while (!over) {
            for (int peer = 0; peer < 3; ++peer) EXPECT_EQ(group.look(peer), presence::here);
            std::this_thread::sleep_for(1ms);
          }
        });
      for (int i = 0; i < 50; ++i)
        EXPECT_TRUE(group.all_gather(bytes(static_cast<std::size_t>(1000 * i))));
      over = true;
    }
    group.barrier().value();
  });
}

TEST(tcp_ranks, a_collective_that_times_out_names_who_did_not_come) {
  reserved_port const port;
  std::barrier done(3);
  on_threads(3, [&](int rank) {
    auto const group = ferry::join(ferry::tcp(port.address(), rank, 3), {.timeout = 300ms}).value();
    if (rank != 1) {
      auto const outcome = group.barrier();
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code, error_code::timeout);
      EXPECT_TRUE(mentions(outcome.error(), "rank 1 did not come")) << outcome.error().message;
      EXPECT_EQ(group.barrier().error().code, error_code::invalid_state);
    }
    done.arrive_and_wait();
  });
}

TEST(tcp_ranks, a_rank_that_left_because_of_another_says_so) {
  reserved_port const port;
  std::barrier joined(3);
  std::barrier failed(2);
  on_threads(3, [&](int rank) {
    auto group = std::make_unique<ferry::group>(
        ferry::join(ferry::tcp(port.address(), rank, 3), {.timeout = rank == 0 ? 200ms : 5000ms})
            .value());
    joined.arrive_and_wait();
    if (rank == 0) {
      EXPECT_FALSE(group->barrier());
      group.reset();
      failed.arrive_and_wait();
    } else if (rank == 1) {
      failed.arrive_and_wait();
      EXPECT_TRUE(group->barrier()) << "rank 0 had come, and rank 2 comes now";
      auto const outcome = group->barrier();
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code, error_code::timeout);
      EXPECT_TRUE(mentions(outcome.error(), "rank 0 has left the group: "));
      EXPECT_TRUE(mentions(outcome.error(), "ranks 1, 2 did not come")) << outcome.error().message;
    } else {
      std::this_thread::sleep_for(400ms);
      EXPECT_TRUE(group->barrier());
      EXPECT_FALSE(group->barrier());
    }
  });
}

/// Variables of the environment, put back at the end.
class scoped_environment {
 public:
  explicit scoped_environment(std::vector<std::pair<char const*, char const*>> const& values) {
    for (auto const* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
    for (auto const& [name, value] : values) ::setenv(name, value, 1);
  }
  ~scoped_environment() {
    for (auto const* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
  }
};

TEST(tcp_environment, is_set_when_all_four_variables_are) {
  {
    scoped_environment const some({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "x"}});
    EXPECT_FALSE(ferry::tcp_environment_is_set());
    auto const group = ferry::join(ferry::tcp_from_environment());
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, error_code::invalid_argument);
    EXPECT_TRUE(mentions(group.error(), "MASTER_PORT"));
  }
  scoped_environment const all(
      {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}});
  EXPECT_TRUE(ferry::tcp_environment_is_set());
  EXPECT_EQ(ferry::join(ferry::tcp_from_environment()).value().size(), 1);
}

TEST(tcp_environment, refuses_what_is_no_number_in_range_and_an_empty_secret) {
  using values = std::vector<std::pair<char const*, char const*>>;
  for (auto const& set :
       {values{{"RANK", "x"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "4711"}},
        values{{"RANK", ""}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "4711"}},
        values{{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "4711"}},
        values{{"RANK", "0"}, {"WORLD_SIZE", "2x"}, {"MASTER_PORT", "4711"}},
        values{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}},
        values{
            {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "4711"}, {"FERRY_SECRET", ""}}}) {
    scoped_environment const environment(set);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    auto const group = ferry::join(ferry::tcp_from_environment(), {.timeout = 100ms});
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, error_code::invalid_argument) << group.error().message;
  }
}

}  // namespace
