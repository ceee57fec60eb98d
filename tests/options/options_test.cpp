// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/options.hpp>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace {

using namespace ferry;
using testing::HasSubstr;

exchange_options valid() {
  return {.num_experts = 8, .topk = 2, .hidden = 64, .max_tokens = 16};
}

void expect_limits(char const* name, void (*set)(exchange_options&, std::int64_t), std::int64_t low,
                   std::int64_t high) {
  SCOPED_TRACE(name);
  for (std::int64_t const inside : {low, high}) {
    exchange_options o = valid();
    set(o, inside);
    result<void> const r = validate(o, 4);
    EXPECT_TRUE(r.has_value()) << (r ? "" : r.error().message);
  }
  for (std::int64_t const outside : {low - 1, high + 1}) {
    exchange_options o = valid();
    set(o, outside);
    result<void> const r = validate(o, 4);
    ASSERT_FALSE(r.has_value()) << outside;
    EXPECT_EQ(r.error().code, error_code::invalid_argument);
    EXPECT_THAT(r.error().message, HasSubstr(name));
    EXPECT_THAT(r.error().message, HasSubstr(std::to_string(outside)));
    EXPECT_THAT(r.error().message, HasSubstr(std::to_string(high)));
  }
}

TEST(options, keep_every_number_within_its_limits) {
  using o = exchange_options;
  using i = std::int64_t;
  expect_limits(
      "num_experts", [](o& x, i v) { x.num_experts = static_cast<int>(v); }, 1, 1 << 20);
  expect_limits(
      "topk", [](o& x, i v) { x.topk = static_cast<int>(v); }, 1, 32);
  expect_limits(
      "hidden", [](o& x, i v) { x.hidden = static_cast<int>(v); }, 1, 1 << 24);
  expect_limits(
      "max_tokens", [](o& x, i v) { x.max_tokens = static_cast<int>(v); }, 1, (1 << 24) - 1);
  expect_limits(
      "row_align", [](o& x, i v) { x.row_align = static_cast<int>(v); }, 1, 1 << 16);
  expect_limits(
      "capacity", [](o& x, i v) { x.capacity = v; }, 0, INT32_MAX);
  expect_limits(
      "blocks", [](o& x, i v) { x.blocks = static_cast<int>(v); }, 1, 256);
  expect_limits(
      "num_microbatches", [](o& x, i v) { x.num_microbatches = static_cast<int>(v); }, 1, 64);
  expect_limits(
      "round_tokens", [](o& x, i v) { x.round_tokens = static_cast<int>(v); }, 0, 16);
  expect_limits(
      "rails", [](o& x, i v) { x.rails = static_cast<int>(v); }, 1, 16);
  expect_limits(
      "timeout", [](o& x, i v) { x.timeout = std::chrono::milliseconds(v); }, 0, 86'400'000);
  expect_limits(
      "faults.reorder", [](o& x, i v) { x.faults.reorder = static_cast<int>(v); }, 0, 1024);
  expect_limits(
      "faults.delay", [](o& x, i v) { x.faults.delay = static_cast<int>(v); }, 0, 1024);
  expect_limits(
      "faults.try_again", [](o& x, i v) { x.faults.try_again = static_cast<int>(v); }, 0, 1024);
  expect_limits(
      "faults.drop", [](o& x, i v) { x.faults.drop = static_cast<int>(v); }, 0, 1024);
  expect_limits(
      "faults.fail", [](o& x, i v) { x.faults.fail = static_cast<int>(v); }, 0, 1024);
  expect_limits(
      "faults.longest_delay",
      [](o& x, i v) { x.faults.longest_delay = std::chrono::microseconds(v); }, 0, 60'000'000);
}

TEST(options, keep_opaque_sizes_within_their_limits) {
  exchange_options o = valid();
  o.opaque_row_bytes = 1;
  EXPECT_FALSE(validate(o, 1)) << "bytes of opaque rows, but rows are bf16";
  o = valid();
  o.opaque_scale_bytes = 1;
  EXPECT_FALSE(validate(o, 1));
  o = valid();
  o.wire = wire::opaque;
  ASSERT_FALSE(validate(o, 1));
  EXPECT_THAT(validate(o, 1).error().message, HasSubstr("opaque_row_bytes is 0"));
  o.opaque_row_bytes = 1;
  EXPECT_TRUE(validate(o, 1));
  o.opaque_scale_bytes = std::size_t{1} << 30;
  EXPECT_TRUE(validate(o, 1));
  ++o.opaque_scale_bytes;
  EXPECT_FALSE(validate(o, 1));
  o.opaque_row_bytes = ~std::size_t{0};
  EXPECT_FALSE(validate(o, 1));
}

