// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One rank that takes part in the steps of a world and compares all that it sees with the oracle.
#pragma once

#include "exchange/oracle.hpp"
#include "exchange/rank_threads.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

namespace ferry::oracle {

/// Rows of a run-time type in memory of the test, with a stride that may be longer than a row.
class typed_rows {
 public:
  typed_rows() = default;
  typed_rows(typed_rows&&) = default;
  typed_rows& operator=(typed_rows&&) = default;
  typed_rows(std::int64_t rows, std::int64_t columns, dtype type, std::int64_t gap)
      : bytes_(static_cast<std::size_t>(rows) *
                   static_cast<std::size_t>((columns + gap) *
                                            static_cast<std::int64_t>(bytes_of(type))),
               std::byte{0xA5}),
        view_{bytes_.data(), rows, columns, type,
              (columns + gap) * static_cast<std::int64_t>(bytes_of(type))} {}

  void set(std::int64_t row, std::int64_t column, float x) {
    store(at(row, column), view_.type, x);
  }
  float value(std::int64_t row, std::int64_t column) const {
    return load(at(row, column), view_.type);
  }
  std::byte* at(std::int64_t row, std::int64_t column) const {
    return view_[row] + column * static_cast<std::int64_t>(bytes_of(view_.type));
  }
  tensor view() const { return view_; }
  /// Whether the bytes between rows are as they were.
  bool gaps_untouched() const {
    std::int64_t const used = view_.columns * static_cast<std::int64_t>(bytes_of(view_.type));
    for (std::int64_t r = 0; r < view_.rows; ++r)
      for (std::int64_t i = used; i < view_.stride_bytes(); ++i)
        if (view_[r][i] != std::byte{0xA5}) return false;
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
  tensor view_;
};

/// The inputs of one step in the form that dispatch takes.
struct brought_memory {
  typed_rows rows;
  std::vector<std::int32_t> ids32;
  std::vector<std::int64_t> ids64;
  std::vector<float> weights;
  std::vector<std::byte> scales;
  std::int32_t num_tokens = 0;
  dispatch_input input;

  brought_memory(world const& w, rank_step const& s, dice& from) {
    exchange_options const& o = w.options;
    bool const opaque = o.wire == wire::opaque;
    bool const on_device = one_in(from, 3);
    // Rows beyond a token count in device memory are there, and must not be looked at.
    std::int64_t const given = s.tokens + (on_device ? pick(from, 0, 3) : 0);
    std::int64_t const gap = one_in(from, 2) ? pick(from, 1, 9) : 0;
    std::int64_t const columns = opaque ? static_cast<std::int64_t>(o.opaque_row_bytes) : o.hidden;
    rows = typed_rows(given, columns, opaque ? dtype::byte : o.tokens, gap);
    std::int64_t const id_stride = o.topk + gap;
    ids32.assign(static_cast<std::size_t>(given * id_stride), 0);
    ids64.assign(static_cast<std::size_t>(given * id_stride), 0);
    weights.assign(static_cast<std::size_t>(given * id_stride), 1e30f);
    std::int64_t const scale_stride = static_cast<std::int64_t>(o.opaque_scale_bytes) + gap;
    scales.assign(static_cast<std::size_t>(given * scale_stride), std::byte{0xA5});
    for (int t = 0; t < s.tokens; ++t) {
      wire_row const& row = s.sent[static_cast<std::size_t>(t)];
      if (opaque) {
        std::copy(row.row.begin(), row.row.end(), rows.at(t, 0));
        std::copy(row.scales.begin(), row.scales.end(), scales.begin() + t * scale_stride);
      } else {
        auto const first = s.rows.begin() + std::int64_t{t} * o.hidden;
        store_row(rows.at(t, 0), o.tokens, {first, first + o.hidden});
      }
      for (int k = 0; k < o.topk; ++k) {
        auto const to = static_cast<std::size_t>(t * id_stride + k);
        auto const id = static_cast<std::size_t>(t * o.topk + k);
        ids32[to] = static_cast<std::int32_t>(s.ids[id]);
        ids64[to] = s.ids[id];
        weights[to] = s.weights[id];
      }
    }
    input.tokens = rows.view();
    if (o.ids == id_type::int32)
      input.choices = matrix<std::int32_t const>{ids32.data(), given, o.topk, id_stride};
    else
      input.choices = matrix<std::int64_t const>{ids64.data(), given, o.topk, id_stride};
    if (s.weighted) input.weights = {weights.data(), given, o.topk, id_stride};
    if (opaque && o.opaque_scale_bytes)
      input.scales = {scales.data(), given, static_cast<std::int64_t>(o.opaque_scale_bytes),
                      scale_stride};
    num_tokens = s.tokens;
    if (on_device) input.num_tokens = &num_tokens;
  }
};

/// Compares what one rank sees of one step with the oracle.
class step_check {
 public:
  step_check(world const& w, step const& s, int rank, std::string here, complaints& wrong)
      : w_(w), step_(s), rank_(rank), here_(std::move(here)), wrong_(wrong) {}

