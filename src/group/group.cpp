// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/group.hpp>

#include <ferry/version.hpp>

#include "base/fail.hpp"
#include "exec/capture_record.hpp"
#include "group/agreement.hpp"
#include "group/deadline.hpp"
#include "group/link.hpp"
#include "group/machine.hpp"
#include "group/packed.hpp"
#include "group/thread_windows.hpp"
#include "group/window_exchange.hpp"

#include <exception>
#include <mutex>
#include <optional>

namespace ferry {

char const* to_string(reach how) {
  switch (how) {
    case reach::self: return "self";
    case reach::mapped: return "mapped";
    case reach::network: return "network";
  }
  return "unknown";
}

result<std::unique_ptr<bootstrap>> bootstrap::without(std::vector<int> const&,
                                                      std::chrono::milliseconds) {
  return fail(error_code::unsupported, "this bootstrap cannot leave ranks out");
}

struct group::membership {
  membership(std::unique_ptr<bootstrap> made, group_options chosen)
      : ranks(std::move(made)), options(chosen), blamed(static_cast<std::size_t>(ranks->size())) {}
  ~membership() { ranks->leave(); }

  /// Learns of the peers' versions and machines. The first collective, so it is the joining too.
  result<void> introduce(std::chrono::milliseconds patience);
  result<void> usable();
  void mark_broken(error const& why, int blamed = -1);
  std::vector<int> lost();
  /// The collectives of this membership are over.
  result<std::shared_ptr<membership>> without(std::vector<int> const& ranks_lost);

  /// One collective at a time; whatever may leave the ranks out of step breaks the group.
  template <class Call>
  auto collective(Call call) -> decltype(call()) {
    FERRY_CHECK(capture_record::refuses("a collective of the group"));
    std::lock_guard const one_at_a_time(collectives);
    FERRY_CHECK(usable());
    auto outcome = call();
    if (!outcome && breaks(outcome.error().code)) {
      mark_broken(outcome.error());
      if (outcome.error().code == error_code::timeout)
        for (int const r : ranks->missing()) mark_broken(outcome.error(), r);
    }
    return outcome;
  }

  std::unique_ptr<bootstrap> const ranks;
  group_options const options;
  int on_this_machine = 1;
  int index_on_this_machine = 0;
  std::vector<bool> same_node;  ///< by rank

