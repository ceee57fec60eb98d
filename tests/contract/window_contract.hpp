// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What windows must keep to between ranks whose kernels run at the same time, and that their
/// start-up test sees when they do not.
#pragma once

#include "contract/contract_case.hpp"

#include <memory>
#include <vector>

namespace ferry::test {

class window_contract : public contract_case {
 protected:
  static constexpr int ranks = 3;

  struct outcome {
    std::uint32_t wrong = 0;
    status_record status{};
  };

  /// A rank with its window: flags and rows, in memories of their own but on the CPU.
  struct probing_rank {
    probing_rank(device const& where, window_layout const& l, std::chrono::milliseconds timeout)
        : place(where, timeout),
          q(place.make_queue(1)),
          flags(where, place.on_cpu() ? l.bytes() : flag_bytes_of(l), memory_kind::flags),
          rows(where, place.on_cpu() ? 0 : l.bytes() - flag_bytes_of(l), memory_kind::rows),
          row_base(place.on_cpu() ? flags.data() : rows.data() - flag_bytes_of(l)),
          wrong(where, 1),
          held(where, ranks) {
      if (place.on_cpu()) place.sleep_at(flags.data(), l.offset(window_field::asleep));
    }
    contract_place place;
    queue q;
    contract_array<std::byte> flags, rows;
    std::byte* row_base;
    contract_array<std::uint32_t> wrong;
    contract_array<piece> held;
    faulty_probe kernel;
  };

  /// All ranks at once, of which rank 0 delivers with a fault; `silent` does not come at all.
  static std::vector<outcome> probe(window_fault how, int rounds, std::size_t row_bytes,
                                    std::chrono::milliseconds timeout, int silent = -1) {
    exchange_shape shape{.ranks = ranks, .experts = ranks, .max_tokens = 3, .round_tokens = 3};
    shape.row_bytes = shape.home_bytes = row_bytes;
    window_layout const layout = lay_out_window(shape, 1);
    // All memory first: a GPU's runtime may wait in an allocation for kernels that wait for others.
    std::vector<std::unique_ptr<probing_rank>> all;
    for (int r = 0; r < ranks; ++r)
      all.push_back(std::make_unique<probing_rank>(where(), layout, timeout));
    for (int r = 0; r < ranks; ++r) {
      probing_rank& mine = *all[static_cast<std::size_t>(r)];
      faulty_probe kernel{
          {{}, rounds, mine.wrong.data()}, r == 0 ? how : window_fault::none, mine.held.data()};
      step_frame& frame = kernel.probe.frame;
      frame.shape = shape;
      frame.shape.rank = r;
      frame.flags = lay_out_flags(shape);
      frame.slot = lay_out_slot(shape);
      frame.flags_offset = layout.offset(window_field::flags);
      frame.slot_offset = layout.offset(window_field::rows);
      mine.place.peers.rank = r;
      for (std::size_t p = 0; p < all.size(); ++p) {
        mine.place.peers.flags[p] = all[p]->flags.data();
        mine.place.peers.rows[p] = all[p]->row_base;
      }
      mine.kernel = kernel;
    }
    for (int r = 0; r < ranks; ++r) {
      probing_rank& mine = *all[static_cast<std::size_t>(r)];
      if (r != silent) mine.place.run(mine.q, {1, on_cpu() ? 1 : 2}, mine.kernel).value();
    }
    for (auto& mine : all) finish(mine->q);
    std::vector<outcome> seen;
    for (auto& mine : all) seen.push_back({mine->wrong.read().front(), mine->place.status()});
    return seen;
  }
};

TEST_P(window_contract, shows_a_peers_rows_once_their_word_is_seen_round_after_round) {
  for (std::size_t row_bytes : {1u, 100u, 5000u})
    for (outcome const& o :
         probe(window_fault::none, turns(300), row_bytes, contract_place::longest)) {
      EXPECT_EQ(o.wrong, 0u);
      EXPECT_EQ(o.status.failed, 0u);
    }
}

TEST_P(window_contract, is_not_kept_where_a_piece_is_lost_and_every_rank_counts_that) {
  for (outcome const& o : probe(window_fault::loses, 20, 100, contract_place::longest))
    EXPECT_EQ(o.wrong, 20u);
}

TEST_P(window_contract, is_not_kept_where_a_piece_comes_after_its_word) {
  for (outcome const& o : probe(window_fault::brings_late, 20, 5000, contract_place::longest))
    EXPECT_GE(o.wrong, 19u);
}

TEST_P(window_contract, names_the_rank_that_says_nothing) {
  auto const seen = probe(window_fault::none, 3, 100, std::chrono::milliseconds(5000), 1);
  for (std::size_t r : {0u, 2u}) {
    EXPECT_NE(seen[r].status.failed, 0u);
    EXPECT_EQ(seen[r].status.record.code, error_code::timeout);
    EXPECT_EQ(seen[r].status.record.rank, 1);
    EXPECT_EQ(seen[r].status.record.wait.kind, flag::arrived);
  }
}

}  // namespace ferry::test
