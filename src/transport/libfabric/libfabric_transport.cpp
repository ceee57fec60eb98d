// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/libfabric.hpp>

#include "base/fail.hpp"
#include "transport/libfabric/fabric_choice.hpp"
#include "transport/libfabric/fabric_endpoint.hpp"
#include "transport/libfabric/fabric_peer.hpp"

#include <ferry/exec/cpu/waiter.hpp>
#include <ferry/memory/buffer.hpp>

#include <rdma/fi_errno.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

namespace ferry {
namespace {

using clock = std::chrono::steady_clock;

/// Messages of peers that may come before any is looked at; more wait with the provider.
constexpr std::size_t num_receives = 64;
constexpr std::size_t receive_bytes = 64;
static_assert(sizeof(signal_message) <= receive_bytes);

/// How long the thread sleeps at most: with signals that the provider did not take, and without.
constexpr std::chrono::milliseconds short_sleep{1}, long_sleep{100};

class libfabric_transport final : public transport {
 public:
  libfabric_transport(int rank, int num_ranks, libfabric_options o)
      : rank_(rank), options_(std::move(o)), peers_(static_cast<std::size_t>(num_ranks)) {}

  ~libfabric_transport() override {
    stop_ = true;
    if (endpoint_) endpoint_->wake();
    if (thread_.joinable()) thread_.join();
    // What the provider still has under way lies in the members.
    endpoint_.reset();
  }

  result<void> set_up(std::vector<int> chosen) {
    if (chosen.empty())
      for (std::size_t r = 0; r < peers_.size(); ++r) chosen.push_back(static_cast<int>(r));
    FERRY_TRY(endpoint_,
              fabric_endpoint::open(options_,
                                    chosen.size() * (options_.queue_entries + 1) + num_receives));
    options_.put_bytes = std::min(options_.put_bytes, endpoint_->most_put_bytes());
    std::size_t const per_peer = options_.queue_entries * options_.put_bytes;
    std::size_t const receives = num_receives * receive_bytes;
    std::size_t const of_peers = per_peer * chosen.size();
    std::size_t const fetches = chosen.size() * options_.put_bytes;
    FERRY_TRY(staging_, buffer::allocate(of_peers + fetches + receives));
    FERRY_TRY(local_memory const all,
              endpoint_->register_local({staging_.data(), staging_.size()}));
    auto const part = [&](std::size_t at, std::size_t bytes) {
      return local_memory{all.bytes.subspan(at, bytes), all.description};
    };
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      FERRY_CHECK(check_rank(chosen[i]));
      peer(chosen[i]).make(chosen[i], rank_, *endpoint_, options_, part(i * per_peer, per_peer));
      auto& own = fetches_.at(static_cast<std::size_t>(chosen[i])) = std::make_unique<one_fetch>();
      own->into = part(of_peers + i * options_.put_bytes, options_.put_bytes);
    }
    received_ = part(of_peers + fetches, receives);
    for (std::size_t i = 0; i < num_receives; ++i) {
      receives_[i].what = fabric_operation::kind::receive;
      if (ssize_t const e = receive(receives_[i]))
        return fail(error_code::transport, "{} receives nothing: {}", endpoint_->name(),
                    endpoint_->text_of(e));
    }
    try {
      thread_ = std::thread([this] { make_progress(); });
    } catch (std::system_error const& e) {
      return fail(error_code::out_of_memory, "no thread for {}: {}", endpoint_->name(), e.what());
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
    FERRY_TRY(exposed_memory const exposed, endpoint_->expose(window));
    window_ = window;
    return pack_address({.bytes = window.size()},
                        std::vector(peers_.size(), pack_endpoint(exposed, endpoint_->address())));
  }

  result<void> connect(int rank, std::span<std::byte const> address) override {
    FERRY_CHECK(check_rank(rank));
    std::lock_guard lock(mutex_);
    if (!peer(rank).made())
      return fail(error_code::invalid_state, "rank {} is none of the peers of rank {}", rank,
                  rank_);
    return peer(rank).connect(address);
  }

