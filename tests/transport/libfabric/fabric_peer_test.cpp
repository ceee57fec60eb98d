// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// When signals are sent, and in which order words are stored, on a provider that completes
// operations in the order that a test wants.

#include "transport/libfabric/fabric_peer.hpp"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <string>
#include <vector>

namespace ferry::test {
namespace {

class played_provider final : public fabric_calls {
 public:
  result<fi_addr_t> insert(std::span<std::byte const>) override { return fi_addr_t{1}; }
  ssize_t write(local_memory const&, std::byte const*, std::size_t, fi_addr_t, fi_rma_iov there,
                void* context) override {
    return post("put at " + std::to_string(there.addr), context);
  }
  ssize_t read(local_memory const&, std::byte*, std::size_t, fi_addr_t, std::uint64_t,
               std::uint64_t, void* context) override {
    return post("fetch", context);
  }
  ssize_t send(local_memory const&, std::byte const* from, std::size_t, fi_addr_t,
               void* context) override {
    signal_message m;
    std::memcpy(&m, from, sizeof m);
    return post("signal " + std::to_string(m.value) + " as " + std::to_string(m.number), context);
  }
  std::string text_of(ssize_t code) const override { return "code " + std::to_string(code); }
  std::string const& name() const override { return name_; }

  void complete(std::size_t i) { static_cast<fabric_operation*>(contexts[i])->complete = true; }

  std::vector<std::string> asked;
  std::vector<void*> contexts;
  ssize_t answer = 0;

 private:
  ssize_t post(std::string what, void* context) {
    if (answer != 0) return answer;
    asked.push_back(std::move(what));
    contexts.push_back(context);
    return 0;
  }
  std::string name_ = "played";
};

class one_fabric_peer : public ::testing::Test {
 protected:
  using asked = std::vector<std::string>;
  static constexpr std::size_t entries = 4, put_bytes = 64;

  one_fabric_peer() : staging_(entries * put_bytes) {
    libfabric_options o;
    o.queue_entries = entries;
    o.put_bytes = put_bytes;
    o.connect_timeout = std::chrono::milliseconds{1};
    peer_.make(1, 0, provider_, o, {staging_, nullptr});
    connect();
  }
  void connect() {
    std::byte const address[8]{};
    peer_.connect(pack_address({.bytes = 4096}, {pack_endpoint({1000, 7}, address)})).value();
  }
  bool put(std::size_t offset) {
    std::byte const row[8]{};
    return peer_.put(offset, row, sizeof row);
  }
  void complete(std::size_t i) {
    provider_.complete(i);
    peer_.advance();
  }

