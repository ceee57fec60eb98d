// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exec/emulated/emulated_backend.hpp"

#include "base/fail.hpp"
#include "exec/emulated/emulated_memory.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

namespace ferry {
namespace {

template <class Call>
backend_status checked(Call const& call) {
  try {
    return to_status(call());
  } catch (std::exception const& e) {
    return to_status(fail(error_code::out_of_memory, "emulated device: {}", e.what()));
  }
}

// Makes an object behind a handle.
template <class T>
backend_status make(void** handle) {
  return checked([&]() -> result<void> {
    *handle = new T();
    return {};
  });
}
template <class T>
backend_status destroy(int, void* handle) {
  delete static_cast<T*>(handle);
  return {};
}

backend_status count(int* devices) {
  *devices = emulated_widths::wide + 1;  // a width is its own ordinal
  return {};
}

backend_status describe(int ordinal, device_facts* facts) {
  if (ordinal != emulated_widths::narrow && ordinal != emulated_widths::wide)
    return to_status(fail(error_code::invalid_argument,
                          "an emulated device with teams of {} lanes; 32 or 64 are possible",
                          ordinal));
  std::snprintf(facts->model, sizeof facts->model, "teams of %d lanes, played by threads", ordinal);
  std::snprintf(facts->architecture, sizeof facts->architecture, "host");
  std::snprintf(facts->identity, sizeof facts->identity, "teams of %d lanes", ordinal);
  facts->lanes = ordinal;
  facts->ticks_per_second = 1'000'000'000;
  return {};
}
thread_local int current_of_this_thread = -1;

backend_status make_current(int ordinal, int* before) {
  if (before) *before = current_of_this_thread;
  current_of_this_thread = ordinal;
  return {};
}

backend_status allocate(int, memory_kind kind, std::size_t bytes, void** at) {
  return checked([&]() -> result<void> {
    FERRY_TRY(*at, emulated_memory::allocate(kind, bytes));
    return {};
  });
}
backend_status release(int, memory_kind, void* at) {
  emulated_memory::release(at);
  return {};
}

backend_status no_other_process() {
  return to_status(
      fail(error_code::unsupported,
           "memory of an emulated device stays in its process: ranks must be threads"));
}
backend_status export_memory(int, void*, memory_handle*) {
  return no_other_process();
}
backend_status import_memory(int, memory_handle const*, void**) {
  return no_other_process();
}
backend_status close_import(int, void*) {
  return no_other_process();
}
backend_status reach(int, int) {
  return {};
}

backend_status make_stream(int, void** stream) {
  return make<host_stream>(stream);
}
backend_status stream_done(int, void* stream, bool* done) {
  return checked([&]() -> result<void> {
    FERRY_TRY(*done, emulated_stream(stream).is_done());
    return {};
  });
}
backend_status copy(int, void* stream, void* to, void const* from, std::size_t bytes) {
  return checked([&]() -> result<void> {
    return emulated_stream(stream).put([=]() -> result<void> {
      std::memcpy(emulated_memory::reached_by_copy(to), emulated_memory::reached_by_copy(from),
                  bytes);
      return {};
    });
  });
}
backend_status fill(int, void* stream, void* to, int value, std::size_t bytes) {
  return checked([&]() -> result<void> {
    return emulated_stream(stream).put([=]() -> result<void> {
      std::memset(emulated_memory::reached_by_copy(to), value, bytes);
      return {};
    });
  });
}

host_event& event_of(void* handle) {
  return *static_cast<host_event*>(handle);
}
backend_status make_event(int, void** event) {
  return make<host_event>(event);
}
backend_status record(int, void* event, void* stream) {
  return checked([&]() -> result<void> {
    emulated_stream(stream).record(event_of(event));
    return {};
  });
}
backend_status wait_event(int, void* stream, void* event) {
  return checked([&] { return emulated_stream(stream).wait_for(event_of(event)); });
}
backend_status event_done(int, void* event, bool* done) {
  return checked([&]() -> result<void> {
    FERRY_TRY(*done, event_of(event).has_happened());
    return {};
  });
}

backend_status begin_capture(int, void* stream) {
  return checked([&] { return emulated_stream(stream).begin_capture(); });
}
backend_status is_capturing(int, void* stream, bool* capturing) {
  *capturing = emulated_stream(stream).is_capturing();
  return {};
}
backend_status end_capture(int, void* stream, void** graph) {
  return checked([&]() -> result<void> {
    FERRY_TRY(auto made, emulated_stream(stream).end_capture());
    *graph = new std::shared_ptr<host_graph>(std::move(made));
    return {};
  });
}
backend_status launch_graph(int, void* graph, void* stream) {
  return checked([&] {
    return emulated_stream(stream).launch(*static_cast<std::shared_ptr<host_graph>*>(graph));
  });
}

constexpr device_backend table{
    .version = device_backend::current_version,
    .table_bytes = sizeof(device_backend),
    .name = "emulated",
    .count = count,
    .describe = describe,
    .make_current = make_current,
    .allocate = allocate,
    .release = release,
    .export_memory = export_memory,
    .import_memory = import_memory,
    .close_import = close_import,
    .reach = reach,
    .make_stream = make_stream,
    .destroy_stream = destroy<host_stream>,
    .stream_done = stream_done,
    .copy = copy,
    .fill = fill,
    .make_event = make_event,
    .destroy_event = destroy<host_event>,
    .record = record,
    .wait_event = wait_event,
    .event_done = event_done,
    .begin_capture = begin_capture,
    .is_capturing = is_capturing,
    .end_capture = end_capture,
    .launch_graph = launch_graph,
    .destroy_graph = destroy<std::shared_ptr<host_graph>>,
    .kernels = nullptr,
};

}  // namespace

device_backend const& emulated_backend() {
  return table;
}

result<void> check_current_emulated(int lanes) {
  if (current_of_this_thread == lanes) return {};
  return fail(error_code::device,
              "a launch for teams of {} lanes, but the thread's current device is {}", lanes,
              current_of_this_thread);
}

}  // namespace ferry
