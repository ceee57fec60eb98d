// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The model's kernels for the vendor that this file is compiled for. Compile it without contraction
// of products and sums and with division and square root rounded to nearest, as the CPU does.

#include "deepseek/row_kernels.hpp"

#include <ferry/exec/gpu/native_runtime.hpp>
#include <ferry/exec/gpu/native_strip.hpp>

namespace ferry::deepseek {
namespace {

constexpr int most_threads = 256;

template <class Kernel>
__global__ void __launch_bounds__(most_threads) run_on_strips(Kernel const kernel) {
  kernel(lane_strip<native_strip_lanes>(native_strip_lanes{}));
}

template <class Kernel>
void const* function_of() {
  return reinterpret_cast<void const*>(&run_on_strips<Kernel>);
}

template <class Kernel>
struct on_device {
  static int launch(strip_launch const& with, Kernel const& kernel) {
    Kernel argument = kernel;
    void* all[] = {&argument};
    return native_runtime::launch(function_of<Kernel>(), with.blocks,
                                  with.teams * native_strip_lanes::team, all, with.stream);
  }
};

template <class... Kernels>
int load_all(launches_of<Kernels...> const*) {
  int status = 0;
  ((status = status != 0 ? status : native_runtime::load(function_of<Kernels>())), ...);
  return status;
}

constexpr row_launches* all = nullptr;
// Blocks of eight strips' worth of teams; enough of them for the largest devices.
constexpr row_kernels table{launches_by<on_device>(all),
                            native_strip_lanes::team,
                            264,
                            most_threads / native_strip_lanes::team,
                            [] { return load_all(all); },
                            native_runtime::describe};

}  // namespace
}  // namespace ferry::deepseek

extern "C" __attribute__((visibility("default"))) ferry::deepseek::row_kernels const*
ferry_row_kernels() {
  return &ferry::deepseek::table;
}
