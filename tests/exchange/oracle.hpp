// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What an exchange has to deliver, worked out from the routing of all ranks by plain loops.
///
/// The experts are never the identity: each has a factor and an offset of its own, each (token,
/// choice) a weight of its own, and payloads are small integers, so that a lost, doubled or swapped
/// row changes a sum.
#pragma once

#include <ferry/base/number_formats.hpp>
#include <ferry/exchange.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry::oracle {

using dice = std::mt19937_64;

/// A number from low to high, both included.
inline int pick(dice& from, int low, int high) {
  return low + static_cast<int>(from() % static_cast<std::uint64_t>(high - low + 1));
}
template <class T, std::size_t N>
T pick_one(dice& from, T const (&of)[N]) {
  return of[from() % N];
}
inline bool one_in(dice& from, int n) {
  return from() % static_cast<std::uint64_t>(n) == 0;
}

inline void store(std::byte* at, dtype type, float x) {
  switch (type) {
    case dtype::bf16: {
      bf16 const v = from_float<bf16>(x);
      std::memcpy(at, &v, sizeof v);
      return;
    }
    case dtype::fp16: {
      fp16 const v = from_float<fp16>(x);
      std::memcpy(at, &v, sizeof v);
      return;
    }
    case dtype::e4m3: *at = std::byte{from_float<e4m3>(x).bits}; return;
    case dtype::e4m3fnuz: *at = std::byte{from_float<e4m3fnuz>(x).bits}; return;
    default: std::memcpy(at, &x, sizeof x);
  }
}
inline float load(std::byte const* at, dtype type) {
  switch (type) {
    case dtype::bf16: {
      bf16 v;
      std::memcpy(&v, at, sizeof v);
      return to_float(v);
    }
    case dtype::fp16: {
      fp16 v;
      std::memcpy(&v, at, sizeof v);
      return to_float(v);
    }
    case dtype::e4m3: return to_float(e4m3{static_cast<std::uint8_t>(*at)});
    case dtype::e4m3fnuz: return to_float(e4m3fnuz{static_cast<std::uint8_t>(*at)});
    case dtype::byte: return static_cast<float>(static_cast<int>(*at));
    default: {
      float v;
      std::memcpy(&v, at, sizeof v);
      return v;
    }
  }
}

/// Calls f(T{}) with the element type that `type` names; bytes are T = std::byte.
template <class F>
void visit_type(dtype type, F&& f) {
  switch (type) {
    case dtype::bf16: return f(bf16{});
    case dtype::fp16: return f(fp16{});
    case dtype::e4m3: return f(e4m3{});
    case dtype::e4m3fnuz: return f(e4m3fnuz{});
    case dtype::byte: return f(std::byte{});
    default: return f(float{});
  }
}

/// Whole rows, as `store` and `load` do it for one element: a bench's rows have billions of them.
inline void store_row(std::byte* at, dtype type, std::vector<float> const& x) {
  visit_type(type, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, std::byte>)
      for (std::size_t i = 0; i < x.size(); ++i) {
        T const v = from_float<T>(x[i]);
        std::memcpy(at + i * sizeof v, &v, sizeof v);
      }
  });
}
inline void load_row(std::byte const* at, dtype type, std::vector<float>& x) {
  visit_type(type, [&]<class T>(T) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      T v;
      std::memcpy(&v, at + i * sizeof v, sizeof v);
      if constexpr (std::is_same_v<T, std::byte>)
        x[i] = static_cast<float>(static_cast<int>(v));
      else
        x[i] = to_float(v);
    }
  });
}

/// A row in flight.
struct wire_row {
  std::vector<std::byte> row;
  std::vector<std::byte> scales;
  std::vector<std::byte> fnuz_scales;  ///< fp8_ue8m0: what a FNUZ receiver gets
};

