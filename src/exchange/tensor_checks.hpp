// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What the calls of a microbatch accept, and what they hand out.
#pragma once

#include "exchange/exchange_state.hpp"

namespace ferry {

result<void> check_dispatch(exchange_options const& options, exchange_shape const& shape,
                            dispatch_input const& input);
result<void> check_expert_rows(exchange_options const& options, step_frame const& frame,
                               const_tensor const& rows);
result<void> check_token_sums(exchange_options const& options, exchange_shape const& shape,
                              token_sums const& sums);
result<void> check_output(exchange_options const& options, step_frame const& frame,
                          tensor const& output, const_tensor const& added);
/// Errors   capacity an expert that received more rows than there is room
result<void> check_capacity(step_frame const& frame);

received view_of(exchange_core const& core, step_frame const& frame);

}  // namespace ferry
