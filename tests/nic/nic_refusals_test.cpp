// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Every field of an entry, a doorbell and a record is looked at by the emulated NIC: each of these
// has one of them wrong, and is refused by its name.

#include "nic/direct_queue.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace ferry::test {
namespace {

using device_verbs::big;

/// What is wrong: bytes of the first of two entries, and how the NIC calls it.
struct wrong_byte {
  char const* field;
  verb what;
  std::size_t offset;
  int flip;  ///< bits that are turned over
  refusal wanted;
  nic_status status = nic_status::local_operation;
};

template <class Format>
void expect_refusal(direct_queue<Format>& q, refusal wanted, nic_status status) {
  q.finish();
  ASSERT_EQ(q.nic.refusals().size(), 1u);
  EXPECT_EQ(q.nic.refusals()[0].why, wanted) << to_string(q.nic.refusals()[0].why);
  EXPECT_EQ(q.nic.refusals()[0].queue, q.queue.pair.number);
  EXPECT_EQ(q.queue.status(), status);
}

/// Two entries, the first of them wrong, shown by a right doorbell.
template <class Format>
void post_wrong(nic_vendor vendor, wrong_byte const& w) {
  SCOPED_TRACE(std::string(device_verbs::to_string(vendor)) + ": " + w.field);
  direct_queue<Format> q(vendor, {}, false);
  work sample = w.what == verb::write         ? q.write_of(0, 0, 8)
                : w.what == verb::inline_word ? q.word_of(0, 1)
                                              : q.add_of(0, 1);
  if (w.what == verb::write_with_immediate) {
    sample = q.write_of(0, 0, 8);
    sample.what = w.what;
  }
  std::uint32_t first = 0;
  ASSERT_TRUE(q.queue.try_reserve(2, first));
  q.queue.write(first, sample);
  q.queue.write(first + 1, q.word_of(8, 1));
  q.queue.pair.entries[w.offset] ^= static_cast<std::byte>(w.flip);
  device_verbs::host_patience patience(std::chrono::seconds(5));
  ASSERT_TRUE(q.queue.publish(first, 2, patience));
  expect_refusal(q, w.wanted, w.status);
}

TEST(nic_refusals, looks_at_every_field_of_an_mlx5_entry) {
  constexpr auto prot = nic_status::local_protection, remote = nic_status::remote_access;
  for (wrong_byte const& w : std::initializer_list<wrong_byte>{
           {"opcode modifier", verb::write, 0, 0x01, refusal::wrong_opcode},
           {"index, high", verb::write, 1, 0x80, refusal::wrong_index},
           {"index, low", verb::write, 2, 0x01, refusal::wrong_index},
           {"opcode", verb::write, 3, 0x02, refusal::wrong_opcode},
           {"queue number, high", verb::write, 4, 0x01, refusal::wrong_queue},
           {"queue number, middle", verb::write, 5, 0x01, refusal::wrong_queue},
           {"queue number, low", verb::write, 6, 0x01, refusal::wrong_queue},
           {"units", verb::write, 7, 0x07, refusal::wrong_size},
           {"units of an atomic", verb::fetch_add, 7, 0x07, refusal::wrong_size},
           {"signature", verb::write, 8, 0x01, refusal::reserved_not_zero},
           {"stream, high", verb::write, 9, 0x01, refusal::reserved_not_zero},
           {"stream, low", verb::write, 10, 0x01, refusal::reserved_not_zero},
           {"solicited", verb::write, 11, 0x02, refusal::wrong_flags},
           {"another fence", verb::write, 11, 0x20, refusal::wrong_flags},
           {"immediate of a write", verb::write, 12, 0x01, refusal::reserved_not_zero},
           {"remote address", verb::write, 17, 0x01, refusal::outside_remote_memory, remote},
           {"remote key", verb::write, 27, 0x01, refusal::wrong_remote_key, remote},
           {"remote reserved", verb::write, 31, 0x01, refusal::reserved_not_zero},
           {"bytes: none", verb::write, 35, 0x08, refusal::wrong_size},
           {"bytes: too many", verb::write, 33, 0x40, refusal::outside_local_memory, prot},
           {"local key", verb::write, 39, 0x01, refusal::wrong_local_key, prot},
           {"local address", verb::write, 41, 0x01, refusal::outside_local_memory, prot},
           {"inline flag", verb::inline_word, 32, 0x80, refusal::wrong_local_key, prot},
           {"inline bytes", verb::inline_word, 35, 0x04, refusal::wrong_size},
           {"compared value", verb::fetch_add, 47, 0x01, refusal::reserved_not_zero},
           {"bytes of an atomic", verb::fetch_add, 51, 0x04, refusal::wrong_size},
           {"local key of an atomic", verb::fetch_add, 55, 0x01, refusal::wrong_local_key, prot},
           {"place of an atomic", verb::fetch_add, 23, 0x04, refusal::misaligned_atomic,
            nic_status::remote_invalid}})
    post_wrong<device_verbs::mlx5>(nic_vendor::mlx5, w);
}

TEST(nic_refusals, looks_at_every_field_of_a_bnxt_entry) {
  constexpr auto prot = nic_status::local_protection, remote = nic_status::remote_access;
  for (wrong_byte const& w : std::initializer_list<wrong_byte>{
           {"opcode", verb::write, 0, 0x02, refusal::wrong_opcode},
           {"unknown flag", verb::write, 1, 0x20, refusal::wrong_flags},
           {"solicited", verb::write, 1, 0x08, refusal::wrong_flags},
           {"an atomic that is inline", verb::fetch_add, 1, 0x10, refusal::wrong_flags},
           {"an inline that is none", verb::inline_word, 1, 0x10, refusal::wrong_size},
           {"slots", verb::write, 2, 0x01, refusal::wrong_size},
           {"head reserved", verb::write, 3, 0x01, refusal::reserved_not_zero},
           {"immediate of a write", verb::write, 4, 0x01, refusal::reserved_not_zero},
           {"remote key of an atomic", verb::fetch_add, 4, 0x01, refusal::wrong_remote_key, remote},
           {"length", verb::write, 8, 0x10, refusal::wrong_size},
           {"length of an inline", verb::inline_word, 8, 0x10, refusal::wrong_size},
           {"length reserved", verb::write, 12, 0x01, refusal::reserved_not_zero},
           {"remote of an atomic", verb::fetch_add, 8, 0x04, refusal::misaligned_atomic,
            nic_status::remote_invalid},
           {"remote address", verb::write, 22, 0x01, refusal::outside_remote_memory, remote},
           {"remote key", verb::write, 24, 0x01, refusal::wrong_remote_key, remote},
           {"key reserved", verb::write, 28, 0x01, refusal::reserved_not_zero},
           {"compared value", verb::fetch_add, 24, 0x01, refusal::reserved_not_zero},
           {"local address", verb::write, 38, 0x01, refusal::outside_local_memory, prot},
           {"local key", verb::write, 40, 0x01, refusal::wrong_local_key, prot},
           {"bytes", verb::write, 44, 0x01, refusal::wrong_size},
           {"bytes of an atomic", verb::fetch_add, 44, 0x0c, refusal::wrong_size},
           {"behind an inline", verb::inline_word, 44, 0x01, refusal::reserved_not_zero}})
    post_wrong<device_verbs::bnxt>(nic_vendor::bnxt, w);
}

TEST(nic_refusals, looks_at_every_field_of_an_ionic_entry) {
  constexpr auto prot = nic_status::local_protection, remote = nic_status::remote_access;
  for (wrong_byte const& w : std::initializer_list<wrong_byte>{
           {"index", verb::write, 0, 0x01, refusal::wrong_index},
           {"index, high", verb::write, 5, 0x01, refusal::wrong_index},
           {"opcode", verb::write, 8, 0x01, refusal::wrong_opcode},
           {"opcode of the first version", verb::write, 8, 0x25, refusal::wrong_opcode},
           {"pieces", verb::write, 9, 0x01, refusal::wrong_size},
           {"pieces of an inline", verb::inline_word, 9, 0x01, refusal::wrong_size},
           {"pieces of an atomic", verb::fetch_add, 9, 0x01, refusal::wrong_size},
           {"unknown flag", verb::write, 10, 0x10, refusal::wrong_flags},
           {"solicited", verb::write, 11, 0x02, refusal::wrong_flags},
           {"an atomic that is inline", verb::fetch_add, 11, 0x04, refusal::wrong_flags},
           {"colour", verb::write, 11, 0x10, refusal::wrong_owner},
           {"immediate of a write", verb::write, 15, 0x01, refusal::reserved_not_zero},
           {"remote address", verb::write, 17, 0x01, refusal::outside_remote_memory, remote},
           {"remote key", verb::write, 27, 0x01, refusal::wrong_remote_key, remote},
           {"length", verb::write, 31, 0x10, refusal::wrong_size},
           {"length of an inline", verb::inline_word, 31, 0x10, refusal::wrong_size},
           {"local address", verb::write, 33, 0x01, refusal::outside_local_memory, prot},
           {"length of the piece", verb::write, 43, 0x10, refusal::wrong_size},
           {"local key", verb::write, 47, 0x01, refusal::wrong_local_key, prot},
           {"behind the piece", verb::write, 50, 0x01, refusal::reserved_not_zero},
           {"behind an inline", verb::inline_word, 41, 0x01, refusal::reserved_not_zero},
           {"compared value", verb::fetch_add, 40, 0x01, refusal::reserved_not_zero},
           {"local key of an atomic", verb::fetch_add, 47, 0x01, refusal::wrong_local_key, prot},
           {"local address of an atomic", verb::fetch_add, 49, 0x01, refusal::outside_local_memory,
            prot},
           {"behind an atomic", verb::fetch_add, 60, 0x01, refusal::reserved_not_zero},
           {"place of an atomic", verb::fetch_add, 23, 0x04, refusal::misaligned_atomic,
            nic_status::remote_invalid}})
    post_wrong<device_verbs::ionic>(nic_vendor::ionic, w);
}

/// One entry that is right, and whatever `ring` does to show it.
template <class Format>
void ring_wrong(nic_vendor vendor, char const* what, refusal wanted,
                std::function<void(direct_queue<Format>&)> const& ring) {
  SCOPED_TRACE(std::string(device_verbs::to_string(vendor)) + ": " + what);
  direct_queue<Format> q(vendor, {}, false);
  std::uint32_t first = 0;
  ASSERT_TRUE(q.queue.try_reserve(1, first));
  q.queue.write(0, q.word_of(0, 1));
  ring(q);
  expect_refusal(q, wanted, nic_status::local_operation);
  EXPECT_EQ(q.remote_word(0), 0u) << "nothing was carried out";
}

TEST(nic_refusals, looks_at_an_mlx5_doorbell_and_the_record_before_it) {
  using queue = direct_queue<device_verbs::mlx5>;
  auto const wrong = [](char const* what, refusal wanted, std::function<void(queue&)> const& ring) {
    ring_wrong<device_verbs::mlx5>(nic_vendor::mlx5, what, wanted, ring);
  };
  auto const first_bytes = [](queue& q) {
    std::uint64_t v;
    std::memcpy(&v, q.queue.pair.entries, 8);
    return v;
  };
  auto const ring = [](queue& q, std::uint64_t v) {
    q.queue.access.ring(q.queue.pair.doorbell, v);
  };
  wrong("the register before the record", refusal::doorbell_before_record,
        [&](queue& q) { ring(q, first_bytes(q)); });
  wrong("a record in the wrong byte order", refusal::doorbell_malformed, [&](queue& q) {
    q.queue.pair.doorbell_record[1] = 1;
    ring(q, first_bytes(q));
  });
  wrong("the receive queue's record", refusal::doorbell_before_record, [&](queue& q) {
    q.queue.pair.doorbell_record[0] = big(1u);
    ring(q, first_bytes(q));
  });
  wrong("another entry's bytes", refusal::doorbell_without_entry, [&](queue& q) {
    q.queue.pair.doorbell_record[1] = big(1u);
    ring(q, first_bytes(q) ^ 0x01000000);
  });
  wrong("another queue's number", refusal::doorbell_of_another_queue, [&](queue& q) {
    q.queue.pair.doorbell_record[1] = big(1u);
    ring(q, first_bytes(q) ^ std::uint64_t{1} << 48);
  });
  wrong("more than the queue holds", refusal::queue_overrun, [&](queue& q) {
    q.queue.pair.doorbell_record[1] = big(101u);
    std::uint32_t const head = big(std::uint32_t{100 << 8 | 8});
    ring(q, (first_bytes(q) & 0xffffffff00000000) | head);
  });
}

TEST(nic_refusals, looks_at_a_bnxt_doorbell_and_the_search_table) {
  using queue = direct_queue<device_verbs::bnxt>;
  auto const wrong = [](char const* what, refusal wanted, std::function<void(queue&)> const& ring) {
    ring_wrong<device_verbs::bnxt>(nic_vendor::bnxt, what, wanted, ring);
  };
  auto const ring = [](queue& q, std::uint64_t flip) {
    q.queue.pair.search_table[0] = std::uint64_t{1} << 24;
    q.queue.access.ring(q.queue.pair.doorbell, 0x0400123400000003u ^ flip);
  };
  auto const bit = [](int n) { return std::uint64_t{1} << n; };
  wrong("type", refusal::doorbell_malformed, [&](queue& q) { ring(q, bit(60)); });
  wrong("valid", refusal::doorbell_malformed, [&](queue& q) { ring(q, bit(58)); });
  wrong("unused, high", refusal::doorbell_malformed, [&](queue& q) { ring(q, bit(55)); });
  wrong("queue number", refusal::doorbell_of_another_queue, [&](queue& q) { ring(q, bit(32)); });
  wrong("toggle", refusal::doorbell_malformed, [&](queue& q) { ring(q, bit(25)); });
  wrong("the round", refusal::wrong_epoch, [&](queue& q) { ring(q, bit(24)); });
  wrong("inside an entry", refusal::doorbell_malformed, [&](queue& q) { ring(q, bit(2)); });
  wrong("behind the queue", refusal::doorbell_malformed, [&](queue& q) { ring(q, 3 ^ 192); });
  for (int const n : {0, 23, 24, 47, 48, 63})
    wrong("the search table", refusal::wrong_search_entry, [&](queue& q) {
      q.queue.pair.search_table[0] = (std::uint64_t{1} << 24) ^ bit(n);
      q.queue.access.ring(q.queue.pair.doorbell, 0x0400123400000003u);
    });
}

TEST(nic_refusals, looks_at_an_ionic_doorbell) {
  using queue = direct_queue<device_verbs::ionic>;
  auto const wrong = [](char const* what, refusal wanted, std::uint64_t value) {
    ring_wrong<device_verbs::ionic>(nic_vendor::ionic, what, wanted, [value](queue& q) {
      q.queue.access.ring(q.queue.pair.doorbell, value);
    });
  };
  wrong("queue number", refusal::doorbell_of_another_queue, 0x1235000001u);
  wrong("ring", refusal::doorbell_malformed, 0x1234010001u);
  wrong("behind the queue", refusal::doorbell_malformed, 0x1234000040u);
}

class nic_refusals_of_all : public ::testing::TestWithParam<nic_vendor> {
 protected:
  template <class Body>
  void with_queue(Body const& body) {
    device_verbs::with_format(GetParam(), [&]<class Format>(Format) {
      direct_queue<Format> q(GetParam(), {}, false);
      body(q);
    });
  }
};

TEST_P(nic_refusals_of_all, wants_completions_to_be_taken) {
  with_queue([](auto& q) {
    for (std::uint32_t i = 0; i <= q.entries; ++i) {
      q.counters.credits = q.most();  // as if completions had been read
      ASSERT_TRUE(q.post({q.word_of(0, i)}));
      while (q.nic.turn()) {
      }
    }
    ASSERT_EQ(q.nic.refusals().size(), 1u);
    EXPECT_EQ(q.nic.refusals()[0].why, refusal::completion_overrun);
    EXPECT_EQ(q.nic.refusals()[0].index, q.entries);
  });
}

TEST_P(nic_refusals_of_all, wants_a_place_in_the_completion_queue_as_consumer) {
  with_queue([&](auto& q) {
    if (GetParam() == nic_vendor::mlx5)
      q.queue.pair.completion_record[0] = 1;  // not big-endian
    else
      *q.queue.pair.completion_doorbell = 0x4400007700000041u;
    ASSERT_TRUE(q.post({q.word_of(0, 1)}));
    while (q.nic.turn()) {
    }
    ASSERT_EQ(q.nic.refusals().size(), 1u);
    EXPECT_EQ(q.nic.refusals()[0].why, refusal::consumer_malformed);
  });
}

TEST_P(nic_refusals_of_all, carries_nothing_for_a_queue_that_is_not_connected) {
  with_queue([](auto& q) {
    auto const other = q.nic.make_queue(64).value();
    q.queue.pair = other;
    ASSERT_TRUE(q.post({q.word_of(0, 1)}));
    q.finish();
    ASSERT_EQ(q.nic.refusals().size(), 1u);
    EXPECT_EQ(q.nic.refusals()[0].why, refusal::not_connected);
    EXPECT_EQ(q.remote_word(0), 0u);
  });
}

// The NIC is shown one entry more than was written: what lies there is of the round before.
TEST_P(nic_refusals_of_all, does_not_take_an_entry_of_the_round_before) {
  with_queue([]<class Format>(direct_queue<Format>& q) {
    for (std::uint32_t i = 0; i < q.entries; ++i) {
      ASSERT_TRUE(q.post({q.word_of(0, i)}));
      q.finish();
    }
    q.queue.write(q.entries, q.word_of(8, 1));
    Format::announce(q.queue.access, q.queue.pair, q.counters, q.entries, q.entries + 2);
    while (q.nic.turn()) {
    }
    if (std::same_as<Format, device_verbs::bnxt>) {
      // A bnxt entry says nothing of its round: only whoever announces it can know.
      EXPECT_TRUE(q.nic.refusals().empty());
      return;
    }
    ASSERT_EQ(q.nic.refusals().size(), 1u);
    bool const by_colour = std::same_as<Format, device_verbs::ionic>;
    EXPECT_EQ(q.nic.refusals()[0].why, by_colour ? refusal::wrong_owner : refusal::queue_overrun);
  });
}

TEST_P(nic_refusals_of_all, does_not_write_with_the_key_of_a_rank_it_is_not_connected_to) {
  with_queue([](auto& q) {
    window const third = window::plain(4096).value();
    work w = q.word_of(0, 1);
    w.remote = reinterpret_cast<std::uint64_t>(third.data());
    w.remote_key = q.memory->add({.owner = 3,
                                  .address = w.remote,
                                  .bytes = third.size(),
                                  .mapped = third.data(),
                                  .by_peers = true});
    ASSERT_TRUE(q.post({w}));
    q.finish();
    ASSERT_EQ(q.nic.refusals().size(), 1u);
    EXPECT_EQ(q.nic.refusals()[0].why, refusal::wrong_remote_key);
    EXPECT_EQ(q.queue.status(), nic_status::remote_access);
  });
}

INSTANTIATE_TEST_SUITE_P(every, nic_refusals_of_all, ::testing::ValuesIn(all_vendors),
                         [](auto const& c) { return device_verbs::to_string(c.param); });

}  // namespace
}  // namespace ferry::test