/// A row of numbers in a wire format: fp8 by blocks of 128 columns, one scale each.
inline wire_row in_wire(std::vector<float> const& x, wire format) {
  dtype const type = element_of(format);
  std::size_t const size = bytes_of(type);
  wire_row made;
  made.row.resize(x.size() * size);
  if (!is_fp8(format)) {
    store_row(made.row.data(), type, x);
    return made;
  }
  for (std::size_t first = 0; first < x.size(); first += 128) {
    std::size_t const end = std::min(x.size(), first + 128);
    float amax = 1e-4f;
    for (std::size_t i = first; i < end; ++i) amax = std::max(amax, std::fabs(x[i]));
    float scale = amax / (type == dtype::e4m3 ? 448.0f : 240.0f);
    if (format == wire::fp8_ue8m0) {
      int const exponent = static_cast<int>(std::ceil(std::log2(static_cast<double>(scale))));
      scale = std::ldexp(1.0f, exponent);
      made.scales.push_back(static_cast<std::byte>(exponent + 127));
      made.fnuz_scales.push_back(static_cast<std::byte>(exponent + 128));
    } else {
      made.scales.resize(made.scales.size() + 4);
      std::memcpy(made.scales.data() + made.scales.size() - 4, &scale, 4);
    }
    for (std::size_t i = first; i < end; ++i) {
      store(made.row.data() + i, type, x[i] / scale);
      if (format == wire::fp8_ue8m0 && made.row[i] == std::byte{0x80}) made.row[i] = std::byte{0};
    }
  }
  return made;
}

/// The numbers that a row in flight means to a receiver who reads its codes as `type`.
inline std::vector<float> out_of_wire(std::byte const* row, std::byte const* scales, wire format,
                                      dtype type, int hidden) {
  std::vector<float> x(static_cast<std::size_t>(hidden));
  load_row(row, type, x);
  for (std::size_t i = 0; i < x.size() && is_fp8(format); ++i) {
    if (format == wire::fp8_ue8m0)
      x[i] *= scales[i / 128] == std::byte{0xFF}
                  ? std::numeric_limits<float>::quiet_NaN()
                  : std::ldexp(1.0f, static_cast<int>(scales[i / 128]) - 127);
    else
      x[i] *= load(scales + 4 * (i / 128), dtype::f32);
  }
  return x;
}

/// As the sender means them; opaque rows: their bytes, over and over.
inline std::vector<float> out_of_wire(std::byte const* row, std::byte const* scales, wire format,
                                      int hidden, std::size_t row_bytes) {
  if (format != wire::opaque) return out_of_wire(row, scales, format, element_of(format), hidden);
  std::vector<float> x(static_cast<std::size_t>(hidden));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = load(row + i % row_bytes, dtype::byte);
  return x;
}

/// Each expert's own affine map.
struct affine {
  float factor, offset;
  float operator()(float x) const { return factor * x + offset; }
};
inline affine expert_map(int id) {
  static constexpr float factors[] = {-3, -2, 2, 3, 5};
  return {factors[id % 5], static_cast<float>(1 + id % 64)};
}
inline float expert(int id, float x) {
  return expert_map(id)(x);
}

/// What one rank brings to one step.
struct rank_step {
  int tokens = 0;
  std::vector<std::int64_t> ids;  ///< [T, K]
  bool weighted = true;           ///< whether weights are given to dispatch
  std::vector<float> weights;     ///< [T, K]; ones where none are given
  std::vector<float> rows;        ///< [T, hidden]; integers of at most 100
  std::vector<wire_row> sent;     ///< [T]
  std::vector<wire_row> as_fnuz;  ///< [T], fp8_e4m3: what a FNUZ receiver gets; else empty
  bool adds = false;
  std::vector<float> added;  ///< [T, hidden]
};

/// Where a position's row comes from.
struct origin {
  int source = -1;
  int token = -1;
  int choice = -1;
};

/// What one rank receives in one step.
struct rank_received {
  std::vector<std::int64_t> starts;  ///< [L]
  std::vector<std::int64_t> counts;  ///< [L]
  std::vector<std::int64_t> wanted;  ///< [L]
  std::int64_t end = 0;
  std::int64_t capacity = 0;
  std::vector<origin> at;     ///< [end]
  std::vector<bool> arrived;  ///< [R, M, K] whether a choice found a position here
  int overflowing = -1;       ///< first local expert without room, or -1
};

/// One step of all ranks.
struct step {
  bool released = false;
  std::vector<rank_step> brought;                ///< [R]
  std::vector<rank_received> received;           ///< [R]
  std::vector<std::vector<float>> output;        ///< [R]: [T, hidden], before rounding to `output`
  std::vector<std::vector<std::int64_t>> exact;  ///< [R]: four times the sum in integers; [] if off
};

/// The sizes of a run, and what its generator may do.
struct world {
  int ranks = 1;
  exchange_options options;
  std::vector<bool> fnuz;  ///< by rank
  int ranks_per_node = 0;  ///< records take two hops between nodes of so many ranks
  bool hot = false;        ///< most choices name one expert
  bool bad_ids = true;     ///< -1 and out-of-range ids occur
  std::vector<ferry::oracle::step> steps;

