// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// `host_runtime` of the vendor that a backend is compiled for.
#pragma once

#include "exec/gpu/cuda/runtime.hpp"
#include "exec/gpu/hip/runtime.hpp"
