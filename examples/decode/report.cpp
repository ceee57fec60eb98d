// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "report.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

namespace ferry::decode {
namespace {

using json = nlohmann::json;

json packed(contribution const& c) {
  json steps = json::array();
  for (auto const& s : c.steps) steps.push_back({s.seconds, s.tokens});
  return {{"prompts", c.prompts},
          {"new_tokens", c.new_tokens},
          {"digests", c.digests},
          {"prefilled", {c.prefilled.tokens, c.prefilled.seconds}},
          {"decoded", {c.decoded.tokens, c.decoded.seconds}},
          {"steps", std::move(steps)},
          {"dispatch", {c.traffic.dispatch_bytes, c.traffic.dispatch_self_bytes}},
          {"combine", {c.traffic.combine_bytes, c.traffic.combine_self_bytes}},
          {"rows", c.traffic.rows_received},
          {"moved", {c.balance.moved.experts_sent, c.balance.moved.bytes_sent}}};
}

void add(phase_numbers& all, json const& one) {
  all.tokens += one[0].get<std::int64_t>();
  all.seconds = std::max(all.seconds, one[1].get<double>());
}

void add(report& r, std::vector<step_time>& steps, json const& one) {
  auto const& prompts = one.at("prompts");
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    auto index = prompts[i].get<std::size_t>();
    if (r.tokens.size() <= index) {
      r.tokens.resize(index + 1);
      r.digests.resize(index + 1);
    }
    one.at("new_tokens").at(i).get_to(r.tokens[index]);
    one.at("digests").at(i).get_to(r.digests[index]);
  }
  add(r.prefilled, one.at("prefilled"));
  add(r.decoded, one.at("decoded"));
  for (auto const& s : one.at("steps"))
    steps.push_back({s.at(0).get<double>(), s.at(1).get<int>()});
  r.dispatch_bytes += one.at("dispatch").at(0).get<std::uint64_t>();
  r.dispatch_self_bytes += one.at("dispatch").at(1).get<std::uint64_t>();
  r.combine_bytes += one.at("combine").at(0).get<std::uint64_t>();
  r.combine_self_bytes += one.at("combine").at(1).get<std::uint64_t>();
  r.expert_load.push_back(one.at("rows").get<std::uint64_t>());
  r.balance.moved.experts_sent += one.at("moved").at(0).get<std::uint64_t>();
  r.balance.moved.bytes_sent += one.at("moved").at(1).get<std::uint64_t>();
}

void print_balance(char const* name, balance_reading const& b) {
  fmt::print("{:<21}max/mean of the ranks {:.3f} (worst layer {:.3f}); by chance alone {:.3f}\n",
             name, b.max_over_mean, b.worst, b.floor);
}

json to_json(std::optional<balance_reading> const& b) {
  if (!b) return nullptr;
  return {{"step", b->step},
          {"max_over_mean", b->max_over_mean},
          {"worst", b->worst},
          {"sampling_floor", b->floor}};
}

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

std::string byte_count(std::uint64_t count) {
  auto value = static_cast<double>(count);
  if (value < 1e3) return fmt::format("{} B", count);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  if (value < 1e9) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{:.1f} GB", value / 1e9);
}

void print_phase(char const* name, phase_numbers const& p) {
  fmt::print("{:<21}{:>10}{:>11.3f}{:>13.1f}\n", name, p.tokens, p.seconds,
             ratio(static_cast<double>(p.tokens), p.seconds));
}

}  // namespace

percentiles inter_token_latency(std::vector<step_time> steps) {
  std::sort(steps.begin(), steps.end(),
            [](step_time const& a, step_time const& b) { return a.seconds < b.seconds; });
  std::int64_t tokens = 0;
  for (auto const& s : steps) tokens += s.tokens;
  // The smallest time that a share of the tokens did not exceed.
  auto at = [&](double share) {
    auto wanted = share * static_cast<double>(tokens);
    std::int64_t seen = 0;
    for (auto const& s : steps) {
      seen += s.tokens;
      if (s.tokens > 0 && static_cast<double>(seen) >= wanted) return s.seconds * 1e3;
    }
    return 0.0;
  };
  return {at(0.5), at(0.9), at(0.99)};
}

double report::decode_tokens_per_second() const {
  return ratio(static_cast<double>(decoded.tokens), decoded.seconds);
}

double report::load_max_over_mean() const {
  if (expert_load.empty()) return 0;
  auto sum = std::accumulate(expert_load.begin(), expert_load.end(), std::uint64_t{0});
  auto most = *std::max_element(expert_load.begin(), expert_load.end());
  return ratio(static_cast<double>(most) * static_cast<double>(expert_load.size()),
               static_cast<double>(sum));
}

