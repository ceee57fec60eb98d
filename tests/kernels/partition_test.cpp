// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/partition.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;

constexpr int bound = 70;

// How often each of `count` items is dealt.
constexpr bool dealt_once(int of, int count) {
  std::vector<int> visits(static_cast<std::size_t>(count), 0);
  for (int index = 0; index < of; ++index) {
    strided const part = dealt(index, of, count);
    for (int i = part.first; i < part.end; i += part.step) ++visits[static_cast<std::size_t>(i)];
  }
  for (int n : visits)
    if (n != 1) return false;
  return true;
}
static_assert(dealt_once(1, 0) && dealt_once(3, 7) && dealt_once(7, 3) && dealt_once(64, 64));

TEST(partition, deals_each_item_once) {
  for (int of = 1; of <= bound; ++of)
    for (int count = 0; count <= 3 * bound; ++count)
      ASSERT_TRUE(dealt_once(of, count)) << count << " items over " << of;
}

constexpr bool chunks_cover_once(int chunk_tokens, int tokens) {
  int next = 0;
  int const chunks = ceil_div(tokens, chunk_tokens);
  for (int c = 0; c < chunks; ++c) {
    token_range const range = tokens_of_chunk(c, chunk_tokens, tokens);
    if (range.begin != next || range.end <= range.begin || range.end - range.begin > chunk_tokens)
      return false;
    next = range.end;
  }
  token_range const beyond = tokens_of_chunk(chunks, chunk_tokens, tokens);
  return next == tokens && beyond.begin == beyond.end;
}
static_assert(chunks_cover_once(16, 0) && chunks_cover_once(16, 33) && chunks_cover_once(1, 5));

TEST(partition, puts_each_token_into_one_chunk) {
  for (int chunk_tokens : {1, 2, 4, 8, 16})
    for (int tokens = 0; tokens <= 300; ++tokens)
      ASSERT_TRUE(chunks_cover_once(chunk_tokens, tokens)) << tokens << " in " << chunk_tokens;
}

// Every chunk of every source is laid out by one block, and whoever shares a source reads all its
// chunks.
constexpr bool received_once(int blocks, int sources, int chunks) {
  std::vector<int> visits(static_cast<std::size_t>(sources * chunks), 0);
  for (int block = 0; block < blocks; ++block) {
    receiving_part const part = receiving_part_of(block, blocks, sources);
    for (int s = part.sources.first; s < part.sources.end; s += part.sources.step)
      for (int c = 0; c < chunks; ++c)
        if (c % part.shares == part.share) ++visits[static_cast<std::size_t>(s * chunks + c)];
  }
  for (int n : visits)
    if (n != 1) return false;
  return true;
}
static_assert(received_once(1, 9, 3) && received_once(9, 1, 3) && received_once(7, 3, 5));

TEST(partition, receives_each_chunk_of_each_source_once) {
  for (int blocks = 1; blocks <= bound; ++blocks)
    for (int sources = 1; sources <= bound; ++sources)
      for (int chunks : {1, 2, 3, 5, 8, 71})
        ASSERT_TRUE(received_once(blocks, sources, chunks))
            << blocks << " blocks, " << sources << " sources, " << chunks << " chunks";
}

constexpr bool returned_once(int rank, int ranks, int chunks) {
  std::vector<int> visits(static_cast<std::size_t>(ranks * chunks), 0);
  for (int item = 0; item < ranks * chunks; ++item) {
    returning_item const at = returning_item_of(item, rank, ranks);
    if (at.source < 0 || at.source >= ranks || at.chunk < 0 || at.chunk >= chunks) return false;
    ++visits[static_cast<std::size_t>(at.source * chunks + at.chunk)];
  }
  for (int n : visits)
    if (n != 1) return false;
  return true;
}
static_assert(returned_once(0, 1, 1) && returned_once(3, 8, 5));

TEST(partition, returns_each_chunk_of_each_source_once_and_starts_at_home) {
  for (int ranks = 1; ranks <= bound; ++ranks)
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_TRUE(returned_once(rank, ranks, 3));
      ASSERT_EQ(returning_item_of(0, rank, ranks).source, rank);
    }
}

}  // namespace