  result<post> put(remote_region to, std::byte const* from) override {
    return with_room(to, [&](fabric_peer& p) -> result<post> {
      if (to.bytes > options_.put_bytes)
        return fail(error_code::invalid_argument, "a put of {} bytes; at most {}", to.bytes,
                    options_.put_bytes);
      bool const taken = p.put(to.offset, from, to.bytes);
      FERRY_CHECK(state_of(p, to.rank));
      return taken ? post::posted : post::try_again;
    });
  }

  result<post> signal(remote_region to, std::uint64_t value, strength promise) override {
    return with_room(to, [&](fabric_peer& p) -> result<post> {
      if (to.bytes != 8 || to.offset % 8 != 0)
        return fail(error_code::invalid_argument,
                    "a signal to {} bytes at offset {}; a word is 8 bytes at a multiple of 8",
                    to.bytes, to.offset);
      p.signal(to.offset, value, promise == strength::all_earlier);
      FERRY_CHECK(state_of(p, to.rank));
      return post::posted;
    });
  }

  // A put is complete when it is delivered, which is all that there is to wait for.
  result<post> settle(int rank) override {
    FERRY_CHECK(check_rank(rank));
    std::lock_guard lock(mutex_);
    peer(rank).settle();
    return post::posted;
  }
  result<bool> settled(int rank) override {
    FERRY_CHECK(check_rank(rank));
    std::lock_guard lock(mutex_);
    poll();
    FERRY_CHECK(state_of(peer(rank), rank));
    return peer(rank).settled();
  }

  result<void> progress() override {
    std::lock_guard lock(mutex_);
    poll();
    for (std::size_t r = 0; r < peers_.size(); ++r)
      FERRY_CHECK(state_of(peers_[r], static_cast<int>(r)));
    return state_of_all();
  }

  result<void> flush(int rank, std::chrono::milliseconds timeout) override {
    FERRY_CHECK(check_rank(rank));
    fabric_peer& p = peer(rank);
    std::uint64_t const all = [&] {
      std::lock_guard lock(mutex_);
      return p.posted();
    }();
    return wait_until(p, rank, clock::now() + timeout, timeout,
                      "operations to rank {} were not complete after {} ms",
                      [&] { return p.done() >= all; });
  }

  result<void> fetch(remote_region from, std::byte* to,
                     std::chrono::milliseconds timeout) override {
    auto const end = clock::now() + timeout;
    FERRY_CHECK(check_rank(from.rank));
    if (from.bytes > options_.put_bytes)
      return fail(error_code::invalid_argument, "a fetch of {} bytes; at most {}", from.bytes,
                  options_.put_bytes);
    fabric_peer& p = peer(from.rank);
    {
      std::lock_guard lock(mutex_);
      FERRY_CHECK(check_region(p, from));
    }
    one_fetch& own = *fetches_[static_cast<std::size_t>(from.rank)];
    fabric_operation& fetch = own.operation;
    std::unique_lock const one_at_a_time(own.one_at_a_time, end);
    if (!one_at_a_time)
      return fail(error_code::timeout, "a fetch from rank {} waited {} ms for another", from.rank,
                  timeout.count());
    // One that was given up may still come in.
    FERRY_CHECK(wait_until(p, from.rank, end, timeout,
                           "the last fetch from rank {} was still under way after {} ms",
                           [&] { return !fetch.held; }));
    bool posted = false;
    FERRY_CHECK(wait_until(p, from.rank, end, timeout, "a fetch from rank {} took {} ms", [&] {
      if (posted) return fetch.complete;
      fetch.what = fabric_operation::kind::fetch;
      fetch.complete = false;
      fetch.held = posted =
          p.fetch(from.offset, own.into.bytes.data(), from.bytes, own.into, fetch);
      return false;
    }));
    std::memcpy(to, own.into.bytes.data(), from.bytes);
    return {};
  }

