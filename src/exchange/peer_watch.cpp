// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Who is to blame when a wait goes on for too long (rule R9).

#include "base/fail.hpp"
#include "exchange/exchange_state.hpp"

#include <atomic>
#include <span>
#include <thread>

namespace ferry {
namespace {

// What asking a peer over the network may cost. All that is asked after a deadline has passed must
// fit a second.
constexpr std::chrono::milliseconds time_to_answer{200};
// A process that dies takes its queues with it a little before its connections.
constexpr std::chrono::milliseconds time_to_die{250};

// What a peer says of itself in memory that this rank can read.
std::optional<status_record> read_of(status_record* status) {
  status_record seen{};
  seen.failed = std::atomic_ref(status->failed).load(std::memory_order_acquire);
  if (seen.failed == status_record::complete) seen.record = status->record;
  seen.waiting = std::atomic_ref(status->waiting).load(std::memory_order_relaxed);
  return seen;
}

// The same over the network.
std::optional<status_record> asked(exchange_core const& core, int rank) {
  if (!core.out) return std::nullopt;
  status_record seen{};
  auto const ask = [&] {
    return core.out->fetch(rank, core.window.offset(window_field::status),
                           std::as_writable_bytes(std::span(&seen, 1)), time_to_answer);
  };
  if (!ask()) return std::nullopt;
  // The word that covers the record may have been read after it: what is read now is whole.
  if (seen.failed == status_record::complete && !ask()) return std::nullopt;
  return seen;
}

std::optional<status_record> said_by(exchange_core const& core, int rank) {
  status_record* const status = core.status_of(rank);
  return status ? read_of(status) : asked(core, rank);
}

std::optional<failure> recorded_in(std::optional<status_record> const& says) {
  if (!says || says->failed != status_record::complete) return std::nullopt;
  return says->record;
}

// From the rank that we wait for to the one that it waits for, and so on, to one that does not
// wait, or has failed and names whom it blames. A rank that was stopped while it waited closes a
// circle: it is the last one before the circle does.
void follow_chain(exchange_core const& core, int first, failure& found) {
  std::vector<bool> seen(static_cast<std::size_t>(core.shape.ranks), false);
  seen[static_cast<std::size_t>(core.shape.rank)] = true;
  for (int rank = first;;) {
    seen[static_cast<std::size_t>(rank)] = true;
    found.rank = rank;
    std::optional<status_record> const says = said_by(core, rank);
    if (auto const failed = recorded_in(says)) {
      found.code = failed->code;
      found.rank = failed->rank;
      return;
    }
    int const next = says ? static_cast<int>(says->waiting) - 1 : -1;
    if (next < 0 || next >= core.shape.ranks || seen[static_cast<std::size_t>(next)]) return;
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
  if (core.out) {
    if (std::optional<error> const network = core.out->error_so_far()) {
      failure const cause = cause_of(core, *network, found.slot);
      found.code = cause.code;
      found.rank = cause.rank;
      return true;
    }
  }
  // A process that died without a word is a root cause. One that had failed before and then went is
  // not: it names another.
  std::optional<failure> from_record;
  bool left = false;
  for (int r = 0; r < core.shape.ranks; ++r) {
    if (r == me) continue;
    // In this order: a rank records its failure before it goes.
    presence const there = core.ranks.look(r);
    // Over a network only the one is asked that this rank waits for.
    std::optional<failure> const record =
        core.status_of(r) || r == what.rank ? recorded_in(said_by(core, r)) : std::nullopt;
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
  follow_chain(core, what.rank, found);
  return true;
}

failure cause_of(exchange_core const& core, error const& network, int slot) {
  int const failed = core.out ? core.out->failed_rank() : -1;
  failure cause{network.code, failed < 0 ? core.shape.rank : failed, {}, slot, 0};
  if (failed < 0) return cause;
  auto const end = std::chrono::steady_clock::now() + time_to_die;
  int gone = gone_peer(core);
  while (gone < 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    gone = gone_peer(core);
  }
  if (gone < 0) return cause;
  cause.code = error_code::unreachable;
  cause.rank = gone;
  return cause;
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
    static constexpr char const* states[] = {"cannot be reached over the network",
                                             "has left the group", "is gone: its process ended"};
    return fail(f.code, "rank {} {} ({})", f.rank,
                states[static_cast<int>(core.ranks.look(f.rank))], place);
  }
  if (f.code == error_code::transport)
    return fail(f.code, "rank {}'s network failed ({})", f.rank, place);
  if (f.rank == core.shape.rank)
    return fail(f.code, "the other ranks gave up waiting for this rank, {} ({})", f.rank, place);
  return fail(f.code, "rank {} did not come within {} ms ({})", f.rank, core.timeout().count(),
              place);
}

}  // namespace ferry
