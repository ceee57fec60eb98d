// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/group.hpp>

#include "group/handover.hpp"
#include "multiprocess/machine_state.hpp"
#include "multiprocess/ranks.hpp"

#include <gtest/gtest.h>

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

namespace {

using namespace std::chrono_literals;
using ferry::error_code;
using ferry::reach;
using ferry::test::run_ranks;

ferry::group joined(int rank, int size, std::string const& address,
                    std::chrono::milliseconds timeout = 10s) {
  return ferry::join(ferry::tcp(address, rank, size), {.timeout = timeout}).value();
}

void become(uid_t user) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 ||
      ::setresuid(user, user, user) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot become another user");
}

constexpr uid_t nobody = 65534;
constexpr uid_t somebody = 65533;
bool root() {
  return ::geteuid() == 0;
}

std::byte mark(int writer, int owner) {
  return std::byte(1 + writer * 16 + owner);
}

/// Every rank writes its mark into every window, then finds everybody's in its own.
void write_everywhere(ferry::group const& group, std::vector<std::size_t> const& sizes) {
  int const me = group.rank();
  auto const shared = group.share_window(sizes[static_cast<std::size_t>(me)]).value();
  ASSERT_EQ(shared.bytes, sizes);
  for (int peer = 0; peer < group.size(); ++peer) {
    auto const at = static_cast<std::size_t>(peer);
    EXPECT_EQ(shared.reach_of(peer), peer == me ? reach::self : reach::mapped) << shared.why[at];
    EXPECT_EQ(shared.why[at], "");
    auto const w = shared.windows[at].bytes();
    ASSERT_EQ(w.size(), sizes[at]);
    if (w.empty()) continue;
    EXPECT_EQ(w[static_cast<std::size_t>(me)], std::byte{0}) << "zeroed before any peer writes";
    w[static_cast<std::size_t>(me)] = mark(me, peer);
    w[w.size() - 1 - static_cast<std::size_t>(me)] = mark(me, peer);
  }
  group.barrier().value();
  auto const own = shared.windows[static_cast<std::size_t>(me)].bytes();
  for (int peer = 0; peer < group.size() && !own.empty(); ++peer) {
    auto const at = static_cast<std::size_t>(peer);
    EXPECT_EQ(own[at], mark(peer, me));
    EXPECT_EQ(own[own.size() - 1 - at], mark(peer, me));
  }
  group.barrier().value();
}

TEST(share_window, every_rank_reads_and_writes_every_window) {
  for (int size : {1, 2, 3, 5, 9}) {
    auto const report = run_ranks(size, [&](int rank, std::string const& address) {
      std::vector<std::size_t> sizes;
      for (int r = 0; r < size; ++r) sizes.push_back(static_cast<std::size_t>(r * 5000 + 64));
      write_everywhere(joined(rank, size, address), sizes);
    });
    EXPECT_TRUE(report.ok()) << report.describe();
  }
}

TEST(share_window, some_windows_have_no_bytes) {
  auto const report = run_ranks(3, [](int rank, std::string const& address) {
    auto const group = joined(rank, 3, address);
    write_everywhere(group, {0, 64, 0});
    write_everywhere(group, {0, 0, 0});
    write_everywhere(group, {100, 0, 4096});
  });
  EXPECT_TRUE(report.ok()) << report.describe();
}

TEST(share_window, ordinary_users_share) {
  auto const report = run_ranks(3, [](int rank, std::string const& address) {
    if (root()) become(nobody);
    write_everywhere(joined(rank, 3, address), {64, 5000, 64});
  });
  EXPECT_TRUE(report.ok()) << report.describe();
}

TEST(share_window, root_shares_with_an_ordinary_user) {
  if (!root()) GTEST_SKIP() << "only root can start ranks of several users";
  for (int ordinary : {0, 1}) {
    auto const report = run_ranks(2, [&](int rank, std::string const& address) {
      if (rank == ordinary) become(nobody);
      write_everywhere(joined(rank, 2, address), {64, 64});
    });
    EXPECT_TRUE(report.ok()) << report.describe();
  }
}

TEST(share_window, two_ordinary_users_do_not_share) {
  if (!root()) GTEST_SKIP() << "only root can start ranks of several users";
  auto const report = run_ranks(3, [](int rank, std::string const& address) {
    become(rank == 1 ? somebody : nobody);
    auto const shared = joined(rank, 3, address).share_window(64);
    ASSERT_FALSE(shared);
    EXPECT_EQ(shared.error().code, error_code::unsupported);
    EXPECT_NE(shared.error().message.find("65533"), std::string::npos) << shared.error().message;
    EXPECT_NE(shared.error().message.find("65534"), std::string::npos) << shared.error().message;
  });
  EXPECT_TRUE(report.ok()) << report.describe();
}