  int first_expert(int rank) const {
    return static_cast<int>(std::int64_t{rank} * options.num_experts / ranks);
  }
  int rank_of(std::int64_t id) const {
    int rank = 0;
    while (first_expert(rank + 1) <= id) ++rank;
    return rank;
  }
  bool is_fnuz(int rank) const {
    return static_cast<std::size_t>(rank) < fnuz.size() && fnuz[static_cast<std::size_t>(rank)];
  }
  /// Makes all ranks read what rank 0 reads, where rows of two flavours would be codes of two
  /// kinds.
  void read_the_same() {
    if (options.wire == wire::fp8_e4m3 || options.combine_wire == wire::fp8_e4m3)
      fnuz.assign(fnuz.size(), !fnuz.empty() && fnuz[0]);
  }
  /// The format of rows that reach `rank`.
  wire format_at(int rank, wire asked) const {
    return asked == wire::fp8_e4m3 && is_fnuz(rank) ? wire::fp8_e4m3fnuz : asked;
  }
  wire_row const& row_at(int rank, rank_step const& from, int token) const {
    bool const other = !from.as_fnuz.empty() && is_fnuz(rank);
    return (other ? from.as_fnuz : from.sent)[static_cast<std::size_t>(token)];
  }
  /// The rank that brings home what `rank` made of a row of `source`: a relay for other nodes.
  int brought_home_by(int rank, int source) const {
    int const n = ranks_per_node;
    if (n == 0 || rank / n == source / n) return rank;
    int const first = rank / n * n;
    return first + source % n % (first + n < ranks ? n : ranks - first);
  }
  bool is_expert(std::int64_t id) const { return id >= 0 && id < options.num_experts; }
  std::size_t row_bytes() const {
    return options.wire == wire::opaque
               ? options.opaque_row_bytes
               : static_cast<std::size_t>(options.hidden) * bytes_of(element_of(options.wire));
  }
};

inline std::int64_t random_id(world const& w, dice& from) {
  int const experts = w.options.num_experts;
  if (w.bad_ids && one_in(from, 8)) return -1;
  if (w.bad_ids && one_in(from, 24)) {
    // The last two would be experts if somebody cut them to 32 bits.
    std::int64_t const wide[] = {experts,
                                 experts + 5,
                                 -2,
                                 INT32_MAX,
                                 INT32_MIN,
                                 std::int64_t{1} << 32,
                                 -(std::int64_t{1} << 32)};
    bool const is_wide = w.options.ids == id_type::int64;
    return wide[from() % (is_wide ? 7 : 5)];
  }
  if (w.hot && !one_in(from, 4)) return experts / 2;
  return pick(from, 0, experts - 1);
}

/// A rank's step of given choices: payload, weights and added rows are drawn.
/// Shapes   `ids` [tokens, topk]
inline rank_step rank_step_of(world const& w, dice& from, int rank, std::vector<std::int64_t> ids) {
  exchange_options const& o = w.options;
  auto const k = static_cast<std::size_t>(o.topk);
  auto const hidden = static_cast<std::size_t>(o.hidden);
  rank_step made;
  made.tokens = static_cast<int>(ids.size() / k);
  auto const tokens = static_cast<std::size_t>(made.tokens);
  made.ids = std::move(ids);
  made.weighted = !one_in(from, 5);
  int const shift = pick(from, 0, 60);
  for (std::size_t i = 0; i < tokens * k; ++i) {
    // Different for each choice of a token.
    int const weight =
        1 + static_cast<int>(i * 3 + i / k * 7 + static_cast<std::size_t>(shift)) % 61;
    made.weights.push_back(made.weighted ? static_cast<float>(weight) * 0.25f : 1.0f);
  }
  made.adds = one_in(from, 2);
  for (std::size_t i = 0; i < tokens * hidden; ++i) {
    made.rows.push_back(static_cast<float>(pick(from, -100, 100)));
    if (made.adds) made.added.push_back(static_cast<float>(pick(from, -100, 100)));
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    if (o.wire != wire::opaque) {
      std::vector<float> const row(
          made.rows.begin() + static_cast<std::ptrdiff_t>(t * hidden),
          made.rows.begin() + static_cast<std::ptrdiff_t>((t + 1) * hidden));
      made.sent.push_back(in_wire(row, o.wire));
      if (o.wire == wire::fp8_e4m3) made.as_fnuz.push_back(in_wire(row, wire::fp8_e4m3fnuz));
      continue;
    }
    wire_row opaque;
    for (std::size_t i = 0; i < o.opaque_row_bytes; ++i)
      opaque.row.push_back(static_cast<std::byte>(from() % 64 + static_cast<unsigned>(rank)));
    for (std::size_t i = 0; i < o.opaque_scale_bytes; ++i)
      opaque.scales.push_back(static_cast<std::byte>(from()));
    made.sent.push_back(std::move(opaque));
  }
  return made;
}

