// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How ranks agree on who of them goes on when some are lost.
///
/// Every rank tells all others which ranks it leaves out, and takes over what the ranks say that it
/// does not leave out itself; nobody who is out comes back. Ranks go on together when each of them
/// has said exactly the same. So of two sets that share a rank the later one lies within the
/// earlier one, and who is missing in it cannot go on in the earlier one: that takes all of them.
/// Sets that share nobody are kept apart by `enough`: two of them are never both more than half of
/// all, and who goes on with fewer knows that all others have ended.
#pragma once

#include <ferry/base/result.hpp>

#include "group/deadline.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace ferry {

/// What a rank says.
struct survivors_word {
  std::uint64_t rebuild = 0;  ///< never falls; with every change of `out` it grows
  std::vector<bool> out;      ///< by rank

  bool operator==(survivors_word const&) const = default;
};

/// Most rebuilds: frames carry their number in 24 bits.
inline constexpr std::uint64_t max_rebuilds = (std::uint64_t{1} << 24) - 1;

/// What one rank knows, from joining to leaving. It waits for nothing and sends nothing.
class survivors {
 public:
  survivors(int me, int size);

  /// The next rebuild, without these ranks; but one that has come to it already is not lost.
  void begin(std::vector<int> const& lost);
  /// What a rank said last; also this rank itself, when it has been sent.
  void hear(int from, survivors_word said);
  /// It takes part in nothing any more, for certain.
  void bury(int rank) { buried_[at(rank)] = true; }
  /// Nothing can come from it any more, but it may live.
  void lose_sight_of(int rank) { unseen_[at(rank)] = true; }
  /// Draws conclusions from all of this.
  void settle();

  survivors_word const& word() const { return word_; }
  std::optional<survivors_word> const& said_by(int rank) const { return said_[at(rank)]; }
  /// Whether all who are not out have said the same, and may go on.
  bool agreed() const;
  /// Whether these are so many that no others go on elsewhere.
  bool enough() const;
  /// One who is not out but goes on without this rank, or -1.
  int left_out_by() const;
  std::vector<int> members() const;   ///< not out
  std::vector<int> silent() const;    ///< members that have not said the same
  std::vector<int> doubtful() const;  ///< out, but may live

  /// The ranks agreed, and go on in this rebuild.
  void go_on() { current_ = word_.rebuild; }
  std::uint64_t current() const { return current_; }

 private:
  bool has_come(int rank) const;
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  int size() const { return static_cast<int>(said_.size()); }
  bool counts(int from) const;

  int const me_;
  survivors_word word_;
  std::uint64_t current_ = 0;
  std::vector<std::optional<survivors_word>> said_;
  std::vector<bool> buried_, unseen_;
};

/// How the words of ranks travel.
class survivors_line {
 public:
  virtual ~survivors_line() = default;
  /// Tells `who` all that has come to be known.
  virtual void look(survivors& who) = 0;
  /// Sends the word to all others.
  virtual void say(survivors_word const& word) = 0;
  /// Until something may have changed, at most until `end`.
  virtual result<void> wait(deadline end) = 0;
};

/// A group that is to be made anew: errors call ranks by their places in it.
struct old_group {
  std::vector<int> const& ranks;  ///< their numbers, by place
  int me;
};
/// Places of those of `ranks` that are in the group.
std::vector<int> places_in(std::vector<int> const& group, std::vector<int> const& ranks);

/// Agrees with the others who goes on without the places `lost`. Collective among those who go on.
/// Returns  those who go on, in rank order
/// Errors   unreachable others go on without this rank, or too few are left; timeout naming the
///          ranks that did not come
result<std::vector<int>> agree_on_survivors(survivors& who, survivors_line& over,
                                            old_group const& group, std::vector<int> const& lost,
                                            std::chrono::milliseconds timeout);

/// Who is lost, says a rank that makes the group anew, as the others in a collective hear of it.
error given_up_by(int rank, survivors_word const& said, std::vector<int> const& group);

}  // namespace ferry