  void overflow(error const& e) {
    rank_received const& want = expected();
    auto const at = static_cast<std::size_t>(want.overflowing);
    std::string const needed[] = {
        fmt::format("expert {} ", w_.first_expert(rank_) + want.overflowing),
        fmt::format("received {} rows", want.wanted[at]),
        fmt::format("room for {} ", want.counts[at])};
    if (e.code != error_code::capacity) return wrong_.add(here() + e.message);
    for (std::string const& part : needed)
      if (e.message.find(part) == std::string::npos)
        wrong_.add(here() + "'" + part + "' is not in: " + e.message);
  }

  void groups(received const& view) {
    rank_received const& want = expected();
    int const first = w_.first_expert(rank_);
    check(view.first_expert == first, "first_expert");
    check(view.num_local_experts == w_.first_expert(rank_ + 1) - first, "num_local_experts");
    check(view.capacity == want.capacity, "capacity");
    check(*view.end == want.end, "end");
    for (std::size_t e = 0; e < want.starts.size(); ++e) {
      check(view.starts[e] == want.starts[e], "starts");
      check(view.counts[e] == want.counts[e], "counts");
      if (w_.options.layout == layout::grouped && view.counts[e] > 0)
        check(view.starts[e] % w_.options.row_align == 0, "alignment of a group");
    }
  }

  void rows(received const& view) {
    rank_received const& want = expected();
    bool const in_place = w_.options.layout == layout::in_place;
    std::size_t const row_bytes = w_.row_bytes();
    check(in_place == (view.index != nullptr), "index");
    for (std::size_t p = 0; p < want.at.size(); ++p) {
      origin const& from = want.at[p];
      if (from.source < 0) continue;
      std::int64_t const row = in_place ? view.index[p] : static_cast<std::int64_t>(p);
      if (in_place) check(row == from.source * w_.options.max_tokens + from.token, "index");
      wire_row const& sent =
          w_.row_at(rank_, current().brought[static_cast<std::size_t>(from.source)], from.token);
      std::vector<std::byte> const& scales =
          w_.options.wire == wire::fp8_ue8m0 && w_.is_fnuz(rank_) ? sent.fnuz_scales : sent.scales;
      if (std::memcmp(view.rows[row], sent.row.data(), row_bytes) != 0)
        wrong_.add(here() + fmt::format("position {} is not token {} of rank {}", p, from.token,
                                        from.source));
      if (scales.empty()) continue;
      check(view.scales.columns == static_cast<std::int64_t>(scales.size()), "columns of scales");
      check(std::memcmp(view.scales[row], scales.data(), scales.size()) == 0, "scales");
    }
  }

  // The experts work on the rows that really came.
  typed_rows experts(received const& view) {
    exchange_options const& o = w_.options;
    typed_rows made(*view.end, o.hidden, o.expert_rows, rank_ % 2);
    for (int e = 0; e < view.num_local_experts; ++e)
      for (std::int64_t p = view.starts[e]; p < view.starts[e] + view.counts[e]; ++p) {
        std::int64_t const row = view.index ? view.index[p] : p;
        std::byte const* const scales = view.scales.data ? view.scales[row] : nullptr;
        std::vector<float> x =
            o.wire == wire::opaque
                ? out_of_wire(view.rows[row], scales, o.wire, o.hidden, w_.row_bytes())
                : out_of_wire(view.rows[row], scales, o.wire, view.rows.type, o.hidden);
        affine const of_expert = expert_map(view.first_expert + e);
        for (float& v : x) v = of_expert(v);
        store_row(made.at(p, 0), o.expert_rows, x);
      }
    return made;
  }