TEST(share_window, another_network_namespace_is_a_network_away) {
  if (!root()) GTEST_SKIP() << "only root can make a network namespace";
  auto const report = run_ranks(3, [](int rank, std::string const& address) {
    auto const group = joined(rank, 3, address);
    // The connections of the group stay in the namespace in which they were made.
    if (rank == 1 && ::unshare(CLONE_NEWNET) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot leave the network namespace");
    auto const shared = group.share_window(64).value();
    EXPECT_EQ(group.ranks_on_this_machine(), 3);
    for (int peer = 0; peer < 3; ++peer) {
      auto const at = static_cast<std::size_t>(peer);
      bool const apart = peer != rank && (peer == 1 || rank == 1);
      EXPECT_EQ(shared.reach_of(peer),
                peer == rank ? reach::self : (apart ? reach::network : reach::mapped));
      EXPECT_EQ(shared.windows[at].size(), apart ? 0u : 64u);
      EXPECT_EQ(shared.bytes[at], 64u);
      EXPECT_EQ(shared.why[at].find("network namespace") != std::string::npos, apart);
    }
  });
  EXPECT_TRUE(report.ok()) << report.describe();
}

TEST(share_window, all_fail_when_one_has_not_the_memory_and_may_try_again) {
  auto const report = run_ranks(3, [](int rank, std::string const& address) {
    auto const group = joined(rank, 3, address);
    auto const shared = group.share_window(rank == 1 ? std::size_t{1} << 60 : 64);
    ASSERT_FALSE(shared);
    EXPECT_EQ(shared.error().code, error_code::out_of_memory);
    write_everywhere(group, {64, 64, 64});
  });
  EXPECT_TRUE(report.ok()) << report.describe();
}

TEST(share_window, all_fail_when_one_has_no_descriptors_left) {
  for (int room = 0; room < 5; ++room) {
    auto const report = run_ranks(3, [&](int rank, std::string const& address) {
      auto const group = joined(rank, 3, address, 5s);
      if (rank == 1) {
        // Room for its own window and sockets, not for the windows of the others.
        ferry::descriptor const next{::dup(0)};
        rlimit const few{static_cast<rlim_t>(next.number() + room), 4096};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
      }
      auto const start = std::chrono::steady_clock::now();
      auto const shared = group.share_window(64);
      ASSERT_FALSE(shared);
      EXPECT_NE(shared.error().code, error_code::timeout) << shared.error().message;
      EXPECT_TRUE(rank != 1 || shared.error().code == error_code::io) << shared.error().message;
      EXPECT_TRUE(group.usable());
      EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
    });
    EXPECT_TRUE(report.ok()) << report.describe();
  }
}

/// A stranger's connection to a handover socket.
ferry::descriptor visit(std::string const& name) {
  ferry::descriptor line{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path + 1, name.data(), name.size());
  auto const length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(line.number(), reinterpret_cast<sockaddr*>(&at), length) != 0) line.close();
  return line;
}

TEST(share_window, a_stranger_gets_no_descriptor) {
  for (bool as_somebody : {false, true}) {
    if (as_somebody && !root()) continue;
    ferry::test::rank_processes ranks(2, [](int rank, std::string const& address) {
      auto const group = joined(rank, 2, address);
      // Rank 0 listens long before rank 1 comes.
      if (rank == 1) std::this_thread::sleep_for(500ms);
      write_everywhere(group, {64, 64});
    });
    auto const strange = run_ranks(1, [&](int, std::string const&) {
      if (as_somebody) become(somebody);
      std::vector<ferry::descriptor> lines;
      for (auto const end = std::chrono::steady_clock::now() + 3s;
           lines.empty() && std::chrono::steady_clock::now() < end;)
        for (auto const& name : ferry::test::handover_sockets())
          for (int kind = 0; kind < 3; ++kind) {
            auto line = visit(name);
            if (!line) continue;
            ferry::handover_note const guess{.from = 1, .to = 0, .key = {1, 2}};
            if (kind == 0) ferry::hand_over(line.number(), guess, -1).value();
            if (kind == 1) ferry::hand_over(line.number(), guess, 0).value();
            if (kind == 2) ::send(line.number(), "x", 1, MSG_NOSIGNAL);
            lines.push_back(std::move(line));
          }
      ASSERT_FALSE(lines.empty()) << "no socket to visit";
      for (auto const& line : lines) {
        pollfd ready{line.number(), POLLIN, 0};
        ASSERT_EQ(::poll(&ready, 1, 5000), 1);
        auto const got = ferry::take_over(line.number());
        ASSERT_FALSE(got) << "a stranger was answered";
        EXPECT_EQ(got.error().code, error_code::unreachable) << got.error().message;
      }
    });
    EXPECT_TRUE(strange.ok()) << strange.describe();
    auto const report = ranks.wait(10s);
    EXPECT_TRUE(report.ok()) << report.describe();
  }
}

