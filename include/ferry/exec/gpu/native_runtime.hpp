// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// `native_runtime` of the vendor that this file is compiled for.
#pragma once

#include <ferry/exec/gpu/cuda/launch.hpp>
#include <ferry/exec/gpu/hip/launch.hpp>
