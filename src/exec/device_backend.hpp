// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a kind of device can do: a table of plain functions, filled by the library of its vendor
/// (opened on demand) or by the emulated device. The core knows nothing else of any device.
///
/// All functions may be called from any thread, with any of the device's objects, also while some
/// thread captures; but for make_current they leave the thread's current device as it was. They
/// never throw. Streams, events and graphs are the vendor's own handles.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exec/device.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

/// How a call went. Plain data, because it crosses from one shared library into another.
struct backend_status {
  std::int32_t failed = 0;  ///< 0, or 1 + the error_code
  char message[252] = {};
};

/// What can be asked of a device before anything is made on it. Plain data.
struct device_facts {
  char model[96] = {};         ///< the vendor's name of it
  char architecture[32] = {};  ///< what code is compiled for
  std::int32_t lanes = 0;
  std::int32_t fp8_is_fnuz = 0;
  std::int64_t ticks_per_second = 0;  ///< of the clock that waits of kernels read
  /// The same for one device in all processes of the machine, and for no other: an ordinal depends
  /// on which devices a process may see.
  char identity[64] = {};
};

/// A name of device memory that another process of this machine can open.
struct memory_handle {
  std::byte bytes[64] = {};
};

struct device_backend {
  /// Of this table's form; a library with another one is refused.
  static constexpr std::uint32_t current_version = 2;
  std::uint32_t version;
  std::uint32_t table_bytes;
  char const* name;

  /// Fails where there is no driver or no device, and says which.
  backend_status (*count)(int* devices);
  /// Fails where the device is of an architecture that the library holds no code for.
  backend_status (*describe)(int ordinal, device_facts* facts);
  /// Makes it the calling thread's current device, which launches of kernels go to, and says in
  /// `before`, unless that is null, which one was: -1 where the thread has used none. To go back to
  /// -1 is no choice.
  backend_status (*make_current)(int ordinal, int* before);

  backend_status (*allocate)(int ordinal, memory_kind kind, std::size_t bytes, void** at);
  backend_status (*release)(int ordinal, memory_kind kind, void* at);
  backend_status (*export_memory)(int ordinal, void* at, memory_handle* handle);
  backend_status (*import_memory)(int ordinal, memory_handle const* handle, void** at);
  backend_status (*close_import)(int ordinal, void* at);
  /// Lets kernels on `ordinal` reach memory of device `peer` through plain pointers.
  backend_status (*reach)(int ordinal, int peer);

  backend_status (*make_stream)(int ordinal, void** stream);
  backend_status (*destroy_stream)(int ordinal, void* stream);
  /// Whether all that was put on the stream is done. Fails with what failed there.
  backend_status (*stream_done)(int ordinal, void* stream, bool* done);
  /// Either side may be host memory; the copy runs when its turn comes.
  backend_status (*copy)(int ordinal, void* stream, void* to, void const* from, std::size_t bytes);
  backend_status (*fill)(int ordinal, void* stream, void* to, int value, std::size_t bytes);

  backend_status (*make_event)(int ordinal, void** event);
  backend_status (*destroy_event)(int ordinal, void* event);
  backend_status (*record)(int ordinal, void* event, void* stream);
  backend_status (*wait_event)(int ordinal, void* stream, void* event);
  backend_status (*event_done)(int ordinal, void* event, bool* done);

  backend_status (*begin_capture)(int ordinal, void* stream);
  backend_status (*is_capturing)(int ordinal, void* stream, bool* capturing);
  /// Ends the capture and makes it ready to be launched.
  backend_status (*end_capture)(int ordinal, void* stream, void** graph);
  backend_status (*launch_graph)(int ordinal, void* graph, void* stream);
  backend_status (*destroy_graph)(int ordinal, void* graph);

  /// The exchange's kernels for such devices: a gpu_kernels of the layer `kernels`.
  void const* kernels;
};

/// The entry point of a vendor's library: `ferry_backend`, without arguments.
using backend_entry = device_backend const* (*)();

/// The status as an error of this process.
result<void> to_result(backend_status const& status);
/// An error as a status; a long message is cut.
backend_status to_status(result<void> const& outcome);

/// What a device is behind its handle. `backend` is null for the CPU.
struct device::state {
  device_backend const* backend = nullptr;
  device_kind kind = device_kind::cpu;
  int ordinal = 0;
  std::string name = "cpu";
  std::string model;
  std::string architecture;
  std::string identity;
  int lanes = 1;
  bool fp8_is_fnuz = false;
  std::int64_t ticks_per_second = 0;
};

}  // namespace ferry
