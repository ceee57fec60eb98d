// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/device_windows.hpp"

#include "base/fail.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

namespace ferry {
namespace {

using shared_memory_piece = std::shared_ptr<device_memory>;

/// Where the memory of a rank waits, under a number, for the other threads of its process.
class left_memory {
 public:
  std::uint64_t leave(shared_memory_piece piece) {
    std::lock_guard const lock(guard_);
    waiting_.emplace(++last_, std::move(piece));
    return last_;
  }
  shared_memory_piece copy(std::uint64_t number) {
    std::lock_guard const lock(guard_);
    auto const found = waiting_.find(number);
    return found == waiting_.end() ? nullptr : found->second;
  }
  void remove(std::uint64_t number) {
    std::lock_guard const lock(guard_);
    waiting_.erase(number);
  }

 private:
  std::mutex guard_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, shared_memory_piece> waiting_;
};

left_memory& memory_of_this_process() {
  static left_memory all;
  return all;
}

/// Tells processes apart, also when a number of a process is used again.
struct process_name {
  std::int64_t number;
  std::int64_t born;
  bool operator==(process_name const&) const = default;
};
process_name this_process() {
  static process_name const name{getpid(),
                                 std::chrono::system_clock::now().time_since_epoch().count()};
  return name;
}

/// What a rank says of one part of its window.
struct part_card {
  std::uint64_t number;
  memory_handle handle;
};
struct card {
  process_name process;
  std::int32_t kind;
  std::int32_t ordinal;  ///< in that process, which may see other devices than this one
  char identity[sizeof device_facts::identity];
  part_card flags, rows;
};

/// A part of the own window, on offer as long as this lives.
class offer {
 public:
  offer(shared_memory_piece piece) : number_(memory_of_this_process().leave(std::move(piece))) {}
  ~offer() { memory_of_this_process().remove(number_); }
  offer(offer const&) = delete;
  std::uint64_t number() const { return number_; }

 private:
  std::uint64_t number_;
};

result<part_card> card_of(device const& where, shared_memory_piece const& piece, offer const& on,
                          bool between_processes) {
  part_card made{on.number(), {}};
  if (!between_processes) return made;
  FERRY_CHECK(to_result(
      where.about().backend->export_memory(where.ordinal(), piece->data(), &made.handle)));
  return made;
}

result<std::vector<card>> all_cards(group const& ranks, device const& where, card const& mine) {
  FERRY_TRY(auto const gathered, ranks.all_gather(std::as_bytes(std::span(&mine, 1))));
  std::vector<card> cards(gathered.size());
  for (std::size_t r = 0; r < gathered.size(); ++r) {
    if (gathered[r].size() != sizeof(card))
      return fail(error_code::unsupported,
                  "rank {} shares no device window: its device differs from {} of rank {}", r,
                  where.name(), ranks.rank());
    std::memcpy(&cards[r], gathered[r].data(), sizeof(card));
    if (cards[r].kind != static_cast<std::int32_t>(where.kind()))
      return fail(
          error_code::unsupported,
          "rank {} runs on {}, rank {} on {}: windows cannot be mapped from one to the other, "
          "and no network transport is built",
          r, to_string(static_cast<device_kind>(cards[r].kind)), ranks.rank(), where.name());
  }
  return cards;
}

/// Makes the parts of one peer's window reachable.
class peer_mapper {
 public:
  peer_mapper(device const& where, device_windows& into) : where_(where), into_(into) {}

  result<std::byte*> map(card const& from, part_card const& part, int rank) {
    if (from.process == this_process()) {
      shared_memory_piece piece = memory_of_this_process().copy(part.number);
      if (!piece)
        return fail(error_code::unreachable, "rank {} took its window back too early", rank);
      into_.kept.push_back(piece);
      return piece->data();
    }
    device_backend const& backend = *where_.about().backend;
    void* at = nullptr;
    FERRY_CHECK(to_result(backend.import_memory(where_.ordinal(), &part.handle, &at)));
    into_.imported.emplace_back(where_, at);
    return static_cast<std::byte*>(at);
  }

