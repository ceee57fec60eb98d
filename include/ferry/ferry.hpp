// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// All of ferry's public API but mpi.hpp, which needs MPI.
#pragma once

#include <ferry/device.hpp>
#include <ferry/event.hpp>
#include <ferry/exchange.hpp>
#include <ferry/graph.hpp>
#include <ferry/group.hpp>
#include <ferry/options.hpp>
#include <ferry/overlap.hpp>
#include <ferry/overlap_pays.hpp>
#include <ferry/placement.hpp>
#include <ferry/queue.hpp>
#include <ferry/result.hpp>
#include <ferry/version.hpp>
