// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The connections of ranks that have met, which one group after the other of them uses.
#pragma once

#include "group/rendezvous.hpp"
#include "group/survivors.hpp"

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace ferry {

/// Frames of a collective carry its number and that of the rebuild: what a rank sent before the
/// group was made anew is told from what it sends afterwards.
inline constexpr int rebuild_shift = 40;

/// Ranks have the numbers here with which they joined. But for `use` and `give_up` one thread at a
/// time, which holds `one_at_a_time`.
class mesh final : public survivors_line {
 public:
  mesh(int me, links lines)
      : me_(me), lines_(std::move(lines)), who_(me, size()), data_(lines_.size()) {}

  int me() const { return me_; }
  int size() const { return static_cast<int>(lines_.size()); }
  /// None to oneself.
  link* line(int rank) const { return lines_[static_cast<std::size_t>(rank)].get(); }
  survivors& who() { return who_; }

  /// A group begins to use it.
  void use();
  /// A group's end. After the last one peers see that this rank has left, and why.
  void give_up(result<void> const& why);

  /// Takes apart what has come on all lines.
  void take_what_came();
  /// The first frame of a rank that belongs to this rebuild, if it is there; older ones go. Later
  /// ones stay for the group to come.
  std::optional<frame> next(int rank, std::uint64_t rebuild);

  void look(survivors& who) override;
  void say(survivors_word const& word) override;
  result<void> wait(deadline end) override;

  std::mutex one_at_a_time;

 private:
  void hear(int rank, frame const& got);

  int const me_;
  links const lines_;
  survivors who_;
  std::vector<std::deque<frame>> data_;
  std::mutex guard_;
  int users_ = 0;
};

}  // namespace ferry
