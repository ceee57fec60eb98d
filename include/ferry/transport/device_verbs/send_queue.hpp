// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Posting to a NIC's queue from wherever kernels run: the one algorithm for all vendors.
///
/// An operation passes four stages. Credits are taken first, so that the NIC never holds more than
/// the queue has room for; then indices are given out; then each lane writes entries, in any order;
/// then the team whose indices come next shows its entries to the NIC and rings once. Whoever
/// finds the queue full reads completions, which bring credits back.
#pragma once

#include <ferry/exec/team.hpp>
#include <ferry/transport/device_verbs/nic_access.hpp>
#include <ferry/transport/device_verbs/queue_pair.hpp>
#include <ferry/transport/device_verbs/work.hpp>

#include <cstdint>

namespace ferry::device_verbs {

/// Counters of a queue to which nothing was posted, whose first packet has this number.
template <class Format>
constexpr queue_counters start_counters(queue_pair const& pair, std::uint32_t packet = 0) {
  return {.credits = Format::most_outstanding(pair.num_entries),
          .reserved = 0,
          .published = 0,
          .completed = 0,
          .consumed = 0,
          .polling = 0,
          .packet = packet,
          .status = 0};
}

/// A vendor's queue and who may post to it. Copied into kernels by value.
/// Lanes of one team may call it at once only for different queues; teams for the same one.
template <class Format, nic_access Access>
struct send_queue {
  queue_pair pair;
  queue_counters* counters;
  [[no_unique_address]] Access access;

  FERRY_FN nic_status status() const {
    return static_cast<nic_status>(access.load(&counters->status));
  }
  /// L  Whether the entries before `index` are done.
  FERRY_FN bool is_done(std::uint32_t index) const {
    return static_cast<std::int32_t>(access.load(&counters->completed) - index) >= 0;
  }

  /// L  Takes `count` entries, if so many are free now; `first` is the index of the first one.
  FERRY_FN bool try_reserve(std::uint32_t count, std::uint32_t& first) const {
    // A counter that went below 0 for a moment belongs to others that fail as well.
    auto const free = static_cast<std::int32_t>(access.fetch_add(&counters->credits, 0u - count));
    if (free < static_cast<std::int32_t>(count)) {
      access.fetch_add(&counters->credits, count);
      return false;
    }
    first = access.fetch_add(&counters->reserved, count);
    return true;
  }

  /// L  The same, but reads completions while the queue is full.
  template <patience Patience>
  FERRY_FN bool reserve(std::uint32_t count, std::uint32_t& first, Patience& how_long) const {
    while (!try_reserve(count, first)) {
      if (status() != nic_status::ok || !how_long.left()) return false;
      if (poll() == 0) access.pause();
    }
    return true;
  }

  /// L  Fills a reserved entry. Every reserved entry is filled, and then published.
  FERRY_FN void write(std::uint32_t index, work const& w) const {
    Format::write(access, pair, index, w);
  }

  /// L  Shows the `count` entries from `first` to the NIC, after those before them. The caller has
  /// made sure that their stores are complete, whichever lane wrote them. False: the queue failed.
  template <patience Patience>
  FERRY_FN bool publish(std::uint32_t first, std::uint32_t count, Patience& how_long) const {
    while (access.load(&counters->published) != first) {
      if (status() != nic_status::ok) return false;
      if (!how_long.left()) {
        fail(nic_status::stuck);
        return false;
      }
      access.pause();
    }
    if (status() != nic_status::ok) return false;
    Format::announce(access, pair, *counters, first, first + count);
    access.store(&counters->published, first + count);
    return true;
  }

  /// T  Posts `count` operations, `make(i)` the i-th of them: the lanes share the writing, the
  /// leader rings once.
  template <team Team, class Make, patience Patience>
  FERRY_FN bool post(Team const& t, std::uint32_t count, Make const& make,
                     Patience& how_long) const {
    std::uint32_t first = 0;
    bool mine = !t.leader() || reserve(count, first, how_long);
    if (t.any(!mine)) return false;
    first = t.broadcast(first, 0);
    for (auto i = static_cast<std::uint32_t>(t.lane()); i < count; i += Team::lanes)
      write(first + i, make(i));
    t.drain();
    t.sync();
    mine = !t.leader() || publish(first, count, how_long);
    return !t.any(!mine);
  }

  /// L  The same for one lane that is alone with the queue.
  template <class Make, patience Patience>
  FERRY_FN bool post_alone(std::uint32_t count, Make const& make, Patience& how_long) const {
    std::uint32_t first = 0;
    if (!reserve(count, first, how_long)) return false;
    for (std::uint32_t i = 0; i < count; ++i) write(first + i, make(i));
    return publish(first, count, how_long);
  }

  /// L  Reads the completions that are there, unless another lane does so just now. Returns how
  /// many entries they free.
  FERRY_FN std::uint32_t poll() const {
    if (access.fetch_add(&counters->polling, 1) != 0) {
      access.fetch_add(&counters->polling, 0u - 1);
      return 0;
    }
    std::uint32_t const start = access.load(&counters->consumed);
    std::uint32_t position = start, freed = 0;
    while (position - start < pair.num_completions && status() == nic_status::ok) {
      completion const c = Format::read(access, pair, position);
      if (!c.there) break;
      ++position;
      freed += take(c);
    }
    if (position != start) {
      access.store(&counters->consumed, position);
      Format::give_back(access, pair, position);
    }
    if (freed) access.fetch_add(&counters->credits, freed);
    access.fetch_add(&counters->polling, 0u - 1);
    return freed;
  }

  /// L  The first failure stays.
  FERRY_FN void fail(nic_status why) const {
    if (status() == nic_status::ok)
      access.store(&counters->status, static_cast<std::uint32_t>(why));
  }

 private:
  FERRY_FN std::uint32_t take(completion const& c) const {
    if (c.status != nic_status::ok) {
      fail(c.status);
      return 0;
    }
    std::uint32_t const before = access.load(&counters->completed);
    std::uint32_t const newly = (c.done - before) & c.counted;
    // Not `published`: whoever rang may not have come to count it yet.
    if (newly > access.load(&counters->reserved) - before) {
      fail(nic_status::malformed_completion);
      return 0;
    }
    access.store(&counters->completed, before + newly);
    return newly;
  }
};

}  // namespace ferry::device_verbs
