// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/fail.hpp"
#include "group/mesh.hpp"
#include "group/rank_names.hpp"
#include "group/rendezvous.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>

namespace ferry {
namespace {

/// A collective sends this rank's bytes straight to every peer: each rank sees for itself who did
/// not come, and no rank depends on what a third one relays.
class tcp_bootstrap final : public bootstrap {
 public:
  /// `members` are the numbers of its ranks in the mesh, ascending.
  tcp_bootstrap(std::shared_ptr<mesh> over, std::vector<int> members, std::uint64_t rebuild)
      : mesh_(std::move(over)),
        members_(std::move(members)),
        rebuild_(rebuild),
        rank_(static_cast<int>(std::ranges::find(members_, mesh_->me()) - members_.begin())) {
    mesh_->use();
  }
  ~tcp_bootstrap() override { leave(); }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  bool shares_address_space() const override { return false; }
  result<std::vector<bytes>> all_gather(std::span<std::byte const> mine,
                                        std::chrono::milliseconds timeout) override;
  presence look(int peer) override;
  void leave() override;
  result<std::unique_ptr<bootstrap>> without(std::vector<int> const& lost,
                                             std::chrono::milliseconds timeout) override;
  int joined_as(int rank) const override { return members_[static_cast<std::size_t>(rank)]; }
  std::vector<int> missing() const override {
    std::lock_guard const state(guard_);
    return missing_;
  }

 private:
  struct collective {
    std::uint64_t number;
    std::vector<bytes> gathered;
    std::vector<bool> came;
  };
  result<void> check_usable() const;
  void take_what_came(collective& c);
  result<void> wait_for_all(collective& c, std::chrono::milliseconds timeout);
  std::optional<error> root_cause(collective const& c) const;
  std::vector<int> absent(collective const& c) const;
  /// None to oneself.
  link* line(int peer) const { return mesh_->line(joined_as(peer)); }

  std::shared_ptr<mesh> const mesh_;
  std::vector<int> const members_;
  std::uint64_t const rebuild_;
  int const rank_;
  std::uint64_t number_ = 0;
  mutable std::mutex guard_;
  bool left_ = false;
  std::optional<error> failure_;
  std::vector<int> missing_;
};

result<void> tcp_bootstrap::check_usable() const {
  if (std::lock_guard const state(guard_); left_)
    return fail(error_code::invalid_state, "rank {} has left the group", rank_);
  return {};
}

result<std::vector<bytes>> tcp_bootstrap::all_gather(std::span<std::byte const> mine,
                                                     std::chrono::milliseconds timeout) {
  if (mine.size() > max_frame_bytes)
    return fail(error_code::invalid_argument, "{} bytes to gather; at most {}", mine.size(),
                max_frame_bytes);
  std::lock_guard const lock(mesh_->one_at_a_time);
  FERRY_CHECK(check_usable());
  if (mesh_->who().current() != rebuild_)
    return fail(error_code::invalid_state, "the group was made anew");
  {
    std::lock_guard const state(guard_);
    missing_.clear();
  }
  auto const all = members_.size();
  collective c{rebuild_ << rebuild_shift | ++number_, std::vector<bytes>(all),
               std::vector<bool>(all)};
  auto const payload = std::make_shared<bytes const>(mine.begin(), mine.end());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    line(peer)->queue(frame_kind::data, c.number, payload);
    line(peer)->write();
  }
  c.came[static_cast<std::size_t>(rank_)] = true;
  c.gathered[static_cast<std::size_t>(rank_)] = *payload;
  if (auto outcome = wait_for_all(c, timeout); !outcome) {
    std::lock_guard const state(guard_);
    if (!failure_) failure_ = outcome.error();
    missing_ = absent(c);
    return std::move(outcome).error();
  }
  return std::move(c.gathered);
}

void tcp_bootstrap::take_what_came(collective& c) {
  mesh_->take_what_came();
  for (int peer = 0; peer < size(); ++peer) {
    auto const at = static_cast<std::size_t>(peer);
    if (c.came[at]) continue;
    if (auto got = mesh_->next(joined_as(peer), rebuild_)) {
      if (got->kind == frame_kind::data && got->number == c.number) {
        c.came[at] = true;
        c.gathered[at] = std::move(got->payload);
      } else {
        std::uint64_t const count = (std::uint64_t{1} << rebuild_shift) - 1;
        line(peer)->distrust(fmt::format("it is at collective {}, this rank at {}",
                                         got->number & count, c.number & count));
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
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank_ &&
          (!c.came[static_cast<std::size_t>(peer)] || line(peer)->wants_to_write()))
        unfinished.push_back(line(peer));
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
    // Its collectives of this group are over: it says who is lost.
    auto const& said = mesh_->who().said_by(joined_as(peer));
    if (said && said->rebuild > rebuild_) cause = given_up_by(peer, *said, members_);
  }
  bool const given_up = cause.has_value();
  for (int const peer : absent(c)) {
    if (line(peer)->peer() == presence::here) continue;
    // A rank that died is the cause; one that left because of it tells so; one that just left may
    // have had its reasons.
    if (line(peer)->peer() == presence::gone) return line(peer)->farewell(peer);
    if (!given_up && (!cause || line(peer)->explained())) cause = line(peer)->farewell(peer);
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
  return peer == rank_ ? presence::here : line(peer)->look();
}

void tcp_bootstrap::leave() {
  std::unique_lock state(guard_);
  if (std::exchange(left_, true)) return;
  auto const why = failure_ ? result<void>{*failure_} : result<void>{};
  state.unlock();
  mesh_->give_up(why);
}

result<std::unique_ptr<bootstrap>> tcp_bootstrap::without(std::vector<int> const& lost,
                                                          std::chrono::milliseconds timeout) {
  std::lock_guard const lock(mesh_->one_at_a_time);
  FERRY_CHECK(check_usable());
  survivors& who = mesh_->who();
  auto members = agree_on_survivors(who, *mesh_, {members_, rank_}, lost, timeout);
  if (!members) {
    std::lock_guard const state(guard_);
    missing_ = places_in(members_, who.silent());
    return std::move(members).error();
  }
  who.go_on();
  return std::unique_ptr<bootstrap>(new tcp_bootstrap(mesh_, *std::move(members), who.current()));
}

}  // namespace

std::unique_ptr<bootstrap> bootstrap_over(int rank, links to_peers) {
  auto const size = to_peers.size();
  std::vector<int> all(size);
  std::iota(all.begin(), all.end(), 0);
  return std::make_unique<tcp_bootstrap>(std::make_shared<mesh>(rank, std::move(to_peers)),
                                         std::move(all), 0);
}

}  // namespace ferry
