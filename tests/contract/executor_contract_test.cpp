// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "contract/executor_contract.hpp"

#include <ferry/exec/cpu/cpu_executor.hpp>

#include <memory>

namespace ferry::test {
namespace {

struct cpu {
  static std::unique_ptr<cpu_executor> make(int teams) {
    return std::make_unique<cpu_executor>(teams);
  }
  static int index(int index, int) { return index; }
  static int count(int, int teams) { return teams; }
};

struct any_kernel {
  template <class... Team>
  void operator()(Team const&...) const {}
};
static_assert(executor<cpu_executor, any_kernel>);

INSTANTIATE_TYPED_TEST_SUITE_P(cpu, executor_contract, cpu);

}  // namespace
}  // namespace ferry::test
