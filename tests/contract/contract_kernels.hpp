// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The kernels of the contract suites, written once over `team` and `delivery`: CPU teams, emulated
/// lanes and GPUs run them. They know nothing of a test's framework; what they find wrong they
/// count in memory.
///
/// `pointers(f)` of each calls f with every pointer to memory that the device is to reach.
#pragma once

#include <ferry/exec/team.hpp>
#include <ferry/kernels/probe.hpp>
#include <ferry/transport/copy_row.hpp>
#include <ferry/transport/delivery.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry::test {

/// The number of a team within its launch, and how many there are.
template <team Team>
FERRY_FN int number_of(Team const& t) {
  return t.block() * t.count() + t.index();
}
template <team Team>
FERRY_FN int teams_of(Team const& t) {
  return t.blocks() * t.count();
}

/// Every lane of every team counts itself.
struct visit_lanes {
  std::uint32_t* visits = nullptr;     ///< [blocks * teams, lanes]
  std::uint32_t* misplaced = nullptr;  ///< [1] lanes that do not find themselves in this grid
  std::int32_t blocks = 0;
  std::int32_t teams = 0;

  template <class F>
  void pointers(F const& f) {
    f(visits), f(misplaced);
  }
  template <team Team, class Net>
  FERRY_FN void operator()(Team const& t, Net const&) const {
    bool const placed = t.blocks() == blocks && t.count() == teams && t.block() >= 0 &&
                        t.block() < blocks && t.index() >= 0 && t.index() < teams &&
                        t.leader() == (t.lane() == 0);
    if (!placed)
      t.fetch_add(misplaced, std::uint32_t{1});
    else
      t.fetch_add(visits + number_of(t) * Team::lanes + t.lane(), std::uint32_t{1});
  }
};

/// to[team] = 1 + what the next team left in `from`, by plain accesses: only the order of launches
/// makes this right.
struct pass_on {
  std::uint32_t const* from = nullptr;  ///< [teams of all blocks]
  std::uint32_t* to = nullptr;          ///< [teams of all blocks]

  template <class F>
  void pointers(F const& f) {
    f(from), f(to);
  }
  template <team Team, class Net>
  FERRY_FN void operator()(Team const& t, Net const&) const {
    if (t.leader()) to[number_of(t)] = 1 + from[(number_of(t) + 1) % teams_of(t)];
  }
};

/// ++at[team] by plain accesses.
struct count_up {
  std::uint32_t* at = nullptr;  ///< [teams of all blocks]

  template <class F>
  void pointers(F const& f) {
    f(at);
  }
  template <team Team, class Net>
  FERRY_FN void operator()(Team const& t, Net const&) const {
    if (t.leader()) ++at[number_of(t)];
  }
};

/// Every team waits until all have come.
struct meet {
  std::uint64_t* here = nullptr;     ///< [1]
  std::uint32_t* missing = nullptr;  ///< [1] teams that waited in vain

  template <class F>
  void pointers(F const& f) {
    f(here), f(missing);
  }
  template <team Team, class Net>
  FERRY_FN void operator()(Team const& t, Net const&) const {
    if (!t.leader()) return;
    t.fetch_add(here, std::uint64_t{1});
    std::uint64_t seen = 0;
    awaited const all{flag::done, 0, -1, static_cast<std::uint64_t>(teams_of(t))};
    if (!t.wait(all, here, seen)) t.fetch_add(missing, std::uint32_t{1});
  }
};

/// Every lane waits for a word.
struct await_word {
  awaited what = {};
  std::uint64_t const* word = nullptr;
  std::uint64_t* seen = nullptr;     ///< [1] the word, as the first lane saw it
  std::uint32_t* arrived = nullptr;  ///< [1] lanes that it came to
  std::uint32_t* failed = nullptr;   ///< [1] lanes that know of a failure afterwards

  template <class F>
  void pointers(F const& f) {
    f(word), f(seen), f(arrived), f(failed);
  }
  template <team Team, class Net>
  FERRY_FN void operator()(Team const& t, Net const&) const {
    std::uint64_t value = 0;
    if (t.wait(what, word, value)) t.fetch_add(arrived, std::uint32_t{1});
    if (t.failed()) t.fetch_add(failed, std::uint32_t{1});
    if (number_of(t) == 0 && t.leader()) *seen = value;
  }
};

