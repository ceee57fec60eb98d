// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Public name of base/result.hpp: `result<T>`, `error`, `error_code`.
#pragma once

#include <ferry/base/result.hpp>
