// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a rank computes on, chosen at run time.
#pragma once

#include <ferry/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace ferry {

enum class device_kind : std::uint8_t { cpu, hip, cuda, emulated };
char const* to_string(device_kind kind);

/// What memory is for; a device may keep each kind somewhere else.
enum class memory_kind : std::uint8_t {
  local,   ///< read and written by this device alone
  rows,    ///< written by peers; seen after a flag that covers it
  flags,   ///< words that peers publish: coherent while kernels run
  pinned,  ///< host memory that the device reaches under the same address
};

class device_memory;

/// A device of this machine. Copies are the same device.
///
/// The libraries of GPU vendors are opened when such a device is asked for, and never before: a
/// program needs none of them to start.
class device {
 public:
  /// The CPU.
  device();

  /// The device of that name: "cpu"; "hip" or "cuda", with ":i" for the i-th; "emulated:32" or
  /// "emulated:64" for teams of as many lanes that are played by threads of this process, which
  /// shows a program for GPUs on a machine that has none. Its memory cannot be read by the host,
  /// like a GPU's, except through copies.
  /// Errors   invalid_argument no such name; unsupported the backend's library is not installed or
  ///          of another version, there is no driver, no device, or one of an architecture that the
  ///          library holds no code for: the message says which; device the driver failed
  static result<device> open(std::string_view name);

  device_kind kind() const;
  int ordinal() const;
  std::string const& name() const;          ///< as `open` takes it, with its number
  std::string const& model() const;         ///< the vendor's name of it
  std::string const& architecture() const;  ///< what its code is compiled for
  int lanes() const;                        ///< of its teams
  bool fp8_is_fnuz() const;                 ///< whether its own e4m3 is the FNUZ one

  /// Zeroed memory. `pinned` can be read by the host; the others only on the CPU.
  /// Errors   invalid_argument 0 bytes; out_of_memory, device
  result<device_memory> allocate(memory_kind kind, std::size_t bytes) const;

  friend bool operator==(device const& a, device const& b) { return a.name() == b.name(); }

  struct state;
  state const& about() const { return *state_; }

 private:
  explicit device(std::shared_ptr<state const> s) : state_(std::move(s)) {}
  static result<device> open_numbered(device_kind kind, int ordinal);
  std::shared_ptr<state const> state_;
};

/// Memory of a device, freed with the object.
/// Lifetime  no kernel or copy may still use it when it goes
class device_memory {
 public:
  device_memory() = default;
  device_memory(device_memory&& other) noexcept { swap(other); }
  device_memory& operator=(device_memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~device_memory();

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  device const& where() const { return where_; }

 private:
  friend class device;
  void swap(device_memory& other) noexcept {
    std::swap(where_, other.where_);
    std::swap(kind_, other.kind_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  device where_;
  memory_kind kind_ = memory_kind::local;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ferry
