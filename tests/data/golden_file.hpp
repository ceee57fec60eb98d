// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Reads the reference values that tests compare with: safetensors files below tests/data.
/// Apart from ferry's own loader on purpose: a mistake there must not hide in its own tests.
/// Anything unexpected throws std::runtime_error, which fails the test with its message.
#pragma once

#include "data/test_data.hpp"

#include <ferry/base/number_formats.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::testing {

/// Whether a tensor that the file calls `name` may be read as T.
template <class T>
bool holds(std::string_view name);
// clang-format off
template <> inline bool holds<float>(std::string_view name) { return name == "F32"; }
template <> inline bool holds<double>(std::string_view name) { return name == "F64"; }
template <> inline bool holds<std::int32_t>(std::string_view name) { return name == "I32"; }
template <> inline bool holds<std::int64_t>(std::string_view name) { return name == "I64"; }
template <> inline bool holds<std::uint8_t>(std::string_view name) { return name == "U8" || name == "F8_E4M3"; }
template <> inline bool holds<bf16>(std::string_view name) { return name == "BF16"; }
template <> inline bool holds<e4m3>(std::string_view name) { return name == "U8" || name == "F8_E4M3"; }
template <> inline bool holds<e4m3fnuz>(std::string_view name) { return name == "U8" || name == "F8_E4M3"; }
// clang-format on

/// Row-major values with their shape.
template <class T>
struct golden_tensor {
  std::vector<T> values;
  std::vector<std::int64_t> shape;

  T const& operator[](std::size_t i) const { return values.at(i); }
  std::size_t size() const { return values.size(); }
};

class golden_file {
 public:
  /// `path` is relative to tests/data, or absolute.
  explicit golden_file(std::filesystem::path const& path) : path_(test::test_data() / path) {
    std::ifstream in(path_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    std::uint64_t header_bytes = 0;
    if (!in || bytes_.size() < sizeof header_bytes) refuse("cannot be read");
    std::memcpy(&header_bytes, bytes_.data(), sizeof header_bytes);
    if (header_bytes > bytes_.size() - sizeof header_bytes) refuse("is truncated");
    first_ = sizeof header_bytes + header_bytes;
    header_ = nlohmann::json::parse(bytes_.begin() + sizeof header_bytes, bytes_.begin() + first_);
  }

  bool has(std::string const& name) const { return header_.contains(name); }

  /// The facts that the file states about itself; "" if it does not state this one.
  std::string metadata(std::string const& name) const {
    return header_.value("__metadata__", nlohmann::json::object()).value(name, std::string());
  }

  /// The tensor `name`, whose type in the file must fit T.
  template <class T>
  golden_tensor<T> tensor(std::string const& name) const {
    if (!has(name)) refuse("has no tensor " + name);
    nlohmann::json const& entry = header_.at(name);
    auto const type = entry.at("dtype").get<std::string>();
    if (!holds<T>(type)) refuse("holds " + name + " as " + type);
    auto const offsets = entry.at("data_offsets").get<std::vector<std::size_t>>();
    golden_tensor<T> out{{}, entry.at("shape").get<std::vector<std::int64_t>>()};
    std::size_t count = 1;
    for (std::int64_t extent : out.shape) count *= static_cast<std::size_t>(extent);
    if (offsets.at(1) - offsets.at(0) != count * sizeof(T) ||
        offsets.at(1) > bytes_.size() - first_)
      refuse("has wrong offsets for " + name);
    out.values.resize(count);
    if (count)
      std::memcpy(out.values.data(), bytes_.data() + first_ + offsets[0], count * sizeof(T));
    return out;
  }

  /// The tensor `name` as f32, whether the file holds it as F32 or as BF16.
  golden_tensor<float> floats(std::string const& name) const {
    if (!has(name)) refuse("has no tensor " + name);
    if (header_.at(name).at("dtype") != "BF16") return tensor<float>(name);
    auto const narrow = tensor<bf16>(name);
    golden_tensor<float> out{{}, narrow.shape};
    for (bf16 code : narrow.values) out.values.push_back(to_float(code));
    return out;
  }

 private:
  [[noreturn]] void refuse(std::string const& why) const {
    throw std::runtime_error(path_.string() + " " + why);
  }

  std::filesystem::path path_;
  std::vector<char> bytes_;
  std::size_t first_ = 0;  // where the tensors' bytes begin
  nlohmann::json header_;
};

}  // namespace ferry::testing
