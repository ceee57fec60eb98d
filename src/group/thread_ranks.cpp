// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/group.hpp>

#include "base/fail.hpp"
#include "group/deadline.hpp"
#include "group/rank_names.hpp"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

namespace ferry {

/// Where the threads meet. A collective is a round, numbered by each rank for itself; what a rank
/// brought to a round stays there even if that rank gave up waiting, so a late rank still finds it.
struct thread_ranks::meeting {
  struct round {
    std::vector<std::optional<bytes>> brought;
    int missing = 0;
    int not_yet_read = 0;
  };
  struct place {
    bool taken = false;
    std::uint64_t rounds = 0;  ///< rounds this rank has come to
    std::atomic<bool> left = false;
  };

  explicit meeting(int num_ranks)
      : size(num_ranks), places(num_ranks >= 1 && num_ranks <= max_ranks ? num_ranks : 0) {}

  result<void> take(int rank);
  result<std::vector<bytes>> all_gather(int rank, std::span<std::byte const> mine,
                                        std::chrono::milliseconds timeout);
  void leave(int rank);

  int const size;
  std::mutex guard;
  std::condition_variable changed;
  std::vector<place> places;
  std::map<std::uint64_t, round> rounds;

 private:
  round& open(std::uint64_t number);
  result<void> wait_for(round const& r, deadline end, std::chrono::milliseconds timeout,
                        std::unique_lock<std::mutex>& lock);
};

result<void> thread_ranks::meeting::take(int rank) {
  if (size < 1 || size > max_ranks)
    return fail(error_code::invalid_argument, "a group of {} ranks; from 1 to {}", size, max_ranks);
  if (rank < 0 || rank >= size)
    return fail(error_code::invalid_argument, "rank {} in a group of {} ranks", rank, size);
  std::lock_guard const lock(guard);
  auto& mine = places[static_cast<std::size_t>(rank)];
  if (mine.taken)
    return fail(error_code::invalid_state, "rank {} of {} threads was taken before", rank, size);
  mine.taken = true;
  return {};
}

thread_ranks::meeting::round& thread_ranks::meeting::open(std::uint64_t number) {
  auto& r = rounds[number];
  if (r.brought.empty()) {
    r.brought.resize(places.size());
    r.missing = r.not_yet_read = size;
  }
  return r;
}

result<void> thread_ranks::meeting::wait_for(round const& r, deadline end,
                                             std::chrono::milliseconds timeout,
                                             std::unique_lock<std::mutex>& lock) {
  std::vector<int> absent;
  auto const settled = [&] {
    if (r.missing == 0) return true;
    for (int peer = 0; peer < size; ++peer)
      if (!r.brought[peer] && places[peer].left) return true;
    return false;
  };
  changed.wait_until(lock, end, settled);
  if (r.missing == 0) return {};
  for (int peer = 0; peer < size; ++peer) {
    if (r.brought[peer]) continue;
    if (places[peer].left) return fail(error_code::unreachable, "rank {} has left the group", peer);
    absent.push_back(peer);
  }
  return fail(error_code::timeout, "{} did not come within {} ms", names_of(absent),
              timeout.count());
}

result<std::vector<bytes>> thread_ranks::meeting::all_gather(int rank,
                                                             std::span<std::byte const> mine,
                                                             std::chrono::milliseconds timeout) {
  auto const end = after(timeout);
  std::unique_lock lock(guard);
  auto const number = places[rank].rounds++;
  auto& r = open(number);
  r.brought[rank] = bytes(mine.begin(), mine.end());
  if (--r.missing == 0) changed.notify_all();
  FERRY_CHECK(wait_for(r, end, timeout, lock));

  std::vector<bytes> gathered;
  gathered.reserve(r.brought.size());
  bool const last = --r.not_yet_read == 0;
  for (auto& b : r.brought) gathered.push_back(last ? std::move(*b) : *b);
  if (last) rounds.erase(number);
  return gathered;
}

void thread_ranks::meeting::leave(int rank) {
  std::lock_guard const lock(guard);
  places[rank].left = true;
  changed.notify_all();
}

namespace {

template <class Meeting>
class thread_bootstrap final : public bootstrap {
 public:
  thread_bootstrap(std::shared_ptr<Meeting> where, int rank)
      : meeting_(std::move(where)), rank_(rank) {}
  ~thread_bootstrap() override { leave(); }

  int rank() const override { return rank_; }
  int size() const override { return meeting_->size; }
  result<std::vector<bytes>> all_gather(std::span<std::byte const> mine,
                                        std::chrono::milliseconds timeout) override {
    return meeting_->all_gather(rank_, mine, timeout);
  }
  presence look(int peer) override {
    return meeting_->places[peer].left ? presence::left : presence::here;
  }
  bool shares_address_space() const override { return true; }
  void leave() override { meeting_->leave(rank_); }

 private:
  std::shared_ptr<Meeting> meeting_;
  int rank_;
};

}  // namespace

thread_ranks::thread_ranks(int size) : meeting_(std::make_shared<meeting>(size)) {}

int thread_ranks::size() const {
  return meeting_->size;
}

bootstrap_factory thread_ranks::rank(int rank) const {
  return [where = meeting_, rank](group_options const&) -> result<std::unique_ptr<bootstrap>> {
    FERRY_CHECK(where->take(rank));
    return std::unique_ptr<bootstrap>(new thread_bootstrap<meeting>(where, rank));
  };
}

}  // namespace ferry
