// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/group.hpp>

#include "base/fail.hpp"
#include "group/deadline.hpp"
#include "group/rank_names.hpp"
#include "group/survivors.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

namespace ferry {

/// Where the threads meet. A collective is a round, numbered by each rank for itself; what a rank
/// brought to a round stays there even if that rank gave up waiting, so a late rank still finds it.
/// Ranks have the numbers here with which they joined.
struct thread_ranks::meeting {
  struct round {
    std::vector<std::optional<bytes>> brought;  ///< by place in the group
    int missing = 0;
    int not_yet_read = 0;
  };
  struct place {
    std::unique_ptr<survivors> who;  ///< none until the rank is taken
    int users = 0;                   ///< groups that this rank has not left
    std::atomic<bool> left = false;
  };
  /// One of the groups that meet here, as one of its ranks sees it.
  struct membership {
    std::vector<int> members;
    int me = 0;  ///< place among them
    std::uint64_t rebuild = 0;
    std::uint64_t rounds = 0;  ///< rounds this rank has come to
    std::vector<int> absent{};

    int number(int rank) const { return members[static_cast<std::size_t>(rank)]; }
    int number() const { return number(me); }
    int size() const { return static_cast<int>(members.size()); }
  };
  using round_name = std::pair<std::uint64_t, std::uint64_t>;  ///< of which rebuild, and which one

  explicit meeting(int num_ranks) : size(num_ranks) {
    if (num_ranks >= 1 && num_ranks <= max_ranks)
      places.resize(static_cast<std::size_t>(num_ranks));
  }

  result<membership> take(int rank);
  result<std::vector<bytes>> all_gather(membership& group, std::span<std::byte const> mine,
                                        std::chrono::milliseconds timeout);
  result<membership> without(membership& group, std::vector<int> const& lost,
                             std::chrono::milliseconds timeout);
  void leave(int rank);
  place& at(int rank) { return places[static_cast<std::size_t>(rank)]; }

  int const size;
  std::mutex guard;
  std::condition_variable changed;
  std::deque<place> places;
  std::map<round_name, round> rounds;

 private:
  round& open(round_name const& name, int ranks);
  std::optional<error> trouble(membership const& group, round const& r);
  result<void> wait_for(membership& group, round const& r, deadline end,
                        std::chrono::milliseconds timeout, std::unique_lock<std::mutex>& lock);
};

result<thread_ranks::meeting::membership> thread_ranks::meeting::take(int rank) {
  if (size < 1 || size > max_ranks)
    return fail(error_code::invalid_argument, "a group of {} ranks; from 1 to {}", size, max_ranks);
  if (rank < 0 || rank >= size)
    return fail(error_code::invalid_argument, "rank {} in a group of {} ranks", rank, size);
  std::lock_guard const lock(guard);
  place& mine = at(rank);
  if (mine.who)
    return fail(error_code::invalid_state, "rank {} of {} threads was taken before", rank, size);
  mine.who = std::make_unique<survivors>(rank, size);
  mine.users = 1;
  membership all{std::vector<int>(places.size()), rank};
  std::iota(all.members.begin(), all.members.end(), 0);
  return all;
}

thread_ranks::meeting::round& thread_ranks::meeting::open(round_name const& name, int ranks) {
  auto& r = rounds[name];
  if (r.brought.empty()) {
    r.brought.resize(static_cast<std::size_t>(ranks));
    r.missing = r.not_yet_read = ranks;
  }
  return r;
}

/// Why one who did not come will not.
std::optional<error> thread_ranks::meeting::trouble(membership const& group, round const& r) {
  for (int peer = 0; peer < group.size(); ++peer) {
    if (r.brought[static_cast<std::size_t>(peer)]) continue;
    place& there = at(group.number(peer));
    if (there.left) return fail(error_code::unreachable, "rank {} has left the group", peer);
    if (!there.who) continue;
    auto const& said = there.who->said_by(group.number(peer));
    if (said && said->rebuild > group.rebuild) return given_up_by(peer, *said, group.members);
  }
  return std::nullopt;
}

result<void> thread_ranks::meeting::wait_for(membership& group, round const& r, deadline end,
                                             std::chrono::milliseconds timeout,
                                             std::unique_lock<std::mutex>& lock) {
  changed.wait_until(lock, end, [&] { return r.missing == 0 || trouble(group, r); });
  if (r.missing == 0) return {};
  group.absent.clear();
  for (int peer = 0; peer < group.size(); ++peer)
    if (!r.brought[static_cast<std::size_t>(peer)]) group.absent.push_back(peer);
  if (auto why = trouble(group, r)) return *std::move(why);
  return fail(error_code::timeout, "{} did not come within {} ms", names_of(group.absent),
              timeout.count());
}

result<std::vector<bytes>> thread_ranks::meeting::all_gather(membership& group,
                                                             std::span<std::byte const> mine,
                                                             std::chrono::milliseconds timeout) {
  auto const end = after(timeout);
  std::unique_lock lock(guard);
  if (at(group.number()).who->current() != group.rebuild)
    return fail(error_code::invalid_state, "the group was made anew");
  group.absent.clear();
  round_name const name{group.rebuild, group.rounds++};
  auto& r = open(name, group.size());
  r.brought[static_cast<std::size_t>(group.me)] = bytes(mine.begin(), mine.end());
  if (--r.missing == 0) changed.notify_all();
  FERRY_CHECK(wait_for(group, r, end, timeout, lock));

  std::vector<bytes> gathered;
  gathered.reserve(r.brought.size());
  bool const last = --r.not_yet_read == 0;
  for (auto& b : r.brought) gathered.push_back(last ? std::move(*b) : *b);
  if (last) rounds.erase(name);
  return gathered;
}

void thread_ranks::meeting::leave(int rank) {
  std::lock_guard const lock(guard);
  if (--at(rank).users > 0) return;
  at(rank).left = true;
  changed.notify_all();
}

namespace {

/// Words that everybody sees at once. The caller holds the lock.
template <class Meeting>
class words_of_threads final : public survivors_line {
 public:
  words_of_threads(Meeting& where, int me, std::unique_lock<std::mutex>& lock)
      : where_(where), me_(me), lock_(lock) {}

