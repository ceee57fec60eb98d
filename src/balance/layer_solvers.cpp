// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "balance/layer_solvers.hpp"

#include "balance/eplb.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ferry::balance {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// Few items leave little choice, so more of it has to be looked at, and that is cheap. A shake
/// costs more the more ranks there are.
int shakes_for(partition_problem const& problem) {
  return problem.num_items() <= 64 ? 2000 : std::max(24, 1600 / problem.num_ranks());
}

/// Other shares for the hottest experts are tried where the busiest rank is this much above the
/// mean.
constexpr double shares_matter = 1 + 5e-4;

struct solved {
  std::vector<int> rank_of;
  double most;
};

/// `heaviest_first`, levelled.
solved solve(partition_problem const& problem, int shakes, double at_most) {
  partition p(problem, heaviest_first(problem));
  double const bound = lower_bound(problem);
  // Below the bound is nothing to find, and sums are as exact as doubles are.
  level(p, std::max(bound * (1 + 1e-12), std::min(bound * close_enough, at_most)), shakes);
  return {p.rank_of(), p.most()};
}

}  // namespace

std::vector<int> places_of(int num_slots, int num_ranks) {
  std::vector<int> places;
  for (int r = 0; r < num_ranks; ++r)
    places.push_back(first_expert_of(r + 1, num_ranks, num_slots) -
                     first_expert_of(r, num_ranks, num_slots));
  return places;
}

replica_problem problem_of(std::span<double const> loads, std::span<int const> copies,
                           std::vector<int> places, int num_nodes) {
  replica_problem problem;
  problem.items.places = std::move(places);
  problem.items.num_kinds = static_cast<int>(loads.size());
  for (std::size_t e = 0; e < loads.size(); ++e)
    for (int c = 0; c < copies[e]; ++c) {
      problem.expert.push_back(static_cast<int>(e));
      problem.items.load.push_back(loads[e] / copies[e]);
    }
  if (problem.expert.size() == loads.size()) return problem;
  problem.items.kind = problem.expert;
  if (num_nodes == 1) return problem;
  problem.items.num_nodes = num_nodes;
  for (int r = 0; r < problem.items.num_ranks(); ++r)
    problem.items.node.push_back(owner_of(r, num_nodes, problem.items.num_ranks()));
  return problem;
}

slot_list slots_of(partition const& p, std::vector<int> const& expert) {
  slot_list slots;
  for (int r = 0; r < p.num_ranks(); ++r) {
    auto const begin = slots.size();
    for (int item : p.members(r)) slots.push_back(expert[at(item)]);
    std::sort(slots.begin() + static_cast<std::ptrdiff_t>(begin), slots.end());
  }
  return slots;
}

std::vector<int> ranks_of(slot_list const& slots, replica_problem const& problem) {
  // Items of an expert are neighbours; `next` is the first that has no rank yet.
  std::vector<int> next(at(problem.items.num_kinds), -1);
  for (int i = static_cast<int>(problem.expert.size()) - 1; i >= 0; --i)
    next[at(problem.expert[at(i)])] = i;
  std::vector<int> rank_of(problem.expert.size());
  std::size_t s = 0;
  for (int r = 0; r < problem.items.num_ranks(); ++r)
    for (int place = 0; place < problem.items.places[at(r)]; ++place)
      rank_of[at(next[at(slots[s++])]++)] = r;
  return rank_of;
}

double busiest_rank(slot_list const& slots, std::span<double const> loads, int num_ranks) {
  std::vector<int> copies(loads.size());
  for (auto e : slots) ++copies[at(e)];
  std::vector<double> sum(at(num_ranks));
  for (std::size_t s = 0; s < slots.size(); ++s)
    sum[at(owner_of(static_cast<int>(s), num_ranks, static_cast<int>(slots.size())))] +=
        loads[at(slots[s])] / copies[at(slots[s])];
  return *std::max_element(sum.begin(), sum.end());
}