 private:
  device const& where_;
  device_windows& into_;
};

result<device_windows> map_all(group const& ranks, device const& where,
                               std::vector<card> const& cards, std::size_t flag_bytes) {
  device_windows made;
  made.peers.rank = ranks.rank();
  made.ranks_on_this_device = 0;
  peer_mapper mapper(where, made);
  for (int r = 0; r < ranks.size(); ++r) {
    card const& theirs = cards[static_cast<std::size_t>(r)];
    // Memory of other processes becomes reachable when it is opened.
    if (where.about().identity == theirs.identity)
      ++made.ranks_on_this_device;
    else if (theirs.process == this_process())
      FERRY_CHECK(to_result(where.about().backend->reach(where.ordinal(), theirs.ordinal)));
    FERRY_TRY(made.peers.flags[r], mapper.map(theirs, theirs.flags, r));
    FERRY_TRY(std::byte* const rows, mapper.map(theirs, theirs.rows, r));
    // Offsets of rows count from the start of the flags.
    made.peers.rows[r] = rows - flag_bytes;
  }
  return made;
}

struct own_parts {
  shared_memory_piece flags, rows;
};
result<own_parts> allocate_parts(group const& ranks, device const& where, std::size_t flag_bytes,
                                 std::size_t row_bytes) {
  if (ranks.size() > max_mapped_ranks)
    return fail(error_code::unsupported, "{} ranks on devices; windows of {} at most can be mapped",
                ranks.size(), max_mapped_ranks);
  for (int r = 0; r < ranks.size(); ++r)
    if (!ranks.same_node(r))
      return fail(error_code::unsupported,
                  "rank {} is on another node, and devices reach no network yet; only CPU ranks do",
                  r);
  FERRY_TRY(device_memory flags, where.allocate(memory_kind::flags, flag_bytes));
  FERRY_TRY(device_memory rows, where.allocate(memory_kind::rows, row_bytes));
  return own_parts{std::make_shared<device_memory>(std::move(flags)),
                   std::make_shared<device_memory>(std::move(rows))};
}

}  // namespace

imported_memory::~imported_memory() {
  device::state const& about = where_.about();
  if (at_) static_cast<void>(about.backend->close_import(about.ordinal, at_));
}

result<device_windows> share_device_windows(group const& ranks, device const& where,
                                            std::size_t flag_bytes, std::size_t row_bytes) {
  result<own_parts> const own = allocate_parts(ranks, where, flag_bytes, row_bytes);
  FERRY_CHECK(ranks.agree(own ? result<void>{} : result<void>{own.error()}));
  // First who is where: memory need not be exported to threads of one's own process.
  process_name const here = this_process();
  FERRY_TRY(auto const processes, ranks.all_gather(std::as_bytes(std::span(&here, 1))));
  bool between_processes = false;
  for (bytes const& p : processes)
    between_processes = between_processes || p.size() != sizeof here ||
                        std::memcmp(p.data(), &here, sizeof here) != 0;
  offer const flags_offer(own->flags), rows_offer(own->rows);
  auto const flags = card_of(where, own->flags, flags_offer, between_processes);
  auto const rows = card_of(where, own->rows, rows_offer, between_processes);
  FERRY_CHECK(ranks.agree(!flags  ? result<void>{flags.error()}
                          : !rows ? result<void>{rows.error()}
                                  : result<void>{}));
  card mine{here, static_cast<std::int32_t>(where.kind()), where.ordinal(), {}, *flags, *rows};
  where.about().identity.copy(mine.identity, sizeof mine.identity - 1);
  FERRY_TRY(std::vector<card> const cards, all_cards(ranks, where, mine));
  result<device_windows> made = map_all(ranks, where, cards, flag_bytes);
  FERRY_CHECK(ranks.agree(made ? result<void>{} : result<void>{made.error()}));
  return made;
}

}  // namespace ferry
