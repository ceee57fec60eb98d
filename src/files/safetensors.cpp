// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/files/safetensors.hpp>

#include "base/fail.hpp"
#include "files/json_text.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace ferry {
namespace {

using json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "files are mapped as they are");

// The limit that other readers of the format set; real headers reach a few megabytes.
constexpr std::uint64_t max_header_bytes = 100'000'000;
constexpr std::size_t max_dimensions = 32;

struct type_facts {
  storage_type type;
  char const* name;
  std::size_t bytes;
};
constexpr std::array types = {
    type_facts{storage_type::boolean, "BOOL", 1}, type_facts{storage_type::u8, "U8", 1},
    type_facts{storage_type::i8, "I8", 1},        type_facts{storage_type::u16, "U16", 2},
    type_facts{storage_type::i16, "I16", 2},      type_facts{storage_type::u32, "U32", 4},
    type_facts{storage_type::i32, "I32", 4},      type_facts{storage_type::u64, "U64", 8},
    type_facts{storage_type::i64, "I64", 8},      type_facts{storage_type::f16, "F16", 2},
    type_facts{storage_type::bf16, "BF16", 2},    type_facts{storage_type::f32, "F32", 4},
    type_facts{storage_type::f64, "F64", 8},      type_facts{storage_type::e4m3, "F8_E4M3", 1},
    type_facts{storage_type::e5m2, "F8_E5M2", 1}, type_facts{storage_type::e8m0, "F8_E8M0", 1},
};
type_facts const& facts_of(storage_type type) {
  return types[static_cast<std::size_t>(type)];
}

/// A tensor's place. `begin` and `end` count from the end of the header.
struct entry {
  storage_type type = storage_type::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Reads tensors' entries out of a header, and words every refusal with file and tensor.
class header_reader {
 public:
  explicit header_reader(std::string_view file) : file_(file) {}

  result<entry> read(std::string const& name, json const& value) const {
    if (!value.is_object()) return bad(name, "its entry is not an object");
    entry e;
    FERRY_TRY(e.type, read_type(name, value));
    FERRY_TRY(auto bytes, read_shape(name, value, e));
    FERRY_CHECK(read_offsets(name, value, e));
    if (e.end - e.begin != bytes)
      return bad(name, fmt::format("{} bytes of data, but type and shape make {}", e.end - e.begin,
                                   bytes));
    return e;
  }

 private:
  error bad(std::string_view name, std::string_view why) const {
    return fail(error_code::malformed_input, "{}: tensor \"{}\": {}", file_, name, why);
  }

  result<storage_type> read_type(std::string const& name, json const& value) const {
    auto at = value.find("dtype");
    if (at == value.end() || !at->is_string()) return bad(name, "no dtype");
    auto const& text = at->get_ref<std::string const&>();
    for (auto const& t : types)
      if (text == t.name) return t.type;
    return bad(name, fmt::format("unknown dtype \"{}\"", text));
  }

  /// Sets the shape and returns the bytes that it makes.
  result<std::uint64_t> read_shape(std::string const& name, json const& value, entry& e) const {
    auto at = value.find("shape");
    if (at == value.end() || !at->is_array()) return bad(name, "no shape");
    if (at->size() > max_dimensions)
      return bad(name, fmt::format("{} dimensions, more than {}", at->size(), max_dimensions));
    // A zero among the dimensions must not hide an overflow among the others.
    std::int64_t product = static_cast<std::int64_t>(bytes_of(e.type));
    bool none = false;
    for (auto const& d : *at) {
      if (!d.is_number_unsigned() || d.get<std::uint64_t>() > INT64_MAX)
        return bad(name, fmt::format("{} is no dimension", d.dump(-1, ' ', true)));
      e.shape.push_back(d.get<std::int64_t>());
      if (e.shape.back() == 0) {
        none = true;
      } else if (__builtin_mul_overflow(product, e.shape.back(), &product)) {
        return bad(name, fmt::format("its shape {} makes more than 2^63 bytes", at->dump()));
      }
    }
    return none ? 0 : static_cast<std::uint64_t>(product);
  }

