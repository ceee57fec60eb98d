// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Public name of exec/graph.hpp.
#pragma once

#include <ferry/exec/graph.hpp>
