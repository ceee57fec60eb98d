// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/verbs.hpp>

#include "base/fail.hpp"
#include "transport/verbs/verbs_device.hpp"
#include "transport/verbs/verbs_queue.hpp"

#include <ferry/memory/buffer.hpp>

#include <atomic>
#include <cstring>
#include <thread>

namespace ferry {
namespace {

class verbs_transport final : public transport {
 public:
  verbs_transport(int rank, int num_ranks, verbs_options o, std::vector<int> peers)
      : rank_(rank),
        options_(std::move(o)),
        peers_(std::move(peers)),
        queues_(static_cast<std::size_t>(num_ranks)) {}

  result<void> set_up() {
    FERRY_TRY(device_, verbs_device::open(options_));
    if (peers_.empty())
      for (std::size_t r = 0; r < queues_.size(); ++r) peers_.push_back(static_cast<int>(r));
    std::size_t const per_peer = (options_.queue_entries + 1) * options_.put_bytes;
    FERRY_TRY(staging_, buffer::allocate(per_peer * peers_.size()));
    std::span<std::byte> const staging{staging_.data(), staging_.size()};
    FERRY_TRY(ibv_mr* const mr, device_->register_memory(staging, false));
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      FERRY_CHECK(check_rank(peers_[i]));
      FERRY_CHECK(queues_[static_cast<std::size_t>(peers_[i])].make(
          *device_, options_, staging.subspan(i * per_peer, per_peer), mr->lkey));
    }
    return {};
  }

  abilities what_it_can() const override {
    return {.fetches = true,
            .settles = true,
            .max_put_bytes = options_.put_bytes,
            .inline_bytes = options_.put_bytes};
  }

  result<std::vector<std::byte>> expose(std::span<std::byte> window) override {
    std::lock_guard lock(mutex_);
    FERRY_TRY(ibv_mr* const mr, device_->register_memory(window, true));
    std::vector<std::vector<std::byte>> endpoints;
    for (verbs_queue const& q : queues_)
      endpoints.push_back(q.made() ? q.endpoint() : std::vector<std::byte>());
    return pack_address({reinterpret_cast<std::uint64_t>(window.data()), window.size(), mr->rkey},
                        endpoints);
  }

  result<void> connect(int rank, std::span<std::byte const> address) override {
    FERRY_CHECK(check_rank(rank));
    FERRY_TRY(peer_address const theirs, unpack_address(rank, address, rank_));
    verbs_queue& q = queues_[static_cast<std::size_t>(rank)];
    if (!q.made())
      return fail(error_code::invalid_state, "rank {} is none of the peers of rank {}", rank,
                  rank_);
    std::lock_guard lock(q.mutex);
    return q.connect(theirs.endpoint, theirs.window);
  }

  result<post> put(remote_region to, std::byte const* from) override {
    return with_room(to, 1, [&](verbs_queue& q) -> result<void> {
      if (to.bytes > options_.put_bytes)
        return fail(error_code::invalid_argument, "a put of {} bytes; at most {}", to.bytes,
                    options_.put_bytes);
      return q.put(q.window.address + to.offset, from, to.bytes);
    });
  }

  result<post> signal(remote_region to, std::uint64_t value, strength promise) override {
    bool const covers = promise == strength::all_earlier;
    return with_room(to, covers ? 2 : 1, [&](verbs_queue& q) -> result<void> {
      if (to.bytes != 8 || to.offset % 8 != 0)
        return fail(error_code::invalid_argument,
                    "a signal to {} bytes at offset {}; a word is 8 bytes at a multiple of 8",
                    to.bytes, to.offset);
      return q.signal(q.window.address + to.offset, value, covers);
    });
  }

  result<post> settle(int rank) override {
    return with_room({rank, 0, 0}, 1, [](verbs_queue& q) { return q.settle(); });
  }
  result<bool> settled(int rank) override {
    FERRY_CHECK(check_rank(rank));
    verbs_queue& q = queues_[static_cast<std::size_t>(rank)];
    std::lock_guard lock(q.mutex);
    FERRY_CHECK(poll(q, rank));
    return q.settled();
  }

  result<void> progress() override {
    for (std::size_t r = 0; r < queues_.size(); ++r) {
      std::lock_guard lock(queues_[r].mutex);
      FERRY_CHECK(poll(queues_[r], static_cast<int>(r)));
    }
    return {};
  }

  result<void> flush(int rank, std::chrono::milliseconds timeout) override {
    FERRY_CHECK(check_rank(rank));
    verbs_queue& q = queues_[static_cast<std::size_t>(rank)];
    std::uint64_t const all = [&] {
      std::lock_guard lock(q.mutex);
      return q.posted();
    }();
    return wait_until_done(q, rank, all, std::chrono::steady_clock::now() + timeout, timeout);
  }

