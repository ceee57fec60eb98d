// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Ranks whose fp8 is OCP and ranks whose fp8 is FNUZ in one group, held against golden tables:
// every row arrives, and comes home, in the codes and scales of whoever reads it.

#include "data/golden_file.hpp"
#include "exchange/rank_threads.hpp"

#include <ferry/ferry.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace {

using namespace ferry;
using namespace ferry::oracle;

constexpr int num_ranks = 3;
constexpr fp8_flavour flavours[num_ranks] = {fp8_flavour::ocp, fp8_flavour::fnuz,
                                             fp8_flavour::of_device};
bool is_fnuz(int rank) {
  return flavours[rank] == fp8_flavour::fnuz;
}

/// Rows and what has to become of them, for one way of scaling.
struct golden_rows {
  explicit golden_rows(std::string const& scaling = "")
      : file("fp8/act_quant_1x128.safetensors"),
        x(file.tensor<float>("x")),
        codes{file.tensor<std::uint8_t>("e4m3fn" + scaling + ".q"),
              file.tensor<std::uint8_t>("e4m3fnuz" + scaling + ".q")},
        scales{file.tensor<float>("e4m3fn" + scaling + ".scale"),
               file.tensor<float>("e4m3fnuz" + scaling + ".scale")},
        values{file.tensor<float>("e4m3fn" + scaling + ".dequant"),
               file.tensor<float>("e4m3fnuz" + scaling + ".dequant")} {}
  int rows() const { return static_cast<int>(x.shape[0]); }
  int columns() const { return static_cast<int>(x.shape[1]); }
  std::size_t row_bytes() const { return static_cast<std::size_t>(x.shape[1]); }

  ferry::testing::golden_file file;
  ferry::testing::golden_tensor<float> x;
  ferry::testing::golden_tensor<std::uint8_t> codes[2];
  ferry::testing::golden_tensor<float> scales[2], values[2];
};

/// Every rank brings all rows, and every row goes to the one expert of each rank.
exchange_options options_for(golden_rows const& g, int rank, wire sent, reduction how) {
  exchange_options o{.num_experts = num_ranks, .topk = num_ranks, .hidden = g.columns()};
  o.max_tokens = g.rows();
  o.tokens = o.expert_rows = o.output = dtype::f32;
  o.wire = sent;
  o.combine_wire = wire::fp8_e4m3;
  o.reduction = how;
  o.fp8 = flavours[rank];
  return o;
}

/// The rank's rows of one step, there and home; each expert returns the rows as its source had
/// them, and each choice weighs `weights[k]`.
struct one_step {
  one_step(golden_rows const& g, exchange& ep, float const (&weights)[num_ranks]) : y(g.x.size()) {
    queue q;
    std::vector<std::int32_t> ids;
    std::vector<float> w, made;
    for (int t = 0; t < g.rows(); ++t)
      for (int k = 0; k < num_ranks; ++k) {
        ids.push_back((k + t) % num_ranks);
        w.push_back(weights[k]);
      }
    auto const n = std::int64_t{g.rows()};
    in = ep.microbatch(0)
             .dispatch(q, {.tokens = rows_of(g.x.values.data(), n, g.columns()),
                           .choices = dense<std::int32_t const>(ids.data(), n, num_ranks),
                           .weights = dense<float const>(w.data(), n, num_ranks)})
             .value();
    for (int s = 0; s < num_ranks; ++s)
      made.insert(made.end(), g.x.values.begin(), g.x.values.end());
    seen = {in.rows.data, in.rows.data + num_ranks * g.x.size()};
    std::size_t const of_row = static_cast<std::size_t>(in.scales.columns);
    for (int p = 0; p < num_ranks * g.rows(); ++p)
      scales.insert(scales.end(), in.scales[p], in.scales[p] + of_row);
    ep.microbatch(0)
        .combine(q, rows_of(made.data(), num_ranks * n, g.columns()),
                 rows_of(y.data(), n, g.columns()))
        .value();
  }
  received in;
  std::vector<std::byte> seen, scales;
  std::vector<float> y;
};

