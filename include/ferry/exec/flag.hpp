// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The four kinds of flag words by which ranks tell each other what is complete.
#pragma once

#include <ferry/base/platform.hpp>
#include <ferry/base/result.hpp>

#include <cstdint>

namespace ferry {

/// A flag word has one writer and carries an epoch in its upper bits.
enum class flag : std::uint8_t {
  header,   ///< epoch << 24 | tokens the source still brings; covers its expert counts
  arrived,  ///< epoch << 16 | map of the chunk's tokens; covers their rows, scales and routes
  back,     ///< epoch; covers the chunk's returned rows
  done,     ///< epoch; its writer reads nothing more of that step: the credit for the next one
};

/// Where the epoch starts in a word of this kind.
FERRY_FN constexpr int epoch_shift(flag kind) {
  return kind == flag::header ? 24 : kind == flag::arrived ? 16 : 0;
}

/// Whether a word of this kind holds `epoch` or a later one. Epochs themselves never wrap; a word
/// keeps only their lower bits, so what is compared is their distance, which is never near half the
/// field.
FERRY_FN constexpr bool has_reached(flag kind, std::uint64_t word, std::uint64_t epoch) {
  int const shift = epoch_shift(kind);
  return ((word - (epoch << shift)) >> shift) < (std::uint64_t{1} << (63 - shift));
}

/// What a wait is for: enough to say, when it fails, who is missing and where.
struct awaited {
  flag kind;
  std::int32_t rank;    ///< who writes the word
  std::int32_t chunk;   ///< -1 where the word belongs to no chunk
  std::uint64_t epoch;  ///< the wait ends when the word's epoch is this or later
};

/// Why a wait ended without its word (rule R9). Trivially copyable: it lies in a window.
struct failure {
  error_code code;
  std::int32_t rank;  ///< whom to blame: the root cause, as far as it can be seen
  awaited wait;       ///< what this rank was waiting for
  std::int32_t slot;
  std::uint64_t seen;  ///< the epoch that the word held
};

/// What a rank says of itself in its own window. Written by its owner alone; peers read it to find
/// the root cause of a failure (R9).
struct status_record {
  static constexpr std::uint64_t complete = 1, being_written = 2;
  std::uint64_t failed;  ///< 0, or one of the above; `record` may be read once it is complete
  failure record;
  std::uint64_t waiting;  ///< 0, or 1 + the rank that this one waits for
};

}  // namespace ferry
