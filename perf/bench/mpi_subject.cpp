// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "mpi_subject.hpp"

#include "row_sums.hpp"

#include <fmt/format.h>
#include <ferry/kernels/shape.hpp>

#include <algorithm>
#include <cstring>

namespace ferry::bench {
namespace {

result<void> mpi_call(int code, char const* what) {
  if (code == MPI_SUCCESS) return {};
  return error{error_code::transport, fmt::format("{} failed with {}", what, code)};
}

std::size_t n(auto x) {
  return static_cast<std::size_t>(x);
}

/// Memory is asked for even where nothing travels: MPI is given an address.
result<window> memory_of(std::int64_t items, std::size_t bytes) {
  return window::plain(std::max<std::size_t>(n(items) * bytes, 64));
}

/// What follows a record's row and scales.
struct route {
  std::int32_t* words;  ///< token, then the local experts, then the weights
  int choices;
  std::int32_t& token() const { return words[0]; }
  std::int32_t& expert(int i) const { return words[1 + i]; }
  float& weight(int i) const { return reinterpret_cast<float*>(words)[1 + choices + i]; }
};

}  // namespace

void mpi_subject::shares::number() {
  int at = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    starts[r] = at;
    at += counts[r];
  }
}

mpi_subject::mpi_subject(MPI_Comm communicator, workload const& work, packing how)
    : communicator_(communicator),
      work_(work),
      how_(how),
      choices_(how == packing::per_choice ? 1 : work.of().topk),
      sent_(work.of().ranks),
      received_(work.of().ranks),
      home_sent_(work.of().ranks),
      home_received_(work.of().ranks) {}

mpi_subject::~mpi_subject() {
  if (record_ != MPI_DATATYPE_NULL) MPI_Type_free(&record_);
  if (row_ != MPI_DATATYPE_NULL) MPI_Type_free(&row_);
}

result<std::unique_ptr<mpi_subject>> mpi_subject::make(MPI_Comm communicator, workload const& work,
                                                       packing how) {
  std::unique_ptr<mpi_subject> made(new mpi_subject(communicator, work, how));
  FERRY_CHECK(made->allocate());
  return made;
}

/// Whether one row for each record comes home; else one for each choice.
bool mpi_subject::rows_are_summed() const {
  return how_ == packing::per_rank && work_.of().reduction == reduction::per_rank;
}

result<void> mpi_subject::allocate() {
  bench_case const& c = work_.of();
  row_sizes const& size = work_.size();
  route_at_ = round_up(size.sent + size.scales, std::size_t{4});
  record_bytes_ = route_at_ + 4 * (1 + 2 * n(choices_));
  FERRY_CHECK(mpi_call(MPI_Type_contiguous(static_cast<int>(record_bytes_), MPI_BYTE, &record_),
                       "MPI_Type_contiguous"));
  FERRY_CHECK(mpi_call(MPI_Type_commit(&record_), "MPI_Type_commit"));
  FERRY_CHECK(mpi_call(MPI_Type_contiguous(static_cast<int>(size.home), MPI_BYTE, &row_),
                       "MPI_Type_contiguous"));
  FERRY_CHECK(mpi_call(MPI_Type_commit(&row_), "MPI_Type_commit"));

  std::int64_t records_out = 0, records_in = 0, choices_out = 0, choices_in = 0;
  for (int s = 0; s < c.ranks; ++s)
    for (int t = 0; t < c.tokens; ++t) {
      work_.routing().for_each_rank(s, t, [&](int d) {
        records_out += s == work_.rank();
        records_in += d == work_.rank();
      });
      for (int k = 0; k < c.topk; ++k) {
        int const d = work_.routing().owner(work_.routing().of(s, t)[k]);
        choices_out += d >= 0 && s == work_.rank();
        choices_in += d == work_.rank();
      }
    }
  bool const each = how_ == packing::per_choice;
  std::int64_t const records_here = each ? choices_in : records_in;
  FERRY_TRY(out_, memory_of(each ? choices_out : records_out, record_bytes_));
  FERRY_TRY(in_, memory_of(records_here, record_bytes_));
  FERRY_TRY(home_out_, memory_of(rows_are_summed() ? records_in : choices_in, size.home));
  FERRY_TRY(home_in_, memory_of(rows_are_summed() ? records_out : choices_out, size.home));
  if (c.layout != layout::in_place) {
    FERRY_TRY(positions_, memory_of(work_.place().end, size.sent + size.scales));
  }
  next_.resize(n(first_expert_of(work_.rank() + 1, c.ranks, c.experts) -
                 first_expert_of(work_.rank(), c.ranks, c.experts)));
  rows_.resize(next_.size());
  at_.resize(n(records_here) * n(choices_));
  return {};
}

