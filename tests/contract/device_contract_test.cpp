// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The contract suites on emulated lanes, or on the device that FERRY_TEST_DEVICE names.

#include "contract/executor_contract.hpp"
#include "contract/queue_contract.hpp"
#include "contract/row_contract.hpp"
#include "contract/strip_contract.hpp"
#include "contract/team_contract.hpp"
#include "contract/wait_contract.hpp"
#include "contract/window_contract.hpp"

namespace ferry::test {
namespace {

FERRY_CONTRACT_ON(executor_contract, contract_devices());
FERRY_CONTRACT_ON(queue_contract, contract_devices());
FERRY_CONTRACT_ON(row_contract, contract_devices());
FERRY_CONTRACT_ON(strip_contract, contract_devices());
FERRY_CONTRACT_ON(team_contract, contract_devices());
FERRY_CONTRACT_ON(wait_contract, contract_devices());
FERRY_CONTRACT_ON(window_contract, contract_devices());

}  // namespace
}  // namespace ferry::test
