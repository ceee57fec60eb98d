// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/group.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

using namespace std::chrono_literals;
using ferry::bytes;
using ferry::error_code;
using ferry::group_options;
using ferry::presence;

/// What a user's own bootstrap may do.
struct script {
  int rank = 0;
  int size = 1;
  bool shares_memory = true;
  std::vector<bytes> answer;    ///< of every all_gather; empty: the right one of one rank
  ferry::result<void> outcome;  ///< of every all_gather
  std::shared_ptr<int> times_left = std::make_shared<int>(0);
};

class scripted_bootstrap final : public ferry::bootstrap {
 public:
  explicit scripted_bootstrap(script s) : script_(std::move(s)) {}
  int rank() const override { return script_.rank; }
  int size() const override { return script_.size; }
  ferry::result<std::vector<bytes>> all_gather(std::span<std::byte const> mine,
                                               std::chrono::milliseconds) override {
    if (!script_.outcome) return script_.outcome.error();
    if (!script_.answer.empty()) return script_.answer;
    return std::vector<bytes>(static_cast<std::size_t>(script_.size),
                              bytes(mine.begin(), mine.end()));
  }
  presence look(int) override { return presence::here; }
  bool shares_address_space() const override { return script_.shares_memory; }
  void leave() override { ++*script_.times_left; }

 private:
  script script_;
};

ferry::bootstrap_factory factory(script s) {
  return [s](group_options const&) -> ferry::result<std::unique_ptr<ferry::bootstrap>> {
    return std::unique_ptr<ferry::bootstrap>(new scripted_bootstrap(s));
  };
}

TEST(group, takes_any_bootstrap_and_leaves_it_once) {
  script s;
  s.size = 3;
  s.rank = 2;
  {
    auto const group = ferry::join(factory(s), {.timeout = 1234ms}).value();
    auto const copy = group;
    EXPECT_EQ(copy.rank(), 2);
    EXPECT_EQ(copy.size(), 3);
    EXPECT_EQ(copy.timeout(), 1234ms);
    EXPECT_EQ(copy.ranks_on_this_machine(), 3);
    EXPECT_EQ(*s.times_left, 0);
  }
  EXPECT_EQ(*s.times_left, 1);
}

TEST(group, counts_ranks_of_the_same_boot_as_of_this_machine) {
  script s;
  s.size = 2;
  s.shares_memory = false;
  EXPECT_EQ(ferry::join(factory(s)).value().ranks_on_this_machine(), 2);
}

TEST(group, refuses_a_bootstrap_that_makes_no_sense) {
  for (auto [rank, size] : {std::pair{0, 0}, {-1, 2}, {2, 2}, {0, ferry::max_ranks + 1}}) {
    script s;
    s.rank = rank;
    s.size = size;
    auto const group = ferry::join(factory(s));
    ASSERT_FALSE(group) << rank << " of " << size;
    EXPECT_EQ(group.error().code, error_code::invalid_argument);
  }
  auto const nothing = ferry::join([](group_options const&) {
    return ferry::result<std::unique_ptr<ferry::bootstrap>>(nullptr);
  });
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, error_code::invalid_argument);
  EXPECT_EQ(ferry::join({}).error().code, error_code::invalid_argument);
}

TEST(group, turns_what_a_bootstrap_throws_into_an_error) {
  auto const group =
      ferry::join([](group_options const&) -> ferry::result<std::unique_ptr<ferry::bootstrap>> {
        throw std::runtime_error("no such service");
      });
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, error_code::internal);
  EXPECT_NE(group.error().message.find("no such service"), std::string::npos);
}

TEST(group, refuses_peers_that_do_not_introduce_themselves_as_ferry) {
  script s;
  s.size = 2;
  for (auto const& said : {bytes{}, bytes(3), bytes(200, std::byte{0xff})}) {
    s.answer = {said, said};
    auto const group = ferry::join(factory(s));
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, error_code::malformed_input) << group.error().message;
  }
}

TEST(group, refuses_a_peer_of_another_version) {
  script s;
  s.size = 2;
  bytes said{std::byte{5}, {}, {}, {}};
  for (char c : std::string("9.9.9") + std::string(36, 'x')) said.push_back(std::byte(c));
  s.answer = {said, said};
  auto const group = ferry::join(factory(s));
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, error_code::invalid_argument);
  EXPECT_NE(group.error().message.find("rank 0 runs ferry 9.9.9"), std::string::npos)
      << group.error().message;
}

TEST(group, refuses_a_timeout_out_of_range) {
  for (auto timeout :
       {0ms, -5ms, std::chrono::milliseconds::max(), std::chrono::milliseconds::min()}) {
    auto const group = ferry::join(factory({}), {.timeout = timeout});
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, error_code::invalid_argument);
    EXPECT_NE(group.error().message.find(std::to_string(timeout.count())), std::string::npos);
  }
}

TEST(group, a_failed_joining_leaves_what_was_begun) {
  script s;
  s.outcome = ferry::error{error_code::timeout, "rank 1 did not come"};
  auto const group = ferry::join(factory(s));
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, error_code::timeout);
  EXPECT_EQ(*s.times_left, 1);
}

TEST(group, keeps_the_first_cause_when_it_is_broken) {
  auto const group = ferry::join(factory({})).value();
  EXPECT_TRUE(group.usable());
  EXPECT_TRUE(group.barrier());
  auto const copy = group;
  copy.mark_broken({error_code::timeout, "rank 5 did not come"});
  group.mark_broken({error_code::unreachable, "rank 6 is gone"});
  for (auto const& outcome : {group.usable(), copy.barrier()}) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, error_code::invalid_state);
    EXPECT_NE(outcome.error().message.find("timeout: rank 5 did not come"), std::string::npos);
  }
  EXPECT_FALSE(group.share_window(8));
  EXPECT_FALSE(group.all_gather({}));
}

TEST(group, refuses_more_than_64_mib_by_any_bootstrap) {
  auto joined = ferry::join(factory(script{}));
  ASSERT_TRUE(joined);
  std::vector<std::byte> const most(std::size_t{64} << 20);
  EXPECT_TRUE(joined->all_gather(most));
  std::vector<std::byte> const more(most.size() + 1);
  auto refused = joined->all_gather(more);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::invalid_argument);
  EXPECT_NE(refused.error().message.find("67108865"), std::string::npos);
  EXPECT_TRUE(joined->usable()) << "what was refused breaks nothing";
}

TEST(group, says_here_of_itself_and_gone_of_ranks_that_do_not_exist) {
  auto const group = ferry::join(factory({})).value();
  EXPECT_EQ(group.look(0), presence::here);
  EXPECT_EQ(group.look(1), presence::gone);
  EXPECT_EQ(group.look(-1), presence::gone);
}

TEST(group, names_every_reach) {
  EXPECT_STREQ(to_string(ferry::reach::self), "self");
  EXPECT_STREQ(to_string(ferry::reach::mapped), "mapped");
  EXPECT_STREQ(to_string(ferry::reach::network), "network");
}

}  // namespace
