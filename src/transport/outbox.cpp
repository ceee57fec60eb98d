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
    if (result<void> r = net_->flush(rank, timeout_); !r) {
      error_ = std::move(r).error();
      stuck_ = rank;
    }
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
      stuck_ = rank;
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
  abilities const can = net_->what_it_can();
  std::size_t const most = std::min(can.max_put_bytes, staging_.size());
  for (std::size_t done = 0; done < bytes && !error_;) {
    std::size_t const part = std::min(most, bytes - done);
    // Who reads its source while posting has staging memory of its own.
    std::byte const* const at = part <= can.inline_bytes ? from + done : stage(from + done, part);
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
  if (net_ && !net_->what_it_can().fetches) net_.reset();
}

result<void> outbox::fetch(int rank, std::size_t offset, std::span<std::byte> to,
                           std::chrono::milliseconds timeout) {
  auto const end = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(mutex_, std::defer_lock);
  while (!lock.try_lock()) {
    if (std::chrono::steady_clock::now() > end)
      return fail(error_code::timeout, "rank {} could not be asked within {} ms: others post", rank,
                  timeout.count());
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  if (!net_) return fail(error_code::unsupported, "the network has ended");
  return net_->fetch({rank, offset, to.size()}, to.data(), timeout);
}

int outbox::failed_rank() {
  std::lock_guard lock(mutex_);
  int const of_net = net_ ? net_->failed_rank() : -1;
  return of_net >= 0 ? of_net : stuck_;
}

}  // namespace ferry
