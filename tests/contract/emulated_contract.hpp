// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The contract suites' kernels on emulated lanes.
#pragma once

#include "contract/contract_launches.hpp"

namespace ferry::test {

/// For teams of 32 or 64 lanes. Streams are those of the emulated backend.
contract_table const& emulated_contract(int lanes);

}  // namespace ferry::test