/// How often lanes made a check, and how often it went wrong.
struct check_count {
  std::uint32_t made, wrong;
};

/// What the lanes of a team, and the teams of a block, do together.
enum class team_check {
  scratch,
  broadcast,
  broadcast_of_8_bytes,
  ballot,
  any,
  largest_of_8,
  largest_of_all,
  sums,
  memory_of_lanes,
  votes_of_a_block,
  memory_of_a_block,
  count_
};

struct check_team {
  static constexpr int turns = 12;

  check_count* counts = nullptr;     ///< [team_check]
  std::uint32_t* numbers = nullptr;  ///< [blocks * teams, lanes]
  std::byte* scratch = nullptr;      ///< as the launch has it
  std::size_t scratch_stride = 0;

  template <class F>
  void pointers(F const& f) {
    f(counts), f(numbers), f(scratch);
  }
  template <team Team, class Net>
  FERRY_FN void operator()(Team const& t, Net const&) const {
    constexpr int lanes = Team::lanes;
    expect(t, team_check::scratch,
           t.row_scratch() == scratch + static_cast<std::size_t>(number_of(t)) * scratch_stride);
    auto const number = static_cast<float>(t.lane());
    expect(t, team_check::broadcast, t.broadcast(number, 3 % lanes) == float{3 % lanes});
    constexpr std::uint64_t high = std::uint64_t{1} << 63;
    expect(t, team_check::broadcast_of_8_bytes,
           t.broadcast(high + static_cast<std::uint64_t>(t.lane()), lanes - 1) == high + lanes - 1);
    vote(t);
    if constexpr (lanes >= 8)
      expect(t, team_check::largest_of_8,
             t.template max_over<8>(number) == static_cast<float>(t.lane() / 8 * 8 + 7));
    expect(t, team_check::largest_of_all, t.template max_over<lanes>(-number) == 0.0f);
    std::int64_t const big = std::int64_t{1} << 33;
    std::int64_t const lane = t.lane();
    expect(t, team_check::sums, t.sum_to(big + lane) == (lane + 1) * big + lane * (lane + 1) / 2);
    for (int turn = 0; turn < turns; ++turn) share(t, turn);
  }

 private:
  template <team Team>
  FERRY_FN void expect(Team const& t, team_check which, bool right) const {
    check_count& count = counts[static_cast<int>(which)];
    t.fetch_add(&count.made, std::uint32_t{1});
    if (!right) t.fetch_add(&count.wrong, std::uint32_t{1});
  }

  template <team Team>
  FERRY_FN void vote(Team const& t) const {
    typename Team::mask odd = 0;
    for (int i = 1; i < Team::lanes; i += 2) odd |= static_cast<typename Team::mask>(1) << i;
    expect(t, team_check::ballot, t.ballot(t.lane() % 2 == 1) == odd);
    bool const last = t.any(t.lane() == Team::lanes - 1);
    bool const none = t.any(false);
    expect(t, team_check::any, last && !none);
  }

  // Turn after turn at the same places, so that a barrier that lets somebody through shows.
  template <team Team>
  FERRY_FN void share(Team const& t, int turn) const {
    constexpr int lanes = Team::lanes;
    std::uint32_t* const own = numbers + number_of(t) * lanes;
    auto const value = [&](int team, int lane) {
      return static_cast<std::uint32_t>((turn * 131 + team) * lanes + lane);
    };
    own[t.lane()] = value(t.index(), t.lane());
    t.sync();
    int const next = (t.lane() + 1) % lanes;
    expect(t, team_check::memory_of_lanes, own[next] == value(t.index(), next));
    t.sync();

    bool const all = t.block_all(true);
    bool const but_one = t.block_all(t.index() != turn % t.count() || t.lane() != turn % lanes);
    bool const of_first = t.block_all(t.block() == 0);
    expect(t, team_check::votes_of_a_block, all && !but_one && of_first == (t.block() == 0));

    auto* const shared = reinterpret_cast<std::uint32_t*>(t.block_scratch());
    if (t.leader()) shared[t.index()] = value(t.index(), 0);
    t.block_sync();
    int const other = (t.index() + 1) % t.count();
    expect(t, team_check::memory_of_a_block, shared[other] == value(other, 0));
    t.block_sync();
  }
};

/// One row to be moved: where it lies in `from`, and in its part of what is written.
struct row_case {
  std::uint32_t from, to, bytes;
};