TEST(share_window, a_rank_killed_before_it_shares_is_named) {
  for (int victim : {0, 1, 2}) {
    auto const report = run_ranks(3, [&](int rank, std::string const& address) {
      auto const group = joined(rank, 3, address);
      if (rank == victim) {
        std::this_thread::sleep_for(100ms);
        ::raise(SIGKILL);
      }
      auto const start = std::chrono::steady_clock::now();
      auto const shared = group.share_window(64);
      ASSERT_FALSE(shared);
      EXPECT_EQ(shared.error().code, error_code::unreachable) << shared.error().message;
      EXPECT_NE(shared.error().message.find("rank " + std::to_string(victim) + " is gone"),
                std::string::npos)
          << shared.error().message;
      EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
    });
    for (int rank = 0; rank < 3; ++rank) {
      auto const& end = report.ranks[static_cast<std::size_t>(rank)];
      EXPECT_TRUE(rank == victim ? end.signal == SIGKILL : end.ok()) << report.describe();
    }
  }
}

TEST(share_window, a_rank_killed_at_any_moment_holds_nobody_up) {
  for (int turn = 0; turn < 16; ++turn) {
    int const victim = turn % 4;
    ferry::test::rank_processes ranks(4, [&](int rank, std::string const& address) {
      auto const start = std::chrono::steady_clock::now();
      auto const blamed = [&](ferry::error const& e) {
        // A rank 0 that is killed before it listens did not come; nobody can tell more.
        EXPECT_TRUE(e.code == error_code::unreachable || e.code == error_code::timeout)
            << e.message;
        // So it is for a rank that comes after the others have failed and gone.
        EXPECT_TRUE(e.message.find("rank " + std::to_string(victim)) != std::string::npos ||
                    e.message.find("rank 0 did not come") != std::string::npos)
            << e.message;
        EXPECT_LT(std::chrono::steady_clock::now() - start, 2500ms);
      };
      auto const group = ferry::join(ferry::tcp(address, rank, 4), {.timeout = 1000ms});
      if (!group) return blamed(group.error());
      for (int i = 0; i < 1000; ++i)
        if (auto const shared = group->share_window(4096); !shared) return blamed(shared.error());
      ADD_FAILURE() << "rank " << victim << " should have died";
    });
    std::this_thread::sleep_for(std::chrono::microseconds{turn * turn * 80});
    ranks.send_signal(victim, SIGKILL);
    auto const report = ranks.wait(10s);
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_TRUE(rank == victim || report.ranks[static_cast<std::size_t>(rank)].ok())
          << "turn " << turn << ", victim " << victim << "\n"
          << report.describe();
  }
}

TEST(share_window, nothing_is_left_behind) {
  auto const before = ferry::test::shared_memory_files();
  auto const report = run_ranks(3, [](int rank, std::string const& address) {
    auto const group = joined(rank, 3, address);
    auto const open = ferry::test::open_descriptors();
    for (int i = 0; i < 5; ++i) write_everywhere(group, {64, 0, 100});
    EXPECT_EQ(ferry::test::open_descriptors(), open);
  });
  EXPECT_TRUE(report.ok()) << report.describe();

  ferry::test::rank_processes ranks(3, [](int rank, std::string const& address) {
    auto const group = joined(rank, 3, address);
    auto const shared = group.share_window(1 << 20).value();
    if (rank == 0) std::this_thread::sleep_for(1s);
    static_cast<void>(group.share_window(1 << 20));
  });
  std::this_thread::sleep_for(300ms);
  EXPECT_FALSE(ferry::test::handover_sockets().empty());
  EXPECT_EQ(ferry::test::shared_memory_files(), before);
  for (int rank = 0; rank < 3; ++rank) ranks.send_signal(rank, SIGKILL);
  ranks.wait(5s);
  EXPECT_EQ(ferry::test::shared_memory_files(), before);
  EXPECT_TRUE(ferry::test::handover_sockets().empty());
}

}  // namespace
