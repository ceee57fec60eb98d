// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/outbox.hpp>

#include <ferry/memory/window.hpp>
#include <ferry/transport/loopback.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

namespace {

using namespace ferry;
using namespace std::chrono_literals;

/// A transport that only writes down what it is asked for.
struct noting_transport final : transport {
  struct asked {
    char what;  ///< 'p' put, 's' signal, 'f' flush
    int rank;
    std::size_t offset;
    std::vector<std::byte> bytes;
  };
  struct notes {
    std::vector<asked> calls;
    int refusals = 0;      ///< posts to answer with try_again
    bool full = false;     ///< all of them
    bool failing = false;  ///< progress fails
    bool flush_fails = false;
    std::size_t most = 1000;
    int alive = 1;
  };
  explicit noting_transport(notes& n) : notes_(n) {}
  ~noting_transport() override { notes_.alive = 0; }

  abilities what_it_can() const override { return {.max_put_bytes = notes_.most}; }
  result<std::vector<std::byte>> expose(std::span<std::byte>) override { return bytes{}; }
  result<void> connect(int, std::span<std::byte const>) override { return {}; }
  result<post> put(remote_region to, std::byte const* from) override {
    if (refused()) return post::try_again;
    notes_.calls.push_back({'p', to.rank, to.offset, {from, from + to.bytes}});
    return post::posted;
  }
  result<post> signal(remote_region to, std::uint64_t value, strength) override {
    if (refused()) return post::try_again;
    std::vector<std::byte> word(8);
    std::memcpy(word.data(), &value, 8);
    notes_.calls.push_back({'s', to.rank, to.offset, word});
    return post::posted;
  }
  result<void> progress() override {
    if (notes_.failing) return error{error_code::transport, "it broke"};
    return {};
  }
  result<void> flush(int rank, std::chrono::milliseconds) override {
    notes_.calls.push_back({'f', rank, 0, {}});
    if (notes_.flush_fails) return error{error_code::timeout, "rank 1 is slow"};
    return {};
  }
  bool refused() {
    if (notes_.full) return true;
    if (notes_.refusals == 0) return false;
    --notes_.refusals;
    return true;
  }
  using bytes = std::vector<std::byte>;
  notes& notes_;
};

std::vector<std::byte> counting(std::size_t n) {
  std::vector<std::byte> made(n);
  for (std::size_t i = 0; i < n; ++i) made[i] = static_cast<std::byte>(i * 3 + 1);
  return made;
}
std::string calls_of(noting_transport::notes const& n) {
  std::string text;
  for (auto const& c : n.calls) text += c.what;
  return text;
}

TEST(outbox, copies_a_row_so_that_the_source_is_free_at_once) {
  window const own = window::plain(4096).value(), peer = window::plain(4096).value();
  std::vector<std::byte> row(100);
  {
    outbox out(make_loopback_transport(0, {{own.bytes()}, {peer.bytes()}},
                                       {.delay = 1024, .longest_delay = 3ms}),
               2, 1 << 12, 20s);
    for (std::size_t i = 0; i < 20; ++i) {
      std::fill(row.begin(), row.end(), static_cast<std::byte>(i + 1));
      out.put(1, 100 * i, row.data(), row.size());
    }
    EXPECT_FALSE(out.first_error());
  }
  for (std::size_t i = 0; i < 2000; ++i)
    ASSERT_EQ(peer.data()[i], static_cast<std::byte>(i / 100 + 1)) << "byte " << i;
}

TEST(outbox, splits_rows_longer_than_one_put) {
  noting_transport::notes n;
  n.most = 48;
  outbox out(std::make_unique<noting_transport>(n), 2, 4096, 1s);
  auto const row = counting(100);
  out.put(1, 500, row.data(), row.size());
  ASSERT_EQ(calls_of(n), "ppp");
  std::vector<std::byte> together;
  for (auto const& c : n.calls) {
    EXPECT_EQ(c.offset, 500 + together.size());
    together.insert(together.end(), c.bytes.begin(), c.bytes.end());
  }
  EXPECT_EQ(together, row);
}

TEST(outbox, sends_rows_longer_than_its_staging_memory) {
  noting_transport::notes n;
  outbox out(std::make_unique<noting_transport>(n), 2, 64, 1s);
  auto const row = counting(150);
  out.put(1, 0, row.data(), row.size());
  // Between the parts both ranks are flushed: staging is used again.
  EXPECT_EQ(calls_of(n), "pffpffp");
  std::vector<std::byte> together;
  for (auto const& c : n.calls) together.insert(together.end(), c.bytes.begin(), c.bytes.end());
  EXPECT_EQ(together, row);
}

TEST(outbox, posts_nothing_for_no_bytes) {
  noting_transport::notes n;
  outbox out(std::make_unique<noting_transport>(n), 2, 64, 1s);
  out.put(1, 0, nullptr, 0);
  EXPECT_EQ(calls_of(n), "");
}

TEST(outbox, asks_again_until_there_is_room) {
  noting_transport::notes n;
  n.refusals = 5;
  outbox out(std::make_unique<noting_transport>(n), 2, 64, 10s);
  out.signal(1, 8, 42, strength::all_earlier);
  EXPECT_EQ(calls_of(n), "s");
  EXPECT_FALSE(out.first_error());
}

TEST(outbox, gives_up_on_a_queue_that_stays_full) {
  noting_transport::notes n;
  n.full = true;
  outbox out(std::make_unique<noting_transport>(n), 2, 64, 50ms);
  out.signal(1, 8, 42, strength::all_earlier);
  auto const e = out.first_error();
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, error_code::timeout);
  EXPECT_NE(e->message.find("rank 1"), std::string::npos) << e->message;
  EXPECT_NE(e->message.find("50 ms"), std::string::npos) << e->message;
}

