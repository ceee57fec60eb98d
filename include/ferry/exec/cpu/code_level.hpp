// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The instruction sets that hot CPU code is built for, one chosen at run time.
#pragma once

#include <ferry/base/result.hpp>

#include <string_view>

namespace ferry {

/// Tags of the x86-64 micro-architecture levels. Code that is compiled for a level is a template
/// over its tag, so that two levels never share a symbol.
struct level_v2 {};  ///< SSE4.2: every machine that ferry runs on
struct level_v3 {};  ///< AVX2, FMA, F16C
struct level_v4 {};  ///< AVX-512 F, BW, CD, DQ, VL

enum class code_level : int { v2 = 2, v3 = 3, v4 = 4 };

/// The best level that this machine has and this build holds.
code_level best_code_level();

/// The level to use: `FERRY_CPU_ISA` (v2, v3, v4) when set, else the best. Read once.
/// Errors   invalid_argument the variable names no level; unsupported one that the machine or the
///          build lacks
result<code_level> chosen_code_level();

}  // namespace ferry
