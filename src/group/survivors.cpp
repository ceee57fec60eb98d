// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/survivors.hpp"

#include "base/fail.hpp"
#include "group/rank_names.hpp"

#include <algorithm>

namespace ferry {

survivors::survivors(int me, int size)
    : me_(me),
      word_{0, std::vector<bool>(at(size))},
      said_(at(size)),
      buried_(at(size)),
      unseen_(at(size)) {}

bool survivors::has_come(int rank) const {
  auto const& said = said_[at(rank)];
  return said && said->rebuild > current_ && said->rebuild >= word_.rebuild && !said->out[at(me_)];
}

void survivors::begin(std::vector<int> const& lost) {
  std::vector<int> absent;
  for (int const r : lost)
    if (!word_.out[at(r)] && !has_come(r)) absent.push_back(r);
  for (int const r : absent) word_.out[at(r)] = true;
  bool const grew = !absent.empty();
  if (grew) ++word_.rebuild;
  word_.rebuild = std::max(word_.rebuild, current_ + 1);
}

void survivors::hear(int from, survivors_word said) {
  said_[at(from)] = std::move(said);
}

bool survivors::counts(int from) const {
  auto const& said = said_[at(from)];
  return from != me_ && said && !word_.out[at(from)] && !said->out[at(me_)];
}

void survivors::settle() {
  for (bool grew = true; grew;) {
    grew = false;
    auto const leave_out = [&](int r) {
      grew = grew || !word_.out[at(r)];
      word_.out[at(r)] = true;
    };
    for (int r = 0; r < size(); ++r)
      if (r != me_ && (buried_[at(r)] || unseen_[at(r)])) leave_out(r);
    for (int from = 0; from < size(); ++from) {
      if (!counts(from)) continue;
      for (int r = 0; r < size(); ++r)
        if (said_[at(from)]->out[at(r)]) leave_out(r);
    }
    if (grew) ++word_.rebuild;
  }
  for (int from = 0; from < size(); ++from)
    if (counts(from)) word_.rebuild = std::max(word_.rebuild, said_[at(from)]->rebuild);
}

bool survivors::agreed() const {
  return enough() && silent().empty();
}

bool survivors::enough() const {
  auto const left = 2 * members().size();
  auto const all = said_.size();
  // Of two halves the one with rank 0 is the larger one.
  return left > all || (left == all && !word_.out[0]) || doubtful().empty();
}

int survivors::left_out_by() const {
  for (int r = 0; r < size(); ++r)
    if (r != me_ && !word_.out[at(r)] && said_[at(r)] && said_[at(r)]->out[at(me_)]) return r;
  return -1;
}

std::vector<int> survivors::members() const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r)
    if (!word_.out[at(r)]) ranks.push_back(r);
  return ranks;
}

std::vector<int> survivors::silent() const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r)
    if (!word_.out[at(r)] && said_[at(r)] != word_) ranks.push_back(r);
  return ranks;
}

std::vector<int> survivors::doubtful() const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r)
    if (word_.out[at(r)] && !buried_[at(r)]) ranks.push_back(r);
  return ranks;
}

std::vector<int> places_in(std::vector<int> const& group, std::vector<int> const& ranks) {
  std::vector<int> places;
  for (std::size_t i = 0; i < group.size(); ++i)
    if (std::ranges::find(ranks, group[i]) != ranks.end()) places.push_back(static_cast<int>(i));
  return places;
}

namespace {

error why_not(survivors const& who, std::vector<int> const& group,
              std::chrono::milliseconds timeout) {
  if (who.enough())
    return fail(error_code::timeout, "{} did not come within {} ms to make the group anew",
                names_of(places_in(group, who.silent())), timeout.count());
  auto const doubtful = places_in(group, who.doubtful());
  return fail(error_code::unreachable,
              "{} of the {} ranks that once joined are left, and {} may live and go on elsewhere: "
              "without being certain of the others' end only more than half of all may go on, or "
              "half with the first rank",
              who.members().size(), who.word().out.size(),
              doubtful.empty() ? std::string("others") : names_of(doubtful));
}

}  // namespace

result<std::vector<int>> agree_on_survivors(survivors& who, survivors_line& over,
                                            old_group const& group, std::vector<int> const& lost,
                                            std::chrono::milliseconds timeout) {
  auto const end = after(timeout);
  auto const number = [&](int place) { return group.ranks[static_cast<std::size_t>(place)]; };
  int const own = number(group.me);
  std::vector<int> out;
  for (int const place : lost) out.push_back(number(place));
  over.look(who);
  who.begin(out);
  for (;;) {
    over.look(who);
    who.settle();
    if (who.word().rebuild > max_rebuilds)
      return fail(error_code::capacity, "a group can be made anew {} times", max_rebuilds);
    if (who.said_by(own) != who.word()) {
      over.say(who.word());
      who.hear(own, who.word());
    }
    if (int const by = who.left_out_by(); by >= 0)
      return fail(error_code::unreachable, "{} goes on without this rank, {}",
                  names_of(places_in(group.ranks, {by})), group.me);
    if (who.agreed()) return who.members();
    if (passed(end)) return why_not(who, group.ranks, timeout);
    FERRY_CHECK(over.wait(end));
  }
}

error given_up_by(int rank, survivors_word const& said, std::vector<int> const& group) {
  std::vector<int> numbers;
  for (std::size_t r = 0; r < said.out.size(); ++r)
    if (said.out[r]) numbers.push_back(static_cast<int>(r));
  auto const out = places_in(group, numbers);
  if (out.empty())
    return fail(error_code::unreachable, "rank {} has given the group up, to make it anew", rank);
  return fail(error_code::unreachable, "{} {} lost, says rank {}, which makes the group anew",
              names_of(out), out.size() == 1 ? "is" : "are", rank);
}

}  // namespace ferry
