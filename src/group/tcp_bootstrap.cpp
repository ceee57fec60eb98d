// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/fail.hpp"
#include "group/rank_names.hpp"
#include "group/rendezvous.hpp"

#include <mutex>
#include <optional>

namespace ferry {
namespace {

/// A collective sends this rank's bytes straight to every peer: each rank sees for itself who did
/// not come, and no rank depends on what a third one relays.
class tcp_bootstrap final : public bootstrap {
 public:
  tcp_bootstrap(int rank, links to_peers) : rank_(rank), links_(std::move(to_peers)) {}
  ~tcp_bootstrap() override { leave(); }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(links_.size()); }
  bool shares_address_space() const override { return false; }
  result<std::vector<bytes>> all_gather(std::span<std::byte const> mine,
                                        std::chrono::milliseconds timeout) override;
  presence look(int peer) override;
  void leave() override;

 private:
  struct collective {
    std::uint64_t number;
    std::vector<bytes> gathered;
    std::vector<bool> came;
  };
  void take_what_came(collective& c);
  result<void> wait_for_all(collective& c, std::chrono::milliseconds timeout);
  std::optional<error> root_cause(collective const& c) const;
  std::vector<int> absent(collective const& c) const;

  int const rank_;
  links const links_;
  std::mutex one_at_a_time_;
  std::uint64_t number_ = 0;
  std::mutex guard_;
  bool left_ = false;
  std::optional<error> failure_;
};

result<std::vector<bytes>> tcp_bootstrap::all_gather(std::span<std::byte const> mine,
                                                     std::chrono::milliseconds timeout) {
  if (mine.size() > max_frame_bytes)
    return fail(error_code::invalid_argument, "{} bytes to gather; at most {}", mine.size(),
                max_frame_bytes);
  std::lock_guard const lock(one_at_a_time_);
  if (std::lock_guard const state(guard_); left_)
    return fail(error_code::invalid_state, "rank {} has left the group", rank_);
  collective c{++number_, std::vector<bytes>(links_.size()), std::vector<bool>(links_.size())};
  auto const payload = std::make_shared<bytes const>(mine.begin(), mine.end());
  for (auto const& line : links_) {
    if (!line) continue;
    line->queue(frame_kind::data, c.number, payload);
    line->write();
  }
  c.came[static_cast<std::size_t>(rank_)] = true;
  c.gathered[static_cast<std::size_t>(rank_)] = *payload;
  if (auto outcome = wait_for_all(c, timeout); !outcome) {
    std::lock_guard const state(guard_);
    if (!failure_) failure_ = outcome.error();
    return std::move(outcome).error();
  }
  return std::move(c.gathered);
}

void tcp_bootstrap::take_what_came(collective& c) {
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    if (c.came[peer]) continue;
    if (auto got = links_[peer]->next()) {
      if (got->kind == frame_kind::data && got->number == c.number) {
        c.came[peer] = true;
        c.gathered[peer] = std::move(got->payload);
      } else {
        links_[peer]->distrust(
            fmt::format("it is at collective {}, this rank at {}", got->number, c.number));
      }
    }
  }
}

result<void> tcp_bootstrap::wait_for_all(collective& c, std::chrono::milliseconds timeout) {
  auto const end = after(timeout);
  for (;;) {
    take_what_came(c);
    if (auto cause = root_cause(c)) return *std::move(cause);
    std::vector<link*> unfinished;
    for (std::size_t peer = 0; peer < links_.size(); ++peer)
      if (links_[peer] && (!c.came[peer] || links_[peer]->wants_to_write()))
        unfinished.push_back(links_[peer].get());
    if (unfinished.empty()) return {};
    if (passed(end)) {
      auto const missing = absent(c);
      if (missing.empty())
        return fail(error_code::timeout, "not all ranks took rank {}'s bytes within {} ms", rank_,
                    timeout.count());
      return fail(error_code::timeout, "{} did not come within {} ms", names_of(missing),
                  timeout.count());
    }
    // Another thread's look() may take a peer's last words from under this wait.
    auto const turn = std::min(end, after(std::chrono::milliseconds{50}));
    FERRY_TRY(bool const nobody, move_frames(unfinished, -1, turn));
    static_cast<void>(nobody);
  }
}

std::optional<error> tcp_bootstrap::root_cause(collective const& c) const {
  std::optional<error> cause;
  for (int const peer : absent(c)) {
    auto const& line = *links_[static_cast<std::size_t>(peer)];
    if (line.peer() == presence::here) continue;
    // A rank that died is the cause; one that left because of it tells so; one that just left may
    // have had its reasons.
    if (line.peer() == presence::gone) return line.farewell(peer);
    if (!cause || line.explained()) cause = line.farewell(peer);
  }
  return cause;
}

std::vector<int> tcp_bootstrap::absent(collective const& c) const {
  std::vector<int> ranks;
  for (int peer = 0; peer < size(); ++peer)
    if (!c.came[static_cast<std::size_t>(peer)]) ranks.push_back(peer);
  return ranks;
}

presence tcp_bootstrap::look(int peer) {
  return peer == rank_ ? presence::here : links_[static_cast<std::size_t>(peer)]->look();
}

void tcp_bootstrap::leave() {
  std::lock_guard const state(guard_);
  if (std::exchange(left_, true)) return;
  auto const why = failure_ ? result<void>{*failure_} : result<void>{};
  for (auto const& line : links_)
    if (line) line->leave(why);
}

}  // namespace

std::unique_ptr<bootstrap> bootstrap_over(int rank, links to_peers) {
  return std::make_unique<tcp_bootstrap>(rank, std::move(to_peers));
}

}  // namespace ferry