inline rank_step random_rank_step(world const& w, dice& from, int rank) {
  exchange_options const& o = w.options;
  int const tokens = one_in(from, 5)   ? 0
                     : one_in(from, 4) ? o.max_tokens
                                       : pick(from, 0, o.max_tokens);
  std::vector<std::int64_t> ids;
  for (int i = 0; i < tokens * o.topk; ++i) ids.push_back(random_id(w, from));
  return rank_step_of(w, from, rank, std::move(ids));
}

/// The (expert, source, token, choice) order, and where it puts every row.
inline rank_received expect_received(world const& w, step const& s, int rank) {
  exchange_options const& o = w.options;
  int const first = w.first_expert(rank), experts = w.first_expert(rank + 1) - first;
  bool const padded = o.layout == layout::padded;
  std::int64_t const tokens = std::int64_t{w.ranks} * o.max_tokens;
  std::int64_t const align = o.layout == layout::grouped ? o.row_align : 1;
  rank_received made;
  std::int64_t const each = padded ? (o.capacity ? o.capacity : tokens) : 0;
  made.capacity = padded       ? each * experts
                  : o.capacity ? o.capacity
                               : tokens * o.topk + experts * (align - 1);
  auto const choice = [&](int source, int token, int k) {
    return static_cast<std::size_t>((source * o.max_tokens + token) * o.topk + k);
  };
  made.arrived.resize(choice(w.ranks, 0, 0));
  std::int64_t start = 0;
  for (int e = 0; e < experts; ++e) {
    if (padded) start = e * each;
    std::int64_t const limit = padded ? start + each : made.capacity;
    std::int64_t wanted = 0, count = 0;
    for (int source = 0; source < w.ranks; ++source) {
      rank_step const& from = s.brought[static_cast<std::size_t>(source)];
      for (int t = 0; t < from.tokens; ++t)
        for (int k = 0; k < o.topk; ++k) {
          if (from.ids[static_cast<std::size_t>(t * o.topk + k)] != first + e) continue;
          std::int64_t const position = start + wanted++;
          if (position >= limit) continue;
          ++count;
          made.arrived[choice(source, t, k)] = true;
          made.at.resize(static_cast<std::size_t>(position) + 1);
          made.at[static_cast<std::size_t>(position)] = {source, t, k};
        }
    }
    made.starts.push_back(std::min(start, made.capacity));
    made.counts.push_back(count);
    made.wanted.push_back(wanted);
    if (count < wanted && made.overflowing < 0) made.overflowing = e;
    start += wanted;
    start = (start + align - 1) / align * align;
  }
  made.end = static_cast<std::int64_t>(made.at.size());
  return made;
}

/// What an expert makes of a token's row, in the type of expert rows. Columns of one token.
inline std::vector<float> expert_row(world const& w, rank_step const& from, int token, int id) {
  int const rank = w.rank_of(id);
  wire_row const& sent = w.row_at(rank, from, token);
  std::vector<float> x =
      out_of_wire(sent.row.data(), sent.scales.data(), w.format_at(rank, w.options.wire),
                  w.options.hidden, w.row_bytes());
  affine const of_expert = expert_map(id);
  for (float& v : x) v = of_expert(v);
  visit_type(w.options.expert_rows, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, std::byte>)
      for (float& v : x) v = to_float(from_float<T>(v));
  });
  return x;
}

/// A row as it comes home to `rank`.
inline std::vector<float> home(world const& w, int rank, std::vector<float> const& row) {
  wire const format = w.format_at(rank, w.options.combine_wire);
  wire_row const sent = in_wire(row, format);
  return out_of_wire(sent.row.data(), sent.scales.data(), format, w.options.hidden, 0);
}

