// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The contract suites on teams of the CPU.

#include "contract/executor_contract.hpp"
#include "contract/row_contract.hpp"
#include "contract/strip_contract.hpp"
#include "contract/team_contract.hpp"
#include "contract/window_contract.hpp"

namespace ferry::test {
namespace {

std::vector<std::string> const cpu = {"cpu"};
FERRY_CONTRACT_ON(executor_contract, cpu);
FERRY_CONTRACT_ON(row_contract, cpu);
FERRY_CONTRACT_ON(strip_contract, cpu);
FERRY_CONTRACT_ON(team_contract, cpu);
FERRY_CONTRACT_ON(window_contract, cpu);

}  // namespace
}  // namespace ferry::test