/// Calls f(rank, first choice, past the last) for each record of a token.
template <class F>
void mpi_subject::for_each_record(int token, F&& f) const {
  bench_case const& c = work_.of();
  if (how_ == packing::per_rank)
    return work_.routing().for_each_rank(work_.rank(), token, [&](int d) { f(d, 0, c.topk); });
  for (int k = 0; k < c.topk; ++k) {
    int const d = work_.routing().owner(work_.routing().of(work_.rank(), token)[k]);
    if (d >= 0) f(d, k, k + 1);
  }
}

void mpi_subject::pack(caller_rows const& rows) {
  bench_case const& c = work_.of();
  row_sizes const& size = work_.size();
  float const* const weights = work_.weights() + std::int64_t{work_.rank()} * c.tokens * c.topk;
  std::ranges::fill(sent_.counts, 0);
  for (int t = 0; t < c.tokens; ++t)
    for_each_record(t, [&](int d, int, int) { ++sent_.counts[n(d)]; });
  sent_.number();
  std::vector<int> next = sent_.starts;
  for (int t = 0; t < c.tokens; ++t)
    for_each_record(t, [&](int d, int first, int end) {
      std::byte* const to = out_.data() + n(next[n(d)]++) * record_bytes_;
      std::memcpy(to, rows.wire + n(t) * size.sent, size.sent);
      if (size.scales) std::memcpy(to + size.sent, rows.scales + n(t) * size.scales, size.scales);
      route const r{reinterpret_cast<std::int32_t*>(to + route_at_), choices_};
      int const before = first_expert_of(d, c.ranks, c.experts);
      r.token() = t;
      for (int k = first; k < end; ++k) {
        std::int32_t const id = work_.routing().of(work_.rank(), t)[k];
        r.expert(k - first) = work_.routing().owner(id) == d ? id - before : -1;
        r.weight(k - first) = weights[std::int64_t{t} * c.topk + k];
      }
    });
}

void mpi_subject::lay_out() {
  row_sizes const& size = work_.size();
  std::size_t const bytes = size.sent + size.scales;
  auto const route_of = [&](int record) {
    return route{
        reinterpret_cast<std::int32_t*>(in_.data() + n(record) * record_bytes_ + route_at_),
        choices_};
  };
  int const records = received_.total();
  std::ranges::fill(next_, 0);
  std::ranges::fill(rows_, 0);
  for (int i = 0; i < records; ++i)
    for (int k = 0; k < choices_; ++k)
      if (int const e = route_of(i).expert(k); e >= 0) ++rows_[n(e)];
  for (std::size_t e = 0; e < next_.size(); ++e)
    next_[e] = work_.per_expert() ? static_cast<std::int64_t>(e) * work_.per_expert()
               : e                ? next_[e - 1] + rows_[e - 1]
                                  : 0;
  for (int i = 0; i < records; ++i)
    for (int k = 0; k < choices_; ++k) {
      int const e = route_of(i).expert(k);
      auto& at = at_[n(i) * n(choices_) + n(k)];
      at = e < 0 ? -1 : static_cast<std::int32_t>(next_[n(e)]++);
      if (at >= 0 && positions_.data())
        std::memcpy(positions_.data() + n(at) * bytes, in_.data() + n(i) * record_bytes_, bytes);
    }
}

result<void> mpi_subject::dispatch(int iteration, int slot) {
  pack(work_.set(iteration, slot));
  FERRY_CHECK(mpi_call(MPI_Alltoall(sent_.counts.data(), 1, MPI_INT, received_.counts.data(), 1,
                                    MPI_INT, communicator_),
                       "MPI_Alltoall"));
  received_.number();
  FERRY_CHECK(mpi_call(
      MPI_Alltoallv(out_.data(), sent_.counts.data(), sent_.starts.data(), record_, in_.data(),
                    received_.counts.data(), received_.starts.data(), record_, communicator_),
      "MPI_Alltoallv"));
  lay_out();
  return {};
}

