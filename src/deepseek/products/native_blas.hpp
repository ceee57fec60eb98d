// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// `blas` of the vendor that a library of products is compiled for.
#pragma once

#include "deepseek/products/cuda/blas.hpp"
#include "deepseek/products/hip/blas.hpp"
