// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A transport over mapped windows: puts are copies, signals are release stores.
#pragma once

#include <ferry/transport/mapped_window.hpp>
#include <ferry/transport/transport.hpp>

#include <memory>
#include <vector>

namespace ferry {

/// Makes the transport of `rank` over windows that are all mapped here. Puts are complete when they
/// return, in order.
std::unique_ptr<transport> make_shared_memory_transport(int rank,
                                                        std::vector<mapped_window> windows);

}  // namespace ferry
