// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "choices_file.hpp"

#include <fmt/format.h>
#include <ferry/files/safetensors.hpp>

#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <span>

namespace ferry::bench {
namespace {

/// An array of integers as a file describes it.
struct integers {
  std::vector<std::int64_t> shape;
  std::size_t size = 0;  ///< bytes of one
  bool has_sign = true;
  std::span<std::byte const> data;
};

error wrong(error_code code, std::string const& path, std::string const& what) {
  return {code, path + ": " + what};
}

template <class T>
std::int64_t widened(std::byte const* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  // What does not fit is no expert either.
  if (std::is_same_v<T, std::uint64_t> &&
      value > static_cast<T>(std::numeric_limits<std::int64_t>::max()))
    return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(value);
}

std::int64_t integer_at(integers const& from, std::size_t index) {
  std::byte const* const at = from.data.data() + index * from.size;
  switch (from.size) {
    case 1: return from.has_sign ? widened<std::int8_t>(at) : widened<std::uint8_t>(at);
    case 2: return from.has_sign ? widened<std::int16_t>(at) : widened<std::uint16_t>(at);
    case 4: return from.has_sign ? widened<std::int32_t>(at) : widened<std::uint32_t>(at);
    default: return from.has_sign ? widened<std::int64_t>(at) : widened<std::uint64_t>(at);
  }
}

result<choices_file> widen(std::string const& path, integers const& from) {
  if (from.shape.size() != 3)
    return wrong(error_code::invalid_argument, path,
                 fmt::format("an array of {} dimensions; it must be [tokens, layers, topk]",
                             from.shape.size()));
  choices_file made{path, from.shape[0], from.shape[1], from.shape[2], {}};
  std::int64_t count = 1;
  for (std::int64_t n : from.shape) {
    if (n < 0 || __builtin_mul_overflow(count, n, &count))
      return wrong(error_code::malformed_input, path, fmt::format("a dimension of {}", n));
  }
  if (count == 0) return wrong(error_code::invalid_argument, path, "an array without elements");
  if (static_cast<std::uint64_t>(count) > from.data.size() / from.size)
    return wrong(error_code::malformed_input, path,
                 fmt::format("{} integers of {} bytes, but {} bytes of data", count, from.size,
                             from.data.size()));
  made.ids.reserve(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    made.ids.push_back(integer_at(from, i));
  return made;
}

/// The header of a .npy file is a Python dictionary with three known keys.
result<integers> parse_npy_header(std::string const& path, std::string const& header) {
  std::smatch found;
  integers made;
  if (!std::regex_search(header, found, std::regex(R"('descr'\s*:\s*'([^']*)')")))
    return wrong(error_code::malformed_input, path, "its header has no 'descr'");
  std::string const type = found[1];
  if (!std::regex_match(type, std::regex("[<|][iu][1248]")))
    return wrong(error_code::invalid_argument, path,
                 "elements of type '" + type + "'; they must be little-endian integers");
  made.has_sign = type[1] == 'i';
  made.size = static_cast<std::size_t>(type[2] - '0');
  if (!std::regex_search(header, found, std::regex(R"('fortran_order'\s*:\s*(True|False))")))
    return wrong(error_code::malformed_input, path, "its header has no 'fortran_order'");
  if (found[1] == "True")
    return wrong(error_code::invalid_argument, path,
                 "an array in Fortran order; C order is needed");
  if (!std::regex_search(header, found, std::regex(R"('shape'\s*:\s*\(([0-9,\s]*)\))")))
    return wrong(error_code::malformed_input, path, "its header has no 'shape'");
  std::string const shape = found[1];
  std::regex const number("[0-9]+");
  for (std::sregex_iterator i(shape.begin(), shape.end(), number), end; i != end; ++i) {
    if (i->str().size() > 18)
      return wrong(error_code::malformed_input, path, "a dimension of " + i->str());
    made.shape.push_back(std::stoll(i->str()));
  }
  return made;
}

result<choices_file> read_npy(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return wrong(error_code::io, path, "cannot be opened");
  std::string const bytes(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) return wrong(error_code::io, path, "cannot be read");
  auto const at = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  if (bytes.size() < 12 || bytes.compare(0, 6, "\x93NUMPY") != 0)
    return wrong(error_code::malformed_input, path, "is no .npy file");
  // Version 1 counts the header's bytes in two, later ones in four.
  std::size_t const start = at(6) == 1 ? 10 : 12;
  std::size_t length = at(8) | at(9) << 8;
  if (at(6) > 1) length |= at(10) << 16 | at(11) << 24;
  if (bytes.size() - start < length)
    return wrong(error_code::malformed_input, path, "ends within its header");
  FERRY_TRY(integers from, parse_npy_header(path, bytes.substr(start, length)));
  from.data = std::as_bytes(std::span(bytes)).subspan(start + length);
  return widen(path, from);
}

result<choices_file> read_safetensors(std::string const& path) {
  using ferry::storage_type;
  FERRY_TRY(auto const file, ferry::safetensors::open(path));
  auto const names = file.names();
  if (names.empty()) return wrong(error_code::invalid_argument, path, "holds no tensor");
  if (names.size() > 1 && !file.has("choices"))
    return wrong(error_code::invalid_argument, path,
                 fmt::format("holds {} tensors, none of them \"choices\"", names.size()));
  FERRY_TRY(auto const tensor, file.tensor(names.size() == 1 ? names[0] : "choices"));
  integers from;
  from.shape = tensor.shape;
  from.size = bytes_of(tensor.type);
  from.data = tensor.data;
  switch (tensor.type) {
    case storage_type::u8:
    case storage_type::u16:
    case storage_type::u32:
    case storage_type::u64: from.has_sign = false; break;
    case storage_type::i8:
    case storage_type::i16:
    case storage_type::i32:
    case storage_type::i64: break;
    default:
      return wrong(error_code::invalid_argument, path,
                   fmt::format("tensor {} is of type {}; it must be one of integers", tensor.name,
                               to_string(tensor.type)));
  }
  return widen(path, from);
}

}  // namespace

result<choices_file> read_choices(std::string const& path) {
  if (path.ends_with(".npy")) return read_npy(path);
  if (path.ends_with(".safetensors")) return read_safetensors(path);
  return wrong(error_code::invalid_argument, path, "is neither a .npy nor a .safetensors file");
}

}  // namespace ferry::bench
