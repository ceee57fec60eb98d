// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/direct_transport.hpp>

#include "base/fail.hpp"
#include "transport/device_verbs/status_error.hpp"
#include "transport/peer_address.hpp"

#include <ferry/memory/buffer.hpp>
#include <ferry/transport/device_verbs/send_queue.hpp>

#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <thread>

namespace ferry::device_verbs {
namespace {

/// What belongs to one peer. Staging memory is fixed per entry of the queue, so it is free when the
/// entry is; an atomic's old value comes back to its entry's place as well.
template <class Format>
struct direct_peer {
  send_queue<Format, cpu_nic_access> queue{};
  queue_counters counters{};
  std::byte* staging = nullptr;
  std::atomic<bool> connected{false};
  peer_window window{};
};

template <class Format>
class direct_transport final : public transport {
 public:
  direct_transport(int rank, int num_ranks, std::unique_ptr<direct_nic> nic, direct_options o)
      : rank_(rank),
        options_(o),
        nic_(std::move(nic)),
        peers_(static_cast<std::size_t>(num_ranks)) {}

  result<void> set_up() {
    std::size_t const per_peer = options_.queue_entries * options_.put_bytes;
    FERRY_TRY(staging_, buffer::allocate(per_peer * peers_.size()));
    FERRY_TRY(memory_keys const keys,
              nic_->register_memory({staging_.data(), staging_.size()}, false));
    staging_key_ = keys.local;
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      direct_peer<Format>& p = peers_[r];
      FERRY_TRY(p.queue.pair, nic_->make_queue(options_.queue_entries));
      p.counters = start_counters<Format>(p.queue.pair, direct_nic::first_packet);
      p.queue.counters = &p.counters;
      p.staging = staging_.data() + r * per_peer;
    }
    return {};
  }

  abilities what_it_can() const override {
    // A put's source is copied while posting.
    return {.max_put_bytes = options_.put_bytes, .inline_bytes = options_.put_bytes};
  }

  result<std::vector<std::byte>> expose(std::span<std::byte> window) override {
    FERRY_TRY(memory_keys const keys, nic_->register_memory(window, true));
    std::vector<std::vector<std::byte>> endpoints;
    for (direct_peer<Format>& p : peers_) {
      FERRY_TRY(std::vector<std::byte> endpoint, nic_->endpoint_of(p.queue.pair));
      endpoints.push_back(std::move(endpoint));
    }
    return pack_address(
        {reinterpret_cast<std::uint64_t>(window.data()), window.size(), keys.remote}, endpoints);
  }

  result<void> connect(int rank, std::span<std::byte const> address) override {
    FERRY_CHECK(check_rank(rank));
    FERRY_TRY(peer_address const theirs, unpack_address(rank, address, rank_));
    direct_peer<Format>& p = peers_[static_cast<std::size_t>(rank)];
    FERRY_CHECK(nic_->connect(p.queue.pair, theirs.endpoint));
    p.window = theirs.window;
    p.connected.store(true, std::memory_order_release);
    return {};
  }

  result<post> put(remote_region to, std::byte const* from) override {
    FERRY_CHECK(check(to));
    if (to.bytes > options_.put_bytes)
      return fail(error_code::invalid_argument, "a put of {} bytes; at most {}", to.bytes,
                  options_.put_bytes);
    direct_peer<Format>& p = peers_[static_cast<std::size_t>(to.rank)];
    return post_some(to.rank, p, 1, [&](std::uint32_t index, std::uint32_t) {
      std::byte* const at = staging_of(p, index);
      std::memcpy(at, from, to.bytes);
      return work{.what = verb::write,
                  .remote_key = p.window.key,
                  .remote = p.window.address + to.offset,
                  .local = reinterpret_cast<std::uint64_t>(at),
                  .local_key = staging_key_,
                  .bytes = static_cast<std::uint32_t>(to.bytes)};
    });
  }

  result<post> signal(remote_region to, std::uint64_t value, strength promise) override {
    FERRY_CHECK(check(to));
    if (to.bytes != 8 || to.offset % 8 != 0)
      return fail(error_code::invalid_argument,
                  "a signal to {} bytes at offset {}; a word is 8 bytes at a multiple of 8",
                  to.bytes, to.offset);
    direct_peer<Format>& p = peers_[static_cast<std::size_t>(to.rank)];
    bool const covers = promise == strength::all_earlier;
    return post_some(to.rank, p, covers ? 2 : 1, [&](std::uint32_t index, std::uint32_t i) {
      work w{.what = verb::inline_word,
             .fenced = covers,
             .remote_key = p.window.key,
             .remote = p.window.address + to.offset,
             .word = value};
      if (covers && i == 0) {
        w.what = verb::fetch_add;
        w.fenced = w.signalled = false;
        w.word = 0;
        w.local = reinterpret_cast<std::uint64_t>(staging_of(p, index));
        w.local_key = staging_key_;
      }
      return w;
    });
  }