TEST(outbox, finds_errors_of_operations_that_were_posted_before) {
  noting_transport::notes n;
  outbox out(std::make_unique<noting_transport>(n), 2, 64, 1s);
  EXPECT_FALSE(out.error_so_far());
  n.failing = true;
  ASSERT_TRUE(out.error_so_far());
  n.failing = false;
  ASSERT_TRUE(out.first_error()) << "the first error stays";
  EXPECT_EQ(out.first_error()->code, error_code::transport);
  std::byte const row[8]{};
  out.put(1, 0, row, 8);
  out.signal(1, 0, 1, strength::this_put);
  EXPECT_EQ(calls_of(n), "") << "nothing goes out after an error";
}

TEST(outbox, keeps_the_error_of_a_flush) {
  noting_transport::notes n;
  n.flush_fails = true;
  outbox out(std::make_unique<noting_transport>(n), 2, 64, 1s);
  auto const row = counting(100);
  out.put(1, 0, row.data(), row.size());
  ASSERT_TRUE(out.first_error());
  EXPECT_EQ(out.first_error()->message, "rank 1 is slow");
}

TEST(outbox, waits_at_its_end_for_what_was_posted) {
  noting_transport::notes n;
  { outbox out(std::make_unique<noting_transport>(n), 3, 64, 1s); }
  EXPECT_EQ(calls_of(n), "fff");
}

TEST(outbox, lets_nothing_out_once_it_was_given_up) {
  noting_transport::notes n;
  {
    outbox out(std::make_unique<noting_transport>(n), 2, 64, 1s);
    out.give_up({error_code::timeout, "rank 1 did not come"});
    EXPECT_EQ(n.alive, 0) << "what still waited in the transport went with it";
    std::byte const row[8]{};
    out.put(1, 0, row, 8);
    out.signal(1, 0, 1, strength::this_put);
    ASSERT_TRUE(out.first_error());
    EXPECT_EQ(out.first_error()->message, "rank 1 did not come");
  }
  EXPECT_EQ(calls_of(n), "");
}

TEST(outbox, takes_rows_from_several_threads) {
  window const own = window::plain(1 << 16).value(), peer = window::plain(1 << 16).value();
  {
    outbox out(make_loopback_transport(0, {{own.bytes()}, {peer.bytes()}},
                                       {.try_again = 100, .queue_depth = 16}),
               2, 3000, 20s);
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < 3; ++thread)
      threads.emplace_back([&, thread] {
        std::vector<std::byte> row(200);
        for (std::size_t i = 0; i < 50; ++i) {
          std::fill(row.begin(), row.end(), static_cast<std::byte>(1 + thread * 50 + i));
          out.put(1, (thread * 50 + i) * row.size(), row.data(), row.size());
        }
      });
    for (std::thread& t : threads) t.join();
    ASSERT_FALSE(out.first_error());
  }
  for (std::size_t i = 0; i < 150 * 200; ++i)
    ASSERT_EQ(peer.data()[i], static_cast<std::byte>(1 + i / 200)) << "byte " << i;
}

}  // namespace