  result<void> fetch(remote_region from, std::byte* to,
                     std::chrono::milliseconds timeout) override {
    FERRY_CHECK(check_rank(from.rank));
    if (from.bytes > options_.put_bytes)
      return fail(error_code::invalid_argument, "a fetch of {} bytes; at most {}", from.bytes,
                  options_.put_bytes);
    verbs_queue& q = queues_[static_cast<std::size_t>(from.rank)];
    // One limit for all that is waited for: another fetch, room in the queue, the answer.
    auto const end = std::chrono::steady_clock::now() + timeout;
    std::unique_lock one_at_a_time(q.fetching, std::try_to_lock);
    while (!one_at_a_time.owns_lock()) {
      if (std::chrono::steady_clock::now() > end)
        return fail(error_code::timeout, "rank {}'s window was being read by another for {} ms",
                    from.rank, timeout.count());
      std::this_thread::yield();
      static_cast<void>(one_at_a_time.try_lock());
    }
    std::uint64_t all = 0;
    for (;;) {
      FERRY_TRY(post const posted, with_room(from, 1, [&](verbs_queue& into) -> result<void> {
                  FERRY_CHECK(into.fetch(into.window.address + from.offset, from.bytes));
                  all = into.posted();
                  return {};
                }));
      if (posted == post::posted) break;
      if (std::chrono::steady_clock::now() > end)
        return fail(error_code::timeout, "rank {}'s send queue stayed full for {} ms", from.rank,
                    timeout.count());
      std::this_thread::yield();
    }
    FERRY_CHECK(wait_until_done(q, from.rank, all, end, timeout));
    std::memcpy(to, q.fetched(), from.bytes);
    return {};
  }

  int failed_rank() const override { return failed_rank_; }

 private:
  // Returns once the entries before `all` are complete. `timeout` is what the caller was given.
  result<void> wait_until_done(verbs_queue& q, int rank, std::uint64_t all,
                               std::chrono::steady_clock::time_point end,
                               std::chrono::milliseconds timeout) {
    for (;;) {
      {
        std::lock_guard lock(q.mutex);
        FERRY_CHECK(poll(q, rank));
        if (q.done() >= all) return {};
        if (std::chrono::steady_clock::now() > end)
          return fail(error_code::timeout, "{} operations to rank {} were not complete after {} ms",
                      all - q.done(), rank, timeout.count());
      }
      std::this_thread::yield();
    }
  }

  result<void> poll(verbs_queue& q, int rank) {
    result<void> outcome = q.poll(rank);
    int none = -1;
    if (!outcome) failed_rank_.compare_exchange_strong(none, rank);
    return outcome;
  }

  result<void> check_rank(int rank) const {
    if (rank < 0 || static_cast<std::size_t>(rank) >= queues_.size())
      return fail(error_code::invalid_argument, "rank {} is not one of 0..{}", rank,
                  queues_.size() - 1);
    return {};
  }

  template <class Post>
  result<post> with_room(remote_region const& to, std::uint32_t count, Post const& post_it) {
    FERRY_CHECK(check_rank(to.rank));
    verbs_queue& q = queues_[static_cast<std::size_t>(to.rank)];
    std::lock_guard lock(q.mutex);
    if (!q.connected) return fail(error_code::invalid_state, "rank {} is not connected", to.rank);
    if (to.bytes > q.window.bytes || to.offset > q.window.bytes - to.bytes)
      return fail(error_code::invalid_argument, "bytes {} to {} of rank {}'s window, which has {}",
                  to.offset, to.offset + to.bytes, to.rank, q.window.bytes);
    FERRY_CHECK(poll(q, to.rank));
    if (!q.has_room(count)) return post::try_again;
    FERRY_CHECK(post_it(q));
    return post::posted;
  }

  int rank_;
  verbs_options options_;
  std::vector<int> peers_;
  buffer staging_;  // outlives the device, which reads it
  std::unique_ptr<verbs_device> device_;
  std::vector<verbs_queue> queues_;  // go before the device
  std::mutex mutex_;                 // of the device's list of memory
  std::atomic<int> failed_rank_{-1};
};

}  // namespace

result<std::vector<std::string>> verbs_devices(verbs_options const& options) {
  FERRY_TRY(verbs_library const* const library, load_verbs(options.library));
  return device_names(*library);
}

result<std::vector<std::string>> working_verbs_devices(verbs_options const& options) {
  FERRY_TRY(auto const all, verbs_devices(options));
  std::vector<std::string> working;
  for (std::string const& name : all) {
    verbs_options one = options;
    one.device = name;
    if (verbs_device::open(one)) working.push_back(name);
  }
  return working;
}

result<std::unique_ptr<transport>> make_verbs_transport(int rank, int num_ranks,
                                                        verbs_options options,
                                                        std::vector<int> peers) {
  if (num_ranks < 1 || rank < 0 || rank >= num_ranks)
    return fail(error_code::invalid_argument, "rank {} of {}", rank, num_ranks);
  FERRY_CHECK(validate(options));
  auto made =
      std::make_unique<verbs_transport>(rank, num_ranks, std::move(options), std::move(peers));
  FERRY_CHECK(made->set_up());
  return std::unique_ptr<transport>(std::move(made));
}

}  // namespace ferry
