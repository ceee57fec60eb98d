// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// `native_strip_lanes` of the vendor that this file is compiled for.
#pragma once

#include <ferry/exec/gpu/cuda/strip_lanes.hpp>
#include <ferry/exec/gpu/hip/strip_lanes.hpp>