void mpi_subject::pack_results(caller_rows const& rows) {
  bench_case const& c = work_.of();
  std::size_t const size = work_.size().home;
  int row = 0;
  for (int s = 0; s < c.ranks; ++s) {
    home_sent_.starts[n(s)] = row;
    for (int i = received_.starts[n(s)]; i < received_.starts[n(s)] + received_.counts[n(s)]; ++i) {
      route const r{reinterpret_cast<std::int32_t*>(in_.data() + n(i) * record_bytes_ + route_at_),
                    choices_};
      std::byte* const to = home_out_.data() + n(row) * size;
      if (rows_are_summed() && c.results == result_rows::summed) {
        std::memcpy(to, rows.results + n(std::int64_t{s} * c.tokens + r.token()) * size, size);
        ++row;
        continue;
      }
      std::byte const* parts[32];
      float weights[32];
      int count = 0;
      for (int k = 0; k < choices_; ++k)
        if (std::int32_t const at = at_[n(i) * n(choices_) + n(k)]; at >= 0) {
          // Where the experts' sums are given, a user of one row per choice has as many bytes to
          // send, whatever they say.
          std::int64_t const from = c.results == result_rows::summed
                                        ? std::int64_t{s} * c.tokens + r.token()
                                        : std::int64_t{at};
          parts[count] = rows.results + n(from) * size;
          weights[count++] = r.weight(k);
        }
      if (rows_are_summed()) {
        sum_rows(to, token_type(c), c.hidden, {parts, weights, count});
        ++row;
      } else {
        for (int k = 0; k < count; ++k)
          std::memcpy(home_out_.data() + n(row++) * size, parts[k], size);
      }
    }
    home_sent_.counts[n(s)] = row - home_sent_.starts[n(s)];
  }
}

void mpi_subject::gather(caller_rows const& rows) {
  bench_case const& c = work_.of();
  std::size_t const size = work_.size().home;
  float const* const weights = work_.weights() + std::int64_t{work_.rank()} * c.tokens * c.topk;
  std::vector<int> next = home_received_.starts;
  bool const summed = rows_are_summed();
  std::vector<std::byte const*> parts(n(c.topk));
  std::vector<float> by(n(c.topk));
  for (int t = 0; t < c.tokens; ++t) {
    int count = 0;
    auto const add = [&](int d, float weight) {
      parts[n(count)] = home_in_.data() + n(next[n(d)]++) * size;
      by[n(count++)] = weight;
    };
    if (summed) work_.routing().for_each_rank(work_.rank(), t, [&](int d) { add(d, 1.0f); });
    for (int k = 0; k < c.topk && !summed; ++k)
      if (int const d = work_.routing().owner(work_.routing().of(work_.rank(), t)[k]); d >= 0)
        add(d, weights[std::int64_t{t} * c.topk + k]);
    sum_rows(rows.output + n(t) * size, token_type(c), c.hidden, {parts.data(), by.data(), count});
  }
}

result<void> mpi_subject::combine(int iteration, int slot) {
  bench_case const& c = work_.of();
  caller_rows const rows = work_.set(iteration, slot);
  pack_results(rows);
  home_received_.counts = sent_.counts;
  if (!rows_are_summed() && how_ == packing::per_rank) {
    // A record may come home as several rows; both sides know how many from the routing.
    std::ranges::fill(home_received_.counts, 0);
    for (int t = 0; t < c.tokens; ++t)
      for (int k = 0; k < c.topk; ++k)
        if (int const d = work_.routing().owner(work_.routing().of(work_.rank(), t)[k]); d >= 0)
          ++home_received_.counts[n(d)];
  }
  home_received_.number();
  FERRY_CHECK(
      mpi_call(MPI_Alltoallv(home_out_.data(), home_sent_.counts.data(), home_sent_.starts.data(),
                             row_, home_in_.data(), home_received_.counts.data(),
                             home_received_.starts.data(), row_, communicator_),
               "MPI_Alltoallv"));
  gather(rows);
  return {};
}

result<void> mpi_subject::before(int iteration) {
  if (work_.of().op != operation::combine) return {};
  for (int slot = 0; slot < work_.of().slots; ++slot) FERRY_CHECK(dispatch(iteration, slot));
  return {};
}

// With several slots a combine needs the dispatch of its own slot, whose records are the same.
result<void> mpi_subject::run(int iteration) {
  operation const op = work_.of().op;
  for (int slot = 0; slot < work_.of().slots; ++slot) {
    if (op != operation::combine) FERRY_CHECK(dispatch(iteration, slot));
    if (op != operation::dispatch) FERRY_CHECK(combine(iteration, slot));
  }
  return {};
}

result<void> mpi_subject::check(int iteration) const {
  bool const sums = rows_are_summed() || work_.of().results == result_rows::experts;
  if (work_.of().op == operation::dispatch || !sums) return {};
  for (int slot = 0; slot < work_.of().slots; ++slot)
    FERRY_CHECK(work_.check_output(work_.output(iteration, slot).data, name().c_str()));
  return {};
}

}  // namespace ferry::bench
