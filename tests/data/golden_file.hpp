// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Reads the reference values that tests compare with: safetensors files below tests/data.
/// Apart from ferry's own loader on purpose: a mistake there must not hide in its own tests.
/// Anything unexpected throws std::runtime_error, which fails the test with its message.
#pragma once

#include <ferry/base/number_formats.hpp>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
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
  explicit golden_file(std::filesystem::path const& path);

  bool has(std::string const& name) const { return entries_.contains(name); }

  /// The facts that the file states about itself; "" if it does not state this one.
  std::string metadata(std::string const& name) const {
    auto const at = metadata_.find(name);
    return at == metadata_.end() ? std::string() : at->second;
  }

  /// The tensor `name`, whose type in the file must fit T.
  template <class T>
  golden_tensor<T> tensor(std::string const& name) const {
    entry const& found = find(name);
    if (!holds<T>(found.type)) refuse("holds " + name + " as " + found.type);
    golden_tensor<T> out{{}, found.shape};
    std::size_t count = 1;
    for (std::int64_t extent : out.shape) count *= static_cast<std::size_t>(extent);
    if (found.bytes != count * sizeof(T)) refuse("has wrong offsets for " + name);
    out.values.resize(count);
    if (count) std::memcpy(out.values.data(), bytes_.data() + found.first, found.bytes);
    return out;
  }

  /// The tensor `name` as f32, whether the file holds it as F32 or as BF16.
  golden_tensor<float> floats(std::string const& name) const;

 private:
  struct entry {
    std::string type;
    std::vector<std::int64_t> shape;
    std::size_t first = 0;  // where its bytes begin in the file
    std::size_t bytes = 0;
  };

  entry const& find(std::string const& name) const;
  [[noreturn]] void refuse(std::string const& why) const;

  std::filesystem::path path_;
  std::vector<char> bytes_;
  std::map<std::string, entry> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace ferry::testing