  /// Whether experts that sum for themselves can be told from those that let ferry do it: their
  /// sums are rounded to the type of expert rows before they travel.
  bool sums_keep_their_bits() const {
    exchange_options const& o = w_.options;
    return o.reduction == reduction::per_rank &&
           (o.expert_rows == dtype::f32 || o.expert_rows == element_of(o.combine_wire));
  }

  /// The weighted sum of each token's rows of `made`, in choice order, at source * M + token.
  typed_rows sums(typed_rows const& made) {
    exchange_options const& o = w_.options;
    auto const hidden = static_cast<std::size_t>(o.hidden);
    std::map<std::pair<int, int>, std::map<int, std::int64_t>> rows_of_tokens;
    for (std::size_t p = 0; p < expected().at.size(); ++p)
      if (origin const& from = expected().at[p]; from.source >= 0)
        rows_of_tokens[{from.source, from.token}][from.choice] = static_cast<std::int64_t>(p);
    typed_rows all(std::int64_t{w_.ranks} * o.max_tokens, o.hidden, o.expert_rows, 2);
    // A token whose rows all found no room is one that came, with a sum of nothing.
    for (int source = 0; source < w_.ranks; ++source)
      for (int t = 0; t < o.max_tokens; ++t)
        store_row(all.at(std::int64_t{source} * o.max_tokens + t, 0), o.expert_rows,
                  std::vector<float>(hidden));
    for (auto const& [token, rows] : rows_of_tokens) {
      rank_step const& from = current().brought[static_cast<std::size_t>(token.first)];
      std::vector<float> sum(hidden), row(hidden);
      for (auto const& [choice, position] : rows) {
        load_row(made.at(position, 0), o.expert_rows, row);
        float const weight = from.weights[static_cast<std::size_t>(token.second * o.topk + choice)];
        for (std::size_t i = 0; i < hidden; ++i) sum[i] = std::fma(weight, row[i], sum[i]);
      }
      store_row(all.at(std::int64_t{token.first} * o.max_tokens + token.second, 0), o.expert_rows,
                sum);
    }
    return all;
  }

  void output(typed_rows const& rows) {
    exchange_options const& o = w_.options;
    std::vector<float> const& want = current().output[static_cast<std::size_t>(rank_)];
    std::vector<std::int64_t> const& exact = current().exact[static_cast<std::size_t>(rank_)];
    std::size_t const size = bytes_of(o.output);
    auto const hidden = static_cast<std::size_t>(o.hidden);
    std::vector<std::byte> row_bits(hidden * size);
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (i % hidden == 0 && exact.empty()) {
        auto const first = want.begin() + static_cast<std::ptrdiff_t>(i);
        store_row(row_bits.data(), o.output, {first, first + o.hidden});
        if (std::memcmp(row_bits.data(), rows.at(static_cast<std::int64_t>(i / hidden), 0),
                        row_bits.size()) == 0) {
          i += hidden - 1;
          continue;
        }
      }
      auto const t = static_cast<std::int64_t>(i) / o.hidden,
                 c = static_cast<std::int64_t>(i) % o.hidden;
      std::byte bits[4] = {};
      store(bits, o.output, want[i]);
      if (std::memcmp(bits, rows.at(t, c), size) != 0)
        wrong_.add(here() + fmt::format("token {} column {} is {}, not {}", t, c, rows.value(t, c),
                                        load(bits, o.output)));
      if (!exact.empty() &&
          static_cast<double>(rows.value(t, c)) * 4 != static_cast<double>(exact[i]))
        wrong_.add(here() + fmt::format("token {} column {} is {}, in whole numbers {} / 4", t, c,
                                        rows.value(t, c), exact[i]));
    }
    check(rows.gaps_untouched(), "bytes between output rows were written");
  }

 private:
  step const& current() const { return step_; }
  rank_received const& expected() const { return step_.received[static_cast<std::size_t>(rank_)]; }
  std::string const& here() const { return here_; }
  void check(bool ok, char const* what) {
    if (!ok) wrong_.add(here_ + what);
  }

