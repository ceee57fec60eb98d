// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What the calls of a microbatch accept, and what they hand out.
#pragma once

#include "exchange/exchange_state.hpp"

namespace ferry {

// `later`: the call runs after it has returned, so the host looks at nothing that lies in memory.
// That is then taken to be as large as it may be, and checked by the kernels.
result<void> check_dispatch(exchange_core const& core, dispatch_input const& input, bool later);
result<void> check_expert_rows(microbatch::state const& slot, const_tensor const& rows, bool later);
result<void> check_token_sums(microbatch::state const& slot, token_sums const& sums);
result<void> check_output(microbatch::state const& slot, tensor const& output,
                          const_tensor const& added, bool later);
/// `counts` and `wanted`: the slot's, in memory of the host.
/// Errors   capacity an expert that received more rows than there is room
result<void> check_capacity(step_frame const& frame, std::int32_t const* counts,
                            std::int32_t const* wanted);

received view_of(exchange_core const& core, step_frame const& frame);

}  // namespace ferry
