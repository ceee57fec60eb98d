// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The transport by which a rank reaches the peers that it cannot map.
#pragma once

#include <ferry/group.hpp>
#include <ferry/options.hpp>
#include <ferry/transport/transport.hpp>

#include <memory>
#include <vector>

namespace ferry {

/// Opens the carrier of the options on one NIC or several.
/// Errors   unsupported, invalid_argument and transport, as the carrier's own
result<std::unique_ptr<transport>> open_rails(group const& ranks, exchange_options const& options,
                                              std::vector<int> const& peers);

}  // namespace ferry