  result<void> read_offsets(std::string const& name, json const& value, entry& e) const {
    auto at = value.find("data_offsets");
    bool two = at != value.end() && at->is_array() && at->size() == 2 &&
               (*at)[0].is_number_unsigned() && (*at)[1].is_number_unsigned();
    if (!two) return bad(name, "no pair of data_offsets");
    e.begin = (*at)[0].get<std::uint64_t>();
    e.end = (*at)[1].get<std::uint64_t>();
    if (e.begin > e.end)
      return bad(name, fmt::format("its data ends at {}, before it begins at {}", e.end, e.begin));
    return {};
  }

  std::string_view file_;
};

/// The bytes [offset, offset + size) of a file; fewer where it ends.
result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size,
                            std::string const& file) {
  std::string text(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    auto got = ::pread(fd, text.data() + have, size - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(error_code::io, file, errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace

std::size_t bytes_of(storage_type type) {
  return facts_of(type).bytes;
}
char const* to_string(storage_type type) {
  return facts_of(type).name;
}

std::int64_t tensor_view::size() const {
  std::int64_t product = 1;
  for (auto d : shape) product *= d;
  return product;
}

struct safetensors::state {
  std::filesystem::path path;
  int fd = -1;
  std::uint64_t file_bytes = 0;
  std::uint64_t data_start = 0;
  std::map<std::string, entry, std::less<>> entries;
  std::map<std::string, std::string> metadata;

  std::mutex lock;  // of what follows: made when first asked for
  std::byte* mapping = nullptr;
  std::map<entry const*, std::vector<std::byte>> aligned_copies;

  ~state() {
    if (mapping) ::munmap(mapping, file_bytes);
    if (fd >= 0) ::close(fd);
  }

  result<void> open_file();
  result<void> read_header();
  result<void> read_entries(json const& header);
  result<void> check_order() const;
  result<void> map();
  std::span<std::byte const> view(entry const& e);
};

result<void> safetensors::state::open_file() {
  // O_NONBLOCK: opening a pipe would wait for a writer that never comes.
  fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail_errno(error_code::io, path.string(), errno);
  struct stat about {};
  if (::fstat(fd, &about) != 0) return fail_errno(error_code::io, path.string(), errno);
  if (!S_ISREG(about.st_mode)) return fail(error_code::io, "{}: not a regular file", path.string());
  file_bytes = static_cast<std::uint64_t>(about.st_size);
  return {};
}

result<void> safetensors::state::read_header() {
  auto name = path.string();
  std::uint64_t length = 0;
  if (file_bytes < sizeof length)
    return fail(error_code::malformed_input, "{}: {} bytes, too short for a header", name,
                file_bytes);
  FERRY_TRY(auto prefix, read_at(fd, 0, sizeof length, name));
  if (prefix.size() != sizeof length)
    return fail(error_code::io, "{}: ended while it was read", name);
  std::memcpy(&length, prefix.data(), sizeof length);
  if (length > max_header_bytes)
    return fail(error_code::malformed_input, "{}: header of {} bytes, more than the limit of {}",
                name, length, max_header_bytes);
  if (length > file_bytes - sizeof length)
    return fail(error_code::malformed_input,
                "{}: header of {} bytes, but the file has {} bytes in all", name, length,
                file_bytes);
  FERRY_TRY(auto text, read_at(fd, sizeof length, length, name));
  if (text.size() != length) return fail(error_code::io, "{}: ended while it was read", name);
  data_start = sizeof length + length;
  FERRY_TRY(auto header, parse_json(text, name + ": header", 8));
  FERRY_CHECK(read_entries(header));
  return check_order();
}

result<void> safetensors::state::read_entries(json const& header) {
  auto name = path.string();
  if (!header.is_object())
    return fail(error_code::malformed_input, "{}: the header is not an object", name);
  header_reader reader(name);
  for (auto const& [key, value] : header.items()) {
    if (key != "__metadata__") {
      FERRY_TRY(auto e, reader.read(key, value));
      entries.emplace(key, std::move(e));
      continue;
    }
    if (!value.is_object())
      return fail(error_code::malformed_input, "{}: __metadata__ is not an object", name);
    for (auto const& [fact, text] : value.items()) {
      if (!text.is_string())
        return fail(error_code::malformed_input, "{}: __metadata__ \"{}\" is not a string", name,
                    fact);
      metadata.emplace(fact, text.get<std::string>());
    }
  }
  return {};
}

/// The format wants tensors to fill the data without gap or overlap. A cut or patched file breaks
/// that first.
result<void> safetensors::state::check_order() const {
  std::vector<std::pair<std::string const*, entry const*>> order;
  for (auto const& [name, e] : entries) order.emplace_back(&name, &e);
  std::sort(order.begin(), order.end(), [](auto const& a, auto const& b) {
    return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
  });
  std::uint64_t at = 0;
  std::uint64_t data_bytes = file_bytes - data_start;
  for (auto const& [name, e] : order) {
    if (e->end > data_bytes)
      return fail(error_code::malformed_input,
                  "{}: tensor \"{}\": its data ends at {}, but the file holds {} bytes of data",
                  path.string(), *name, e->end, data_bytes);
    if (e->begin != at)
      return fail(error_code::malformed_input,
                  "{}: tensor \"{}\": its data begins at {}, but the one before ends at {}",
                  path.string(), *name, e->begin, at);
    at = e->end;
  }
  if (at != data_bytes)
    return fail(error_code::malformed_input, "{}: {} bytes of data, but its tensors end at {}",
                path.string(), data_bytes, at);
  return {};
}

/// The whole file in one mapping: it costs addresses, not memory. Mapping each tensor would cost a
/// system call and a kernel object for each of tens of thousands. MADV_RANDOM keeps the kernel from
/// reading beyond what is touched, so that experts of other ranks stay on disk; `view` then asks
/// for exactly the tensor's own pages in one go.
result<void> safetensors::state::map() {
  if (mapping || file_bytes == 0) return {};
  void* at = ::mmap(nullptr, file_bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return fail_errno(error_code::io, path.string() + ": mmap", errno);
  mapping = static_cast<std::byte*>(at);
  ::madvise(mapping, file_bytes, MADV_RANDOM);
  ::close(std::exchange(fd, -1));
  return {};
}

std::span<std::byte const> safetensors::state::view(entry const& e) {
  std::size_t bytes = e.end - e.begin;
  if (bytes == 0) return {};
  auto* first = mapping + data_start + e.begin;
  if (reinterpret_cast<std::uintptr_t>(first) % bytes_of(e.type) != 0) {
    // Legal, though good writers pad their headers: elements would straddle their alignment.
    auto [copy, added] = aligned_copies.try_emplace(&e);
    if (added) copy->second.assign(first, first + bytes);
    return copy->second;
  }
  auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto down = reinterpret_cast<std::uintptr_t>(first) / page * page;
  ::madvise(reinterpret_cast<void*>(down), reinterpret_cast<std::uintptr_t>(first) + bytes - down,
            MADV_WILLNEED);
  return {first, bytes};
}

safetensors::safetensors(std::shared_ptr<state> s) : state_(std::move(s)) {}

result<safetensors> safetensors::open(std::filesystem::path const& file) {
  try {
    auto s = std::make_shared<state>();
    s->path = file;
    FERRY_CHECK(s->open_file());
    FERRY_CHECK(s->read_header());
    return safetensors(std::move(s));
  } catch (std::bad_alloc const&) {
    return fail(error_code::out_of_memory, "{}: no memory for its header", file.string());
  }
}

bool safetensors::has(std::string_view name) const {
  return state_->entries.find(name) != state_->entries.end();
}

result<tensor_view> safetensors::tensor(std::string_view name) const {
  auto at = state_->entries.find(name);
  if (at == state_->entries.end())
    return fail(error_code::invalid_argument, "{}: no tensor \"{}\"", state_->path.string(), name);
  auto const& e = at->second;
  std::lock_guard guard(state_->lock);
  FERRY_CHECK(state_->map());
  try {
    return tensor_view{e.type, e.shape, state_->view(e), at->first};
  } catch (std::bad_alloc const&) {
    return fail(error_code::out_of_memory, "{}: no memory for tensor \"{}\"", state_->path.string(),
                name);
  }
}

std::vector<std::string_view> safetensors::names() const {
  std::vector<std::string_view> all;
  for (auto const& [name, e] : state_->entries) all.push_back(name);
  return all;
}

std::map<std::string, std::string> const& safetensors::metadata() const {
  return state_->metadata;
}

std::filesystem::path const& safetensors::path() const {
  return state_->path;
}

}  // namespace ferry
