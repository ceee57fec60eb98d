// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The kernels of a step with two hops: each runs as it is, over a team and a delivery that know
/// which rank stands between this one and a rank of another node.
///
/// Only tables, offsets and names of ranks change. In the frame of a step with two hops `owners`
/// names for each expert the rank that this rank's records go to and results come from: the owner
/// itself within the node, else the relay of its node. So a record goes once to each node, and the
/// gather finds one row a node; what is left to do is to find the place in the relay's window.
#pragma once

#include <ferry/kernels/outgoing_rows.hpp>
#include <ferry/kernels/relay.hpp>
#include <ferry/transport/delivery.hpp>

namespace ferry {

/// A team that waits for the rank that really writes a word.
template <team Team>
class node_team : public Team {
 public:
  FERRY_FN node_team(Team const& t, step_frame const& frame, relay_tables const& tables)
      : Team(t), frame_(frame), tables_(tables) {}

  /// Within the kernels of a step a source's words stand where they always do, but a relay may have
  /// written them; a peer's credit and its results are those of its node's relay.
  FERRY_FN bool wait(awaited what, std::uint64_t const* word, std::uint64_t& value) const {
    if (what.kind == flag::header || what.kind == flag::arrived) {
      what.rank = tables_.in[what.rank].rank;
    } else if (int const by = tables_.out[what.rank].rank; by != what.rank) {
      word += (static_cast<std::ptrdiff_t>(frame_.line_head(flag_field::back, by)) -
               static_cast<std::ptrdiff_t>(frame_.line_head(flag_field::back, what.rank))) /
              8;
      what.rank = by;
    }
    return Team::wait(what, word, value);
  }

 private:
  step_frame const& frame_;
  relay_tables const& tables_;
};

/// A delivery that takes what is meant for a rank of another node to the relay between.
template <class Net>
class node_delivery {
 public:
  FERRY_FN node_delivery(Net const& net, step_frame const& frame, relay_frame const& relay)
      : net_(net), frame_(frame), relay_(relay) {}

  FERRY_FN std::byte* own_flags() const { return net_.own_flags(); }
  FERRY_FN std::byte* own_rows() const { return net_.own_rows(); }

  template <team Team>
  FERRY_FN void put(Team const& t, int to, std::size_t offset, std::byte const* from,
                    std::size_t bytes) const {
    place const at = place_of(to, offset);
    if (at.is_route) from = group_route(t, at, offset);
    net_.put(t, at.rank, at.offset, from, bytes);
  }

  template <team Team, class T>
  FERRY_FN void put_value(Team const& t, int to, std::size_t offset, std::uint32_t lane_offset,
                          T const& value) const {
    place const at = place_of(to, offset);
    if constexpr (sizeof(T) == 4) {
      int const k = static_cast<int>(lane_offset / 4);
      if (at.is_route && k < frame_.shape.topk) {
        net_.put_value(t, at.rank, at.offset, lane_offset,
                       static_cast<std::uint32_t>(choice_of(at.rank, token_at(offset), k)));
        return;
      }
    }
    net_.put_value(t, at.rank, at.offset, lane_offset, value);
  }

  template <team Team>
  FERRY_FN void release(Team const& t) const {
    net_.release(t);
  }

  /// A source's words go to a node once, to the relay there.
  template <team Team>
  FERRY_FN void publish(Team const& t, int to, flag kind, std::size_t offset,
                        std::uint64_t word) const {
    bool const home = kind == flag::back || kind == flag::done;
    way const by = home ? relay_.tables.in[to] : relay_.tables.out[to];
    if (by.direct()) return net_.publish(t, to, kind, offset, word);
    if (home) {
      std::size_t const at = relay_.back_line(by.place, relay_.tables.member[frame_.shape.rank]) +
                             offset - frame_.line_head(flag_field::back, frame_.shape.rank);
      // The lane is that of the source.
      if constexpr (requires { net_.publish_by_any_lane(t, to, kind, offset, word); })
        net_.publish_by_any_lane(t, by.rank, kind, at, word);
      else
        net_.publish(t, by.rank, kind, at, word);
    } else if (by.rank == to) {
      net_.publish(t, to, kind,
                   relay_.arrived_line(by.place) + offset -
                       frame_.line_head(flag_field::arrived, frame_.shape.rank),
                   word);
    }
  }