// A file or another language may give any number for an enumerator.
TEST(options, refuse_numbers_that_name_no_choice) {
  struct bad {
    char const* name;
    int value;
    void (*set)(exchange_options&, int);
  };
  using o = exchange_options;
  for (int past : {0, 1, 40}) {
    for (bad const &b : {
             bad{"wire", 7 + past, [](o&x, int v) { x.wire = static_cast<wire>(v); }},
             bad{"combine_wire", 7 + past,
                 [](o&x, int v) { x.combine_wire = static_cast<wire>(v); }},
             bad{"ids", 2 + past, [](o&x, int v) { x.ids = static_cast<id_type>(v); }},
             bad{"layout", 3 + past, [](o&x, int v) { x.layout = static_cast<layout>(v); }},
             bad{"reduction", 2 + past,
                 [](o&x, int v) { x.reduction = static_cast<reduction>(v); }},
             bad{"via", static_cast<int>(reach::network) + 1 + past,
                 [](o&x, int v) { x.via = static_cast<reach>(v); }},
             bad{"carrier", 2 + past, [](o&x, int v) { x.carrier = static_cast<carrier>(v); }},
             bad{"hops", 3 + past, [](o&x, int v) { x.hops = static_cast<hops>(v); }},
         }) {
      exchange_options x = valid();
      b.set(x, b.value);
      result<void> const r = validate(x, 4);
      ASSERT_FALSE(r.has_value()) << b.name << " " << b.value;
      EXPECT_EQ(r.error().code, error_code::invalid_argument);
      EXPECT_THAT(r.error().message, HasSubstr(b.name));
      EXPECT_THAT(r.error().message, HasSubstr(std::to_string(b.value)));
    }
    for (dtype o::*field : {&o::tokens, &o::expert_rows, &o::output}) {
      exchange_options x = valid();
      x.*field = static_cast<dtype>(7 + past);
      EXPECT_FALSE(validate(x, 4)) << past;
    }
  }
}

TEST(options, name_the_formats_that_are_possible) {
  for (dtype exchange_options::*field :
       {&exchange_options::tokens, &exchange_options::expert_rows, &exchange_options::output})
    for (dtype type : {dtype::f32, dtype::bf16, dtype::fp16, dtype::e4m3, dtype::e4m3fnuz,
                       dtype::e8m0, dtype::byte}) {
      exchange_options o = valid();
      o.*field = type;
      bool const is_float = type == dtype::f32 || type == dtype::bf16 || type == dtype::fp16;
      result<void> const r = validate(o, 1);
      EXPECT_EQ(r.has_value(), is_float) << to_string(type);
      if (!r) {
        EXPECT_THAT(r.error().message, HasSubstr(to_string(type)));
      }
    }
  for (wire home : {wire::f32, wire::bf16, wire::fp16, wire::fp8_e4m3, wire::fp8_e4m3fnuz,
                    wire::fp8_ue8m0, wire::opaque}) {
    exchange_options o = valid();
    o.combine_wire = home;
    result<void> const r = validate(o, 1);
    EXPECT_EQ(r.has_value(), home != wire::fp8_ue8m0 && home != wire::opaque) << to_string(home);
    if (!r) {
      EXPECT_THAT(r.error().message, HasSubstr("combine_wire"));
    }
  }
}

TEST(options, take_chunks_of_powers_of_two_up_to_sixteen) {
  for (int chunk = -16; chunk <= 64; ++chunk) {
    exchange_options o = valid();
    o.chunk_tokens = chunk;
    bool const good =
        chunk == 0 || chunk == 1 || chunk == 2 || chunk == 4 || chunk == 8 || chunk == 16;
    EXPECT_EQ(validate(o, 1).has_value(), good) << chunk;
  }
  exchange_options o = valid();
  o.chunk_tokens = INT32_MIN;
  EXPECT_FALSE(validate(o, 1));
}

TEST(options, refuse_rounds_that_would_reuse_rows_still_in_place) {
  exchange_options o = valid();
  o.layout = layout::in_place;
  EXPECT_TRUE(validate(o, 1));
  o.round_tokens = 16;
  EXPECT_TRUE(validate(o, 1));
  o.round_tokens = 15;
  result<void> const r = validate(o, 1);
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("in_place"));
  EXPECT_THAT(r.error().message, HasSubstr("15"));
  EXPECT_THAT(r.error().message, HasSubstr("16"));
}

TEST(options, need_a_rank_and_a_way_to_reach_it) {
  EXPECT_FALSE(validate(valid(), 0));
  EXPECT_FALSE(validate(valid(), -3));
  EXPECT_FALSE(validate(valid(), 65537));
  EXPECT_TRUE(validate(valid(), 65536));
  exchange_options o = valid();
  o.via = reach::self;
  EXPECT_FALSE(validate(o, 1));
  o = valid();
  o.faults.queue_depth = 0;
  ASSERT_FALSE(validate(o, 1));
  EXPECT_THAT(validate(o, 1).error().message, HasSubstr("queue_depth"));
}

// The default is no choice at all: sizes must be given.
TEST(options, keep_the_network_within_its_limits) {
  exchange_options o = valid();
  o.network.service_level = 16;
  auto const r = validate(o, 2);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::invalid_argument);
  EXPECT_NE(r.error().message.find("service_level is 16; 0 to 15"), std::string::npos)
      << r.error().message;
  o.network = {.mtu = 1000};
  EXPECT_FALSE(validate(o, 2));
  o.network = {.mtu = 1024};
  EXPECT_TRUE(validate(o, 2));
  o.fabric.put_bytes = 1;
  EXPECT_FALSE(validate(o, 2));
}

TEST(options, refuse_the_default) {
  EXPECT_FALSE(validate({}, 1));
}

}  // namespace
