// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/load_files.hpp>

#include "base/fail.hpp"
#include "files/json_fields.hpp"
#include "files/json_text.hpp"

#include <ferry/files/npy.hpp>
#include <ferry/files/safetensors.hpp>

#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <utility>

namespace ferry {
namespace {

using json = nlohmann::json;

constexpr std::size_t max_json_bytes = std::size_t{1} << 30;
constexpr std::int64_t most_sizes = 1 << 20;

/// [layers][experts] as one list; every row of one length, every element a number.
result<expert_loads> table_of(json const& rows, std::string const& name) {
  if (!rows.is_array() || rows.empty())
    return fail(error_code::malformed_input, "{}: not a list of layers", name);
  expert_loads table;
  table.num_layers = static_cast<int>(rows.size());
  for (auto const& row : rows) {
    if (!row.is_array() || row.empty())
      return fail(error_code::malformed_input, "{}: a layer is not a list of numbers", name);
    if (table.num_experts == 0) table.num_experts = static_cast<int>(row.size());
    if (static_cast<int>(row.size()) != table.num_experts)
      return fail(error_code::malformed_input, "{}: layers of {} and of {} experts", name,
                  table.num_experts, row.size());
    for (auto const& value : row) {
      if (!value.is_number())
        return fail(error_code::malformed_input, "{}: {} is not a number", name,
                    value.dump(-1, ' ', true).substr(0, 60));
      table.values.push_back(value.get<double>());
    }
  }
  return table;
}

json rows_of_table(std::span<double const> values, int columns) {
  json rows = json::array();
  for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(columns)) {
    auto const row = values.subspan(i, static_cast<std::size_t>(columns));
    rows.push_back(std::vector<double>(row.begin(), row.end()));
  }
  return rows;
}

template <class T>
double element(std::byte const* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

/// Any number type as doubles. Whole numbers beyond 2^53 are rounded.
std::optional<std::vector<double>> doubles_of(storage_type type, std::span<std::byte const> data) {
  double (*read)(std::byte const*) = nullptr;
  switch (type) {
    case storage_type::f32: read = element<float>; break;
    case storage_type::f64: read = element<double>; break;
    case storage_type::i8: read = element<std::int8_t>; break;
    case storage_type::u8: read = element<std::uint8_t>; break;
    case storage_type::i16: read = element<std::int16_t>; break;
    case storage_type::u16: read = element<std::uint16_t>; break;
    case storage_type::i32: read = element<std::int32_t>; break;
    case storage_type::u32: read = element<std::uint32_t>; break;
    case storage_type::i64: read = element<std::int64_t>; break;
    case storage_type::u64: read = element<std::uint64_t>; break;
    default: return {};
  }
  std::vector<double> values;
  auto const bytes = bytes_of(type);
  for (std::size_t i = 0; i + bytes <= data.size(); i += bytes)
    values.push_back(read(data.data() + i));
  return values;
}

result<std::vector<expert_loads>> loads_of_tensor(std::filesystem::path const& file) {
  FERRY_TRY(auto tensors, safetensors::open(file));
  if (!tensors.has("weight"))
    return fail(error_code::malformed_input, "{}: no tensor \"weight\"", file.string());
  FERRY_TRY(auto weight, tensors.tensor("weight"));
  bool const fits =
      weight.shape.size() == 2 && weight.shape[0] <= most_sizes && weight.shape[1] <= most_sizes;
  auto values = doubles_of(weight.type, weight.data);
  if (!fits || !values)
    return fail(
        error_code::malformed_input,
        "{}: weight is {} with {} dimensions; expected [layers, experts] of f32, f64 or whole "
        "numbers",
        file.string(), to_string(weight.type), weight.shape.size());
  expert_loads loads{static_cast<int>(weight.shape[0]), static_cast<int>(weight.shape[1]),
                     std::move(*values)};
  if (auto right = validate(loads); !right)
    return fail(right.error().code, "{}: {}", file.string(), right.error().message);
  return std::vector{std::move(loads)};
}

result<load_window> window_of(json const& w, std::string const& name) {
  if (!w.is_object() || !w.contains("sums") || !w.contains("sums_of_squares"))
    return fail(error_code::malformed_input, "{}: a window without sums and sums_of_squares", name);
  json_fields fields(w, name);
  auto const steps = fields.integer("steps", 0, std::numeric_limits<std::int64_t>::max());
  FERRY_CHECK(fields.outcome());
  FERRY_TRY(auto sums, table_of(w["sums"], name + ": sums"));
  FERRY_TRY(auto squares, table_of(w["sums_of_squares"], name + ": sums_of_squares"));
  auto window = load_window::restore(sums.num_layers, sums.num_experts, steps,
                                     std::move(sums.values), std::move(squares.values));
  if (!window) return fail(window.error().code, "{}: {}", name, window.error().message);
  return window;
}

/// [tokens][layers][topk].
result<routing_trace> sample_of(json const& choices, std::string const& name) {
  auto const ragged = [&] {
    return fail(error_code::malformed_input, "{}: choices are not [tokens][layers][topk] of ids",
                name);
  };
  if (!choices.is_array()) return ragged();
  routing_trace trace;
  trace.num_tokens = static_cast<std::int64_t>(choices.size());
  for (auto const& token : choices) {
    if (!token.is_array() || token.empty()) return ragged();
    if (trace.num_layers == 0) trace.num_layers = static_cast<int>(token.size());
    if (static_cast<int>(token.size()) != trace.num_layers) return ragged();
    for (auto const& layer : token) {
      if (!layer.is_array() || layer.empty()) return ragged();
      if (trace.topk == 0) trace.topk = static_cast<int>(layer.size());
      if (static_cast<int>(layer.size()) != trace.topk) return ragged();
      for (auto const& id : layer) {
        if (!id.is_number_integer() || id.get<std::int64_t>() < -1 ||
            id.get<std::int64_t>() > INT32_MAX)
          return ragged();
        trace.experts.push_back(id.get<std::int32_t>());
      }
    }
  }
  return trace;
}

result<json> read_json(std::filesystem::path const& file) {
  FERRY_TRY(auto text, read_text_file(file, max_json_bytes));
  return parse_json(text, file.string());
}

result<load_file> loads_of_json(json const& all, std::string const& name) {
  if (!all.contains("windows") || !all["windows"].is_array() || all["windows"].empty())
    return fail(error_code::malformed_input, "{}: no list of windows", name);
  load_file loads;
  for (auto const& w : all["windows"]) {
    FERRY_TRY(auto window, window_of(w, name));
    loads.windows.push_back(std::move(window));
  }
  auto const& first = loads.windows.front();
  for (auto const& w : loads.windows)
    if (w.num_layers() != first.num_layers() || w.num_experts() != first.num_experts())
      return fail(error_code::malformed_input, "{}: windows of different shapes", name);
  if (auto sample = all.find("sample"); sample != all.end()) {
    if (!sample->is_object() || !sample->contains("choices"))
      return fail(error_code::malformed_input, "{}: a sample without choices", name);
    FERRY_TRY(auto trace, sample_of((*sample)["choices"], name));
    if (trace.num_layers != first.num_layers())
      return fail(error_code::malformed_input, "{}: a sample of {} layers beside windows of {}",
                  name, trace.num_layers, first.num_layers());
    if (auto right = validate(trace, first.num_experts()); !right)
      return fail(right.error().code, "{}: {}", name, right.error().message);
    loads.sample = std::move(trace);
  }
  return loads;
}

result<std::vector<expert_loads>> loads_of_counts(json const& counts, std::string const& name) {
  std::vector<expert_loads> windows;
  // Three levels are several windows.
  bool const several = counts.is_array() && !counts.empty() && counts[0].is_array() &&
                       !counts[0].empty() && counts[0][0].is_array();
  json const one = several ? json() : json::array({counts});
  for (auto const& rows : several ? counts : one) {
    FERRY_TRY(auto table, table_of(rows, name + ": logical_count"));
    if (auto right = validate(table); !right)
      return fail(right.error().code, "{}: {}", name, right.error().message);
    windows.push_back(std::move(table));
  }
  return windows;
}

}  // namespace

result<void> save_loads(std::filesystem::path const& file, load_file const& loads) {
  if (loads.windows.empty())
    return fail(error_code::invalid_argument, "no window of loads to save");
  json all = {{"ferry_loads", 1}, {"windows", json::array()}};
  for (auto const& w : loads.windows) {
    std::vector<double> sums, squares;
    for (int l = 0; l < w.num_layers(); ++l)
      for (int e = 0; e < w.num_experts(); ++e) {
        sums.push_back(w.sum(l, e));
        squares.push_back(w.sum_of_squares(l, e));
      }
    all["windows"].push_back({{"layers", w.num_layers()},
                              {"experts", w.num_experts()},
                              {"steps", w.steps()},
                              {"sums", rows_of_table(sums, w.num_experts())},
                              {"sums_of_squares", rows_of_table(squares, w.num_experts())}});
    all["logical_count"] = all["windows"].back()["sums"];
  }
  if (loads.sample) {
    json tokens = json::array();
    for (std::int64_t t = 0; t < loads.sample->num_tokens; ++t) {
      json layers = json::array();
      for (int l = 0; l < loads.sample->num_layers; ++l) {
        auto const ids = loads.sample->choices(t, l);
        layers.push_back(std::vector<std::int32_t>(ids.begin(), ids.end()));
      }
      tokens.push_back(std::move(layers));
    }
    all["sample"] = {{"topk", loads.sample->topk}, {"choices", std::move(tokens)}};
  }
  std::ofstream out(file, std::ios::binary);
  out << all.dump() << '\n';
  if (!out.flush()) return fail(error_code::io, "{}: cannot be written", file.string());
  return {};
}

result<load_file> open_load_file(std::filesystem::path const& file) {
  FERRY_TRY(auto all, read_json(file));
  if (!all.is_object() || !all.contains("ferry_loads"))
    return fail(error_code::malformed_input, "{}: no object with ferry_loads", file.string());
  return loads_of_json(all, file.string());
}

result<std::vector<expert_loads>> read_loads(std::filesystem::path const& file) {
  FERRY_TRY(auto loads, read_sampled_loads(file));
  return std::move(loads.windows);
}

result<sampled_loads> read_sampled_loads(std::filesystem::path const& file) {
  sampled_loads known;
  if (file.extension() == ".safetensors") {
    FERRY_TRY(known.windows, loads_of_tensor(file));
    return known;
  }
  FERRY_TRY(auto all, read_json(file));
  if (all.is_object() && all.contains("ferry_loads")) {
    FERRY_TRY(auto loads, loads_of_json(all, file.string()));
    for (auto const& w : loads.windows) {
      auto one = w.loads();
      if (one) known.windows.push_back(std::move(*one));
    }
    if (known.windows.empty())
      return fail(error_code::invalid_argument, "{}: all {} windows are empty", file.string(),
                  loads.windows.size());
    known.sample = std::move(loads.sample);
    return known;
  }
  if (!all.is_object() || !all.contains("logical_count"))
    return fail(error_code::malformed_input, "{}: neither ferry_loads nor logical_count",
                file.string());
  FERRY_TRY(known.windows, loads_of_counts(all["logical_count"], file.string()));
  return known;
}

namespace {

result<routing_trace> trace_of(storage_type type, std::vector<std::int64_t> const& shape,
                               std::span<std::byte const> data, std::string const& name) {
  bool const ids =
      type == storage_type::i16 || type == storage_type::i32 || type == storage_type::i64;
  if (!ids || shape.size() < 2 || shape.size() > 3)
    return fail(error_code::malformed_input,
                "{}: {} with {} dimensions; expected int16, int32 or int64 [tokens, layers, topk]",
                name, to_string(type), shape.size());
  auto const layers = shape.size() == 3 ? shape[1] : 1;
  if (shape[0] < 1 || layers < 1 || shape.back() < 1 || layers > most_sizes ||
      shape.back() > most_sizes)
    return fail(error_code::malformed_input,
                "{}: {} tokens, {} layers, {} choices; at least 1 of each", name, shape[0], layers,
                shape.back());
  routing_trace trace{shape[0], static_cast<int>(layers), static_cast<int>(shape.back()), {}};
  auto const values = *doubles_of(type, data);
  trace.experts.reserve(values.size());
  for (double id : values) {
    if (id < -1 || id > INT32_MAX)
      return fail(error_code::invalid_argument, "{}: {} is no expert and not -1", name, id);
    trace.experts.push_back(static_cast<std::int32_t>(id));
  }
  return trace;
}

}  // namespace

result<routing_trace> read_choices(std::filesystem::path const& file) {
  auto const name = file.string();
  if (file.extension() != ".safetensors") {
    FERRY_TRY(auto array, npy_file::open(file));
    return trace_of(array.type(), array.shape(), array.data(), name);
  }
  FERRY_TRY(auto tensors, safetensors::open(file));
  auto const names = tensors.names();
  if (!tensors.has("choices") && names.size() != 1)
    return fail(error_code::malformed_input, "{}: {} tensors and none is called \"choices\"", name,
                names.size());
  FERRY_TRY(auto ids, tensors.tensor(tensors.has("choices") ? "choices" : names.front()));
  return trace_of(ids.type, ids.shape, ids.data, name);
}

std::string to_json(placement const& where) {
  json rows = json::array();
  for (int l = 0; l < where.num_layers; ++l)
    rows.push_back(std::vector<std::int32_t>(where.layer(l).begin(), where.layer(l).end()));
  return json{{"layers", where.num_layers}, {"experts", where.num_experts},
              {"ranks", where.num_ranks},   {"nodes", where.num_nodes},
              {"slots", where.num_slots},   {"placement", std::move(rows)}}
      .dump();
}

result<placement> read_placement(std::filesystem::path const& file) {
  FERRY_TRY(auto all, read_json(file));
  auto const name = file.string();
  if (all.is_array() && !all.empty()) all = json(all[0]);
  if (!all.is_object() || !all.contains("placement"))
    return fail(error_code::malformed_input, "{}: no object with a placement", name);
  FERRY_TRY(auto table, table_of(all["placement"], name + ": placement"));
  json_fields fields(all, name);
  placement where;
  where.num_layers = table.num_layers;
  where.num_slots = table.num_experts;
  where.num_experts = static_cast<int>(fields.integer("experts", 1, most_sizes));
  where.num_ranks = static_cast<int>(fields.integer("ranks", 1, most_sizes));
  where.num_nodes = static_cast<int>(fields.integer("nodes", 1, most_sizes, 1));
  FERRY_CHECK(fields.outcome());
  for (double e : table.values) {
    if (e != static_cast<double>(static_cast<std::int64_t>(e)) || e < 0 || e > INT32_MAX)
      return fail(error_code::malformed_input, "{}: {} is no expert", name, e);
    where.experts.push_back(static_cast<std::int32_t>(e));
  }
  if (auto right = validate(where); !right)
    return fail(right.error().code, "{}: {}", name, right.error().message);
  return where;
}

}  // namespace ferry
