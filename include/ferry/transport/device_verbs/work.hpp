// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One operation for a NIC, before it takes any vendor's form.
#pragma once

#include <cstdint>

namespace ferry::device_verbs {

enum class verb : std::uint8_t {
  write,                 ///< local bytes to remote memory
  write_with_immediate,  ///< the same, and a 32-bit number to the receiver's completion queue
  inline_word,           ///< 8 bytes that travel in the queue entry, to remote memory
  fetch_add,             ///< atomically adds to an aligned remote word; the old value comes back
};

/// Units    addresses are those that the keys were registered for: the own process's for `local`,
///          the peer's for `remote`
struct work {
  verb what = verb::write;
  /// Starts only once every earlier fetch_add of this queue has brought its value back. (It does
  /// not wait for earlier writes: a fetch_add before it does.)
  bool fenced = false;
  bool signalled = true;  ///< its end shows in the completion queue, and with it all earlier ends
  std::uint32_t remote_key = 0;
  std::uint64_t remote = 0;
  std::uint64_t local = 0;  ///< write: the source; fetch_add: where the old value goes
  std::uint32_t local_key = 0;
  std::uint32_t bytes = 0;  ///< of write and write_with_immediate; may be 0
  std::uint64_t word = 0;   ///< inline_word: the value; fetch_add: what is added
  std::uint32_t immediate = 0;
};

}  // namespace ferry::device_verbs
