// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A case from its routing to its numbers.
#pragma once

#include "report.hpp"
#include "settings.hpp"

namespace ferry::bench {

/// Makes the programs that exist only where ranks are processes of MPI.
using more_programs =
    std::function<result<void>(workload const&, std::vector<std::unique_ptr<subject>>&)>;

/// One rank of a run.
struct bench_rank {
  group ranks;
  group exchanging;                           ///< the same ranks, as nodes where they play some
  recorded_choices const* choices = nullptr;  ///< null: choices are drawn
  more_programs rivals;                       ///< may be empty
  std::string started;
};

/// Verifies and measures a case. Collective; every rank gets the same outcome.
/// Errors   those of all that runs; internal ferry carried other bytes than the routing says
result<outcome> run_case(bench_rank const& on, bench_case const& c, settings const& s);

}  // namespace ferry::bench
