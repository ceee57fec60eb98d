// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "data/golden_file.hpp"

#include "data/test_data.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ferry::testing {

golden_file::golden_file(std::filesystem::path const& path) : path_(test::test_data() / path) {
  std::ifstream in(path_, std::ios::binary);
  bytes_.assign(std::istreambuf_iterator<char>(in), {});
  std::uint64_t header_bytes = 0;
  if (!in || bytes_.size() < sizeof header_bytes) refuse("cannot be read");
  std::memcpy(&header_bytes, bytes_.data(), sizeof header_bytes);
  if (header_bytes > bytes_.size() - sizeof header_bytes) refuse("is truncated");
  std::size_t const first = sizeof header_bytes + header_bytes;

  auto const header =
      nlohmann::json::parse(bytes_.begin() + sizeof header_bytes, bytes_.begin() + first);
  for (auto const& [name, said] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = said.get<std::map<std::string, std::string>>();
      continue;
    }
    auto const begin = said.at("data_offsets").at(0).get<std::size_t>();
    auto const end = said.at("data_offsets").at(1).get<std::size_t>();
    if (begin > end || end > bytes_.size() - first) refuse("has wrong offsets for " + name);
    entries_[name] = {said.at("dtype").get<std::string>(),
                      said.at("shape").get<std::vector<std::int64_t>>(), first + begin,
                      end - begin};
  }
}

golden_tensor<float> golden_file::floats(std::string const& name) const {
  if (find(name).type != "BF16") return tensor<float>(name);
  auto const narrow = tensor<bf16>(name);
  golden_tensor<float> out{{}, narrow.shape};
  for (bf16 code : narrow.values) out.values.push_back(to_float(code));
  return out;
}

golden_file::entry const& golden_file::find(std::string const& name) const {
  auto const at = entries_.find(name);
  if (at == entries_.end()) refuse("has no tensor " + name);
  return at->second;
}

void golden_file::refuse(std::string const& why) const {
  throw std::runtime_error(path_.string() + " " + why);
}

}  // namespace ferry::testing
