// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/outbox.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace ferry {

outbox::outbox(std::unique_ptr<transport> net, int num_ranks, std::size_t staging_bytes,
               std::chrono::milliseconds timeout)
    : staging_(staging_bytes), net_(std::move(net)), num_ranks_(num_ranks), timeout_(timeout) {}

outbox::~outbox() {
  flush_all();
}

bool outbox::flush_all() {
  for (int rank = 0; rank < num_ranks_ && !error_; ++rank)
    if (result<void> r = net_->flush(rank, timeout_); !r) error_ = std::move(r).error();
  return !error_;
}

template <class Post>
void outbox::post_until_accepted(int rank, Post const& operation) {
  auto const deadline = std::chrono::steady_clock::now() + timeout_;
  while (!error_) {
    result<post> answer = operation();
    if (!answer) {
      error_ = std::move(answer).error();
    } else if (*answer == post::posted) {
      return;
    } else if (result<void> r = net_->progress(); !r) {
      error_ = std::move(r).error();
    } else if (std::chrono::steady_clock::now() > deadline) {
      error_ = fail(error_code::timeout, "rank {}'s send queue stayed full for {} ms", rank,
                    timeout_.count());
    } else {
      std::this_thread::yield();
    }
  }
}

std::byte* outbox::stage(std::byte const* from, std::size_t bytes) {
  if (used_ + bytes > staging_.size()) {
    if (!flush_all()) return nullptr;
    used_ = 0;
  }
  std::byte* const at = staging_.data() + used_;
  std::memcpy(at, from, bytes);
  used_ += bytes;
  return at;
}

void outbox::put(int rank, std::size_t offset, std::byte const* from, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (error_) return;
  std::size_t const most = std::min(net_->what_it_can().max_put_bytes, staging_.size());
  for (std::size_t done = 0; done < bytes && !error_;) {
    std::size_t const part = std::min(most, bytes - done);
    std::byte const* const at = stage(from + done, part);
    if (!at) return;
    post_until_accepted(rank, [&] { return net_->put({rank, offset + done, part}, at); });
    done += part;
  }
}

void outbox::signal(int rank, std::size_t offset, std::uint64_t word, strength promise) {
  std::lock_guard lock(mutex_);
  if (error_) return;
  post_until_accepted(rank, [&] { return net_->signal({rank, offset, 8}, word, promise); });
}

std::optional<error> outbox::first_error() {
  std::lock_guard lock(mutex_);
  return find_error();
}

std::optional<error> outbox::error_so_far() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock ? find_error() : std::nullopt;
}

std::optional<error> outbox::find_error() {
  if (!error_)
    if (result<void> r = net_->progress(); !r) error_ = std::move(r).error();
  return error_;
}

void outbox::give_up(error why) {
  std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(why);
  net_.reset();
}

}  // namespace ferry
