// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "contract/transport_contract.hpp"

#include "contract/among_peers.hpp"
#include "contract/faulty_transport.hpp"

#include <ferry/transport/loopback.hpp>
#include <ferry/transport/shared_memory.hpp>
#include <ferry/transport/striped.hpp>

namespace ferry::test {
namespace {

transport_maker loopback(loopback_faults f) {
  return [f](int rank, std::vector<mapped_window> windows) {
    loopback_faults mine = f;
    mine.seed += static_cast<std::uint64_t>(rank);
    return make_loopback_transport(rank, std::move(windows), mine);
  };
}

/// Rails that are each late and out of order in their own way.
transport_maker striped(loopback_faults f, std::size_t rails) {
  return [=](int rank, std::vector<mapped_window> windows) -> std::unique_ptr<transport> {
    return std::make_unique<among_peers>(rank, windows, [&](int r, int num_ranks) {
      std::vector<std::unique_ptr<transport>> all;
      for (std::size_t i = 0; i < rails; ++i) {
        loopback_faults mine = f;
        mine.seed += 16 * i + static_cast<std::uint64_t>(r);
        all.push_back(make_loopback_transport(r, windows, mine));
      }
      return make_striped_transport(num_ranks, std::move(all)).value();
    });
  };
}

transport_case const cases[] = {
    {"shared_memory", make_shared_memory_transport},
    {"loopback", loopback({}), 1024},
    {"loopback_in_order", loopback({.reorder = 0}), 1024},
    {"loopback_late_and_out_of_order",
     loopback({.seed = 5, .reorder = 900, .delay = 60, .queue_depth = 32}), 32},
    {"loopback_that_is_often_full",
     loopback({.seed = 9, .reorder = 700, .try_again = 300, .queue_depth = 3}), 3},
    {"faulty_shared_memory",
     faulty(make_shared_memory_transport, {.seed = 3, .delay = 30, .try_again = 100}), 64},
    {"faulty_loopback",
     faulty(loopback({.seed = 4, .queue_depth = 5}), {.seed = 8, .delay = 20, .try_again = 60}),
     64},
    {"striped", striped({.seed = 6, .reorder = 900, .delay = 60}, 3)},
    {"striped_that_is_often_full",
     striped({.seed = 2, .delay = 20, .try_again = 300, .queue_depth = 3}, 2), 6},
};

INSTANTIATE_TEST_SUITE_P(every, transport_contract, ::testing::ValuesIn(cases),
                         [](auto const& c) { return c.param.name; });

// A network that loses or breaks something must never bring wrong data, nor make anybody wait for
// ever.

using namespace std::chrono_literals;

struct broken_network {
  char const* name;
  std::function<transport_maker(std::uint64_t seed)> make;
  bool silent;  ///< nothing tells but the deadline
};
void PrintTo(broken_network const& b, std::ostream* out) {
  *out << b.name;
}

class broken_transport : public ::testing::TestWithParam<broken_network> {};

TEST_P(broken_transport, ends_an_exchange_with_an_error_and_never_with_wrong_data) {
  constexpr auto deadline = 400ms;
  int with_error = 0, of_transport = 0, timed_out = 0;
  for (int run = 0; run < 4; ++run) {
    carried const c = carry_exchange(GetParam().make(static_cast<std::uint64_t>(10 * run + 1)),
                                     {.ranks = 3, .steps = 60, .timeout = deadline});
    for (std::size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(c.errors[r].find("wrong data"), std::string::npos) << c.errors[r];
      EXPECT_LT(c.longest_call[r], deadline + 10s);
      with_error += c.codes[r].has_value();
      EXPECT_TRUE(c.codes[r]) << "rank " << r << " noticed nothing: " << c.errors[r];
      of_transport += c.codes[r] == error_code::transport;
      timed_out += c.codes[r] == error_code::timeout;
    }
  }
  EXPECT_EQ(of_transport + timed_out, with_error);
  if (GetParam().silent)
    EXPECT_EQ(of_transport, 0);
  else
    EXPECT_GT(of_transport, 0);
}

broken_network broken_loopback(char const* name, loopback_faults f, bool silent) {
  return {name,
          [f](std::uint64_t seed) mutable {
            f.seed = seed;
            return loopback(f);
          },
          silent};
}
broken_network broken_rails(char const* name, loopback_faults f, bool silent) {
  return {name,
          [f](std::uint64_t seed) mutable {
            f.seed = seed;
            return striped(f, 2);
          },
          silent};
}
broken_network broken_wrapper(char const* name, faults f, bool silent) {
  return {name,
          [f](std::uint64_t seed) mutable {
            f.seed = seed;
            return faulty(make_shared_memory_transport, f);
          },
          silent};
}

INSTANTIATE_TEST_SUITE_P(
    every, broken_transport,
    ::testing::Values(broken_loopback("loopback_that_drops_puts", {.drop = 12}, true),
                      broken_loopback("loopback_that_fails", {.fail = 12}, false),
                      broken_rails("rails_that_drop_puts", {.drop = 12}, true),
                      broken_rails("rails_that_fail", {.fail = 12}, false),
                      broken_wrapper("wrapper_that_drops_puts", {.drop = 12}, true),
                      broken_wrapper("wrapper_that_fails", {.fails_after = 200}, false)),
    [](auto const& c) { return std::string(c.param.name); });

class lossy_transport : public ::testing::TestWithParam<broken_network> {
 protected:
  lossy_transport() : memory_{window::plain(4096).value(), window::plain(4096).value()} {
    net_ = GetParam().make(1)(0, {{memory_[0].bytes()}, {memory_[1].bytes()}});
  }
  std::vector<window> memory_;
  std::unique_ptr<transport> net_;
  std::byte const row_[64]{};
};

// A put that was lost is never covered, and its rank's flush says so at its deadline.
TEST_P(lossy_transport, never_shows_a_signal_that_would_cover_a_lost_put) {
  ASSERT_TRUE(net_->put({1, 64, 64}, row_));
  ASSERT_TRUE(net_->signal({1, 0, 8}, 1, strength::all_earlier));
  ASSERT_TRUE(net_->signal({1, 8, 8}, 1, strength::this_put));
  ASSERT_TRUE(net_->signal({0, 0, 8}, 1, strength::all_earlier)) << "the other rank is as before";
  auto const word = [&](int rank, std::size_t at) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(
                               memory_[static_cast<std::size_t>(rank)].data() + at))
        .load();
  };
  auto const end = std::chrono::steady_clock::now() + 10s;
  while ((word(1, 8) == 0 || word(0, 0) == 0) && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_EQ(word(1, 8), 1u);
  EXPECT_EQ(word(0, 0), 1u);
  result<void> const flushed = net_->flush(1, 100ms);
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, error_code::timeout);
  EXPECT_NE(flushed.error().message.find("rank 1"), std::string::npos) << flushed.error().message;
  EXPECT_EQ(word(1, 0), 0u);
  EXPECT_TRUE(net_->flush(0, 5s));
}

