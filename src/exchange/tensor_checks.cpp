// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/tensor_checks.hpp"

#include "base/fail.hpp"

namespace ferry {
namespace {

result<void> check_stride(char const* name, std::int64_t stride, std::int64_t least,
                          char const* unit) {
  if (stride >= least) return {};
  return fail(error_code::invalid_argument, "{}: a row stride of {} {} is less than a row's {}",
              name, stride, unit, least);
}

result<void> check_address(char const* name, void const* data, std::size_t size) {
  if (reinterpret_cast<std::uintptr_t>(data) % size == 0) return {};
  return fail(error_code::invalid_argument,
              "{}: address {} must be a multiple of an element's {} bytes", name, data, size);
}

result<void> check_rows(char const* name, const_tensor const& t, dtype type, std::int64_t columns) {
  if (t.rows == 0 && !t.data) return {};  // nothing has no type
  if (t.type != type)
    return fail(error_code::invalid_argument, "{} are of type {}; the exchange was made for {}",
                name, to_string(t.type), to_string(type));
  if (t.rows < 0) return fail(error_code::invalid_argument, "{}: {} rows", name, t.rows);
  if (t.rows == 0) return {};
  if (t.columns != columns)
    return fail(error_code::invalid_argument, "{} have {} columns; the exchange was made for {}",
                name, t.columns, columns);
  if (!t.data) return fail(error_code::invalid_argument, "{}: {} rows at no address", name, t.rows);
  auto const size = static_cast<std::int64_t>(bytes_of(type));
  FERRY_CHECK(check_stride(name, t.stride_bytes(), columns * size, "bytes"));
  if (reinterpret_cast<std::uintptr_t>(t.data) % static_cast<std::uintptr_t>(size) != 0 ||
      t.stride_bytes() % size != 0)
    return fail(error_code::invalid_argument,
                "{}: address {} and row stride {} must be multiples of an element's {} bytes", name,
                static_cast<void const*>(t.data), t.stride_bytes(), size);
  return {};
}

result<void> check_choices(exchange_options const& options, dispatch_input const& input,
                           std::int64_t rows) {
  choice_matrix const& c = input.choices;
  if (c.type != options.ids)
    return fail(error_code::invalid_argument, "choices are {}; the exchange was made for {}",
                c.type == id_type::int64 ? "int64" : "int32",
                options.ids == id_type::int64 ? "int64" : "int32");
  if (c.rows != rows || c.columns != options.topk || (rows > 0 && !c.data))
    return fail(error_code::invalid_argument,
                "choices are [{}, {}]{}; the tokens and options say [{}, {}]", c.rows, c.columns,
                c.data ? "" : " at no address", rows, options.topk);
  FERRY_CHECK(check_stride("choices", c.row_stride, options.topk, "elements"));
  FERRY_CHECK(check_address("choices", c.data, c.type == id_type::int64 ? 8 : 4));
  auto const& w = input.weights;
  if (!w.data) return {};
  if (w.rows != rows || w.columns != options.topk)
    return fail(error_code::invalid_argument, "weights are [{}, {}]; the choices are [{}, {}]",
                w.rows, w.columns, rows, options.topk);
  FERRY_CHECK(check_stride("weights", w.row_stride, options.topk, "elements"));
  return check_address("weights", w.data, sizeof *w.data);
}

result<void> check_scales(exchange_shape const& shape, dispatch_input const& input,
                          std::int64_t rows) {
  auto const& s = input.scales;
  auto const bytes = static_cast<std::int64_t>(shape.scale_bytes);
  if (shape.sent != wire::opaque || bytes == 0) {
    if (s.data)
      return fail(error_code::invalid_argument,
                  "scales were given, but the exchange's rows bring none");
    return {};
  }
  if (rows == 0) return {};
  if (!s.data || s.rows != rows || s.columns != bytes)
    return fail(error_code::invalid_argument, "scales are [{}, {}]{}; the options say [{}, {}]",
                s.rows, s.columns, s.data ? "" : " at no address", rows, bytes);
  return check_stride("scales", s.row_stride, bytes, "bytes");
}

}  // namespace

result<void> check_dispatch(exchange_core const& core, dispatch_input const& input, bool later) {
  exchange_options const& options = core.options;
  exchange_shape const& shape = core.shape;
  bool const opaque = shape.sent == wire::opaque;
  if (options.layers > 0 && (input.layer < 0 || input.layer >= options.layers))
    return fail(error_code::invalid_argument, "a step of layer {}; options.layers is {}",
                input.layer, options.layers);
  FERRY_CHECK(check_rows("tokens", input.tokens, opaque ? dtype::byte : options.tokens,
                         opaque ? static_cast<std::int64_t>(shape.row_bytes) : shape.hidden));
  std::int64_t const rows = input.tokens.rows;
  if (rows > options.max_tokens && !input.num_tokens)
    return fail(error_code::invalid_argument, "{} tokens; options.max_tokens allows {}", rows,
                options.max_tokens);
  if (input.num_tokens && !later &&
      (*input.num_tokens < 0 || *input.num_tokens > rows || *input.num_tokens > options.max_tokens))
    return fail(error_code::invalid_argument,
                "num_tokens is {}; there are {} rows of tokens, and options.max_tokens allows {}",
                *input.num_tokens, rows, options.max_tokens);
  if (rows > 0) FERRY_CHECK(check_choices(options, input, rows));
  return check_scales(shape, input, rows);
}

result<void> check_expert_rows(microbatch::state const& slot, const_tensor const& rows,
                               bool later) {
  exchange_options const& options = slot.core.options;
  FERRY_CHECK(check_rows("expert rows", rows, options.expert_rows, options.hidden));
  if (later) {
    if (rows.rows >= slot.frame.layout.capacity) return {};
    return fail(error_code::invalid_argument,
                "{} expert rows; a call that runs later needs one for each of the {} positions",
                rows.rows, slot.frame.layout.capacity);
  }
  if (rows.rows < *slot.frame.memory.end)
    return fail(error_code::invalid_argument, "{} expert rows; this step uses positions up to {}",
                rows.rows, *slot.frame.memory.end);
  return {};
}

result<void> check_token_sums(microbatch::state const& slot, token_sums const& sums) {
  exchange_options const& options = slot.core.options;
  exchange_shape const& shape = slot.core.shape;
  if (shape.per_choice)
    return fail(error_code::invalid_argument,
                "sums of tokens for an exchange of reduction per_choice, which brings every "
                "expert's row home");
  FERRY_CHECK(check_rows("sums of tokens", sums.rows, options.expert_rows, options.hidden));
  std::int64_t const rows = std::int64_t{shape.ranks} * shape.max_tokens;
  if (sums.rows.rows < rows || rows > INT32_MAX)
    return fail(error_code::invalid_argument,
                "{} sums of tokens; {} ranks of {} tokens need {}, and at most {} can be counted",
                sums.rows.rows, shape.ranks, shape.max_tokens, rows, INT32_MAX);
  return {};
}

result<void> check_output(microbatch::state const& slot, tensor const& output,
                          const_tensor const& added, bool later) {
  exchange_options const& options = slot.core.options;
  std::int64_t const tokens = later ? slot.most_tokens : *slot.frame.memory.num_tokens;
  const_tensor const view{output.data, output.rows, output.columns, output.type,
                          output.row_stride_bytes};
  FERRY_CHECK(check_rows("output rows", view, options.output, options.hidden));
  if (output.rows < tokens)
    return fail(error_code::invalid_argument, "{} output rows; this step has {} tokens",
                output.rows, tokens);
  if (!added.data && added.rows == 0) return {};
  FERRY_CHECK(check_rows("added rows", added, options.output, options.hidden));
  if (added.rows < tokens)
    return fail(error_code::invalid_argument, "{} added rows; this step has {} tokens", added.rows,
                tokens);
  return {};
}

result<void> check_capacity(step_frame const& frame, std::int32_t const* counts,
                            std::int32_t const* wanted) {
  for (int e = 0; e < frame.shape.local_experts(frame.shape.rank); ++e)
    if (counts[e] < wanted[e])
      return fail(error_code::capacity,
                  "expert {} received {} rows, but there is room for {} (options.capacity {}): the "
                  "others were left out; end the step with combine or release",
                  frame.shape.first_expert(frame.shape.rank) + e, wanted[e], counts[e],
                  frame.layout.per_expert ? frame.layout.per_expert : frame.layout.capacity);
  return {};
}

received view_of(exchange_core const& core, step_frame const& frame) {
  exchange_shape const& shape = frame.shape;
  step_memory const& m = frame.memory;
  bool const opaque = shape.sent == wire::opaque;
  std::byte* const window = core.own_rows();
  bool const in_place = frame.layout.in_place;
  bool const fnuz = core.receives_fnuz[static_cast<std::size_t>(shape.rank)] != std::byte{0};
  received r;
  std::size_t const row_stride = in_place ? frame.slot.stride(slot_field::rows) : m.row_stride;
  std::size_t const scale_stride =
      in_place ? frame.slot.stride(slot_field::scales) : m.scale_stride;
  std::int64_t const rows =
      in_place ? std::int64_t{shape.ranks} * shape.round_tokens : frame.layout.capacity;
  r.rows = {in_place ? window + frame.at(slot_field::rows) : m.rows, rows,
            opaque ? static_cast<std::int64_t>(shape.row_bytes) : shape.hidden,
            shape.sent == wire::fp8_ue8m0 && fnuz ? dtype::e4m3fnuz : element_of(shape.sent),
            static_cast<std::int64_t>(row_stride)};
  if (shape.scale_bytes)
    r.scales = {in_place ? window + frame.at(slot_field::scales) : m.scales, rows,
                static_cast<std::int64_t>(shape.scale_bytes),
                static_cast<std::int64_t>(scale_stride)};
  r.index = in_place ? m.index : nullptr;
  r.num_local_experts = shape.local_experts(shape.rank);
  r.first_expert = shape.first_expert(shape.rank);
  r.starts = m.starts;
  r.counts = m.counts;
  r.end = m.end;
  r.capacity = frame.layout.capacity;
  return r;
}

}  // namespace ferry
