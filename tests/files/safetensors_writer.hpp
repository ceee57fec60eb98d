// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Writes safetensors files, well-formed ones and others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::test {

inline void write_file(std::filesystem::path const& file, std::string_view bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

/// A file's bytes from its parts; `header_bytes` may lie about the header.
inline std::string safetensors_bytes(std::string_view header, std::string_view data,
                                     std::uint64_t header_bytes) {
  std::string file(sizeof header_bytes, '\0');
  std::memcpy(file.data(), &header_bytes, sizeof header_bytes);
  return file.append(header).append(data);
}
inline std::string safetensors_bytes(std::string_view header, std::string_view data = {}) {
  return safetensors_bytes(header, data, header.size());
}

/// Collects tensors and puts them into one file in the order in which they came.
class safetensors_writer {
 public:
  void add(std::string const& name, std::string_view dtype, std::vector<std::int64_t> const& shape,
           std::string_view bytes) {
    std::string dims;
    for (auto d : shape) dims += (dims.empty() ? "" : ",") + std::to_string(d);
    header_ += ",\"" + name + "\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":[" + dims +
               "],\"data_offsets\":[" + std::to_string(data_.size()) + "," +
               std::to_string(data_.size() + bytes.size()) + "]}";
    data_ += bytes;
    names_.push_back(name);
  }
  std::string bytes() const {
    auto header = header_ + "}";
    header.append((8 - header.size() % 8) % 8, ' ');
    return safetensors_bytes(header, data_);
  }
  std::size_t data_bytes() const { return data_.size(); }
  std::vector<std::string> const& names() const { return names_; }

 private:
  std::string header_ = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::string data_;
  std::vector<std::string> names_;
};

/// The index of a sharded checkpoint: which file holds which tensor.
inline std::string index_text(std::vector<std::pair<std::string, std::string>> const& homes) {
  std::string text = "{\"metadata\":{},\"weight_map\":{";
  for (auto const& [tensor, file] : homes) {
    if (text.back() != '{') text += ',';
    text += '"' + tensor + "\":\"" + file + '"';
  }
  return text + "}}";
}

}  // namespace ferry::test
