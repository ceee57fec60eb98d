// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exec/backend_library.hpp"

#include "base/fail.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace ferry {
namespace {

// Something of this library, whose file the system can name.
char const anchor = 0;

std::vector<std::string> places_of(std::string const& file) {
  std::vector<std::string> places;
  Dl_info about{};
  if (dladdr(&anchor, &about) && about.dli_fname) {
    std::error_code ignored;
    // A program that was found on the PATH is named without its folder.
    std::filesystem::path self = std::filesystem::path(about.dli_fname).has_parent_path()
                                     ? std::filesystem::path(about.dli_fname)
                                     : std::filesystem::read_symlink("/proc/self/exe", ignored);
    std::filesystem::path const folder =
        std::filesystem::weakly_canonical(self, ignored).parent_path();
    if (!folder.empty()) {
      places.push_back((folder / file).string());
      places.push_back((folder.parent_path() / "lib" / file).string());
    }
  }
  places.push_back(file);
  return places;
}

std::string last_message() {
  char const* const text = dlerror();
  return text ? text : "no reason given";
}

result<device_backend const*> table_of(void* library, std::string const& file) {
  auto const entry = reinterpret_cast<backend_entry>(dlsym(library, "ferry_backend"));
  if (!entry)
    return fail(error_code::unsupported, "{} is no backend of ferry: {}", file, last_message());
  device_backend const* const table = entry();
  if (table->version != device_backend::current_version ||
      table->table_bytes != sizeof(device_backend))
    return fail(error_code::unsupported,
                "{} has version {} ({} bytes) of the backend's table; this "
                "ferry has version {} ({} bytes)",
                file, table->version, table->table_bytes, device_backend::current_version,
                sizeof(device_backend));
  return table;
}

result<device_backend const*> find_and_open(std::string const& name) {
  std::string reasons;
  for (std::string const& place : places_of("libferry_" + name + ".so")) {
    if (void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))
      return table_of(library, place);
    // A file that is there and cannot be opened is the reason; that there is none elsewhere is not.
    std::string const reason = last_message();
    bool const there = place.find('/') != std::string::npos && access(place.c_str(), F_OK) == 0;
    if (there) return fail(error_code::unsupported, "cannot open the {} backend: {}", name, reason);
    reasons = reason;
  }
  return fail(error_code::unsupported, "no library of the {} backend: {}", name, reasons);
}

}  // namespace

result<device_backend const*> open_backend_file(std::string const& file) {
  if (void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
    return table_of(library, file);
  return fail(error_code::unsupported, "cannot open a backend: {}", last_message());
}

result<device_backend const*> open_backend(std::string const& name) {
  static std::mutex guard;
  static std::map<std::string, device_backend const*> opened;
  std::lock_guard const lock(guard);
  if (auto const found = opened.find(name); found != opened.end()) return found->second;
  FERRY_TRY(device_backend const* const table, find_and_open(name));
  opened.emplace(name, table);
  return table;
}

}  // namespace ferry