  int failed_rank() const override { return failed_rank_; }

 private:
  fabric_peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  void make_progress() {
    while (!stop_) {
      bool busy = false, refused = false;
      {
        std::lock_guard lock(mutex_);
        busy = poll();
        for (fabric_peer const& p : peers_) refused = refused || p.refused();
      }
      if (!busy) endpoint_->wait(refused ? short_sleep : long_sleep);
    }
  }

  /// Handles completions. Says whether there were any.
  bool poll() {
    fi_cq_msg_entry ended[16];
    bool busy = false;
    for (;;) {
      ssize_t const count = endpoint_->completions(ended);
      if (count == -FI_EAVAIL) {
        if (!take_failure()) break;
      } else if (count > 0) {
        for (ssize_t i = 0; i < count; ++i)
          finish(*static_cast<fabric_operation*>(ended[i].op_context), ended[i].len);
      } else {
        if (count < 0 && count != -FI_EAGAIN && !failure_)
          failure_ = fail(error_code::transport, "{}'s completion queue broke: {}",
                          endpoint_->name(), endpoint_->text_of(count));
        break;
      }
      busy = true;
    }
    for (fabric_peer& p : peers_)
      if (p.under_way()) p.advance();
    return busy;
  }

  bool take_failure() {
    fi_cq_err_entry failed{};
    if (endpoint_->failed_completion(failed) < 1) return false;
    if (!failed.op_context) return true;
    auto& o = *static_cast<fabric_operation*>(failed.op_context);
    // A message that did not come whole is its sender's failure.
    if (o.what != fabric_operation::kind::receive)
      peer(o.rank).fail_with(failed.err, endpoint_->text_of(failed));
    finish(o, 0);
    return true;
  }

  void finish(fabric_operation& o, std::size_t bytes) {
    o.complete = true;
    if (o.what == fabric_operation::kind::fetch) o.held = false;
    if (o.what != fabric_operation::kind::receive) return peer(o.rank).note_completion();
    auto const i = static_cast<std::size_t>(&o - receives_);
    if (bytes == sizeof(signal_message)) {
      signal_message came;
      std::memcpy(&came, received_.bytes.data() + i * receive_bytes, sizeof came);
      take(came);
    } else if (bytes != 0) {
      refuse(fmt::format("{} bytes", bytes));
    }
    if (ssize_t const e = receive(o); e != 0 && !failure_)
      failure_ = fail(error_code::transport, "{} receives nothing any more: {}", endpoint_->name(),
                      endpoint_->text_of(e));
  }

  ssize_t receive(fabric_operation& o) {
    auto const i = static_cast<std::size_t>(&o - receives_);
    return endpoint_->receive(received_, received_.bytes.data() + i * receive_bytes, receive_bytes,
                              &o.of_provider);
  }

  void take(signal_message const& came) {
    if (came.rank >= peers_.size()) return refuse(fmt::format("a word of rank {}", came.rank));
    for (signal_message const& m : peers_[came.rank].incoming.take(came)) {
      if (m.offset % 8 != 0 || window_.size() < 8 || m.offset > window_.size() - 8)
        return refuse(fmt::format("a word at {} of {}", m.offset, window_.size()));
      auto* const word = reinterpret_cast<std::uint64_t*>(window_.data() + m.offset);
      // What was delivered before the message was sent comes before the word; whoever sleeps on it
      // is woken without being asked for (R11).
      std::atomic_ref(*word).store(m.value, std::memory_order_seq_cst);
      wake_sleepers(word);
    }
  }

  void refuse(std::string const& what) {
    if (!failure_)
      failure_ = fail(error_code::transport, "a peer sent {} over {}: it is no rank of this group",
                      what, endpoint_->name());
  }