INSTANTIATE_TEST_SUITE_P(every, lossy_transport,
                         ::testing::Values(broken_loopback("loopback", {.drop = 1024}, true),
                                           broken_wrapper("wrapper", {.drop = 1024}, true)),
                         [](auto const& c) { return std::string(c.param.name); });

class failing_transport : public ::testing::TestWithParam<broken_network> {};

TEST_P(failing_transport, says_so_in_progress_flush_and_every_later_post) {
  std::vector<window> memory{window::plain(4096).value(), window::plain(4096).value()};
  auto const net = GetParam().make(1)(0, {{memory[0].bytes()}, {memory[1].bytes()}});
  std::byte const row[64]{};
  ASSERT_TRUE(net->put({1, 64, 64}, row));
  auto const is_failure = [](auto const& r) {
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::transport) << r.error().message;
  };
  is_failure(net->flush(1, 10s));
  is_failure(net->progress());
  is_failure(net->put({1, 64, 64}, row));
  is_failure(net->signal({1, 0, 8}, 1, strength::all_earlier));
}

INSTANTIATE_TEST_SUITE_P(every, failing_transport,
                         ::testing::Values(broken_loopback("loopback", {.fail = 1024}, false),
                                           broken_wrapper("wrapper", {.fails_after = 0}, false)),
                         [](auto const& c) { return std::string(c.param.name); });

}  // namespace
}  // namespace ferry::test
