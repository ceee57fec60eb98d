// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The start-up test of mapped windows.
#pragma once

#include <ferry/kernels/step.hpp>
#include <ferry/transport/delivery.hpp>

#include <cstdint>

namespace ferry {

/// Whether windows behave: what a peer has put must be there when the word that covers it is seen,
/// round after round at the same place. All ranks run it at the same time, in a slot without a
/// step; afterwards the flags, and `pieces()` of every source's rows, are to be zeroed.
struct probe_windows {
  step_frame frame;
  int rounds = 1;
  std::uint32_t* wrong = nullptr;  ///< [1] pieces that were not there, counted up

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    if (t.block() != 0) return;
    std::uint32_t missing = 0;
    for (int round = 1; round <= rounds; ++round) {
      put_pattern(t, net, round);
      t.drain();
      t.block_sync();
      say(t, net, flag::arrived, frame.chunk_flag(flag_field::arrived, frame.shape.rank, 0), round);
      bool ok = true;
      for (int s = 0; s < frame.shape.ranks && ok; ++s) {
        ok = heard(t, net, flag::arrived, s, frame.chunk_flag(flag_field::arrived, s, 0), round);
        if (ok) missing += count_missing(t, net, s, round);
      }
      if (!t.block_all(ok)) return;
      // Nobody overwrites what another still looks at.
      say(t, net, flag::done, frame.line_head(flag_field::back, frame.shape.rank), round);
      for (int d = 0; d < frame.shape.ranks && ok; ++d)
        ok = heard(t, net, flag::done, d, frame.line_head(flag_field::back, d), round);
      if (!t.block_all(ok)) return;
    }
    if (missing) t.fetch_add(wrong, missing);
  }

  /// Pieces of each source's inbox that are written: its first rows, at most 4 KiB.
  FERRY_FN int pieces() const {
    std::size_t const all = static_cast<std::size_t>(frame.shape.round_tokens) *
                            frame.slot.stride(slot_field::rows) / sizeof(piece);
    return all < 256 ? static_cast<int>(all) : 256;
  }

 private:
  FERRY_FN static piece pattern(int rank, int round, int at) {
    auto const seed = static_cast<std::uint32_t>(rank * 7919 + round) * 2654435761u;
    auto const n = static_cast<std::uint32_t>(at);
    return {{seed ^ n, seed + n, ~seed - n, seed * (2 * n + 1)}};
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void put_pattern(Team const& t, Net const& net, int round) const {
    for (int d = 0; d < frame.shape.ranks; ++d)
      for (int p = t.index() * Team::lanes + t.lane(); p < pieces(); p += t.count() * Team::lanes)
        net.put_value(t, d, frame.at(slot_field::rows, frame.shape.rank, 0),
                      static_cast<std::uint32_t>(p) * std::uint32_t{sizeof(piece)},
                      pattern(frame.shape.rank, round, p));
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void say(Team const& t, Net const& net, flag kind, std::size_t offset, int round) const {
    if (t.index() != 0) return;
    net.release(t);
    for (int d = t.lane(); d < frame.shape.ranks; d += Team::lanes)
      net.publish(t, d, kind, offset, static_cast<std::uint64_t>(round) << epoch_shift(kind));
  }

  template <team Team, class Net>
  FERRY_FN bool heard(Team const& t, Net const& net, flag kind, int from, std::size_t offset,
                      int round) const {
    std::uint64_t seen = 0;
    return t.wait({kind, from, kind == flag::done ? -1 : 0, static_cast<std::uint64_t>(round)},
                  own_word(net, offset), seen);
  }

  template <team Team, class Net>
  FERRY_FN std::uint32_t count_missing(Team const& t, Net const& net, int source, int round) const {
    std::byte const* const rows = net.own_rows() + frame.at(slot_field::rows, source, 0);
    std::uint32_t missing = 0;
    for (int p = t.index() * Team::lanes + t.lane(); p < pieces(); p += t.count() * Team::lanes) {
      piece const want = pattern(source, round, p);
      piece const got = t.load_piece(rows + static_cast<std::size_t>(p) * sizeof(piece));
      bool same = true;
      for (int i = 0; i < 4; ++i) same = same && got.word[i] == want.word[i];
      missing += !same;
    }
    return missing;
  }
};

}  // namespace ferry
