// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Why an emulated NIC does not do what its queue says.
#pragma once

#include <cstdint>
#include <ostream>

namespace ferry::test {

enum class refusal : std::uint8_t {
  none,
  doorbell_of_another_queue,
  doorbell_malformed,      ///< type, valid bit, place or unused bits
  doorbell_before_record,  ///< mlx5: the register was rung before the record was stored
  doorbell_without_entry,  ///< mlx5: the register's 8 bytes are not the last entry's
  wrong_epoch,             ///< bnxt: the round of the doorbell
  queue_overrun,           ///< more entries than the queue has room for
  wrong_opcode,
  wrong_size,   ///< of the entry, of its data, of an atomic
  wrong_queue,  ///< the entry names another queue
  wrong_index,
  wrong_owner,  ///< ionic: the colour of another round
  wrong_flags,  ///< unknown flags, or flags that the opcode cannot have
  reserved_not_zero,
  wrong_search_entry,  ///< bnxt: slot or packet numbers in the search table
  wrong_local_key,
  outside_local_memory,
  wrong_remote_key,
  outside_remote_memory,
  misaligned_atomic,
  completion_overrun,  ///< completions were not taken in time
  consumer_malformed,  ///< the place up to which completions are said to be read
  not_connected,
};

constexpr char const* to_string(refusal r) {
  switch (r) {
    case refusal::none: return "none";
    case refusal::doorbell_of_another_queue: return "doorbell_of_another_queue";
    case refusal::doorbell_malformed: return "doorbell_malformed";
    case refusal::doorbell_before_record: return "doorbell_before_record";
    case refusal::doorbell_without_entry: return "doorbell_without_entry";
    case refusal::wrong_epoch: return "wrong_epoch";
    case refusal::queue_overrun: return "queue_overrun";
    case refusal::wrong_opcode: return "wrong_opcode";
    case refusal::wrong_size: return "wrong_size";
    case refusal::wrong_queue: return "wrong_queue";
    case refusal::wrong_index: return "wrong_index";
    case refusal::wrong_owner: return "wrong_owner";
    case refusal::wrong_flags: return "wrong_flags";
    case refusal::reserved_not_zero: return "reserved_not_zero";
    case refusal::wrong_search_entry: return "wrong_search_entry";
    case refusal::wrong_local_key: return "wrong_local_key";
    case refusal::outside_local_memory: return "outside_local_memory";
    case refusal::wrong_remote_key: return "wrong_remote_key";
    case refusal::outside_remote_memory: return "outside_remote_memory";
    case refusal::misaligned_atomic: return "misaligned_atomic";
    case refusal::completion_overrun: return "completion_overrun";
    case refusal::consumer_malformed: return "consumer_malformed";
    case refusal::not_connected: return "not_connected";
  }
  return "?";
}
inline void PrintTo(refusal r, std::ostream* out) {
  *out << to_string(r);
}

}  // namespace ferry::test
