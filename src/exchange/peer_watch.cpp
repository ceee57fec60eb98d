// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Who is to blame when a wait goes on for too long (rule R9).

#include "base/fail.hpp"
#include "exchange/exchange_state.hpp"

#include <atomic>

namespace ferry {
namespace {

// The failure that a peer has recorded in its own window, if it has and we can read it.
std::optional<failure> recorded_by(exchange_core const& core, int rank) {
  status_record* const status = core.status_of(rank);
  if (!status) return std::nullopt;
  if (std::atomic_ref(status->failed).load(std::memory_order_acquire) != status_record::complete)
    return std::nullopt;
  return status->record;
}

// The rank that `rank` has been waiting for, long enough to say so; -1 if it does not wait.
int waits_for(exchange_core const& core, int rank) {
  status_record* const status = core.status_of(rank);
  if (!status) return -1;
  return static_cast<int>(std::atomic_ref(status->waiting).load(std::memory_order_relaxed)) - 1;
}

// From the rank that we wait for to the one that it waits for, and so on, to one that does not
// wait. A rank that was stopped while it waited closes a circle: it is the last one before the
// circle does.
int end_of_chain(exchange_core const& core, int first) {
  std::vector<bool> seen(static_cast<std::size_t>(core.shape.ranks), false);
  seen[static_cast<std::size_t>(core.shape.rank)] = true;
  int rank = first;
  for (;;) {
    seen[static_cast<std::size_t>(rank)] = true;
    int const next = waits_for(core, rank);
    if (next < 0 || next >= core.shape.ranks || seen[static_cast<std::size_t>(next)]) return rank;
    rank = next;
  }
}

}  // namespace

status_record* exchange_core::status_of(int rank) const {
  std::byte* const base = readable[static_cast<std::size_t>(rank)];
  return base ? reinterpret_cast<status_record*>(base + window.offset(window_field::status))
              : nullptr;
}

bool look_at_peers(exchange_core const& core, awaited const& what, bool expired, failure& found) {
  int const me = core.shape.rank;
  if (core.out && core.out->error_so_far()) {
    found.code = error_code::transport;
    found.rank = me;
    return true;
  }
  // A process that died without a word is a root cause. One that had failed before and then went is
  // not: it names another.
  std::optional<failure> from_record;
  bool left = false;
  for (int r = 0; r < core.shape.ranks; ++r) {
    if (r == me) continue;
    // In this order: a rank records its failure before it goes.
    presence const there = core.ranks.look(r);
    std::optional<failure> const record = recorded_by(core, r);
    if (!record && there == presence::gone) {
      found.code = error_code::unreachable;
      found.rank = r;
      return true;
    }
    if (record && !from_record) from_record = record;
    left = left || (r == what.rank && there == presence::left);
  }
  if (from_record) {
    found.code = from_record->code;
    found.rank = from_record->rank;
    return true;
  }
  if (left) {
    found.code = error_code::unreachable;
    found.rank = what.rank;
    return true;
  }
  if (!expired) return false;
  found.code = error_code::timeout;
  found.rank = end_of_chain(core, what.rank);
  return true;
}

int gone_peer(exchange_core const& core) {
  for (int r = 0; r < core.shape.ranks; ++r)
    if (core.ranks.look(r) == presence::gone) return r;
  return -1;
}

namespace {

// Whom a rank waits for, or waited for when it gave up; -1 if it does not wait.
int waits_for(status_record const& says) {
  if (says.failed == status_record::complete) return says.record.wait.rank;
  return static_cast<int>(says.waiting) - 1;
}

// From the rank that this one waited for to the last one that waits for nobody, or closes a circle.
int end_of_chain(std::vector<status_record> const& says, int first, int me) {
  std::vector<bool> seen(says.size(), false);
  for (int rank = first;;) {
    seen[static_cast<std::size_t>(rank)] = true;
    int const next = waits_for(says[static_cast<std::size_t>(rank)]);
    bool const known = next >= 0 && next < static_cast<int>(says.size());
    if (!known || next == me) return known ? next : rank;
    if (seen[static_cast<std::size_t>(next)]) return rank;
    rank = next;
  }
}

}  // namespace

// A kernel records only what it waited for. Why that did not come, the records of all ranks tell
// together.
result<failure> cause_on_device(exchange_core const& core) {
  int const me = core.shape.rank;
  std::vector<status_record> says;
  std::vector<presence> there;
  for (int r = 0; r < core.shape.ranks; ++r) {
    // In this order: a rank records its failure before it goes.
    there.push_back(core.ranks.look(r));
    FERRY_TRY(status_record const seen, core.on_device->status_of(r));
    says.push_back(seen);
  }
  failure found = says[static_cast<std::size_t>(me)].record;
  for (int r = 0; r < core.shape.ranks; ++r) {
    bool const recorded = says[static_cast<std::size_t>(r)].failed == status_record::complete;
    if (r == me || recorded || there[static_cast<std::size_t>(r)] != presence::gone) continue;
    found.code = error_code::unreachable;
    found.rank = r;
    return found;
  }
  found.rank = end_of_chain(says, found.wait.rank, me);
  bool const left = there[static_cast<std::size_t>(found.rank)] == presence::left;
  bool const recorded =
      says[static_cast<std::size_t>(found.rank)].failed == status_record::complete;
  if (left && !recorded) found.code = error_code::unreachable;
  return found;
}

error explain(exchange_core const& core, failure const& f) {
  static constexpr char const* names[] = {"header", "arrived", "back", "done"};
  std::string const place = fmt::format(
      "slot {}{}: rank {} waited for the {} word of rank {}, epoch {} expected, {} seen", f.slot,
      f.wait.chunk < 0 ? "" : fmt::format(", chunk {}", f.wait.chunk), core.shape.rank,
      names[static_cast<int>(f.wait.kind)], f.wait.rank, f.wait.epoch, f.seen);
  if (f.code == error_code::unreachable) {
    bool const left = core.ranks.look(f.rank) == presence::left;
    return fail(f.code, "rank {} {} ({})", f.rank,
                left ? "has left the group" : "is gone: its process ended", place);
  }
  if (f.code == error_code::transport)
    return fail(f.code, "rank {}'s network failed ({})", f.rank, place);
  if (f.rank == core.shape.rank)
    return fail(f.code, "the other ranks gave up waiting for this rank, {} ({})", f.rank, place);
  return fail(f.code, "rank {} did not come within {} ms ({})", f.rank, core.timeout().count(),
              place);
}

}  // namespace ferry