/// One token's result: per rank or per choice, in the order that the design fixes.
inline std::vector<float> expect_output(world const& w, step const& s, int source, int token) {
  exchange_options const& o = w.options;
  rank_step const& from = s.brought[static_cast<std::size_t>(source)];
  auto const hidden = static_cast<std::size_t>(o.hidden);
  std::vector<float> sum(hidden, 0.0f);
  auto const add = [&](std::vector<float>& to, float weight, std::vector<float> const& row) {
    for (std::size_t i = 0; i < hidden; ++i) to[i] = std::fma(weight, row[i], to[i]);
  };
  auto const arrived = [&](int rank, int k) {
    return static_cast<bool>(
        s.received[static_cast<std::size_t>(rank)]
            .arrived[static_cast<std::size_t>((source * o.max_tokens + token) * o.topk + k)]);
  };
  auto const at = [&](int k) { return static_cast<std::size_t>(token * o.topk + k); };
  if (o.reduction == reduction::per_choice) {
    for (int k = 0; k < o.topk; ++k) {
      std::int64_t const id = from.ids[at(k)];
      if (!w.is_expert(id)) continue;
      int const rank = w.rank_of(id);
      std::vector<float> row(hidden, 0.0f);
      if (arrived(rank, k)) row = expert_row(w, from, token, static_cast<int>(id));
      add(sum, from.weights[at(k)], home(w, source, row));
    }
  } else {
    std::map<int, std::vector<std::vector<float>>> came;  // ranks' rows, by who brings them
    for (int rank = 0; rank < w.ranks; ++rank) {
      std::vector<float> partial(hidden, 0.0f);
      bool any = false;
      for (int k = 0; k < o.topk; ++k) {
        std::int64_t const id = from.ids[at(k)];
        if (!w.is_expert(id) || w.rank_of(id) != rank) continue;
        any = true;
        if (arrived(rank, k))
          add(partial, from.weights[at(k)], expert_row(w, from, token, static_cast<int>(id)));
      }
      if (any) came[w.brought_home_by(rank, source)].push_back(home(w, source, partial));
    }
    for (auto const& [by, rows] : came) {
      std::vector<float> of_node(hidden, 0.0f);
      for (std::vector<float> const& row : rows) add(of_node, 1.0f, row);
      add(sum, 1.0f, rows.size() == 1 ? rows[0] : home(w, source, of_node));
    }
  }
  if (from.adds)
    for (std::size_t i = 0; i < hidden; ++i)
      sum[i] += from.added[static_cast<std::size_t>(token) * hidden + i];
  return sum;
}

/// The same result in whole numbers (four times it: weights are quarters), where nothing rounds.
inline std::vector<std::int64_t> exact_output(world const& w, step const& s, int source) {
  rank_step const& from = s.brought[static_cast<std::size_t>(source)];
  auto const hidden = static_cast<std::size_t>(w.options.hidden);
  std::vector<std::int64_t> sum(static_cast<std::size_t>(from.tokens) * hidden, 0);
  auto const whole = [](float x) { return static_cast<std::int64_t>(x); };
  for (std::size_t i = 0; i < sum.size(); ++i) {
    std::size_t const token = i / hidden;
    for (int k = 0; k < w.options.topk; ++k) {
      std::size_t const at =
          token * static_cast<std::size_t>(w.options.topk) + static_cast<std::size_t>(k);
      if (w.is_expert(from.ids[at]))
        sum[i] += whole(4 * from.weights[at]) *
                  whole(expert(static_cast<int>(from.ids[at]), from.rows[i]));
    }
    if (from.adds) sum[i] += 4 * whole(from.added[i]);
  }
  return sum;
}

/// Whether no number is rounded on its way, nor any row left out.
inline bool is_exact(world const& w, step const& s) {
  exchange_options const& o = w.options;
  bool const f32 =
      o.expert_rows == dtype::f32 && o.combine_wire == wire::f32 && o.output == dtype::f32;
  bool const sent = o.wire == wire::f32 || o.wire == wire::bf16 || o.wire == wire::fp16;
  for (rank_received const& r : s.received)
    if (r.overflowing >= 0) return false;
  return f32 && sent;
}

/// A step of random inputs with everything that has to come of it.
inline step random_step(world const& w, dice& from) {
  step made;
  made.released = one_in(from, 6);
  for (int r = 0; r < w.ranks; ++r) made.brought.push_back(random_rank_step(w, from, r));
  for (int r = 0; r < w.ranks; ++r) made.received.push_back(expect_received(w, made, r));
  bool const exact = is_exact(w, made);
  for (int r = 0; r < w.ranks; ++r) {
    std::vector<float> rows;
    for (int t = 0; t < made.brought[static_cast<std::size_t>(r)].tokens; ++t) {
      std::vector<float> const row = expect_output(w, made, r, t);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    made.output.push_back(std::move(rows));
    made.exact.push_back(exact ? exact_output(w, made, r) : std::vector<std::int64_t>{});
  }
  return made;
}

}  // namespace ferry::oracle
