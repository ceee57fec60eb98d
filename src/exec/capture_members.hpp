// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What takes part in the capture that this thread is in, and has a word in how it ends.
#pragma once

#include <ferry/base/result.hpp>

#include <functional>

namespace ferry {

/// Called once when the capture ends. `kept`: whether the work went well so far; then the member
/// may refuse, and the capture fails. Otherwise, also when another member refused, it undoes what
/// its captured calls have changed on the host, because none of them will ever run.
using capture_member = std::function<result<void>(bool kept)>;

/// Whether this thread is within `capture`.
bool in_capture();
/// Whether `who` has joined it.
bool has_joined_capture(void const* who);
void join_capture(void const* who, capture_member member);

}  // namespace ferry
