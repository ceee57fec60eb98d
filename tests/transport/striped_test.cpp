// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/striped.hpp>

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace ferry::test {
namespace {

/// A rail that writes down what is asked of it, and settles when it is told to.
class noted_rail final : public transport {
 public:
  struct notes {
    std::vector<std::string> asked;
    bool settles = true, settled = false;
  };
  noted_rail(std::string name, notes& n) : name_(std::move(name)), notes_(n) {}
  abilities what_it_can() const override {
    return {.settles = notes_.settles, .max_put_bytes = 100, .inline_bytes = 10};
  }
  result<std::vector<std::byte>> expose(std::span<std::byte>) override {
    return std::vector(name_.size(), std::byte{7});
  }
  result<void> connect(int rank, std::span<std::byte const> address) override {
    note("connects " + std::to_string(rank) + " by " + std::to_string(address.size()));
    return {};
  }
  result<post> put(remote_region to, std::byte const*) override {
    note("puts to " + std::to_string(to.rank));
    return post::posted;
  }
  result<post> signal(remote_region, std::uint64_t value, strength) override {
    note("signals " + std::to_string(value));
    return post::posted;
  }
  result<post> settle(int) override {
    note("settles");
    return post::posted;
  }
  result<bool> settled(int) override { return notes_.settled; }
  result<void> progress() override { return {}; }
  result<void> flush(int, std::chrono::milliseconds) override {
    note("flushes");
    return {};
  }

 private:
  void note(std::string what) { notes_.asked.push_back(name_ + " " + what); }
  std::string name_;
  notes& notes_;
};

class striped_rails : public ::testing::Test {
 protected:
  using asked = std::vector<std::string>;

  std::unique_ptr<transport> make(std::vector<std::string> const& names) {
    std::vector<std::unique_ptr<transport>> rails;
    for (std::string const& n : names) rails.push_back(std::make_unique<noted_rail>(n, notes_));
    return make_striped_transport(3, std::move(rails)).value();
  }
  /// Connected to rank 1, which has rails of the same names.
  std::unique_ptr<transport> connected(std::vector<std::string> const& names) {
    auto net = make(names);
    net->connect(1, net->expose({}).value()).value();
    notes_.asked.clear();
    return net;
  }
  noted_rail::notes notes_;
};

TEST_F(striped_rails, take_puts_in_turn_and_settle_before_a_covering_signal) {
  auto const net = connected({"a", "b", "c"});
  for (int i = 0; i < 4; ++i) ASSERT_EQ(net->put({1, 0, 8}, nullptr).value(), post::posted);
  ASSERT_EQ(net->signal({1, 0, 8}, 5, strength::all_earlier).value(), post::try_again);
  ASSERT_EQ(net->signal({1, 0, 8}, 5, strength::all_earlier).value(), post::try_again);
  // While it waits, puts take the rail whose own signal covers them.
  ASSERT_EQ(net->put({1, 0, 8}, nullptr).value(), post::posted);
  notes_.settled = true;
  ASSERT_EQ(net->signal({1, 0, 8}, 5, strength::all_earlier).value(), post::posted);
  ASSERT_EQ(net->put({1, 0, 8}, nullptr).value(), post::posted);
  EXPECT_EQ(notes_.asked,
            (asked{"a puts to 1", "b puts to 1", "c puts to 1", "a puts to 1", "b settles",
                   "c settles", "a puts to 1", "a signals 5", "b puts to 1"}));
}

TEST_F(striped_rails, signal_at_once_where_nothing_needs_to_be_covered) {
  auto const net = connected({"a", "b"});
  ASSERT_EQ(net->signal({1, 0, 8}, 1, strength::all_earlier).value(), post::posted);
  ASSERT_EQ(net->put({1, 0, 8}, nullptr).value(), post::posted);
  ASSERT_EQ(net->signal({1, 0, 8}, 2, strength::all_earlier).value(), post::posted);
  ASSERT_EQ(net->put({1, 0, 8}, nullptr).value(), post::posted);
  ASSERT_EQ(net->signal({1, 0, 8}, 3, strength::this_put).value(), post::posted);
  EXPECT_EQ(notes_.asked,
            (asked{"a signals 1", "a puts to 1", "a signals 2", "b puts to 1", "a signals 3"}));
}

TEST_F(striped_rails, use_as_many_as_both_ranks_have) {
  auto const net = make({"a", "b"});
  auto const three = make({"aa", "bb", "cc"});
  auto const one = make({"aaa"});
  ASSERT_TRUE(net->connect(0, three->expose({}).value()));
  ASSERT_TRUE(net->connect(1, one->expose({}).value()));
  for (int i = 0; i < 2; ++i)
    for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(net->put({rank, 0, 8}, nullptr));
  ASSERT_TRUE(net->flush(1, std::chrono::seconds(1)));
  EXPECT_EQ(notes_.asked,
            (asked{"a connects 0 by 2", "b connects 0 by 2", "a connects 1 by 3", "a puts to 0",
                   "a puts to 1", "b puts to 0", "a puts to 1", "a flushes"}));
}

TEST_F(striped_rails, can_what_all_of_them_can) {
  abilities const can = make({"a", "b"})->what_it_can();
  EXPECT_EQ(can.max_put_bytes, 100u);
  EXPECT_EQ(can.inline_bytes, 10u);
  EXPECT_FALSE(can.settles);
}

TEST_F(striped_rails, refuse_addresses_that_do_not_fit) {
  auto const net = make({"a", "b"});
  auto const address = net->expose({}).value();
  for (std::size_t bytes = 0; bytes < address.size(); ++bytes) {
    // A rank with one rail is a rank.
    if (bytes == sizeof(std::uint64_t) + 1) continue;
    auto const r = net->connect(1, std::span(address).first(bytes));
    ASSERT_FALSE(r) << bytes;
    EXPECT_EQ(r.error().code, error_code::malformed_input) << r.error().message;
  }
  EXPECT_EQ(net->connect(3, address).error().code, error_code::invalid_argument);
}

TEST_F(striped_rails, are_one_or_more_and_all_can_settle) {
  EXPECT_EQ(make_striped_transport(2, {}).error().code, error_code::invalid_argument);
  notes_.settles = false;
  std::vector<std::unique_ptr<transport>> rails;
  rails.push_back(std::make_unique<noted_rail>("a", notes_));
  EXPECT_TRUE(make_striped_transport(2, std::move(rails)));
  rails.clear();
  for (char const* name : {"a", "b"}) rails.push_back(std::make_unique<noted_rail>(name, notes_));
  EXPECT_EQ(make_striped_transport(2, std::move(rails)).error().code, error_code::invalid_argument);
}

}  // namespace
}  // namespace ferry::test
