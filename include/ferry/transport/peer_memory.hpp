// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Delivery by stores of a device to its peers' memory, over whatever links the devices.
#pragma once

#include <ferry/transport/delivery.hpp>
#include <ferry/transport/peer_table.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry {

/// All peers mapped. Made by every lane when a kernel begins: a lane keeps where its own peers'
/// flags lie, because looking that up between a release and a flag would be a load on the one path
/// that everybody waits for. `Device` gives the instructions.
template <class Device>
class peer_memory_delivery {
 public:
  /// `own_flags`, `own_rows`: this rank's bases, which the table holds too; the compiler knows what
  /// an argument of its own points to.
  FERRY_FN peer_memory_delivery(peer_table const& peers, std::byte* own_flags, std::byte* own_rows)
      : peers_(peers), own_flags_(own_flags), own_rows_(own_rows) {
    low_flags_ = peers.flags[Device::lane()];
    if constexpr (two_peers) high_flags_ = peers.flags[Device::lanes + Device::lane()];
  }

  FERRY_FN std::byte* own_flags() const { return own_flags_; }
  FERRY_FN std::byte* own_rows() const { return own_rows_; }

  template <team Team>
  FERRY_FN void put(Team const& t, int to, std::size_t offset, std::byte const* from,
                    std::size_t bytes) const {
    std::byte* const row = peers_.rows[to] + offset;
    auto const n = static_cast<std::uint32_t>(bytes);
    std::size_t const address =
        reinterpret_cast<std::size_t>(row) | reinterpret_cast<std::size_t>(from);
    std::uint32_t const in_pieces = address % 16 == 0 ? n / 16 * 16 : 0;
    std::uint32_t const in_words = address % 4 == 0 ? n / 4 * 4 : in_pieces;
    put_span<piece>(t, row, from, 0, in_pieces);
    put_span<std::uint32_t>(t, row, from, in_pieces, in_words);
    put_span<std::uint8_t>(t, row, from, in_words, n);
  }

  template <team Team, class T>
  FERRY_FN void put_value(Team const&, int to, std::size_t offset, std::uint32_t lane_offset,
                          T const& value) const {
    Device::store_through(peers_.rows[to] + offset, lane_offset, value);
  }

  /// Teams have drained: what remains is whatever this target needs before a flag.
  template <team Team>
  FERRY_FN void release(Team const&) const {
    Device::release();
  }

  /// A device cannot wake a sleeper: a CPU rank looks for itself every 50 ms (R11).
  template <team Team>
  FERRY_FN void publish(Team const&, int to, flag, std::size_t offset, std::uint64_t word) const {
    std::byte* base = low_flags_;
    if constexpr (two_peers)
      if (to >= Device::lanes) base = high_flags_;
    Device::store_word(reinterpret_cast<std::uint64_t*>(base + offset), word);
  }
  /// The same by whatever lane: it looks up where the rank's flags lie.
  template <team Team>
  FERRY_FN void publish_by_any_lane(Team const&, int to, flag, std::size_t offset,
                                    std::uint64_t word) const {
    Device::store_word(reinterpret_cast<std::uint64_t*>(peers_.flags[to] + offset), word);
  }

 private:
  // As much as lanes hold is read, then stored, then waited for: devices count loads and stores in
  // one order, so each load behind a store would wait until the peer has acknowledged that store.
  template <class T, team Team>
  FERRY_FN static void put_span(Team const& t, std::byte* row, std::byte const* from,
                                std::uint32_t begin, std::uint32_t end) {
    constexpr int held = Team::row_pieces;
    constexpr std::uint32_t width = sizeof(T) * Team::lanes;
    std::uint32_t const mine = sizeof(T) * static_cast<std::uint32_t>(t.lane());
    for (std::uint32_t first = begin; first < end; first += held * width) {
      T values[held];
      FERRY_UNROLL
      for (int j = 0; j < held; ++j) {
        std::uint32_t const at = first + static_cast<std::uint32_t>(j) * width + mine;
        std::byte const* const place = from + (at < end ? at : end - sizeof(T));
        if constexpr (std::is_same_v<T, piece>)
          values[j] = t.load_piece(place);
        else
          values[j] = Device::template load<T>(place);
      }
      FERRY_UNROLL
      for (int j = 0; j < held; ++j) {
        std::uint32_t const at = first + static_cast<std::uint32_t>(j) * width + mine;
        if (at < end) Device::store_through(row, at, values[j]);
      }
      t.drain();
    }
  }

  static constexpr bool two_peers = max_mapped_ranks > Device::lanes;
  static_assert(max_mapped_ranks <= 2 * Device::lanes);

  peer_table const& peers_;
  std::byte* own_flags_;
  std::byte* own_rows_;
  std::byte* low_flags_;             ///< of the rank with this lane's number
  std::byte* high_flags_ = nullptr;  ///< of the rank `lanes` later
};

}  // namespace ferry
