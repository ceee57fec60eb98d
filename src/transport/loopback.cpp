// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/loopback.hpp>

#include "base/fail.hpp"
#include "transport/mapped_peers.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

namespace ferry {
namespace {

class loopback_transport final : public transport {
 public:
  loopback_transport(int rank, std::vector<mapped_window> windows, loopback_faults faults)
      : peers_(rank, std::move(windows)),
        faults_(faults),
        choices_(faults.seed),
        waiting_(static_cast<std::size_t>(peers_.num_ranks())),
        settling_(waiting_.size()),
        uncovered_(static_cast<std::size_t>(peers_.num_ranks())),
        nic_([this] { run_nic(); }) {}

  ~loopback_transport() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    nic_.join();
  }

  abilities what_it_can() const override {
    return {.settles = true, .max_put_bytes = std::size_t{1} << 30};
  }
  result<std::vector<std::byte>> expose(std::span<std::byte> window) override {
    return peers_.expose(window);
  }
  result<void> connect(int rank, std::span<std::byte const> address) override {
    return peers_.connect(rank, address);
  }

  result<post> put(remote_region to, std::byte const* from) override {
    FERRY_CHECK(peers_.check(to));
    if (to.bytes > what_it_can().max_put_bytes)
      return fail(error_code::invalid_argument, "a put of {} bytes; at most {}", to.bytes,
                  what_it_can().max_put_bytes);
    return submit({to, from, 0, false});
  }
  result<post> signal(remote_region to, std::uint64_t value, strength promise) override {
    FERRY_CHECK(peers_.check_word(to));
    return submit({to, nullptr, value, promise == strength::all_earlier});
  }

  // An operation that does nothing, and waits for all before it.
  result<post> settle(int rank) override {
    FERRY_CHECK(peers_.check({rank, 0, 0}));
    return submit({{rank, 0, 0}, nullptr, 0, true});
  }
  result<bool> settled(int rank) override {
    FERRY_CHECK(peers_.check({rank, 0, 0}));
    std::lock_guard lock(mutex_);
    FERRY_CHECK(take_failure());
    return settling_[static_cast<std::size_t>(rank)] == 0;
  }

  result<void> progress() override {
    std::lock_guard lock(mutex_);
    return take_failure();
  }

  result<void> flush(int rank, std::chrono::milliseconds timeout) override {
    FERRY_CHECK(peers_.check({rank, 0, 0}));
    std::unique_lock lock(mutex_);
    bool const empty = idle_.wait_for(
        lock, timeout, [&] { return waiting_[static_cast<std::size_t>(rank)] == 0 || failure_; });
    FERRY_CHECK(take_failure());
    if (!empty)
      return fail(error_code::timeout, "{} operations to rank {} were not complete after {} ms",
                  waiting_[static_cast<std::size_t>(rank)], rank, timeout.count());
    return {};
  }

 private:
  struct operation {
    remote_region to;
    std::byte const* from;  ///< null: a signal
    std::uint64_t value;
    bool after_earlier;  ///< may not start before all earlier puts to its rank are done

    bool settles() const { return !from && to.bytes == 0; }
  };

  bool happens(int chance) { return chance > 0 && static_cast<int>(choices_() % 1024) < chance; }

  result<void> take_failure() {
    if (!failure_) return {};
    return error(*failure_);
  }

  result<post> submit(operation op) {
    {
      std::lock_guard lock(mutex_);
      FERRY_CHECK(take_failure());
      if (queue_.size() >= faults_.queue_depth || happens(faults_.try_again))
        return post::try_again;
      queue_.push_back(op);
      ++waiting_[static_cast<std::size_t>(op.to.rank)];
      settling_[static_cast<std::size_t>(op.to.rank)] += op.settles();
    }
    work_.notify_one();
    return post::posted;
  }

  // A covering signal may start once it is the first one to its rank, and never after an operation
  // that did not arrive: a network that cannot keep the promise does not deliver the signal.
  bool allowed(std::size_t i) const {
    operation const& op = queue_[i];
    if (!op.after_earlier) return true;
    if (uncovered_[static_cast<std::size_t>(op.to.rank)]) return false;
    return std::none_of(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](operation const& o) { return o.to.rank == op.to.rank; });
  }
  bool any_allowed() const {
    for (std::size_t i = 0; i < queue_.size(); ++i)
      if (allowed(i)) return true;
    return false;
  }
  // Which waiting operation the NIC takes next. Puts may overtake a signal, and each other. One is
  // allowed.
  std::size_t pick() {
    std::size_t i = happens(faults_.reorder) ? choices_() % queue_.size() : 0;
    while (!allowed(i)) i = (i + 1) % queue_.size();
    return i;
  }

  void run_nic() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return stop_ || any_allowed(); });
      if (stop_) return;
      std::size_t const i = pick();
      operation const op = queue_[i];
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
      bool const broken = happens(faults_.fail);
      bool const lost = op.from && happens(faults_.drop);
      bool const late = happens(faults_.delay);
      auto const pause = late ? faults_.longest_delay * static_cast<long>(choices_() % 1024) / 1024
                              : std::chrono::microseconds{0};
      lock.unlock();
      if (late) std::this_thread::sleep_for(pause);
      if (!broken && !lost) carry_out(op);
      lock.lock();
      if (broken || lost) uncovered_[static_cast<std::size_t>(op.to.rank)] = true;
      if (lost && !broken) continue;  // and never complete
      if (!broken) settling_[static_cast<std::size_t>(op.to.rank)] -= op.settles();
      if (broken && !failure_)
        failure_ =
            fail(error_code::transport, "the network failed an operation of {} bytes to rank {}",
                 op.to.bytes, op.to.rank);
      if (--waiting_[static_cast<std::size_t>(op.to.rank)] == 0 || failure_) idle_.notify_all();
    }
  }

  void carry_out(operation const& op) {
    if (op.from)
      std::memcpy(peers_.at(op.to), op.from, op.to.bytes);
    else if (!op.settles())
      peers_.store_word(op.to, op.value);
  }

  mapped_peers peers_;
  loopback_faults faults_;
  std::minstd_rand choices_;
  std::mutex mutex_;
  std::condition_variable work_, idle_;
  std::deque<operation> queue_;
  std::vector<std::size_t> waiting_;  ///< operations to each rank that are not complete
  std::vector<int> settling_;         ///< settles of each rank that are not complete
  std::vector<bool> uncovered_;       ///< whether an operation to this rank did not arrive
  std::optional<error> failure_;
  bool stop_ = false;
  std::thread nic_;
};

}  // namespace

std::unique_ptr<transport> make_loopback_transport(int rank, std::vector<mapped_window> windows,
                                                   loopback_faults faults) {
  return std::make_unique<loopback_transport>(rank, std::move(windows), faults);
}

}  // namespace ferry