/// Runs `body(exchange, rank)` on all ranks.
template <class Body>
void on_all(golden_rows const& g, wire sent, reduction how, Body const& body) {
  complaints wrong;
  run_ranks(num_ranks, std::chrono::seconds(60), wrong, [&](group const& ranks) {
    result<exchange> ep = make_exchange(ranks, options_for(g, ranks.rank(), sent, how));
    if (!ep) return wrong.add(ep.error().message);
    body(*ep, ranks.rank());
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(mixed_flavours, reach_each_rank_and_come_home_in_its_own_codes_and_scales) {
  golden_rows const g;
  constexpr float weights[] = {1, 2, 4};
  constexpr float ones[] = {1, 1, 1};
  for (reduction how : {reduction::per_choice, reduction::per_rank})
    on_all(g, wire::fp8_e4m3, how, [&](exchange& ep, int rank) {
      bool const weighed = how == reduction::per_choice;
      one_step const s(g, ep, weighed ? weights : ones);
      EXPECT_EQ(s.in.rows.type, is_fnuz(rank) ? dtype::e4m3fnuz : dtype::e4m3);
      for (int source = 0; source < num_ranks; ++source) {
        auto const first = static_cast<std::size_t>(source);
        EXPECT_EQ(std::memcmp(s.seen.data() + first * g.x.size(),
                              g.codes[is_fnuz(rank)].values.data(), g.x.size()),
                  0)
            << "codes on rank " << rank << " from " << source;
        auto const& scales = g.scales[is_fnuz(rank)].values;
        EXPECT_EQ(std::memcmp(s.scales.data() + first * scales.size() * sizeof(float),
                              scales.data(), scales.size() * sizeof(float)),
                  0)
            << "scales on rank " << rank << " from " << source;
      }
      for (std::size_t i = 0; i < s.y.size(); ++i) {
        float sum = 0;
        for (int k = 0; k < num_ranks; ++k)
          sum = std::fma(weighed ? weights[k] : 1.0f, g.values[is_fnuz(rank)][i], sum);
        ASSERT_EQ(s.y[i], sum) << "rank " << rank << " element " << i;
      }
    });
}

TEST(mixed_flavours, share_codes_under_scales_of_powers_of_two) {
  golden_rows const g("_ue8m0");
  constexpr float ones[] = {1, 1, 1};
  on_all(g, wire::fp8_ue8m0, reduction::per_choice, [&](exchange& ep, int rank) {
    one_step const s(g, ep, ones);
    EXPECT_EQ(s.in.rows.type, is_fnuz(rank) ? dtype::e4m3fnuz : dtype::e4m3);
    for (std::size_t i = 0; i < s.seen.size(); ++i) {
      std::uint8_t const code = g.codes[0][i % g.x.size()];
      // There is no negative zero that both know.
      ASSERT_EQ(s.seen[i], std::byte{code == 0x80 ? std::uint8_t{0} : code}) << "element " << i;
    }
    for (std::size_t i = 0; i < s.scales.size(); ++i) {
      float const scale = to_float(e8m0{static_cast<std::uint8_t>(s.scales[i])});
      ASSERT_EQ(scale, g.scales[0][i % g.scales[0].size()] * (is_fnuz(rank) ? 2 : 1))
          << "block " << i;
    }
  });
}

TEST(mixed_flavours, are_refused_where_all_are_to_read_the_same) {
  golden_rows const g;
  complaints wrong;
  run_ranks(num_ranks, std::chrono::seconds(60), wrong, [&](group const& ranks) {
    result<exchange> const ep =
        make_exchange(ranks, options_for(g, ranks.rank(), wire::fp8_e4m3fnuz, reduction::per_rank));
    wrong.check(!ep, "no error");
    if (ep) return;
    wrong.check(ep.error().code == error_code::unsupported, "another code");
    wrong.check(ep.error().message.find("rank 0 would get from rank 1") != std::string::npos,
                ep.error().message);
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(mixed_flavours, take_one_hop_between_nodes) {
  golden_rows const g;
  for (wire const sent : {wire::fp8_e4m3, wire::fp8_ue8m0})
    for (hops const wanted : {hops::automatic, hops::two}) {
      complaints wrong;
      run_ranks(
          num_ranks, std::chrono::seconds(60), wrong,
          [&](group const& ranks) {
            exchange_options o = options_for(g, ranks.rank(), sent, reduction::per_rank);
            o.via = reach::network;
            o.hops = wanted;
            if (sent == wire::fp8_ue8m0) o.combine_wire = wire::bf16;
            result<exchange> const ep = make_exchange(ranks, o);
            // Under scales of powers of two the codes are the same, and a relay knows the scales.
            if (wanted == hops::two && sent == wire::fp8_e4m3) {
              wrong.check(!ep && ep.error().code == error_code::unsupported &&
                              ep.error().message.find("both flavours") != std::string::npos,
                          "two hops were not refused");
              return;
            }
            if (!ep) return wrong.add(ep.error().message);
            wrong.check(ep->options().hops == wanted || wanted == hops::automatic, "other hops");
            if (sent == wire::fp8_e4m3)
              wrong.check(ep->options().hops == hops::one, "two hops with both flavours");
          },
          2);
      EXPECT_TRUE(wrong.none()) << wrong.text();
    }
}

}  // namespace