  played_provider provider_;
  std::vector<std::byte> staging_;
  fabric_peer peer_;
};

TEST_F(one_fabric_peer, sends_a_covering_signal_when_all_earlier_puts_are_delivered) {
  ASSERT_TRUE(put(0));
  ASSERT_TRUE(put(8));
  peer_.signal(16, 5, true);
  ASSERT_TRUE(put(24));
  asked const before = {"put at 1000", "put at 1008", "put at 1024"};
  EXPECT_EQ(provider_.asked, before);
  complete(1);
  EXPECT_EQ(provider_.asked, before) << "the first is not delivered";
  complete(2);
  EXPECT_EQ(provider_.asked, before) << "a later one does not matter";
  complete(0);
  EXPECT_EQ(provider_.asked, (asked{"put at 1000", "put at 1008", "put at 1024", "signal 5 as 0"}));
  EXPECT_EQ(peer_.done(), 2u);
  complete(3);
  EXPECT_EQ(peer_.done(), 4u);
}

TEST_F(one_fabric_peer, does_not_hold_a_signal_that_covers_nothing) {
  ASSERT_TRUE(put(0));
  peer_.signal(8, 1, true);
  peer_.signal(16, 2, false);
  EXPECT_EQ(provider_.asked, (asked{"put at 1000", "signal 2 as 0"}));
  complete(0);
  EXPECT_EQ(provider_.asked, (asked{"put at 1000", "signal 2 as 0", "signal 1 as 1"}));
}

TEST_F(one_fabric_peer, does_not_send_what_would_cover_a_put_that_failed) {
  ASSERT_TRUE(put(0));
  peer_.signal(8, 1, true);
  peer_.fail_with(FI_ECONNRESET, "reset");
  complete(0);
  EXPECT_EQ(provider_.asked, asked{"put at 1000"});
  ASSERT_TRUE(peer_.failure());
  EXPECT_EQ(peer_.failure()->code, error_code::unreachable);
  EXPECT_NE(peer_.failure()->message.find("rank 1"), std::string::npos);
}

TEST_F(one_fabric_peer, never_has_more_under_way_than_its_queue_holds) {
  for (std::size_t i = 0; i < entries; ++i) {
    ASSERT_TRUE(peer_.has_room());
    ASSERT_TRUE(put(8 * i));
  }
  EXPECT_FALSE(peer_.has_room());
  for (std::size_t i = 1; i < entries; ++i) complete(i);
  EXPECT_FALSE(peer_.has_room()) << "places are used in order";
  complete(0);
  EXPECT_TRUE(peer_.has_room());
}

TEST_F(one_fabric_peer, sends_later_what_the_provider_did_not_take) {
  provider_.answer = -FI_EAGAIN;
  EXPECT_FALSE(put(0));
  peer_.signal(8, 1, true);
  EXPECT_TRUE(provider_.asked.empty());
  EXPECT_FALSE(peer_.failure());
  EXPECT_TRUE(peer_.refused());
  provider_.answer = 0;
  peer_.advance();
  EXPECT_EQ(provider_.asked, asked{"signal 1 as 0"});
  EXPECT_FALSE(peer_.refused());
}

TEST_F(one_fabric_peer, fails_with_the_providers_words) {
  provider_.answer = -FI_EINVAL;
  EXPECT_FALSE(put(0));
  ASSERT_TRUE(peer_.failure());
  EXPECT_EQ(peer_.failure()->code, error_code::transport);
  EXPECT_NE(peer_.failure()->message.find("code -22"), std::string::npos)
      << peer_.failure()->message;
}

TEST_F(one_fabric_peer, settles_when_all_that_was_put_before_is_delivered) {
  EXPECT_TRUE(peer_.settled());
  ASSERT_TRUE(put(0));
  peer_.settle();
  ASSERT_TRUE(put(8));
  EXPECT_FALSE(peer_.settled());
  complete(1);
  EXPECT_FALSE(peer_.settled());
  complete(0);
  EXPECT_TRUE(peer_.settled());
}

TEST_F(one_fabric_peer, forgets_held_signals_when_it_connects_anew) {
  ASSERT_TRUE(put(0));
  peer_.signal(8, 1, true);
  connect();
  complete(0);
  EXPECT_EQ(provider_.asked, asked{"put at 1000"});
  EXPECT_EQ(peer_.done(), 2u);
}

signal_message message(std::uint64_t stream, std::uint64_t number) {
  return {stream, number, 0, 10 * stream + number, 0};
}
std::vector<std::uint64_t> values(std::vector<signal_message> const& due) {
  std::vector<std::uint64_t> made;
  for (signal_message const& m : due) made.push_back(m.value);
  return made;
}

TEST(signal_order, stores_words_in_the_order_of_their_numbers) {
  using v = std::vector<std::uint64_t>;
  signal_order order;
  EXPECT_EQ(values(order.take(message(3, 1))), v{});
  EXPECT_EQ(values(order.take(message(3, 2))), v{});
  EXPECT_EQ(values(order.take(message(3, 0))), (v{30, 31, 32}));
  EXPECT_EQ(values(order.take(message(3, 1))), v{}) << "once is enough";
  EXPECT_EQ(values(order.take(message(3, 3))), v{33});
}

TEST(signal_order, begins_again_with_a_new_stream_and_forgets_the_old_one) {
  using v = std::vector<std::uint64_t>;
  signal_order order;
  EXPECT_EQ(values(order.take(message(3, 0))), v{30});
  EXPECT_EQ(values(order.take(message(3, 2))), v{});
  EXPECT_EQ(values(order.take(message(4, 0))), v{40});
  EXPECT_EQ(values(order.take(message(3, 1))), v{});
  EXPECT_EQ(values(order.take(message(4, 1))), v{41});
}

}  // namespace
}  // namespace ferry::test
