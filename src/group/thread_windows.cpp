// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/thread_windows.hpp"

#include "group/agreement.hpp"
#include "group/packed.hpp"

#include <map>
#include <mutex>

namespace ferry {
namespace {

/// Where a window waits, under a number, for the other threads to take their copy. A number in
/// place of a pointer: a rank that fails and goes must not leave a dangling one in a peer's hands.
class left_windows {
 public:
  std::uint64_t leave(window w) {
    std::lock_guard const lock(guard_);
    waiting_.emplace(++last_, std::move(w));
    return last_;
  }
  window copy(std::uint64_t number) {
    std::lock_guard const lock(guard_);
    auto const found = waiting_.find(number);
    return found == waiting_.end() ? window{} : found->second;
  }
  void remove(std::uint64_t number) {
    std::lock_guard const lock(guard_);
    waiting_.erase(number);
  }

 private:
  std::mutex guard_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, window> waiting_;
};

left_windows& windows_of_this_process() {
  static left_windows all;
  return all;
}

struct card {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
};

result<shared_windows> take_all(int rank, std::vector<card> const& cards,
                                std::vector<bool> const& same_node) {
  shared_windows shared;
  for (std::size_t peer = 0; peer < cards.size(); ++peer) {
    auto w = windows_of_this_process().copy(cards[peer].number);
    if (w.size() != cards[peer].bytes)
      return fail(error_code::unreachable, "rank {} took its window back before rank {} had it",
                  peer, rank);
    bool const own = static_cast<int>(peer) == rank;
    bool const near = same_node[peer];
    shared.elsewhere.push_back(near ? window{} : w);
    shared.windows.push_back(near ? std::move(w) : window{});
    shared.how.push_back(own ? reach::self : near ? reach::mapped : reach::network);
    shared.why.push_back(
        near ? std::string()
             : fmt::format("rank {} counts as one of another node (ranks_per_node)", peer));
    shared.bytes.push_back(cards[peer].bytes);
  }
  return shared;
}

}  // namespace

result<shared_windows> share_between_threads(bootstrap& ranks, std::size_t size,
                                             std::chrono::milliseconds timeout,
                                             std::vector<bool> const& same_node) {
  auto made = size == 0 ? result<window>(window{}) : window::plain(size);
  result<void> const outcome = made ? result<void>{} : result<void>{made.error()};
  auto& waiting = windows_of_this_process();
  auto const number = waiting.leave(made ? *made : window{});
  struct taken_back {
    left_windows& from;
    std::uint64_t number;
    ~taken_back() { from.remove(number); }
  } const at_the_end{waiting, number};

  FERRY_TRY(
      auto const all,
      ranks.all_gather(packer{}.add(card{number, size}).add_outcome(outcome).packed(), timeout));
  if (!made) return made.error();
  std::vector<card> cards;
  for (int peer = 0; peer < ranks.size(); ++peer) {
    unpacker from{all[peer]};
    cards.push_back(from.take<card>());
    if (auto const theirs = from.take_outcome(); !theirs) return told_by(peer, theirs.error());
  }
  auto shared = take_all(ranks.rank(), cards, same_node);
  FERRY_CHECK(agree(ranks, shared ? result<void>{} : result<void>{shared.error()}, timeout));
  return shared;
}

}  // namespace ferry
