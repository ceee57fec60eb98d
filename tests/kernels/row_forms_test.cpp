// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/row_forms.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ferry;

alignas(16) std::byte memory[64];

send_rows sending(wire sent, dtype type, int hidden) {
  send_rows k;
  k.frame.shape.sent = sent;
  k.frame.shape.hidden = hidden;
  k.frame.shape.row_bytes = static_cast<std::size_t>(hidden) * bytes_of(element_of(sent));
  k.type = type;
  k.tokens = memory;
  k.token_stride = 16384;
  return k;
}

TEST(row_forms, copy_what_is_in_wire_format_already) {
  EXPECT_EQ(form_of(sending(wire::bf16, dtype::bf16, 7168), 64), send_form::copied);
  EXPECT_EQ(form_of(sending(wire::f32, dtype::f32, 4), 64), send_form::copied);
  EXPECT_EQ(form_of(sending(wire::bf16, dtype::f32, 7168), 64), send_form::memory);
  send_rows opaque = sending(wire::opaque, dtype::byte, 1);
  opaque.frame.shape.row_bytes = 7168;
  opaque.frame.shape.scale_bytes = 224;
  opaque.scales = memory;
  opaque.scale_stride = 224;
  EXPECT_EQ(form_of(opaque, 64), send_form::copied);
  EXPECT_EQ(form_of(opaque, 32), send_form::copied);
  opaque.frame.shape.scale_bytes = opaque.scale_stride = 516;
  EXPECT_EQ(form_of(opaque, 64), send_form::copied);
  EXPECT_EQ(form_of(opaque, 32), send_form::memory) << "more than its lanes hold";
}

TEST(row_forms, quantise_bf16_in_whole_blocks) {
  EXPECT_EQ(form_of(sending(wire::fp8_e4m3, dtype::bf16, 7168), 64), send_form::e4m3);
  EXPECT_EQ(form_of(sending(wire::fp8_e4m3fnuz, dtype::bf16, 128), 64), send_form::e4m3fnuz);
  EXPECT_EQ(form_of(sending(wire::fp8_ue8m0, dtype::bf16, 256), 64), send_form::power);
  for (wire own : {wire::fp8_e4m3, wire::fp8_e4m3fnuz}) {
    send_rows to_both = sending(own, dtype::bf16, 7168);
    to_both.frame.shape.mixed = mixed_rows::returned;
    EXPECT_NE(form_of(to_both, 64), send_form::both);
    to_both.frame.shape.mixed = mixed_rows::sent;
    EXPECT_EQ(form_of(to_both, 64), send_form::both);
    to_both.token_stride += 8;
    EXPECT_EQ(form_of(to_both, 64), send_form::memory);
  }
  EXPECT_EQ(form_of(sending(wire::fp8_e4m3, dtype::bf16, 7168 + 16), 64), send_form::memory);
  EXPECT_EQ(form_of(sending(wire::fp8_e4m3, dtype::fp16, 7168), 64), send_form::memory);
}

TEST(row_forms, go_through_memory_where_rows_do_not_start_at_16_bytes) {
  for (auto const& spoil :
       {+[](send_rows& k) { k.tokens += 2; }, +[](send_rows& k) { k.token_stride += 8; },
        +[](send_rows& k) { k.frame.shape.hidden += 1; }}) {
    send_rows k = sending(wire::bf16, dtype::bf16, 7168);
    spoil(k);
    EXPECT_EQ(form_of(k, 64), send_form::memory);
  }
}

TEST(row_forms, sum_bf16_in_registers_both_ways) {
  return_rows back;
  back.frame.shape.returned = wire::bf16;
  back.frame.shape.home_bytes = 14336;
  back.rows = memory;
  back.row_stride = 14336;
  EXPECT_EQ(form_of(back), return_form::bf16);
  back.type = dtype::f32;
  EXPECT_EQ(form_of(back), return_form::memory);
  back.type = dtype::bf16;
  back.rows = memory + 8;
  EXPECT_EQ(form_of(back), return_form::memory);

  gather_rows home;
  home.frame.shape = back.frame.shape;
  home.output = memory;
  home.output_stride = 14336;
  EXPECT_EQ(form_of(home), gather_form::bf16);
  home.added = memory + 4;
  EXPECT_EQ(form_of(home), gather_form::memory);
  home.added = memory;
  home.frame.shape.returned = wire::fp8_e4m3;
  EXPECT_EQ(form_of(home), gather_form::memory);
}

}  // namespace
