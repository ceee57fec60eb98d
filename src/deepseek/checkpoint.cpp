// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/checkpoint.hpp>

#include "base/fail.hpp"
#include "files/json_text.hpp"

#include <functional>
#include <map>
#include <new>
#include <string>
#include <utility>

namespace ferry::deepseek {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

// The index of the largest published model has 92,000 names in 9 MB.
constexpr std::size_t max_index_bytes = 512u << 20;

/// Whether `name` can only mean a file in the directory itself. A name with a separator, or "..",
/// could reach any file of the machine.
bool stays_inside(std::string const& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

result<json> read_weight_map(fs::path const& index) {
  FERRY_TRY(auto text, read_text_file(index, max_index_bytes));
  FERRY_TRY(auto document, parse_json(text, index.string(), 16));
  if (!document.is_object())
    return fail(error_code::malformed_input, "{}: not a JSON object", index.string());
  auto map = document.find("weight_map");
  if (map == document.end() || !map->is_object())
    return fail(error_code::malformed_input, "{}: no weight_map, or it is not an object",
                index.string());
  if (map->empty())
    return fail(error_code::malformed_input, "{}: weight_map is empty", index.string());
  return json(std::move(*map));
}

}  // namespace

struct checkpoint::state {
  fs::path directory;
  std::map<std::string, safetensors, std::less<>> files;
  std::map<std::string, safetensors const*, std::less<>> homes;  ///< tensor -> its file

  result<void> open_single(fs::path const& file);
  result<void> open_sharded(fs::path const& index);
};

result<void> checkpoint::state::open_single(fs::path const& file) {
  FERRY_TRY(auto opened, safetensors::open(file));
  auto at = files.emplace(file.filename().string(), std::move(opened)).first;
  for (auto name : at->second.names()) homes.emplace(name, &at->second);
  return {};
}

result<void> checkpoint::state::open_sharded(fs::path const& index) {
  FERRY_TRY(auto map, read_weight_map(index));
  for (auto const& [tensor, value] : map.items()) {
    if (!value.is_string())
      return fail(error_code::malformed_input, "{}: \"{}\" names no file", index.string(), tensor);
    auto const& name = value.get_ref<std::string const&>();
    if (!stays_inside(name))
      return fail(error_code::malformed_input,
                  "{}: \"{}\" lies in \"{}\", which is no file of this directory", index.string(),
                  tensor, name);
    auto at = files.find(name);
    if (at == files.end()) {
      FERRY_TRY(auto opened, safetensors::open(directory / name));
      at = files.emplace(name, std::move(opened)).first;
    }
    if (!at->second.has(tensor))
      return fail(error_code::malformed_input, "{}: tensor \"{}\" is not in {}, where {} puts it",
                  directory.string(), tensor, name, index.filename().string());
    homes.emplace(tensor, &at->second);
  }
  return {};
}

checkpoint::checkpoint(std::shared_ptr<state const> s) : state_(std::move(s)) {}

result<checkpoint> checkpoint::open(fs::path const& directory) {
  std::error_code trouble;
  if (!fs::is_directory(directory, trouble))
    return fail(error_code::io, "{}: {}", directory.string(),
                trouble ? trouble.message() : "not a directory");
  try {
    auto s = std::make_shared<state>();
    s->directory = directory;
    auto index = directory / "model.safetensors.index.json";
    auto single = directory / "model.safetensors";
    if (is_in_directory(index)) {
      FERRY_CHECK(s->open_sharded(index));
    } else if (is_in_directory(single)) {
      FERRY_CHECK(s->open_single(single));
    } else {
      return fail(error_code::io, "{}: neither {} nor {}", directory.string(),
                  index.filename().string(), single.filename().string());
    }
    return checkpoint(std::move(s));
  } catch (std::bad_alloc const&) {
    return fail(error_code::out_of_memory, "{}: no memory for its tensors' names",
                directory.string());
  }
}

bool checkpoint::has(std::string_view name) const {
  return state_->homes.find(name) != state_->homes.end();
}

result<tensor_view> checkpoint::tensor(std::string_view name) const {
  auto at = state_->homes.find(name);
  if (at == state_->homes.end())
    return fail(error_code::malformed_input, "{}: no tensor \"{}\"", state_->directory.string(),
                name);
  return at->second->tensor(name);
}

std::vector<std::string_view> checkpoint::names() const {
  std::vector<std::string_view> all;
  for (auto const& [name, home] : state_->homes) all.push_back(name);
  return all;
}

fs::path const& checkpoint::directory() const {
  return state_->directory;
}

}  // namespace ferry::deepseek