 private:
  struct place {
    int rank;
    std::size_t offset;
    bool is_route;  ///< in the numbering of one rank, where the relay wants the group's
  };

  // Which field of the slot an offset lies in says which way it goes.
  FERRY_FN place place_of(int to, std::size_t offset) const {
    slot_field const field = field_at(offset);
    bool const home = field == slot_field::returned || field == slot_field::returned_scales;
    way const by = home ? relay_.tables.in[to] : relay_.tables.out[to];
    if (by.direct()) return {to, offset, false};
    std::size_t const from_field = offset - frame_.at(field);
    std::size_t const stride = frame_.slot.stride(field);
    std::size_t const item = from_field / stride, in_item = from_field - item * stride;
    auto const tokens = static_cast<std::size_t>(frame_.shape.round_tokens);
    std::size_t relayed = 0;
    if (field == slot_field::counts) {
      relayed = relay_.pair(by.place, relay_.tables.member[to]);
    } else if (!home) {
      relayed = static_cast<std::size_t>(by.place) * tokens + item % tokens;
    } else if (frame_.shape.per_choice) {
      relayed = static_cast<std::size_t>(by.place) * tokens *
                    static_cast<std::size_t>(frame_.shape.topk) +
                item;
    } else {
      relayed =
          relay_.pair(by.place, relay_.tables.member[frame_.shape.rank]) * tokens + item % tokens;
    }
    return {by.rank, relay_.at(relay_field_of(field), relayed) + in_item,
            field == slot_field::routes};
  }

  FERRY_FN static constexpr relay_field relay_field_of(slot_field field) {
    return static_cast<relay_field>(static_cast<int>(field));
  }
  static_assert(static_cast<int>(slot_field::rows) == static_cast<int>(relay_field::rows) &&
                static_cast<int>(slot_field::returned) == static_cast<int>(relay_field::returned) &&
                static_cast<int>(slot_field::scales) == static_cast<int>(relay_field::scales) &&
                static_cast<int>(slot_field::routes) == static_cast<int>(relay_field::routes) &&
                static_cast<int>(slot_field::returned_scales) ==
                    static_cast<int>(relay_field::returned_scales) &&
                static_cast<int>(slot_field::counts) == static_cast<int>(relay_field::counts));

  // Fields stand in the order of their names. An empty one starts where the next one does.
  FERRY_FN slot_field field_at(std::size_t offset) const {
    slot_field field = slot_field::rows;
    FERRY_UNROLL
    for (int f = 1; f < static_cast<int>(slot_field::count_); ++f)
      if (frame_.at(static_cast<slot_field>(f)) <= offset) field = static_cast<slot_field>(f);
    return field;
  }

  FERRY_FN int token_at(std::size_t offset) const {
    std::size_t const item =
        (offset - frame_.at(slot_field::routes)) / frame_.slot.stride(slot_field::routes);
    return static_cast<int>(item % static_cast<std::size_t>(frame_.shape.round_tokens));
  }
  // The source's own routing knows more than the route of one rank.
  FERRY_FN std::int32_t choice_of(int relay, int token, int k) const {
    routing const kept = routing_of(frame_, token);
    return kept.rank(k) == relay ? kept.choices[k] : not_here;
  }

  // Where the route was made, in the team's scratch, it is made again.
  template <team Team>
  FERRY_FN std::byte const* group_route(Team const& t, place const& at, std::size_t offset) const {
    std::byte* const route = t.row_scratch() + scratch_for_route(frame_.shape);
    int const token = token_at(offset);
    for (int k = t.lane(); k < frame_.shape.topk; k += Team::lanes)
      reinterpret_cast<std::int32_t*>(route)[k] = choice_of(at.rank, token, k);
    t.sync();
    return route;
  }

  Net const& net_;
  step_frame const& frame_;
  relay_frame const& relay_;
};

/// A kernel of the step, as it runs where records take two hops. Its frame is that of such a step.
template <class Kernel>
struct by_nodes {
  Kernel kernel;
  relay_frame relay;

  FERRY_FN step_frame const& frame() const { return kernel.frame; }

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    kernel(node_team<Team>(t, kernel.frame, relay.tables),
           node_delivery<Net>(net, kernel.frame, relay));
  }
};

}  // namespace ferry
