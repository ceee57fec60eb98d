// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Public name of exec/event.hpp.
#pragma once

#include <ferry/exec/event.hpp>
