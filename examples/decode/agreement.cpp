// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "agreement.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>

namespace ferry::decode {
namespace {

using json = nlohmann::json;
using said = std::map<std::string, std::string>;

char const* name_of(reduction r) {
  return r == reduction::per_rank ? "per_rank" : "per_choice";
}

char const* name_of(layout l) {
  return l == layout::grouped ? "grouped" : l == layout::padded ? "padded" : "in_place";
}

/// What `theirs` has otherwise than rank 0, as the end of a sentence; empty if nothing.
std::string difference(std::span<setting const> mine, said const& first, said const& theirs) {
  for (auto const& s : mine) {
    auto const there = theirs.find(s.name);
    auto const at_first = first.find(s.name);
    if (there == theirs.end() || at_first == first.end())
      return fmt::format("by another version of this program, which has no {}", s.name);
    if (there->second == at_first->second) continue;
    if (!s.shown) return fmt::format("with another {} than rank 0", s.name);
    return fmt::format("with another {} ({}) than rank 0 ({})", s.name, there->second,
                       at_first->second);
  }
  return {};
}

}  // namespace

std::string fingerprint(std::span<std::byte const> content) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (auto byte : content) {
    hash ^= std::to_integer<std::uint64_t>(byte);
    hash *= 0x100000001B3u;
  }
  return fmt::format("{:016x}", hash);
}

std::string fingerprint(std::string_view content) {
  return fingerprint(std::as_bytes(std::span(content)));
}

std::vector<setting> settings_of(options const& o,
                                 std::span<std::vector<std::int32_t> const> prompts) {
  // Each with its length, so that no two lists of prompts have the same numbers.
  std::vector<std::int64_t> numbers;
  for (auto const& prompt : prompts) {
    numbers.push_back(std::ssize(prompt));
    numbers.insert(numbers.end(), prompt.begin(), prompt.end());
  }
  return {{"number of prompts", fmt::format("{}", prompts.size())},
          {"list of prompts", fingerprint(std::as_bytes(std::span(numbers))), false},
          {"--max-new-tokens", fmt::format("{}", o.max_new_tokens)},
          {"--ignore-eos", o.ignore_eos ? "given" : "not given"},
          {"--temperature", fmt::format("{}", o.temperature)},
          {"--seed", fmt::format("{}", o.seed)},
          {"--device", o.device.substr(0, o.device.find(':'))},
          {"--products", fmt::format("{}", static_cast<int>(o.products)), false},
          {"--dtype", to_string(o.compute)},
          {"--wire", to_string(o.wire)},
          {"--combine-wire", to_string(o.combine_wire)},
          {"--reduction", name_of(o.reduction)},
          {"--layout", name_of(o.layout)},
          {"--graph", o.steps.graph ? "given" : "not given"},
          {"--microbatches",
           o.steps.microbatches == 0 ? "auto" : fmt::format("{}", o.steps.microbatches)},
          {"--replicas", fmt::format("{}", static_cast<int>(o.balance.replicas)), false},
          {"--rebalance", o.balance.rebalance.empty() ? "not given" : o.balance.rebalance},
          {"--save-loads", o.balance.loads_file ? "given" : "not given"},
          {"--trace or --timeline", o.steps.traced_spans > 0 ? "given" : "not given"}};
}

result<void> check_agreement(group const& ranks, std::span<setting const> mine) {
  json object = json::object();
  for (auto const& s : mine) object[s.name] = s.value;
  auto cbor = json::to_cbor(object);
  FERRY_TRY(auto all, ranks.all_gather(std::as_bytes(std::span(cbor))));
  std::vector<said> every;
  try {
    for (auto const& one : all) {
      auto const* first = reinterpret_cast<std::uint8_t const*>(one.data());
      every.push_back(json::from_cbor(first, first + one.size()).get<said>());
    }
  } catch (json::exception const& e) {
    return error{
        error_code::malformed_input,
        fmt::format("rank {} does not say how it was started: {}", every.size(), e.what())};
  }
  for (std::size_t rank = 1; rank < every.size(); ++rank)
    if (auto what = difference(mine, every.front(), every[rank]); !what.empty())
      return error{error_code::invalid_argument, fmt::format("rank {} was started {}", rank, what)};
  return {};
}

}  // namespace ferry::decode
