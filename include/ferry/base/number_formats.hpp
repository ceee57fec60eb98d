// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Every number format that rows and scales use.
#pragma once

#include <ferry/base/bfloat16.hpp>
#include <ferry/base/exponent8.hpp>
#include <ferry/base/float16.hpp>
#include <ferry/base/float8.hpp>
#include <ferry/base/float_bits.hpp>
