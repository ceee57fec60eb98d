// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/verbs.hpp>

#include "base/fail.hpp"
#include "transport/verbs/verbs_device.hpp"
#include "transport/verbs/verbs_queue.hpp"

#include <ferry/memory/buffer.hpp>

#include <thread>

namespace ferry {
namespace {

class verbs_transport final : public transport {
 public:
  verbs_transport(int rank, int num_ranks, verbs_options o)
      : rank_(rank), options_(std::move(o)), queues_(static_cast<std::size_t>(num_ranks)) {}

  result<void> set_up() {
    FERRY_TRY(device_, verbs_device::open(options_));
    std::size_t const per_peer = options_.queue_entries * options_.put_bytes;
    FERRY_TRY(staging_, buffer::allocate(per_peer * queues_.size()));
    std::span<std::byte> const staging{staging_.data(), staging_.size()};
    FERRY_TRY(ibv_mr* const mr, device_->register_memory(staging, false));
    for (std::size_t r = 0; r < queues_.size(); ++r)
      FERRY_CHECK(
          queues_[r].make(*device_, options_, staging.subspan(r * per_peer, per_peer), mr->lkey));
    return {};
  }

  abilities what_it_can() const override {
    return {.max_put_bytes = options_.put_bytes, .inline_bytes = options_.put_bytes};
  }

  result<std::vector<std::byte>> expose(std::span<std::byte> window) override {
    std::lock_guard lock(mutex_);
    FERRY_TRY(ibv_mr* const mr, device_->register_memory(window, true));
    std::vector<std::vector<std::byte>> endpoints;
    for (verbs_queue const& q : queues_) endpoints.push_back(q.endpoint());
    return pack_address({reinterpret_cast<std::uint64_t>(window.data()), window.size(), mr->rkey},
                        endpoints);
  }

  result<void> connect(int rank, std::span<std::byte const> address) override {
    FERRY_CHECK(check_rank(rank));
    FERRY_TRY(peer_address const theirs, unpack_address(rank, address, rank_));
    verbs_queue& q = queues_[static_cast<std::size_t>(rank)];
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

  result<void> progress() override {
    for (std::size_t r = 0; r < queues_.size(); ++r) {
      std::lock_guard lock(queues_[r].mutex);
      FERRY_CHECK(queues_[r].poll(static_cast<int>(r)));
    }
    return {};
  }

  result<void> flush(int rank, std::chrono::milliseconds timeout) override {
    FERRY_CHECK(check_rank(rank));
    verbs_queue& q = queues_[static_cast<std::size_t>(rank)];
    auto const end = std::chrono::steady_clock::now() + timeout;
    std::optional<std::uint64_t> all;
    for (;;) {
      {
        std::lock_guard lock(q.mutex);
        if (!all) all = q.posted();
        FERRY_CHECK(q.poll(rank));
        if (q.done() >= *all) return {};
        if (std::chrono::steady_clock::now() > end)
          return fail(error_code::timeout, "{} operations to rank {} were not complete after {} ms",
                      *all - q.done(), rank, timeout.count());
      }
      std::this_thread::yield();
    }
  }

 private:
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
    FERRY_CHECK(q.poll(to.rank));
    if (!q.has_room(count)) return post::try_again;
    FERRY_CHECK(post_it(q));
    return post::posted;
  }

  int rank_;
  verbs_options options_;
  buffer staging_;  // outlives the device, which reads it
  std::unique_ptr<verbs_device> device_;
  std::vector<verbs_queue> queues_;  // go before the device
  std::mutex mutex_;                 // of the device's list of memory
};

result<void> check_options(verbs_options const& o) {
  auto const within = [](char const* name, long value, long low, long high) -> result<void> {
    if (value < low || value > high)
      return fail(error_code::invalid_argument, "{} is {}; {} to {} is possible", name, value, low,
                  high);
    return {};
  };
  FERRY_CHECK(within("port", o.port, 1, 255));
  FERRY_CHECK(within("gid_index", o.gid_index, -1, 255));
  FERRY_CHECK(within("service_level", o.service_level, 0, 15));
  FERRY_CHECK(within("traffic_class", o.traffic_class, 0, 255));
  FERRY_CHECK(within("timeout", o.timeout, 1, 31));
  FERRY_CHECK(within("retries", o.retries, 0, 6));
  FERRY_CHECK(within("queue_entries", o.queue_entries, 4, 32768));
  return within("put_bytes", static_cast<long>(o.put_bytes), 8, 1L << 23);
}

}  // namespace

result<std::vector<std::string>> verbs_devices(verbs_options const& options) {
  FERRY_TRY(verbs_library const* const library, load_verbs(options.library));
  return device_names(*library);
}

result<std::unique_ptr<transport>> make_verbs_transport(int rank, int num_ranks,
                                                        verbs_options options) {
  if (num_ranks < 1 || rank < 0 || rank >= num_ranks)
    return fail(error_code::invalid_argument, "rank {} of {}", rank, num_ranks);
  FERRY_CHECK(check_options(options));
  auto made = std::make_unique<verbs_transport>(rank, num_ranks, std::move(options));
  FERRY_CHECK(made->set_up());
  return std::unique_ptr<transport>(std::move(made));
}

}  // namespace ferry
