// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Signals that travel as messages, and their order.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace ferry {

/// A signal on its way. All ranks are little-endian.
struct signal_message {
  std::uint64_t stream;  ///< of one connection; a later one of the same sender is greater
  std::uint64_t number;  ///< from 0, in the order in which words are to be stored
  std::uint64_t offset;
  std::uint64_t value;
  std::uint64_t rank;  ///< the sender
};
static_assert(sizeof(signal_message) == 40);

/// Puts a sender's signals into the order of their numbers, whatever the order in which they come.
class signal_order {
 public:
  /// The signals whose turn it is now, in order.
  std::vector<signal_message> take(signal_message const& came);

 private:
  static constexpr std::uint64_t most_ahead = 32768;  ///< the longest queue that options allow
  std::uint64_t stream_ = 0, next_ = 0;
  std::map<std::uint64_t, signal_message> early_;
};

}  // namespace ferry
