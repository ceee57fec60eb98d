// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Load statistics, and where experts live: the public names of balance/.
#pragma once

#include <ferry/balance/apply_placement.hpp>
#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/load_meter.hpp>
#include <ferry/balance/load_window.hpp>
#include <ferry/balance/metrics.hpp>
#include <ferry/balance/migrate.hpp>
#include <ferry/balance/place.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/balance/rebalance.hpp>
#include <ferry/balance/replicas.hpp>
#include <ferry/balance/routing_trace.hpp>
#include <ferry/balance/surviving_experts.hpp>