  world const& w_;
  step const& step_;
  int rank_;
  std::string here_;
  complaints& wrong_;
};

/// One slot of one rank, driven phase by phase.
class rank_slot {
 public:
  rank_slot(world const& w, int rank, int slot, exchange& ep, complaints& wrong)
      : w_(w),
        rank_(rank),
        slot_(slot),
        at_(ep.microbatch(slot)),
        wrong_(wrong),
        random_(static_cast<std::uint64_t>(slot * 1000 + rank)) {}

  /// Experts always sum for themselves, where that changes no bit.
  void hand_over_sums() { sums_ = true; }
  int steps_done() const { return number_; }
  bool idle() const { return phase_ == 0; }

  /// Takes the next call of the step. False after an error that ends the run.
  bool advance(queue& q) {
    step const& s = current();
    switch (phase_) {
      case 0: return next(send(q));
      case 1: return next(receive(q));
      case 2:
        if (!s.released) return next(give_back(q));
        return close(accepted("release", at_.release(q, budget())));
      default: return close(gather(q));
    }
  }

 private:
  step const& current() const {
    return w_.steps[static_cast<std::size_t>(number_ + slot_ * 3) % w_.steps.size()];
  }
  rank_step const& mine() const { return current().brought[static_cast<std::size_t>(rank_)]; }
  rank_received const& expected() const {
    return current().received[static_cast<std::size_t>(rank_)];
  }
  step_check now() const { return {w_, current(), rank_, here(), wrong_}; }
  bool next(bool ok) {
    ++phase_;
    return ok;
  }
  bool close(bool ok) {
    phase_ = 0;
    ++number_;
    return ok;
  }
  std::string here() const {
    return fmt::format("rank {} slot {} step {}: ", rank_, slot_, number_);
  }
  void check(bool ok, char const* what) {
    if (!ok) wrong_.add(here() + what);
  }
  bool accepted(char const* call, result<void> const& r) {
    if (!r) wrong_.add(here() + call + ": " + r.error().message);
    return r.has_value();
  }

  // Each rank's own business, call by call.
  call_options budget() { return {.blocks = pick(random_, 0, w_.options.blocks)}; }

  bool send(queue& q) {
    memory_.emplace(w_, mine(), random_);
    return accepted("dispatch_send", at_.dispatch_send(q, memory_->input, budget()));
  }

  bool receive(queue& q) {
    rank_received const& want = expected();
    result<received> const got = at_.dispatch_receive(q, budget());
    if (want.overflowing < 0 && !got) return accepted("dispatch_receive", got.error());
    if (want.overflowing >= 0) {
      if (got) return check(false, "capacity was not reported"), true;
      now().overflow(got.error());
      if (got.error().code != error_code::capacity) return false;
    }
    received const& view = at_.last_received();
    now().groups(view);
    now().rows(view);
    made_ = now().experts(view);
    return true;
  }

  bool give_back(queue& q) {
    bool const sums = now().sums_keep_their_bits() && (sums_ || one_in(random_, 3));
    if (!sums) return accepted("combine_send", at_.combine_send(q, made_.view(), budget()));
    // In rounds, rows are read until combine_receive has run.
    made_ = now().sums(made_);
    return accepted("combine_send", at_.combine_send(q, token_sums{made_.view()}, budget()));
  }

  bool gather(queue& q) {
    exchange_options const& o = w_.options;
    rank_step const& s = mine();
    std::int64_t const gap = pick(random_, 0, 4);
    typed_rows output(s.tokens, o.hidden, o.output, gap), added;
    bool const aliased = s.adds && one_in(random_, 2);
    if (s.adds && !aliased) added = typed_rows(s.tokens, o.hidden, o.output, 3);
    typed_rows& addend = aliased ? output : added;
    if (s.adds)
      for (int t = 0; t < s.tokens; ++t)
        for (int c = 0; c < o.hidden; ++c)
          addend.set(t, c, s.added[static_cast<std::size_t>(t * o.hidden + c)]);
    result<void> const done = at_.combine_receive(
        q, output.view(), s.adds ? const_tensor(addend.view()) : const_tensor{}, budget());
    if (!accepted("combine_receive", done)) return false;
    now().output(output);
    return true;
  }

  world const& w_;
  int rank_, slot_;
  microbatch& at_;
  complaints& wrong_;
  dice random_;
  bool sums_ = false;
  int number_ = 0;
  int phase_ = 0;
  std::optional<brought_memory> memory_;
  typed_rows made_;
};

}  // namespace ferry::oracle
