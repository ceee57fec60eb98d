// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A memory that shows stores late and out of order, as far as a weak memory model allows it.
#pragma once

#include "protocol/chance.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <vector>

namespace ferry::protocol_test {

/// Every store waits in the set of its (writer, target) and becomes visible some time later, in any
/// order, but
///   - stores to the same bytes keep their order;
///   - a release becomes visible only after all earlier stores of its writer to its target.
/// Stores after a release may overtake it. Nothing orders stores to different targets. Reads see
/// the target's bytes as they are. One thread at a time.
class slow_memory {
 public:
  enum class promise { plain, release };

  slow_memory(int writers, int targets, std::uint64_t seed)
      : targets_(targets),
        random_(seed),
        channels_(static_cast<std::size_t>(writers) * static_cast<std::size_t>(targets)) {
    // From run to run the memory is quick or lazy, and most runs have paths that are far slower
    // than the others.
    int const quick = random_.once_in(3) ? 1 : 200;
    for (channel& c : channels_) c.weight = random_.once_in(4) ? 1 : quick;
    rarity_ = 1 << (2 * random_.below(4));
  }

  /// Stores longer than 4 bytes may be seen in parts.
  void store(int writer, int target, std::byte* to, std::byte const* from, std::size_t bytes,
             promise p) {
    if (p == promise::release) return add(writer, target, to, from, bytes, true);
    while (bytes > 0) {
      std::size_t const most = std::min<std::size_t>(bytes, max_piece);
      std::size_t const part =
          std::min<std::size_t>(most, 4 * (1 + static_cast<std::size_t>(random_.below(4))));
      add(writer, target, to, from, part, false);
      to += part;
      from += part;
      bytes -= part;
    }
  }
  /// A store of one word that nobody sees half of, without a promise.
  void store_word(int writer, int target, std::byte* to, std::uint64_t const& word) {
    add(writer, target, to, reinterpret_cast<std::byte const*>(&word), sizeof word, false);
  }

  bool idle() const { return waiting_ == 0; }

  /// Shows none, one or several waiting stores.
  void move_some() {
    if (!random_.once_in(rarity_)) return;
    while (waiting_ > 0 && !random_.once_in(3)) move_one();
  }

  /// Shows one of the stores that may be shown now; there must be a waiting one.
  void move_one() {
    channel& c = pick_channel();
    std::size_t const first =
        random_.once_in(3) ? 0
                           : static_cast<std::size_t>(random_.below(
                                 static_cast<int>(std::min<std::size_t>(c.stores.size(), 64))));
    // The oldest one may always go.
    for (std::size_t i : {first, std::size_t{0}}) {
      if (!may_go(c, i)) continue;
      std::memcpy(c.stores[i].to, c.stores[i].bytes.data(), c.stores[i].size);
      c.stores.erase(c.stores.begin() + static_cast<std::ptrdiff_t>(i));
      --waiting_;
      return;
    }
  }

  /// Shows all that waits, but for one writer's stores.
  void show_all_but(int writer) {
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      if (static_cast<int>(i) / targets_ == writer) continue;
      for (pending const& p : channels_[i].stores) std::memcpy(p.to, p.bytes.data(), p.size);
      waiting_ -= channels_[i].stores.size();
      channels_[i].stores.clear();
    }
  }
  /// None of what waits will ever be shown.
  void drop_all() {
    for (channel& c : channels_) c.stores.clear();
    waiting_ = 0;
  }

 private:
  static constexpr std::size_t max_piece = 16;
  struct pending {
    std::byte* to;
    std::size_t size;
    bool release;
    std::array<std::byte, max_piece> bytes;
  };
  struct channel {
    std::deque<pending> stores;
    int weight = 1;
  };

  void add(int writer, int target, std::byte* to, std::byte const* from, std::size_t bytes,
           bool release) {
    pending p{to, bytes, release, {}};
    std::memcpy(p.bytes.data(), from, bytes);
    channels_[static_cast<std::size_t>(writer * targets_ + target)].stores.push_back(p);
    ++waiting_;
  }

  channel& pick_channel() {
    int all = 0;
    for (channel const& c : channels_) all += c.stores.empty() ? 0 : c.weight;
    int left = random_.below(all);
    for (channel& c : channels_) {
      if (c.stores.empty()) continue;
      left -= c.weight;
      if (left < 0) return c;
    }
    return channels_.front();
  }

  static bool may_go(channel const& c, std::size_t i) {
    pending const& p = c.stores[i];
    if (p.release) return i == 0;
    return std::none_of(c.stores.begin(), c.stores.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](pending const& earlier) {
                          return earlier.to < p.to + p.size && p.to < earlier.to + earlier.size;
                        });
  }

  int targets_;
  chance random_;
  std::vector<channel> channels_;
  int rarity_ = 1;
  std::size_t waiting_ = 0;
};

}  // namespace ferry::protocol_test