  result<void> progress() override {
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (!peers_[r].connected.load(std::memory_order_acquire)) continue;
      peers_[r].queue.poll();
      FERRY_CHECK(failure_of(r));
    }
    return {};
  }

  result<void> flush(int rank, std::chrono::milliseconds timeout) override {
    FERRY_CHECK(check_rank(rank));
    direct_peer<Format>& p = peers_[static_cast<std::size_t>(rank)];
    auto const end = std::chrono::steady_clock::now() + timeout;
    std::uint32_t const all = p.queue.access.load(&p.counters.reserved);
    for (;;) {
      FERRY_CHECK(failure_of(static_cast<std::size_t>(rank)));
      if (p.queue.is_done(all)) return {};
      if (p.queue.poll() != 0) continue;
      if (std::chrono::steady_clock::now() > end)
        return fail(error_code::timeout, "{} operations to rank {} were not complete after {} ms",
                    all - p.queue.access.load(&p.counters.completed), rank, timeout.count());
      std::this_thread::yield();
    }
  }

 private:
  result<void> check_rank(int rank) const {
    if (rank < 0 || static_cast<std::size_t>(rank) >= peers_.size())
      return fail(error_code::invalid_argument, "rank {} is not one of 0..{}", rank,
                  peers_.size() - 1);
    return {};
  }
  result<void> check(remote_region const& to) const {
    FERRY_CHECK(check_rank(to.rank));
    direct_peer<Format> const& p = peers_[static_cast<std::size_t>(to.rank)];
    if (!p.connected.load(std::memory_order_acquire))
      return fail(error_code::invalid_state, "rank {} is not connected", to.rank);
    if (to.bytes > p.window.bytes || to.offset > p.window.bytes - to.bytes)
      return fail(error_code::invalid_argument, "bytes {} to {} of rank {}'s window, which has {}",
                  to.offset, to.offset + to.bytes, to.rank, p.window.bytes);
    return {};
  }
  result<void> failure_of(std::size_t rank) {
    nic_status const s = peers_[rank].queue.status();
    if (s == nic_status::ok) return {};
    return error_of(s, static_cast<int>(rank));
  }
  std::byte* staging_of(direct_peer<Format> const& p, std::uint32_t index) const {
    return p.staging + (index & (options_.queue_entries - 1)) * options_.put_bytes;
  }

  template <class Make>
  result<post> post_some(int rank, direct_peer<Format>& p, std::uint32_t count, Make const& make) {
    FERRY_CHECK(failure_of(static_cast<std::size_t>(rank)));
    std::uint32_t first = 0;
    if (!p.queue.try_reserve(count, first)) {
      p.queue.poll();
      FERRY_CHECK(failure_of(static_cast<std::size_t>(rank)));
      return post::try_again;
    }
    for (std::uint32_t i = 0; i < count; ++i) p.queue.write(first + i, make(first + i, i));
    host_patience how_long(options_.patience);
    if (!p.queue.publish(first, count, how_long)) {
      FERRY_CHECK(failure_of(static_cast<std::size_t>(rank)));
      return fail(error_code::internal, "rank {}'s queue refused {} entries", rank, count);
    }
    return post::posted;
  }

  int rank_;
  direct_options options_;
  buffer staging_;  // outlives the NIC, which reads it
  std::uint32_t staging_key_ = 0;
  std::unique_ptr<direct_nic> nic_;
  std::vector<direct_peer<Format>> peers_;
};

}  // namespace

result<std::unique_ptr<transport>> make_direct_transport(int rank, int num_ranks,
                                                         std::unique_ptr<direct_nic> nic,
                                                         direct_options options) {
  if (num_ranks < 1 || rank < 0 || rank >= num_ranks)
    return fail(error_code::invalid_argument, "rank {} of {}", rank, num_ranks);
  return with_format(
      nic->vendor(), [&]<class Format>(Format) -> result<std::unique_ptr<transport>> {
        if (options.queue_entries < 4 || options.queue_entries > Format::most_entries ||
            !std::has_single_bit(options.queue_entries))
          return fail(error_code::invalid_argument,
                      "a queue of {} entries; a power of two from 4 to {} is needed",
                      options.queue_entries, Format::most_entries);
        if (options.put_bytes < 8 || options.put_bytes % 8 != 0 ||
            options.put_bytes > std::size_t{1} << 30)
          return fail(error_code::invalid_argument,
                      "puts of {} bytes; a multiple of 8 up to {} is needed", options.put_bytes,
                      std::size_t{1} << 30);
        auto made =
            std::make_unique<direct_transport<Format>>(rank, num_ranks, std::move(nic), options);
        FERRY_CHECK(made->set_up());
        return std::unique_ptr<transport>(std::move(made));
      });
}

}  // namespace ferry::device_verbs
