// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/link.hpp"

#include "group/rendezvous.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <memory>
#include <thread>
#include <utility>

namespace {

using namespace ferry;
using namespace std::chrono_literals;

/// Two ends of one line. The first does not know yet who the second is.
std::pair<std::unique_ptr<ferry::link>, std::unique_ptr<ferry::link>> stranger_and_friend() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return {};
  return {std::make_unique<ferry::link>(descriptor{ends[0]}, max_stranger_bytes),
          std::make_unique<ferry::link>(descriptor{ends[1]})};
}

void say_two_things_at_once(ferry::link& from) {
  from.queue(frame_kind::welcome, bytes(32));
  from.queue(frame_kind::table, bytes(10'000));
  from.write();
  from.leave({});  // with a goodbye
}

TEST(link, takes_a_long_frame_from_whom_it_has_come_to_trust) {
  auto const [here, there] = stranger_and_friend();
  say_two_things_at_once(*there);
  here->read();
  auto const first = here->next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, frame_kind::welcome);
  here->trust();
  auto const second = here->next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->kind, frame_kind::table);
  EXPECT_EQ(second->payload.size(), 10'000u);
  EXPECT_FALSE(here->next());
  EXPECT_EQ(here->look(), presence::left) << "the goodbye was lost";
}

TEST(link, takes_none_from_a_stranger_however_many_short_ones_came_before) {
  auto const [here, there] = stranger_and_friend();
  say_two_things_at_once(*there);
  here->read();
  ASSERT_TRUE(here->next());
  EXPECT_EQ(here->peer(), presence::here);
  EXPECT_FALSE(here->next());
  EXPECT_TRUE(here->breached());
}

TEST(link, sees_no_silence_on_a_line_that_answers) {
  auto const listener = listen_at(resolve({"127.0.0.1", 0}, after(10s)).value().front()).value();
  auto const ours = connect_to(local_address(listener.number()).value(), after(10s)).value();
  EXPECT_FALSE(is_silent(ours.number()));
  // Nobody reads, and what is under way is more than the buffers hold; but it is acknowledged.
  bytes const much(std::size_t{1} << 20);
  while (::send(ours.number(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  EXPECT_FALSE(is_silent(ours.number()));
}

// Where rank 0 could be: first a server that takes connections and says nothing, then rank 0.
std::vector<socket_address> candidates;
result<std::vector<socket_address>> find_candidates(endpoint const&, deadline) {
  return candidates;
}

TEST(rendezvous, finds_rank_0_behind_a_silent_address) {
  auto const any_port = resolve({"127.0.0.1", 0}, after(10s)).value().front();
  descriptor const silent = listen_at(any_port).value();
  rendezvous at_0{.where = {"127.0.0.1", 1}, .rank = 0, .size = 2};
  at_0.listener = listen_at(any_port).value();
  candidates = {local_address(silent.number()).value(),
                local_address(at_0.listener.number()).value()};
  std::jthread const host([&] {
    auto const met = meet(std::move(at_0), 30s);
    EXPECT_TRUE(met) << met.error().message;
  });
  rendezvous at_1{.where = {"a name of two addresses", 1}, .rank = 1, .size = 2};
  at_1.find = find_candidates;
  auto const met = meet(std::move(at_1), 10s);
  EXPECT_TRUE(met) << met.error().message;
}

}  // namespace
