// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A transport that makes any other one worse, as far as the contract allows, or further.
#pragma once

#include <ferry/transport/transport.hpp>

#include "contract/carried_exchange.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::test {

/// Chances are out of 1024 per operation.
struct faults {
  std::uint64_t seed = 1;
  int reorder = 700;  ///< some other waiting operation goes first
  int delay = 0;      ///< a pause before an operation
  std::chrono::microseconds longest_delay{300};
  int try_again = 0;                 ///< posting is refused
  int drop = 0;                      ///< a put never goes out; nothing covers it any more
  std::optional<int> fails_after{};  ///< operations until one fails, and all after it
  std::size_t queue_depth = 64;
};

/// Holds operations back and posts them to the transport behind it late and out of order. Keeps the
/// one promise that counts: a covering signal goes out after everything posted before it.
class faulty_transport final : public transport {
 public:
  faulty_transport(std::unique_ptr<transport> behind, std::vector<std::size_t> window_bytes,
                   faults f)
      : behind_(std::move(behind)),
        window_bytes_(std::move(window_bytes)),
        faults_(f),
        random_(f.seed),
        waiting_(window_bytes_.size()),
        lost_(window_bytes_.size()),
        worker_([this] { work(); }) {}
  ~faulty_transport() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  abilities what_it_can() const override {
    abilities a = behind_->what_it_can();
    a.ordered_puts = false;
    a.settles = false;
    a.inline_bytes = 0;
    return a;
  }
  result<std::vector<std::byte>> expose(std::span<std::byte> window) override {
    return behind_->expose(window);
  }
  result<void> connect(int rank, std::span<std::byte const> address) override {
    return behind_->connect(rank, address);
  }

  result<post> put(remote_region to, std::byte const* from) override {
    // What is wrong is for the transport behind to refuse.
    if (!fits(to) || to.bytes > behind_->what_it_can().max_put_bytes) return behind_->put(to, from);
    return hold({to, from, 0, strength::this_put});
  }
  result<post> signal(remote_region to, std::uint64_t value, strength promise) override {
    if (!fits(to) || to.bytes != 8 || to.offset % 8 != 0)
      return behind_->signal(to, value, promise);
    return hold({to, nullptr, value, promise});
  }
  result<void> progress() override {
    FERRY_CHECK(failure());
    return behind_->progress();
  }
  result<void> flush(int rank, std::chrono::milliseconds timeout) override {
    auto const end = std::chrono::steady_clock::now() + timeout;
    if (rank >= 0 && static_cast<std::size_t>(rank) < waiting_.size()) {
      std::unique_lock lock(mutex_);
      auto const at = static_cast<std::size_t>(rank);
      bool const empty =
          changed_.wait_until(lock, end, [&] { return waiting_[at] == 0 || failed_; });
      if (!empty)
        return error{error_code::timeout,
                     "operations to rank " + std::to_string(rank) + " are still held back"};
    }
    FERRY_CHECK(failure());
    auto const left = std::max(std::chrono::milliseconds{1},
                               std::chrono::duration_cast<std::chrono::milliseconds>(
                                   end - std::chrono::steady_clock::now()));
    return behind_->flush(rank, left);
  }
  result<void> fetch(remote_region from, std::byte* to,
                     std::chrono::milliseconds timeout) override {
    return behind_->fetch(from, to, timeout);
  }
  int failed_rank() const override { return behind_->failed_rank(); }

 private:
  struct operation {
    remote_region to;
    std::byte const* from;  ///< null: a signal
    std::uint64_t value;
    strength promise;
  };

  bool fits(remote_region const& to) const {
    if (to.rank < 0 || static_cast<std::size_t>(to.rank) >= window_bytes_.size()) return false;
    std::size_t const size = window_bytes_[static_cast<std::size_t>(to.rank)];
    return to.offset <= size && to.bytes <= size - to.offset;
  }

  bool happens(int chance) { return chance > 0 && static_cast<int>(random_() % 1024) < chance; }

  result<void> failure() {
    std::lock_guard lock(mutex_);
    if (!failed_) return {};
    return error{error_code::transport, "an operation failed on purpose"};
  }

  result<post> hold(operation op) {
    FERRY_CHECK(failure());
    {
      std::lock_guard lock(mutex_);
      if (held_.size() >= faults_.queue_depth || happens(faults_.try_again)) return post::try_again;
      held_.push_back(op);
      ++waiting_[static_cast<std::size_t>(op.to.rank)];
    }
    changed_.notify_all();
    return post::posted;
  }

  bool allowed(std::size_t i) const {
    operation const& op = held_[i];
    if (op.promise != strength::all_earlier) return true;
    if (lost_[static_cast<std::size_t>(op.to.rank)]) return false;
    return std::none_of(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](operation const& o) { return o.to.rank == op.to.rank; });
  }
  std::optional<std::size_t> pick() {
    if (held_.empty()) return {};
    std::size_t const first = happens(faults_.reorder) ? random_() % held_.size() : 0;
    for (std::size_t n = 0; n < held_.size(); ++n)
      if (std::size_t const i = (first + n) % held_.size(); allowed(i)) return i;
    return {};
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      std::optional<std::size_t> next;
      changed_.wait(lock, [&] { return stop_ || (!failed_ && (next = pick())); });
      if (stop_) return;
      operation const op = held_[*next];
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(*next));
      auto const at = static_cast<std::size_t>(op.to.rank);
      if (faults_.fails_after && num_out_++ >= *faults_.fails_after) {
        failed_ = true;
        changed_.notify_all();
        continue;
      }
      if (op.from && happens(faults_.drop)) {
        lost_[at] = true;
        continue;
      }
      auto const pause = happens(faults_.delay)
                             ? faults_.longest_delay * static_cast<long>(random_() % 1024) / 1024
                             : std::chrono::microseconds{0};
      lock.unlock();
      if (pause.count()) std::this_thread::sleep_for(pause);
      bool const out = send(op);
      lock.lock();
      failed_ = failed_ || !out;
      if (--waiting_[at] == 0 || failed_) changed_.notify_all();
    }
  }
  bool send(operation const& op) {
    for (;;) {
      result<post> const r =
          op.from ? behind_->put(op.to, op.from) : behind_->signal(op.to, op.value, op.promise);
      if (!r) return false;
      if (*r == post::posted) return true;
      if (!behind_->progress()) return false;
      std::this_thread::yield();
    }
  }

  std::unique_ptr<transport> behind_;
  std::vector<std::size_t> window_bytes_;
  faults faults_;
  std::minstd_rand random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<operation> held_;
  std::vector<std::size_t> waiting_;
  std::vector<bool> lost_;
  int num_out_ = 0;
  bool failed_ = false;
  bool stop_ = false;
  std::thread worker_;
};

/// Any rank's transport, made worse.
inline transport_maker faulty(transport_maker behind, faults f) {
  return [=](int rank, std::vector<mapped_window> windows) -> std::unique_ptr<transport> {
    std::vector<std::size_t> sizes;
    for (mapped_window const& w : windows) sizes.push_back(w.bytes.size());
    faults mine = f;
    mine.seed += static_cast<std::uint64_t>(rank);
    return std::make_unique<faulty_transport>(behind(rank, std::move(windows)), std::move(sizes),
                                              mine);
  };
}

}  // namespace ferry::test
