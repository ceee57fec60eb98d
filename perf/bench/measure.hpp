// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Takes the times of several programs in turn, on all ranks.
#pragma once

#include "start_line.hpp"
#include "subject.hpp"

namespace ferry::bench {

/// The p-th percentile (0 to 100) of some numbers, by rank: the smallest that at least p % of them
/// do not exceed. 0 for no numbers.
double percentile(std::vector<double> values, double p);

/// One program's times.
struct times {
  std::string name;
  int iterations = 0;
  int in_a_row = 1;                                   ///< iterations between two starts
  std::vector<double> p50, p90, p99;                  ///< by rank, in microseconds
  int slowest = 0;                                    ///< the rank with the largest p50
  std::vector<std::pair<std::string, double>> parts;  ///< p50 of each part on that rank

  double slowest_p50() const { return p50[static_cast<std::size_t>(slowest)]; }
};

struct measuring {
  double seconds = 1;  ///< for each program, at most
  int slots = 1;       ///< operations of one iteration: times are given for one
  /// Whether iterations may follow each other without a start between them. Where ranks share cores
  /// as many do as fill some milliseconds: there, waking the ranks for the start costs as much as a
  /// short step.
  bool in_a_row = false;
};

/// Runs each program in turn, several times around, so that whatever else the machine does meets
/// all of them. An iteration's time on a rank is from the moment when the first rank started to
/// the moment when this one ended. Collective; all ranks get the same numbers.
/// Errors   those of the programs, of the start line and of the group
result<std::vector<times>> measure(group const& ranks, start_line& line,
                                   std::vector<subject*> const& programs, measuring how);

}  // namespace ferry::bench
