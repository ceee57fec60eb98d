// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Who does what: constexpr maps from (block, team) to items. Each item is visited exactly once.
#pragma once

#include <ferry/base/types.hpp>

#include <cstdint>

namespace ferry {

/// first, first + step, ... below end.
struct strided {
  int first;
  int end;
  int step;
};

/// Items 0..count-1 dealt out in turn.
FERRY_FN constexpr strided dealt(int index, int of, int count) {
  return {index, count, of};
}

/// Tokens [begin, end) of a chunk within a round of `tokens` tokens.
struct token_range {
  int begin;
  int end;
};
FERRY_FN constexpr token_range tokens_of_chunk(int chunk, int chunk_tokens, int tokens) {
  int const begin = chunk * chunk_tokens;
  int const end = begin + chunk_tokens;
  return {begin < tokens ? begin : tokens, end < tokens ? end : tokens};
}

/// A block's part of receiving: sources first, first + step, ... and of each the chunks whose
/// number modulo `shares` is `share`. With fewer blocks than sources a block takes several sources
/// whole; with more, blocks share a source; blocks beyond a multiple of the sources have none.
struct receiving_part {
  strided sources;
  int share;
  int shares;
};
FERRY_FN constexpr receiving_part receiving_part_of(int block, int blocks, int sources) {
  if (blocks <= sources) return {dealt(block, blocks, sources), 0, 1};
  int const shares = blocks / sources;
  int const share = block / sources;
  if (share >= shares) return {{sources, sources, 1}, 0, 1};
  return {{block % sources, block % sources + 1, 1}, share, shares};
}

/// Items of returning: chunk by chunk, and within a chunk the sources from this rank's own on, so
/// that ranks do not all write to the same peer at first.
struct returning_item {
  int source;
  int chunk;
};
FERRY_FN constexpr returning_item returning_item_of(std::int64_t item, int rank, int ranks) {
  return {static_cast<int>((item + rank) % ranks), static_cast<int>(item / ranks)};
}

}  // namespace ferry
