// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/proxy.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace ferry {

std::size_t proxy::memory_bytes(proxy_options const& o) {
  return sizeof(proxy_words) + o.num_requests * (sizeof(proxy_request) + std::size_t{o.put_bytes});
}

result<std::unique_ptr<proxy>> proxy::start(std::unique_ptr<transport> net, int num_ranks,
                                            std::span<std::byte> memory, proxy_options o) {
  if (o.num_requests < 4 || !std::has_single_bit(o.num_requests))
    return fail(error_code::invalid_argument,
                "a ring of {} requests; a power of two of at least 4 is needed", o.num_requests);
  std::size_t const most = net->what_it_can().max_put_bytes;
  if (o.put_bytes == 0 || o.put_bytes % 64 != 0 || o.put_bytes > most)
    return fail(error_code::invalid_argument,
                "puts of {} bytes; a multiple of 64 up to {} is needed", o.put_bytes, most);
  if (memory.size() < memory_bytes(o) || reinterpret_cast<std::uintptr_t>(memory.data()) % 64 != 0)
    return fail(error_code::invalid_argument,
                "a ring in {} bytes at {}; {} bytes at a multiple of 64 are needed", memory.size(),
                static_cast<void*>(memory.data()), memory_bytes(o));
  return std::unique_ptr<proxy>(new proxy(std::move(net), num_ranks, memory, o));
}

proxy::proxy(std::unique_ptr<transport> net, int num_ranks, std::span<std::byte> memory,
             proxy_options o)
    : options_(o), net_(std::move(net)), in_flight_(static_cast<std::size_t>(num_ranks)) {
  auto* const words = reinterpret_cast<proxy_words*>(memory.data());
  std::byte* const requests = memory.data() + sizeof(proxy_words);
  ring_ = {.requests = reinterpret_cast<proxy_request*>(requests),
           .staging = requests + o.num_requests * sizeof(proxy_request),
           .taken = &words->taken,
           .free = &words->free,
           .failed = &words->failed,
           .num_requests = o.num_requests,
           .put_bytes = o.put_bytes};
  thread_ = std::thread([this] { run(); });
}

proxy::~proxy() {
  auto const end = std::chrono::steady_clock::now() + options_.timeout;
  while (!all_out() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  stop_.store(true);
  thread_.join();
  // Peers may still need a rank's last words.
  for (std::size_t rank = 0; rank < in_flight_.size() && !error_ && net_; ++rank)
    if (result<void> r = net_->flush(static_cast<int>(rank), options_.timeout); !r)
      error_ = std::move(r).error();
}

// `free` follows `taken` once everything was posted and its bytes were read.
bool proxy::all_out() {
  return access_.load(ring_.failed) != 0 || access_.load(ring_.free) == access_.load(ring_.taken);
}

void proxy::run() {
  constexpr int spins = 200, yields = 20;
  int idle = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (post_next()) {
      idle = 0;
      // Half of the ring is kept free, so that kernels rarely wait for what is in flight.
      if (posted_ - *ring_.free >= ring_.num_requests / 2) free_places();
      continue;
    }
    if (++idle == spins) free_places();
    if (idle > spins + yields)
      std::this_thread::sleep_for(options_.idle_sleep);
    else if (idle > spins)
      std::this_thread::yield();
    else
      FERRY_PAUSE();
  }
}

bool proxy::post_next() {
  proxy_request const& r = ring_.at(posted_);
  if (access_.load(&r.marked) != posted_ + 1) return false;
  post_until_accepted(r, ring_.place_of(posted_));
  ++posted_;
  return true;
}

result<post> proxy::post_once(proxy_request const& r, std::byte const* from) {
  std::size_t const offset = r.offset;
  if (r.kind == proxy_request::signal)
    return net_->signal({r.rank, offset, 8}, r.word, strength::all_earlier);
  FERRY_TRY(post const answer, net_->put({r.rank, offset, r.bytes}, from));
  if (answer == post::posted && r.bytes > net_->what_it_can().inline_bytes)
    in_flight_[static_cast<std::size_t>(r.rank)] = true;
  return answer;
}

void proxy::post_until_accepted(proxy_request const& r, std::byte const* from) {
  auto const end = std::chrono::steady_clock::now() + options_.timeout;
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (error_ || !net_) return;
      result<post> answer = post_once(r, from);
      if (answer && *answer == post::posted) return;
      if (!answer) return fail_with(std::move(answer).error());
      if (result<void> p = net_->progress(); !p) return fail_with(std::move(p).error());
      if (std::chrono::steady_clock::now() > end)
        return fail_with(fail(error_code::timeout, "rank {}'s send queue stayed full for {} ms",
                              r.rank, options_.timeout.count()));
    }
    std::this_thread::yield();
  }
}

void proxy::free_places() {
  std::lock_guard lock(mutex_);
  for (std::size_t rank = 0; rank < in_flight_.size() && !error_ && net_; ++rank) {
    if (!in_flight_[rank]) continue;
    if (result<void> r = net_->flush(static_cast<int>(rank), options_.timeout); !r)
      return fail_with(std::move(r).error());
    in_flight_[rank] = false;
  }
  if (!error_) access_.store(ring_.free, posted_);
}

void proxy::fail_with(error why) {
  if (!error_) error_ = std::move(why);
  access_.store(ring_.failed, 1u);
}

std::optional<error> proxy::first_error() {
  std::lock_guard lock(mutex_);
  if (!error_ && net_)
    if (result<void> r = net_->progress(); !r) fail_with(std::move(r).error());
  if (!error_ && access_.load(ring_.failed) != 0)
    error_ = fail(error_code::timeout, "the proxy's ring had no room for a kernel's request");
  return error_;
}

void proxy::give_up(error why) {
  std::lock_guard lock(mutex_);
  fail_with(std::move(why));
  net_.reset();
}

}  // namespace ferry
