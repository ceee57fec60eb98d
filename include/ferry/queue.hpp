// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Public name of exec/queue.hpp.
#pragma once

#include <ferry/exec/queue.hpp>
