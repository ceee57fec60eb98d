// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Nothing: the file of a target that only compiles headers.
