// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/striped.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace ferry {
namespace {

/// Rails of one rank; more make no sense, and a count beyond is no address of ours.
constexpr std::size_t most_rails = 64;

class striped_transport final : public transport {
 public:
  striped_transport(int num_ranks, std::vector<std::unique_ptr<transport>> rails)
      : rails_(std::move(rails)), peers_(static_cast<std::size_t>(num_ranks)) {
    for (peer& p : peers_) p.rails.resize(rails_.size());
  }

  abilities what_it_can() const override {
    abilities all = rails_.front()->what_it_can();
    for (auto const& r : rails_) {
      abilities const a = r->what_it_can();
      all.max_put_bytes = std::min(all.max_put_bytes, a.max_put_bytes);
      all.inline_bytes = std::min(all.inline_bytes, a.inline_bytes);
    }
    all.remote_add = all.ordered_puts = all.from_device = all.settles = false;
    return all;
  }

  /// A length and an address for each rail.
  result<std::vector<std::byte>> expose(std::span<std::byte> window) override {
    std::vector<std::byte> made;
    for (auto const& r : rails_) {
      FERRY_TRY(auto const address, r->expose(window));
      std::uint64_t const bytes = address.size();
      auto const* const at = reinterpret_cast<std::byte const*>(&bytes);
      made.insert(made.end(), at, at + sizeof bytes);
      made.insert(made.end(), address.begin(), address.end());
    }
    return made;
  }

  result<void> connect(int rank, std::span<std::byte const> address) override {
    FERRY_CHECK(check_rank(rank));
    FERRY_TRY(auto const addresses, split(rank, address));
    peer& p = of(rank);
    std::lock_guard lock(p.mutex);
    p.num_rails = std::min(addresses.size(), rails_.size());
    p.next = 0;
    p.waits = false;
    p.rails.assign(rails_.size(), {});
    for (std::size_t i = 0; i < p.num_rails; ++i)
      FERRY_CHECK(rails_[i]->connect(rank, addresses[i]));
    return {};
  }

  result<post> put(remote_region to, std::byte const* from) override {
    FERRY_CHECK(check_rank(to.rank));
    peer& p = of(to.rank);
    std::lock_guard lock(p.mutex);
    std::size_t const i = p.waits ? 0 : p.next % p.num_rails;
    FERRY_TRY(post const done, rails_[i]->put(to, from));
    if (done == post::try_again) return done;
    if (!p.waits) ++p.next;
    p.rails[i].unsettled = i != 0;
    return done;
  }

  result<post> signal(remote_region to, std::uint64_t value, strength promise) override {
    FERRY_CHECK(check_rank(to.rank));
    peer& p = of(to.rank);
    std::lock_guard lock(p.mutex);
    if (promise == strength::this_put || to.bytes != 8 || to.offset % 8 != 0)
      return rails_[0]->signal(to, value, promise);
    FERRY_TRY(bool const settled, settle_others(p, to.rank));
    p.waits = !settled;
    if (!settled) return post::try_again;
    return rails_[0]->signal(to, value, promise);
  }

  result<void> progress() override {
    for (auto const& r : rails_) FERRY_CHECK(r->progress());
    return {};
  }

  result<void> flush(int rank, std::chrono::milliseconds timeout) override {
    FERRY_CHECK(check_rank(rank));
    auto const end = std::chrono::steady_clock::now() + timeout;
    std::size_t const count = num_rails(rank);
    for (std::size_t i = 0; i < count; ++i) {
      auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      FERRY_CHECK(rails_[i]->flush(rank, std::max(left, std::chrono::milliseconds{0})));
    }
    return {};
  }

  result<void> fetch(remote_region from, std::byte* to,
                     std::chrono::milliseconds timeout) override {
    return rails_[0]->fetch(from, to, timeout);
  }

  int failed_rank() const override {
    for (auto const& r : rails_)
      if (int const rank = r->failed_rank(); rank >= 0) return rank;
    return -1;
  }

 private:
  struct on_rail {
    bool unsettled = false;  ///< puts went out since the last settle
    bool settling = false;
  };
  struct peer {
    std::mutex mutex;
    std::size_t num_rails = 1;
    std::size_t next = 0;
    bool waits = false;  ///< a signal was refused until the other rails are settled
    std::vector<on_rail> rails;
  };

  peer& of(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  std::size_t num_rails(int rank) {
    std::lock_guard lock(of(rank).mutex);
    return of(rank).num_rails;
  }

  /// Whether everything that was put to the rank on other rails than the first is visible there.
  result<bool> settle_others(peer& p, int rank) {
    bool all = true;
    for (std::size_t i = 1; i < p.num_rails; ++i) {
      on_rail& r = p.rails[i];
      if (r.unsettled && !r.settling) {
        FERRY_TRY(post const posted, rails_[i]->settle(rank));
        r.settling = posted == post::posted;
        r.unsettled = !r.settling;
      }
      if (r.settling) {
        FERRY_TRY(bool const settled, rails_[i]->settled(rank));
        r.settling = !settled;
      }
      all = all && !r.settling && !r.unsettled;
    }
    return all;
  }

  result<std::vector<std::span<std::byte const>>> split(int rank,
                                                        std::span<std::byte const> address) const {
    std::vector<std::span<std::byte const>> parts;
    while (!address.empty() && parts.size() < most_rails) {
      std::uint64_t bytes = 0;
      if (address.size() < sizeof bytes) break;
      std::memcpy(&bytes, address.data(), sizeof bytes);
      if (bytes > address.size() - sizeof bytes) break;
      parts.push_back(address.subspan(sizeof bytes, bytes));
      address = address.subspan(sizeof bytes + bytes);
    }
    if (!address.empty() || parts.empty())
      return fail(error_code::malformed_input,
                  "rank {}'s addresses of {} rails are followed by {} bytes", rank, parts.size(),
                  address.size());
    return parts;
  }

  result<void> check_rank(int rank) const {
    if (rank < 0 || static_cast<std::size_t>(rank) >= peers_.size())
      return fail(error_code::invalid_argument, "rank {} is not one of 0..{}", rank,
                  peers_.size() - 1);
    return {};
  }

  std::vector<std::unique_ptr<transport>> rails_;
  std::vector<peer> peers_;
};

}  // namespace

result<std::unique_ptr<transport>> make_striped_transport(
    int num_ranks, std::vector<std::unique_ptr<transport>> rails) {
  if (num_ranks < 1 || rails.empty() || rails.size() > most_rails)
    return fail(error_code::invalid_argument, "{} rails of {} ranks; 1 to {} rails are possible",
                rails.size(), num_ranks, most_rails);
  for (auto const& r : rails)
    if (rails.size() > 1 && !r->what_it_can().settles)
      return fail(error_code::invalid_argument,
                  "{} rails, and one of them cannot tell when puts are visible", rails.size());
  return std::unique_ptr<transport>(
      std::make_unique<striped_transport>(num_ranks, std::move(rails)));
}

}  // namespace ferry
