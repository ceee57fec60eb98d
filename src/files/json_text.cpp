// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "files/json_text.hpp"

#include "base/fail.hpp"
#include "files/utf8.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <set>
#include <vector>

namespace ferry {
namespace {

using json = nlohmann::json;

/// Thrown through the parser, which has no other way to stop early.
struct refused {
  error why;
};

/// Watches the parser's events for what nlohmann-json itself lets pass.
class strictness {
 public:
  strictness(std::string_view name, int max_depth) : name_(name), max_depth_(max_depth) {}

  bool operator()(int, json::parse_event_t event, json& value) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start: enter(); break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end: keys_.pop_back(); break;
      case json::parse_event_t::key: remember(value.get_ref<std::string const&>()); break;
      default: break;
    }
    return true;
  }

 private:
  void enter() {
    keys_.emplace_back();
    if (static_cast<int>(keys_.size()) > max_depth_)
      throw refused{
          fail(error_code::malformed_input, "{}: more than {} levels of JSON", name_, max_depth_)};
  }
  void remember(std::string const& key) {
    if (!keys_.back().insert(key).second)
      throw refused{
          fail(error_code::malformed_input, "{}: the name \"{}\" stands twice", name_, key)};
  }

  std::string_view name_;
  int max_depth_;
  std::vector<std::set<std::string>> keys_;
};

/// A byte that is no part of a character, or that a terminal would act on, as "\\xNN".
std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    auto front = front_of(text);
    auto piece = text.substr(0, front.bytes);
    bool is_control = front.bytes == 1 && (piece[0] < 0x20 || piece[0] == 0x7F);
    if (front.what == utf8_front::kind::character && !is_control)
      shown += piece;
    else
      for (char byte : piece) shown += fmt::format("\\x{:02X}", static_cast<unsigned char>(byte));
    text.remove_prefix(piece.size());
  }
  return shown;
}

/// nlohmann's messages begin with a tag that says nothing to a reader of ours, and may end with as
/// much of the input as it likes.
std::string shortened(std::string_view what) {
  if (auto end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
  constexpr std::size_t most = 200;
  if (what.size() <= most) return printable(what);
  // Not within a UTF-8 sequence.
  auto cut = most;
  while (cut > 0 && (static_cast<unsigned char>(what[cut]) & 0xC0) == 0x80) --cut;
  return printable(what.substr(0, cut)) + "...";
}

/// Closes a descriptor when it goes.
struct descriptor {
  int fd;
  ~descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

result<json> parse_json(std::string_view text, std::string_view name, int max_depth) {
  try {
    // By reference: the parser copies its callback.
    strictness watch(name, max_depth);
    return json::parse(text, [&](int depth, json::parse_event_t event, json& value) {
      return watch(depth, event, value);
    });
  } catch (refused& r) {
    return std::move(r.why);
  } catch (json::exception const& e) {
    return fail(error_code::malformed_input, "{}: not JSON: {}", name, shortened(e.what()));
  } catch (std::bad_alloc const&) {
    return fail(error_code::out_of_memory, "{}: no memory for its JSON", name);
  }
}

bool is_in_directory(std::filesystem::path const& file) {
  std::error_code ignored;
  return std::filesystem::symlink_status(file, ignored).type() !=
         std::filesystem::file_type::not_found;
}

result<std::string> read_text_file(std::filesystem::path const& file, std::size_t max_bytes) {
  // O_NONBLOCK: opening a pipe would wait for a writer that never comes.
  descriptor in{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (in.fd < 0) return fail_errno(error_code::io, file.string(), errno);
  struct stat about {};
  if (::fstat(in.fd, &about) != 0) return fail_errno(error_code::io, file.string(), errno);
  if (!S_ISREG(about.st_mode)) return fail(error_code::io, "{}: not a regular file", file.string());
  auto bytes = static_cast<std::size_t>(about.st_size);
  if (bytes > max_bytes)
    return fail(error_code::malformed_input, "{}: {} bytes, more than the limit of {}",
                file.string(), bytes, max_bytes);
  std::string text(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    auto got = ::read(in.fd, text.data() + have, bytes - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(error_code::io, file.string(), errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace ferry