result<report> gather(group const& ranks, contribution const& mine) {
  auto cbor = json::to_cbor(packed(mine));
  FERRY_TRY(auto all, ranks.all_gather(std::as_bytes(std::span(cbor))));
  report r;
  if (ranks.rank() != 0) return r;
  std::vector<step_time> steps;
  try {
    for (auto const& one : all) {
      auto const* first = reinterpret_cast<std::uint8_t const*>(one.data());
      add(r, steps, json::from_cbor(first, first + one.size()));
    }
  } catch (json::exception const& e) {
    return error{error_code::internal, fmt::format("another rank's numbers: {}", e.what())};
  }
  r.latency = inter_token_latency(std::move(steps));
  r.balance.before = mine.balance.before;
  r.balance.after = mine.balance.after;
  r.balance.moved.rounds = mine.balance.moved.rounds;
  return r;
}

void print_table(report const& r) {
  fmt::print("\n{:<21}{:>10}{:>11}{:>13}\n", "", "tokens", "seconds", "tokens/s");
  print_phase("prefill", r.prefilled);
  print_phase("decode", r.decoded);
  fmt::print("\n{:<21}p50 {:.2f} ms   p90 {:.2f} ms   p99 {:.2f} ms\n", "inter-token latency",
             r.latency.p50, r.latency.p90, r.latency.p99);
  fmt::print("{:<21}{} to other ranks, {} within a rank\n", "dispatched",
             byte_count(r.dispatch_bytes), byte_count(r.dispatch_self_bytes));
  fmt::print("{:<21}{} from other ranks, {} within a rank\n", "combined",
             byte_count(r.combine_bytes), byte_count(r.combine_self_bytes));
  fmt::print("{:<21}{} rows by rank; max/mean {:.2f}\n", "experts' load",
             fmt::join(r.expert_load, " "), r.load_max_over_mean());
  balance_report const& b = r.balance;
  if (b.before) print_balance(b.after ? "balance at first" : "balance in decode", *b.before);
  if (b.after) {
    print_balance("balance at last", *b.after);
    fmt::print("{:<21}{} experts, {}, in {} rounds\n", "moved", b.moved.experts_sent,
               byte_count(b.moved.bytes_sent), b.moved.rounds);
  }
  std::fflush(stdout);
}

result<void> check_writable(std::filesystem::path const& file) {
  // Appending: what is there stays until there is something better.
  if (std::ofstream(file, std::ios::binary | std::ios::app)) return {};
  return error{error_code::io, fmt::format("{}: cannot be written", file.string())};
}

result<void> write_json(report const& r, options const& o, int num_ranks) {
  // As text: a number of 64 bits is more than many readers of JSON keep.
  json digests = json::array();
  for (std::uint64_t const d : r.digests)
    digests.push_back(d == 0 ? json() : json(fmt::format("{:016x}", d)));
  json object = {
      {"ranks", num_ranks},
      {"model", o.model.string()},
      {"dtype", to_string(o.compute)},
      {"prefill_tokens", r.prefilled.tokens},
      {"prefill_seconds", r.prefilled.seconds},
      {"decode_tokens", r.decoded.tokens},
      {"decode_seconds", r.decoded.seconds},
      {"decode_tokens_per_second", r.decode_tokens_per_second()},
      {"itl_ms", {{"p50", r.latency.p50}, {"p90", r.latency.p90}, {"p99", r.latency.p99}}},
      {"overlapped_steps", r.overlapped_steps},
      {"dispatch_bytes", r.dispatch_bytes},
      {"dispatch_self_bytes", r.dispatch_self_bytes},
      {"combine_bytes", r.combine_bytes},
      {"combine_self_bytes", r.combine_self_bytes},
      {"expert_load", r.expert_load},
      {"expert_load_max_over_mean", r.load_max_over_mean()},
      {"balance",
       {{"before", to_json(r.balance.before)},
        {"after", to_json(r.balance.after)},
        {"rounds", r.balance.moved.rounds},
        {"moved_experts", r.balance.moved.experts_sent},
        {"moved_bytes", r.balance.moved.bytes_sent}}},
      {"tokens", r.tokens},
      {"logits_digests", std::move(digests)},
      {"text", r.texts}};
  std::ofstream out(*o.json_file, std::ios::binary);
  // A directory's name need not be UTF-8.
  out << object.dump(1, ' ', false, json::error_handler_t::replace) << '\n';
  if (!out.flush())
    return error{error_code::io, fmt::format("{}: cannot be written", o.json_file->string())};
  return {};
}

}  // namespace ferry::decode
