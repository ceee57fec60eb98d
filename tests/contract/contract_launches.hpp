// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The contract suites' kernels as a kind of device launches them.
#pragma once

#include "contract_kernels.hpp"
#include "kernels/gpu_kernels.hpp"
#include "strip_kernel.hpp"

namespace ferry::test {

template <class Kernel>
struct contract_launch_of {
  /// Asynchronous, on the calling thread's current device. Returns the vendor's status: 0 is
  /// success.
  int (*launch)(gpu_launch const&, Kernel const&);
};
template <class... Kernels>
struct contract_launches_of : contract_launch_of<Kernels>... {};

using contract_launches =
    contract_launches_of<visit_lanes, pass_on, count_up, meet, await_word, check_team, put_rows,
                         put_values, publish_words, faulty_probe, check_strips>;

struct contract_table : contract_launches {
  int lanes;                     ///< of a team
  int (*load)();                 ///< all kernels, so that no launch waits for one
  char const* (*describe)(int);  ///< the vendor's text for a status
};

/// All launches by `Launch<Kernel>::launch`.
template <template <class> class Launch, class... Kernels>
constexpr contract_launches_of<Kernels...> contract_launches_by(
    contract_launches_of<Kernels...> const*) {
  return {contract_launch_of<Kernels>{Launch<Kernels>::launch}...};
}

/// The entry point of a library that holds them for a vendor's GPUs: `ferry_contract`.
using contract_entry = contract_table const* (*)();

}  // namespace ferry::test