  template <class Condition>
  result<void> wait_until(fabric_peer& p, int rank, clock::time_point end,
                          std::chrono::milliseconds timeout, char const* text,
                          Condition const& fulfilled) {
    for (int turn = 0;; ++turn) {
      {
        std::lock_guard lock(mutex_);
        poll();
        FERRY_CHECK(state_of(p, rank));
        if (fulfilled()) return {};
      }
      if (clock::now() > end)
        return error{error_code::timeout, fmt::format(fmt::runtime(text), rank, timeout.count())};
      if (turn < 50)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
  }

  result<void> state_of(fabric_peer const& p, int rank) {
    FERRY_CHECK(state_of_all());
    if (!p.failure()) return {};
    int none = -1;
    failed_rank_.compare_exchange_strong(none, rank);
    return error(*p.failure());
  }
  result<void> state_of_all() const {
    if (failure_) return error(*failure_);
    return {};
  }

  result<void> check_rank(int rank) const {
    if (rank < 0 || static_cast<std::size_t>(rank) >= peers_.size())
      return fail(error_code::invalid_argument, "rank {} is not one of 0..{}", rank,
                  peers_.size() - 1);
    return {};
  }

  result<void> check_region(fabric_peer const& p, remote_region const& to) const {
    if (!p.connected()) return fail(error_code::invalid_state, "rank {} is not connected", to.rank);
    std::uint64_t const size = p.window().bytes;
    if (to.bytes > size || to.offset > size - to.bytes)
      return fail(error_code::invalid_argument, "bytes {} to {} of rank {}'s window, which has {}",
                  to.offset, to.offset + to.bytes, to.rank, size);
    return {};
  }

  template <class Post>
  result<post> with_room(remote_region const& to, Post const& post_it) {
    FERRY_CHECK(check_rank(to.rank));
    fabric_peer& p = peer(to.rank);
    std::lock_guard lock(mutex_);
    FERRY_CHECK(check_region(p, to));
    if (!p.has_room()) poll();
    FERRY_CHECK(state_of(p, to.rank));
    if (!p.has_room()) return post::try_again;
    return post_it(p);
  }

  int rank_;
  libfabric_options options_;
  buffer staging_;  // outlives the endpoint, which reads it
  std::unique_ptr<fabric_endpoint> endpoint_;
  std::vector<fabric_peer> peers_;
  // Of each rank: one that stopped holds up no fetch from another.
  struct one_fetch {
    local_memory into{};
    fabric_operation operation{};    ///< held: under way
    std::timed_mutex one_at_a_time;  ///< before mutex_
  };
  std::vector<std::unique_ptr<one_fetch>> fetches_ =
      std::vector<std::unique_ptr<one_fetch>>(peers_.size());
  local_memory received_{};
  fabric_operation receives_[num_receives]{};
  std::span<std::byte> window_;
  std::optional<error> failure_;  ///< of no peer in particular
  std::mutex mutex_;  ///< of all above, and of every call to the endpoint but wait, wake
  std::atomic<int> failed_rank_{-1};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

result<std::vector<std::string>> libfabric_domains(libfabric_options const& options) {
  FERRY_CHECK(validate(options));
  FERRY_TRY(fabric_library const* const library, load_fabric(options.library));
  return domain_names(*library, options);
}

result<std::unique_ptr<transport>> make_libfabric_transport(int rank, int num_ranks,
                                                            libfabric_options options,
                                                            std::vector<int> peers) {
  if (num_ranks < 1 || rank < 0 || rank >= num_ranks)
    return fail(error_code::invalid_argument, "rank {} of {}", rank, num_ranks);
  FERRY_CHECK(validate(options));
  auto made = std::make_unique<libfabric_transport>(rank, num_ranks, std::move(options));
  FERRY_CHECK(made->set_up(std::move(peers)));
  return std::unique_ptr<transport>(std::move(made));
}

}  // namespace ferry
