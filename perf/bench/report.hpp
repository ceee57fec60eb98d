// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What ferry-bench says: a table for people, JSON lines for programs.
#pragma once

#include "measure.hpp"

#include <fstream>
#include <optional>

namespace ferry::bench {

/// All that is known of a measured case.
struct outcome {
  bench_case of;
  payload carried;                ///< of all ranks, by one operation
  std::uint64_t limit_bytes = 0;  ///< that the limit copies on all ranks
  std::vector<times> programs;    ///< ferry first
  std::string choices_file;       ///< where the routing came from one
  std::string started;            ///< "mpirun" or "threads"
  int ranks_per_node = 0;         ///< 0: the ranks are one node, and what follows says nothing
  ferry::carrier carrier = carrier::verbs;
  ferry::hops hops = hops::one;

  times const* find(std::string const& name) const;
  /// The other's p50 over ferry's: above 1 ferry is faster. Nothing where it did not run.
  std::optional<double> ratio(std::string const& name) const;
};

/// One JSON object, on one line.
std::string to_json(outcome const& o);

std::string table_head();
std::string table_row(outcome const& o);

/// Writes lines to a file as they come, or nowhere.
class json_lines {
 public:
  /// Errors   io the file cannot be made
  static result<json_lines> open(std::optional<std::string> const& path);
  /// Errors   io
  result<void> write(std::string const& line);

 private:
  std::string path_;
  std::ofstream out_;
};

}  // namespace ferry::bench
