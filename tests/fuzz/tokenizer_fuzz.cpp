// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// libFuzzer's entry: the bytes are a model's tokenizer.json, and what is encoded with it.

#include <ferry/deepseek/tokenizer.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

/// A directory of this process alone, gone with it.
class scratch {
 public:
  scratch() {
    char name[] = "/tmp/ferry-tokenizer-fuzz-XXXXXX";
    if (::mkdtemp(name)) path_ = name;
  }
  ~scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path const& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static scratch const directory;
  if (directory.path().empty()) return 0;
  std::string const text(reinterpret_cast<char const*>(data), size);
  std::ofstream(directory.path() / "tokenizer.json", std::ios::binary | std::ios::trunc) << text;
  auto const loaded = ferry::deepseek::tokenizer::load(directory.path());
  if (!loaded) return 0;
  // What is encoded decodes, whatever the file makes of it.
  if (auto const ids = loaded->encode(std::string_view(text).substr(0, 256), true))
    static_cast<void>(loaded->decode(*ids));
  return 0;
}