 private:
  static bool breaks(error_code code) {
    return code == error_code::unreachable || code == error_code::timeout ||
           code == error_code::malformed_input || code == error_code::transport;
  }
  std::mutex collectives;
  std::mutex guard;
  std::optional<error> broken;
  std::vector<bool> blamed;  ///< by rank
};

result<void> group::membership::introduce(std::chrono::milliseconds patience) {
  // Threads of one process need no /proc to know that they share a machine.
  machine_id here{};
  if (!ranks->shares_address_space()) {
    FERRY_TRY(here, this_machine());
  }
  packer mine;
  mine.add_text(FERRY_VERSION).add(here).add(std::int32_t{options.ranks_per_node});
  FERRY_TRY(auto const all, ranks->all_gather(mine.packed(), patience));
  on_this_machine = 0;
  int const per_node = options.ranks_per_node;
  for (int peer = 0; peer < ranks->size(); ++peer) {
    unpacker from{all[peer]};
    auto const version = from.take_text();
    // Another version may say more, or less, after this.
    if (from.complete() && version != FERRY_VERSION)
      return fail(error_code::invalid_argument, "rank {} runs ferry {}, this one {}", peer, version,
                  FERRY_VERSION);
    auto const machine = from.take<machine_id>();
    auto const theirs = from.take<std::int32_t>();
    if (!from.complete())
      return fail(error_code::malformed_input, "rank {} introduced itself with {} bytes", peer,
                  all[peer].size());
    if (theirs != per_node)
      return fail(error_code::invalid_argument,
                  "ranks_per_node is {} on rank {}, but {} on rank {}", per_node, ranks->rank(),
                  theirs, peer);
    if (machine == here) {
      ++on_this_machine;
      index_on_this_machine += peer < ranks->rank();
    }
    auto const node = [&](int rank) { return ranks->joined_as(rank) / per_node; };
    same_node.push_back(machine == here && (per_node == 0 || node(peer) == node(ranks->rank())));
  }
  return {};
}

result<void> group::membership::usable() {
  std::lock_guard const lock(guard);
  if (!broken) return {};
  return fail(error_code::invalid_state, "the group is broken since {}: {}",
              to_string(broken->code), broken->message);
}

void group::membership::mark_broken(error const& why, int rank) {
  std::lock_guard const lock(guard);
  if (!broken) broken = why;
  if (rank >= 0 && rank < std::ssize(blamed)) blamed[static_cast<std::size_t>(rank)] = true;
}

std::vector<int> group::membership::lost() {
  std::vector<int> all;
  for (int r = 0; r < ranks->size(); ++r) {
    if (r == ranks->rank()) continue;
    bool const there = ranks->look(r) == presence::here;
    std::lock_guard const lock(guard);
    if (!there || blamed[static_cast<std::size_t>(r)]) all.push_back(r);
  }
  return all;
}

result<std::shared_ptr<group::membership>> group::membership::without(
    std::vector<int> const& ranks_lost) {
  FERRY_CHECK(capture_record::refuses("group::without"));
  for (int const r : ranks_lost)
    if (r < 0 || r >= ranks->size() || r == ranks->rank())
      return fail(error_code::invalid_argument, "rank {} cannot leave out rank {} of {} ranks",
                  ranks->rank(), r, ranks->size());
  auto const end = after(options.timeout);
  mark_broken(fail(error_code::unreachable, "it was made anew"));
  std::lock_guard const one_at_a_time(collectives);
  std::vector<int> lost = ranks_lost;
  for (;;) {
    auto made = ranks->without(lost, std::max(until(end), std::chrono::milliseconds{1}));
    if (!made) {
      if (made.error().code == error_code::timeout)
        for (int const r : ranks->missing()) mark_broken(made.error(), r);
      return std::move(made).error();
    }
    auto next = std::make_shared<membership>(*std::move(made), options);
    auto const known = next->introduce(std::max(until(end), std::chrono::milliseconds{100}));
    if (known) return next;
    // One more has ended, or left out another: all who are left agree once more.
    // Whoever came to the first agreement was not lost.
    if (known.error().code == error_code::unreachable && !passed(end)) {
      lost.clear();
      continue;
    }
    for (int const m : next->ranks->missing())
      for (int r = 0; r < ranks->size(); ++r)
        if (ranks->joined_as(r) == next->ranks->joined_as(m)) mark_broken(known.error(), r);
    return fail(known.error().code, "among the {} ranks that go on: {}", next->ranks->size(),
                known.error().message);
  }
}

int group::rank() const {
  return membership_->ranks->rank();
}
int group::size() const {
  return membership_->ranks->size();
}
std::chrono::milliseconds group::timeout() const {
  return membership_->options.timeout;
}
int group::ranks_on_this_machine() const {
  return membership_->on_this_machine;
}
int group::index_on_this_machine() const {
  return membership_->index_on_this_machine;
}
bool group::same_node(int peer) const {
  return peer >= 0 && peer < size() && membership_->same_node[static_cast<std::size_t>(peer)];
}
void group::mark_broken(error why, int blamed) const {
  membership_->mark_broken(why, blamed);
}
std::vector<int> group::lost() const {
  return membership_->lost();
}
int group::joined_as(int rank) const {
  return rank >= 0 && rank < size() ? membership_->ranks->joined_as(rank) : -1;
}
result<group> group::without(std::vector<int> const& lost) const {
  group made;
  FERRY_TRY(made.membership_, membership_->without(lost));
  return made;
}
result<void> group::usable() const {
  return membership_->usable();
}

presence group::look(int peer) const {
  if (peer < 0 || peer >= size()) return presence::gone;
  return peer == rank() ? presence::here : membership_->ranks->look(peer);
}

result<void> group::barrier() const {
  FERRY_CHECK(all_gather({}));
  return {};
}

result<void> group::agree(result<void> const& mine) const {
  return membership_->collective(
      [&] { return ferry::agree(*membership_->ranks, mine, membership_->options.timeout); });
}

result<std::vector<bytes>> group::all_gather(std::span<std::byte const> mine) const {
  if (mine.size() > max_frame_bytes)
    return fail(error_code::invalid_argument, "rank {} brings {} bytes to all_gather; at most {}",
                rank(), mine.size(), max_frame_bytes);
  return membership_->collective(
      [&] { return membership_->ranks->all_gather(mine, membership_->options.timeout); });
}

result<shared_windows> group::share_window(std::size_t size) const {
  return membership_->collective([&]() -> result<shared_windows> {
    auto& ranks = *membership_->ranks;
    auto const timeout = membership_->options.timeout;
    auto const& node = membership_->same_node;
    return ranks.shares_address_space() ? share_between_threads(ranks, size, timeout, node)
                                        : share_between_processes(ranks, size, timeout, node);
  });
}

namespace {

result<std::unique_ptr<bootstrap>> start(bootstrap_factory const& how,
                                         group_options const& options) {
  if (!how) return fail(error_code::invalid_argument, "no way to join: the bootstrap is empty");
  try {
    FERRY_TRY(auto made, how(options));
    if (!made) return fail(error_code::invalid_argument, "the bootstrap made nothing");
    if (made->size() < 1 || made->size() > max_ranks)
      return fail(error_code::invalid_argument, "a group of {} ranks; from 1 to {}", made->size(),
                  max_ranks);
    if (made->rank() < 0 || made->rank() >= made->size())
      return fail(error_code::invalid_argument, "rank {} in a group of {} ranks", made->rank(),
                  made->size());
    return made;
  } catch (std::exception const& e) {
    return fail(error_code::internal, "the bootstrap threw: {}", e.what());
  }
}

}  // namespace

result<group> join(bootstrap_factory how, group_options options) {
  constexpr std::chrono::milliseconds longest = std::chrono::hours{24 * 30};
  if (options.timeout < std::chrono::milliseconds{1} || options.timeout > longest)
    return fail(error_code::invalid_argument, "a timeout of {} ms; from 1 to {}",
                options.timeout.count(), longest.count());
  if (options.ranks_per_node < 0 || options.ranks_per_node > max_ranks)
    return fail(error_code::invalid_argument, "ranks_per_node is {}; it must be 0 to {}",
                options.ranks_per_node, max_ranks);
  auto const end = after(options.timeout);
  FERRY_TRY(auto ranks, start(how, options));
  group joined;
  joined.membership_ = std::make_shared<group::membership>(std::move(ranks), options);
  FERRY_CHECK(joined.membership_->introduce(std::max(until(end), std::chrono::milliseconds{100})));
  return joined;
}

}  // namespace ferry
