// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The kernels of a step with two hops, as compiled for one CPU code level.
#pragma once

#include "kernels/cpu_kernels.hpp"

#include <ferry/kernels/by_nodes.hpp>
#include <ferry/kernels/forward_rows.hpp>
#include <ferry/kernels/forward_sums.hpp>

namespace ferry {

/// As cpu_kernels; the gather of a step with two hops is that of one.
struct relay_kernels {
  void (*send)(cpu_launch const&, by_nodes<send_rows> const&);
  void (*forward)(cpu_launch const&, forward_rows const&);
  void (*receive)(cpu_launch const&, by_nodes<receive_rows> const&);
  void (*give_back)(cpu_launch const&, by_nodes<return_rows> const&);
  void (*forward_home)(cpu_launch const&, forward_sums const&);
};

/// The kernels for a level that best_code_level() allows.
relay_kernels const& relay_kernels_for(code_level level);

}  // namespace ferry