  void look(survivors& who) override {
    for (int r = 0; r < where_.size; ++r) {
      auto const& there = where_.at(r);
      if (there.left) who.bury(r);
      if (r == me_ || !there.who) continue;
      if (auto const& said = there.who->said_by(r)) who.hear(r, *said);
    }
  }
  // What a rank has said is what it has heard of itself.
  void say(survivors_word const&) override { where_.changed.notify_all(); }
  result<void> wait(deadline end) override {
    // Somebody may have spoken before this wait began, and will not wake it.
    where_.changed.wait_until(lock_, std::min(end, after(turn)));
    return {};
  }

 private:
  static constexpr std::chrono::milliseconds turn{50};
  Meeting& where_;
  int const me_;
  std::unique_lock<std::mutex>& lock_;
};

}  // namespace

result<thread_ranks::meeting::membership> thread_ranks::meeting::without(
    membership& group, std::vector<int> const& lost, std::chrono::milliseconds timeout) {
  std::unique_lock lock(guard);
  survivors& who = *at(group.number()).who;
  words_of_threads<meeting> over(*this, group.number(), lock);
  auto members = agree_on_survivors(who, over, {group.members, group.me}, lost, timeout);
  if (!members) {
    group.absent = places_in(group.members, who.silent());
    return std::move(members).error();
  }
  who.go_on();
  ++at(group.number()).users;
  auto const me = std::ranges::find(*members, group.number()) - members->begin();
  return membership{*std::move(members), static_cast<int>(me), who.current()};
}

namespace {

template <class Meeting>
class thread_bootstrap final : public bootstrap {
 public:
  using membership = typename Meeting::membership;
  thread_bootstrap(std::shared_ptr<Meeting> where, membership group)
      : meeting_(std::move(where)), group_(std::move(group)) {}
  ~thread_bootstrap() override { leave(); }

  int rank() const override { return group_.me; }
  int size() const override { return group_.size(); }
  result<std::vector<bytes>> all_gather(std::span<std::byte const> mine,
                                        std::chrono::milliseconds timeout) override {
    return meeting_->all_gather(group_, mine, timeout);
  }
  presence look(int peer) override {
    return meeting_->at(group_.number(peer)).left ? presence::left : presence::here;
  }
  bool shares_address_space() const override { return true; }
  void leave() override {
    if (!left_.exchange(true)) meeting_->leave(group_.number());
  }
  result<std::unique_ptr<bootstrap>> without(std::vector<int> const& lost,
                                             std::chrono::milliseconds timeout) override {
    FERRY_TRY(membership made, meeting_->without(group_, lost, timeout));
    return std::unique_ptr<bootstrap>(new thread_bootstrap(meeting_, std::move(made)));
  }
  int joined_as(int rank) const override { return group_.number(rank); }
  std::vector<int> missing() const override { return group_.absent; }

 private:
  std::shared_ptr<Meeting> meeting_;
  membership group_;
  std::atomic<bool> left_ = false;
};

}  // namespace

thread_ranks::thread_ranks(int size) : meeting_(std::make_shared<meeting>(size)) {}

int thread_ranks::size() const {
  return meeting_->size;
}

bootstrap_factory thread_ranks::rank(int rank) const {
  return [where = meeting_, rank](group_options const&) -> result<std::unique_ptr<bootstrap>> {
    FERRY_TRY(auto all, where->take(rank));
    return std::unique_ptr<bootstrap>(new thread_bootstrap<meeting>(where, std::move(all)));
  };
}

}  // namespace ferry