/// Moves each row once, by whichever team.
struct put_rows {
  row_case const* cases = nullptr;
  std::int32_t num_cases = 0;
  std::byte const* from = nullptr;
  std::size_t offset = 0;  ///< of the first case's part in the window of rank `to`
  std::size_t part = 0;    ///< bytes from one case's part to the next
  std::int32_t to = 0;
  std::byte* here = nullptr;  ///< not null: copied to this memory of the own rank instead

  template <class F>
  void pointers(F const& f) {
    f(cases), f(from), f(here);
  }
  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    for (int i = number_of(t); i < num_cases; i += teams_of(t)) {
      row_case const c = cases[i];
      std::size_t const at = static_cast<std::size_t>(i) * part + c.to;
      if (here)
        copy_row(t, here + at, from + c.from, c.bytes);
      else
        net.put(t, to, offset + at, from + c.from, c.bytes);
    }
    t.drain();
  }
};

/// The first team puts what its lanes hold: 16 bytes each, then 4, then 1.
struct put_values {
  std::size_t offset = 0;
  std::int32_t to = 0;

  template <class F>
  void pointers(F const&) {}
  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    if (number_of(t) != 0) return;
    auto const lane = static_cast<std::uint32_t>(t.lane());
    constexpr std::size_t lanes = Team::lanes;
    net.put_value(t, to, offset, 16 * lane, piece{{lane, lane + 1000, ~lane, 7 * lane}});
    net.put_value(t, to, offset + 16 * lanes, 4 * lane, 77000 + lane);
    net.put_value(t, to, offset + 20 * lanes, lane, static_cast<std::uint8_t>(200 - lane));
    t.drain();
  }
};

/// The first team publishes a word to every rank.
struct publish_words {
  std::size_t offset = 0;
  std::uint64_t first = 0;  ///< rank 0's word; rank d's is d more
  std::int32_t ranks = 0;

  template <class F>
  void pointers(F const&) {}
  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    t.drain();
    t.block_sync();
    if (number_of(t) != 0) return;
    net.release(t);
    for (int d = t.lane(); d < ranks; d += Team::lanes)
      net.publish(t, d, flag::done, offset, first + static_cast<std::uint64_t>(d));
  }
};

/// What a fabric, or memory of the wrong kind, may do to one piece.
enum class window_fault { none, loses, brings_late };

/// A delivery with a fault at one place of every row.
template <class Behind>
struct faulty_delivery {
  Behind net;
  window_fault how;
  std::uint32_t last;  ///< the lane's offset of the piece that it happens to
  piece* held;         ///< by rank

  FERRY_FN std::byte* own_flags() const { return net.own_flags(); }
  FERRY_FN std::byte* own_rows() const { return net.own_rows(); }
  template <team Team>
  FERRY_FN void put(Team const& t, int to, std::size_t offset, std::byte const* from,
                    std::size_t bytes) const {
    net.put(t, to, offset, from, bytes);
  }
  template <team Team, class T>
  FERRY_FN void put_value(Team const& t, int to, std::size_t offset, std::uint32_t at,
                          T const& value) const {
    if constexpr (std::is_same_v<T, piece>) {
      if (at == last && how == window_fault::loses) return;
      if (at == last && how == window_fault::brings_late) {
        piece const before = held[to];
        held[to] = value;
        net.put_value(t, to, offset, at, before);
        return;
      }
    }
    net.put_value(t, to, offset, at, value);
  }
  template <team Team>
  FERRY_FN void release(Team const& t) const {
    net.release(t);
  }
  template <team Team>
  FERRY_FN void publish(Team const& t, int to, flag kind, std::size_t offset,
                        std::uint64_t word) const {
    net.publish(t, to, kind, offset, word);
  }
};

/// The start-up test of windows, over a delivery that may have a fault.
struct faulty_probe {
  probe_windows probe;
  window_fault how = window_fault::none;
  piece* held = nullptr;  ///< [ranks]

  template <class F>
  void pointers(F const& f) {
    f(probe.wrong), f(held);
  }
  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    auto const last =
        static_cast<std::uint32_t>(sizeof(piece)) * static_cast<std::uint32_t>(probe.pieces() - 1);
    probe(t, faulty_delivery<Net>{net, how, last, held});
  }
};

}  // namespace ferry::test
