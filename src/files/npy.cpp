// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/files/npy.hpp>

#include "base/fail.hpp"
#include "files/json_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ferry {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{1} << 36;
constexpr std::size_t max_dimensions = 32;

struct type_name {
  std::string_view name;
  storage_type type;
};
constexpr std::array types = {
    type_name{"b1", storage_type::boolean}, type_name{"i1", storage_type::i8},
    type_name{"i2", storage_type::i16},     type_name{"i4", storage_type::i32},
    type_name{"i8", storage_type::i64},     type_name{"u1", storage_type::u8},
    type_name{"u2", storage_type::u16},     type_name{"u4", storage_type::u32},
    type_name{"u8", storage_type::u64},     type_name{"f2", storage_type::f16},
    type_name{"f4", storage_type::f32},     type_name{"f8", storage_type::f64},
};

/// What follows `key:` in the header, which is a dictionary as Python writes it.
std::optional<std::string_view> field(std::string_view header, std::string_view key) {
  for (char quote : {'\'', '"'}) {
    auto const at = header.find(quote + std::string(key) + quote);
    if (at == std::string_view::npos) continue;
    auto rest = header.substr(at + key.size() + 2);
    auto const colon = rest.find_first_not_of(' ');
    if (colon == std::string_view::npos || rest[colon] != ':') continue;
    rest.remove_prefix(colon + 1);
    auto const value = rest.find_first_not_of(' ');
    if (value == std::string_view::npos) continue;
    return rest.substr(value);
  }
  return {};
}

class header_parser {
 public:
  header_parser(std::string_view header, std::string name)
      : header_(header), name_(std::move(name)) {}

  result<storage_type> type() const {
    auto const value = field(header_, "descr");
    if (!value || value->size() < 2) return bad("no descr");
    auto const end = value->find((*value)[0], 1);
    if (((*value)[0] != '\'' && (*value)[0] != '"') || end == std::string_view::npos)
      return fail(error_code::unsupported, "{}: an array of records", name_);
    auto descr = value->substr(1, end - 1);
    if (descr.starts_with('>'))
      return fail(error_code::unsupported, "{}: big-endian elements ({})", name_, descr);
    if (descr.starts_with('<') || descr.starts_with('|') || descr.starts_with('='))
      descr.remove_prefix(1);
    for (auto const& t : types)
      if (t.name == descr) return t.type;
    return fail(error_code::unsupported, "{}: elements of type {}", name_, descr);
  }

  result<void> order() const {
    auto const value = field(header_, "fortran_order");
    if (value && value->starts_with("False")) return {};
    if (value && value->starts_with("True"))
      return fail(error_code::unsupported, "{}: a column-major array", name_);
    return bad("no fortran_order");
  }

  result<std::vector<std::int64_t>> shape() const {
    auto const value = field(header_, "shape");
    auto const end = value ? value->find(')') : std::string_view::npos;
    if (end == std::string_view::npos || !value->starts_with('(')) return bad("no shape");
    auto rest = value->substr(1, end - 1);
    std::vector<std::int64_t> dims;
    while (true) {
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      if (rest.empty()) return dims;
      std::int64_t dim = 0;
      auto const [stop, trouble] = std::from_chars(rest.data(), rest.data() + rest.size(), dim);
      if (trouble != std::errc() || dim < 0 || dims.size() == max_dimensions)
        return bad("its shape is not a list of sizes");
      dims.push_back(dim);
      rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      if (rest.empty()) return dims;
      if (!rest.starts_with(',')) return bad("its shape is not a list of sizes");
      rest.remove_prefix(1);
    }
  }

 private:
  error bad(std::string_view why) const {
    return fail(error_code::malformed_input, "{}: {}", name_, why);
  }
  std::string_view header_;
  std::string name_;
};

/// Where the header lies: {start, size}.
result<std::pair<std::size_t, std::size_t>> header_of(std::string_view text,
                                                      std::string const& name) {
  constexpr std::string_view magic = "\x93NUMPY";
  if (!text.starts_with(magic) || text.size() < 10)
    return fail(error_code::malformed_input, "{}: does not begin like a .npy file", name);
  auto const major = static_cast<unsigned char>(text[6]);
  if (major < 1 || major > 3)
    return fail(error_code::unsupported, "{}: version {} of the format", name, major);
  std::size_t const length_bytes = major == 1 ? 2 : 4;
  std::size_t length = 0;
  if (text.size() < 8 + length_bytes)
    return fail(error_code::malformed_input, "{}: ends within its header", name);
  for (std::size_t i = 0; i < length_bytes; ++i)
    length |= static_cast<std::size_t>(static_cast<unsigned char>(text[8 + i])) << 8 * i;
  std::size_t const start = 8 + length_bytes;
  if (length > text.size() - start)
    return fail(error_code::malformed_input, "{}: header of {} bytes, but the file has {} in all",
                name, length, text.size());
  return std::pair(start, length);
}

}  // namespace

result<npy_file> npy_file::open(std::filesystem::path const& file) {
  auto const name = file.string();
  FERRY_TRY(auto text, read_text_file(file, max_file_bytes));
  FERRY_TRY(auto place, header_of(text, name));
  header_parser const header(std::string_view(text).substr(place.first, place.second), name);
  npy_file array;
  FERRY_TRY(array.type_, header.type());
  FERRY_CHECK(header.order());
  FERRY_TRY(array.shape_, header.shape());
  array.data_start_ = place.first + place.second;
  // A zero among the dimensions must not hide an overflow among the others.
  std::int64_t bytes = static_cast<std::int64_t>(bytes_of(array.type_));
  bool none = false;
  for (auto d : array.shape_) {
    none |= d == 0;
    if (d != 0 && __builtin_mul_overflow(bytes, d, &bytes))
      return fail(error_code::malformed_input, "{}: its shape makes more than 2^63 bytes", name);
  }
  if (none) bytes = 0;
  if (text.size() - array.data_start_ != static_cast<std::size_t>(bytes))
    return fail(error_code::malformed_input, "{}: {} bytes of data, but type and shape make {}",
                name, text.size() - array.data_start_, bytes);
  array.bytes_.resize(text.size());
  std::memcpy(array.bytes_.data(), text.data(), text.size());
  return array;
}

}  // namespace ferry
