// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The first hop's end in combine: a relay takes its node's results home to sources of other nodes.
#pragma once

#include <ferry/kernels/columns.hpp>
#include <ferry/kernels/relay.hpp>
#include <ferry/kernels/route.hpp>
#include <ferry/transport/delivery.hpp>

#include <bit>

namespace ferry {

/// Returns to each source one row a token, the sum of its node's ranks in ascending order
/// (per_rank), or every choice's row as it came (per_choice), then the chunk's word.
///
/// The sources' credit goes out first, also to one that sent nothing: forward_rows has left nothing
/// to read in what they write (R10). With `credit_only` it is all that goes out (release). Blocks
/// wait for ranks of this node only, which wait for nothing before they return.
struct forward_sums {
  step_frame own;  ///< as in forward_rows
  relay_frame relay;
  bool credit_only = false;

  FERRY_FN step_frame const& frame() const { return own; }

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    step_clock const clock(t, own, phase::give_back, true);
    std::uint64_t const epoch = clock.combine(0, 1);
    publish_done(t, net, epoch);
    if (!credit_only) forward_chunks(t, net, epoch);
    clock.finish(t);
  }

 private:
  // R10: always, to every source.
  template <team Team, delivery<Team> Net>
  FERRY_FN void publish_done(Team const& t, Net const& net, std::uint64_t epoch) const {
    if (t.block() != 0 || t.index() != 0 || t.failed()) return;
    net.release(t);
    for (int i = 0; i < relay.tables.num_sources; ++i) {
      int const s = relay.tables.sources[i];
      if (t.lane() == s % Team::lanes)
        net.publish(t, s, flag::done, own.line_head(flag_field::back, own.shape.rank), epoch);
    }
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void forward_chunks(Team const& t, Net const& net, std::uint64_t epoch) const {
    int const sources = relay.tables.num_sources;
    std::int64_t const items = std::int64_t{sources} * own.shape.round_chunks();
    for (std::int64_t item = t.block(); item < items; item += t.blocks()) {
      int const place = static_cast<int>(item % sources), c = static_cast<int>(item / sources);
      if (c * own.shape.chunk_tokens >= relay.memory.tokens[place]) continue;
      std::uint32_t const map = relay.memory.maps[place * own.shape.round_chunks() + c];
      if (!map) continue;
      int const source = relay.tables.sources[place];
      bool ok = true;
      int turn = 0;
      for (std::uint32_t left = map; left && ok; left &= left - 1) {
        if (turn++ % t.count() != t.index()) continue;
        ok = forward_token(t, net, place, source, c,
                           c * own.shape.chunk_tokens + std::countr_zero(left), epoch);
      }
      t.drain();
      if (!t.block_all(ok && !t.failed())) return;
      if (t.index() == 0) {
        net.release(t);
        if (t.lane() == source % Team::lanes)
          net.publish(t, source, flag::back, own.chunk_flag(flag_field::back, own.shape.rank, c),
                      epoch);
      }
    }
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN bool forward_token(Team const& t, Net const& net, int place, int source, int chunk,
                              int token, std::uint64_t epoch) const {
    exchange_shape const& shape = own.shape;
    routing const route{relay.memory.choices + (static_cast<std::size_t>(place) *
                                                    static_cast<std::size_t>(shape.max_tokens) +
                                                static_cast<std::size_t>(token)) *
                                                   static_cast<std::size_t>(shape.topk),
                        nullptr, own.memory.owners, shape.topk};
    int serving = 0;
    for (int d = route.next_rank(-1); d >= 0; d = route.next_rank(d), ++serving) {
      std::uint64_t seen;
      bool const there = t.wait(
          {flag::back, d, chunk, epoch},
          own_word(net, chunk_word(relay.back_line(place, relay.tables.member[d]), chunk)), seen);
      if (t.any(!there)) return false;
    }
    if (shape.per_choice) {
      for (int k = 0; k < shape.topk; ++k)
        if (route.choices[k] >= 0)
          put_as_it_is(t, net, source, relay.home_row(shape, place, k, token),
                       home_row(own, k, token));
      return true;
    }
    std::size_t const home = home_row(own, shape.rank, token);
    // One rank's sum is the node's: what would be rounded once more goes as it is.
    if (serving == 1)
      put_as_it_is(t, net, source,
                   relay.home_row(shape, place, relay.tables.member[route.next_rank(-1)], token),
                   home);
    else
      put_sum(t, net, place, source, token, route, home);
    return true;
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void put_as_it_is(Team const& t, Net const& net, int source, std::size_t from,
                             std::size_t to) const {
    exchange_shape const& shape = own.shape;
    std::byte const* const rows = net.own_rows();
    net.put(t, source, own.at(slot_field::returned, to),
            rows + relay.at(relay_field::returned, from), shape.home_bytes);
    if (shape.home_scale_bytes)
      net.put(t, source, own.at(slot_field::returned_scales, to),
              rows + relay.at(relay_field::returned_scales, from), shape.home_scale_bytes);
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void put_sum(Team const& t, Net const& net, int place, int source, int token,
                        routing const& route, std::size_t home) const {
    exchange_shape const& shape = own.shape;
    std::byte const* const rows = net.own_rows();
    std::byte* const scratch = t.row_scratch();
    row_place const to{scratch, scratch + round_up(shape.home_bytes, row_align), nullptr};
    t.sync();
    for_each_tile(t, shape.hidden, [&](int column, int n) FERRY_INLINED {
      float sum[Team::columns] = {};
      for (int d = route.next_rank(-1); d >= 0; d = route.next_rank(d)) {
        std::size_t const row = relay.home_row(shape, place, relay.tables.member[d], token);
        add_wire(shape.returned, rows + relay.at(relay_field::returned, row),
                 rows + relay.at(relay_field::returned_scales, row), column, n, 1.0f, sum);
      }
      store_wire(t, shape.returned, to, column, n, sum);
    });
    t.sync();
    net.put(t, source, own.at(slot_field::returned, home), to.row, shape.home_bytes);
    if (shape.home_scale_bytes)
      net.put(t, source, own.at(slot_field::returned_scales, home), to.scales,
              shape.home_scale_bytes);
  }
};

}  // namespace ferry
