// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// `native_device` and `native_codes` of the vendor that this file is compiled for.
#pragma once

#include <ferry/exec/gpu/cuda/device.hpp>
#include <ferry/exec/gpu/hip/device.hpp>