std::vector<int> apportion(std::span<double const> loads, int num_slots, int most, int everywhere) {
  std::vector<int> copies(loads.size(), 1), order(loads.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return loads[at(a)] > loads[at(b)]; });
  int left = num_slots - static_cast<int>(loads.size());
  for (int i = 0; i < everywhere; ++i) {
    copies[at(order[at(i)])] = most;
    left -= most - 1;
  }
  for (; left > 0; --left) {
    int best = -1;
    for (int e : order)
      if (copies[at(e)] < most &&
          (best < 0 || loads[at(e)] / copies[at(e)] > loads[at(best)] / copies[at(best)]))
        best = e;
    ++copies[at(best)];
  }
  return copies;
}

namespace {

/// Gives a copy less to an expert that can spare one, and one more to the one whose copies weigh
/// most on the busiest rank. False where no such pair is left.
bool shift_a_copy(std::span<double const> loads, replica_problem const& problem,
                  std::vector<int> const& rank_of, std::vector<int>& copies, int most) {
  partition const p(problem.items, rank_of);
  int gains = -1, spares = -1;
  for (int item : p.members(p.busiest())) {
    int const e = problem.expert[at(item)];
    if (copies[at(e)] < most) {
      gains = e;
      break;  // members come by falling load
    }
  }
  for (int e = 0; e < static_cast<int>(loads.size()); ++e)
    if (e != gains && copies[at(e)] > 1 &&
        (spares < 0 ||
         loads[at(e)] / (copies[at(e)] - 1) < loads[at(spares)] / (copies[at(spares)] - 1)))
      spares = e;
  if (gains < 0 || spares < 0) return false;
  ++copies[at(gains)];
  --copies[at(spares)];
  return true;
}

}  // namespace

slot_list balanced(std::span<double const> loads, std::vector<int> const& places,
                   balance_goal const& goal) {
  int const slots = std::accumulate(places.begin(), places.end(), 0);
  int const most = static_cast<int>(
      places.size() - at(static_cast<int>(std::count(places.begin(), places.end(), 0))));
  auto copies = apportion(loads, slots, most, goal.everywhere);
  auto problem = problem_of(loads, copies, places, goal.num_nodes);
  auto best = solve(problem.items, shakes_for(problem.items), goal.at_most);
  double const mean = std::accumulate(loads.begin(), loads.end(), 0.0) / most;
  auto best_problem = problem;
  // Where the shares of the hottest are what keeps the busiest rank busy, other shares may do
  // better.
  auto rank_of = best.rank_of;
  for (int tries = 0; tries < 8 && goal.everywhere == 0 && slots > static_cast<int>(loads.size()) &&
                      best.most > mean * shares_matter;
       ++tries) {
    if (!shift_a_copy(loads, problem, rank_of, copies, most)) break;
    problem = problem_of(loads, copies, places, goal.num_nodes);
    auto next = solve(problem.items, 8, goal.at_most);
    rank_of = next.rank_of;
    if (next.most < best.most) {
      best = std::move(next);
      best_problem = problem;
    }
  }
  partition const p(best_problem.items, best.rank_of);
  return slots_of(p, best_problem.expert);
}

slot_list permute_layer(std::span<double const> loads, placement_options const& o) {
  slot_list as_they_are(loads.size());
  std::iota(as_they_are.begin(), as_they_are.end(), 0);
  auto const places = places_of(static_cast<int>(loads.size()), o.num_ranks);
  std::vector<int> const copies(loads.size(), 1);
  auto const problem = problem_of(loads, copies, places);
  double most = busiest_rank(as_they_are, loads, o.num_ranks);
  if (most <= lower_bound(problem.items)) return as_they_are;  // no need to move anything
  bool const has_theirs = check_eplb(static_cast<int>(loads.size()), o).has_value();
  auto theirs = has_theirs ? eplb_layer(loads, o) : as_they_are;
  if (has_theirs) most = std::min(most, busiest_rank(theirs, loads, o.num_ranks));
  auto best = balanced(loads, places, {.at_most = most});
  // On smooth loads what is there, or EPLB's answer, may be closer to the bound than the search
  // came.
  for (auto const& other : {as_they_are, theirs})
    if (busiest_rank(other, loads, o.num_ranks) < busiest_rank(best, loads, o.num_ranks))
      best = other;
  return best;
}

}  // namespace ferry::balance
