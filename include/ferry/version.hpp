// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// ferry's version, read by CMake from here.
#pragma once

#define FERRY_VERSION "0.1.0"
