// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// A vendor's GPUs as a backend: the table's functions over `host_runtime`, the calls of one vendor.
// Compiled once for each vendor's library, which no program links: it is opened on demand.

#include "exec/device_backend.hpp"
#include "exec/gpu/backend_kernels.hpp"
#include "exec/gpu/host_runtime.hpp"

#include <cstdio>
#include <cstring>

namespace ferry {

namespace {

using rt = host_runtime;

template <class... Args>
backend_status failed(error_code code, char const* format, Args... args) {
  backend_status s;
  s.failed = 1 + static_cast<int>(code);
  std::snprintf(s.message, sizeof s.message, format, args...);
  return s;
}

backend_status from(rt::status s, char const* doing) {
  if (s == rt::fine) return {};
  rt::forget();
  return failed(s == rt::no_memory ? error_code::out_of_memory : error_code::device,
                "%s: %s: %s (%d)", rt::name, doing, rt::describe(s), static_cast<int>(s));
}

// Chooses a device for this thread, unless it is chosen already.
rt::status choose(int ordinal, int* before) {
  rt::status s = rt::current(before);
  if (s == rt::fine && *before != ordinal && ordinal >= 0) s = rt::make_current(ordinal);
  return s;
}

// Calls that touch no stream which is captured would else end the capture of this thread, or of
// another one that captures for all.
class beside_captures {
 public:
  beside_captures() { swap(); }
  ~beside_captures() { swap(); }
  beside_captures(beside_captures const&) = delete;

 private:
  void swap() { static_cast<void>(rt::exchange_capture_mode(&mode_)); }
  rt::capture_mode mode_ = rt::relaxed;
};

// Calls on the device's own context.
template <class Call>
backend_status on(int ordinal, char const* doing, Call const& call) {
  int before = -1;
  rt::status s = choose(ordinal, &before);
  if (s == rt::fine) {
    beside_captures const apart;
    s = call();
  }
  backend_status const outcome = from(s, doing);
  if (before >= 0 && before != ordinal) static_cast<void>(rt::make_current(before));
  return outcome;
}

backend_status count(int* devices) {
  *devices = 0;
  rt::status const s = rt::count(devices);
  if (s == rt::fine && *devices > 0) return {};
  rt::forget();
  // A missing or old driver leaves the count as it was.
  *devices = 0;
  if (s == rt::no_driver || !rt::driver_is_there())
    return failed(error_code::unsupported,
                  "no driver for %s devices, or one that is too old: %s (%d)", rt::name,
                  rt::describe(s), static_cast<int>(s));
  if (s == rt::fine || s == rt::no_device)
    return failed(error_code::unsupported, "no device: %s finds none on this machine (%s)",
                  rt::name, rt::describe(rt::no_device));
  return failed(error_code::device, "%s cannot count the devices: %s (%d)", rt::name,
                rt::describe(s), static_cast<int>(s));
}

bool is_listed(char const* architecture, char const* list) {
  std::size_t const length = std::strlen(architecture);
  for (char const* at = list; (at = std::strstr(at, architecture)); at += length)
    if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' ')) return true;
  return false;
}

backend_status describe(int ordinal, device_facts* facts) {
  *facts = {};
  bool fnuz = false;
  backend_status s = on(ordinal, "asking what the device is", [&] {
    rt::status seen = rt::model(facts->model, sizeof facts->model, ordinal);
    if (seen == rt::fine) seen = rt::identity(facts->identity, sizeof facts->identity, ordinal);
    return seen != rt::fine
               ? seen
               : rt::architecture(facts->architecture, sizeof facts->architecture, &fnuz, ordinal);
  });
  if (s.failed) return s;
  backend_kernels const kernels = kernels_of_backend();
  rt::status loaded = rt::fine;
  s = on(ordinal, "choosing the device", [&] {
    loaded = static_cast<rt::status>(kernels.load());
    return rt::fine;
  });
  if (s.failed) return s;
  if (loaded == rt::no_code ||
      (loaded != rt::fine && !is_listed(facts->architecture, kernels.architectures))) {
    rt::forget();
    return failed(error_code::unsupported,
                  "wrong architecture: device %d is a %s (%s); this build holds code for %s",
                  ordinal, facts->architecture, facts->model, kernels.architectures);
  }
  if (loaded != rt::fine) return from(loaded, "loading the exchange's kernels");
  facts->lanes = kernels.lanes;
  facts->fp8_is_fnuz = fnuz;
  facts->ticks_per_second = rt::ticks_per_second(facts->architecture);
  return {};
}

backend_status make_current(int ordinal, int* before) {
  int was = -1;
  backend_status const outcome = from(choose(ordinal, &was), "choosing the device");
  if (before) *before = was;
  return outcome;
}

// On a stream of its own: the default one waits for what others are doing, who may wait for us.
rt::status zero(void* at, std::size_t bytes) {
  rt::stream own;
  rt::status s = rt::make_stream(&own);
  if (s != rt::fine) return s;
  s = rt::fill(at, 0, bytes, own);
  if (s == rt::fine) s = rt::synchronise(own);
  rt::status const gone = rt::destroy_stream(own);
  return s == rt::fine ? gone : s;
}

backend_status allocate(int ordinal, memory_kind kind, std::size_t bytes, void** at) {
  return on(ordinal, "allocating memory", [&] {
    rt::status s = rt::allocate(kind, bytes, at);
    if (s != rt::fine) return s;
    if (kind == memory_kind::pinned)
      std::memset(*at, 0, bytes);
    else
      s = zero(*at, bytes);
    if (s != rt::fine) static_cast<void>(rt::release(kind, *at));
    return s;
  });
}
backend_status release(int ordinal, memory_kind kind, void* at) {
  return on(ordinal, "freeing memory", [&] { return rt::release(kind, at); });
}

backend_status export_memory(int ordinal, void* at, memory_handle* handle) {
  static_assert(sizeof(rt::memory_name) <= sizeof(memory_handle));
  return on(ordinal, "naming memory for other processes", [&] {
    rt::memory_name name;
    rt::status const s = rt::export_memory(&name, at);
    if (s == rt::fine) std::memcpy(handle->bytes, &name, sizeof name);
    return s;
  });
}
backend_status import_memory(int ordinal, memory_handle const* handle, void** at) {
  return on(ordinal, "opening another process's memory", [&] {
    rt::memory_name name;
    std::memcpy(&name, handle->bytes, sizeof name);
    return rt::import_memory(at, name);
  });
}
backend_status close_import(int ordinal, void* at) {
  return on(ordinal, "closing another process's memory", [&] { return rt::close_import(at); });
}
backend_status reach(int ordinal, int peer) {
  int can = 0;
  backend_status s = on(ordinal, "asking whether devices reach each other",
                        [&] { return rt::can_reach(&can, ordinal, peer); });
  if (s.failed) return s;
  if (!can)
    return failed(error_code::unsupported, "%s:%d cannot reach the memory of %s:%d", rt::name,
                  ordinal, rt::name, peer);
  return on(ordinal, "reaching another device's memory", [&] {
    rt::status const reached = rt::reach(peer);
    if (reached != rt::reached_already) return reached;
    rt::forget();
    return rt::fine;
  });
}

rt::stream stream_of(void* handle) {
  return static_cast<rt::stream>(handle);
}
backend_status make_stream(int ordinal, void** stream) {
  return on(ordinal, "making a stream", [&] {
    rt::stream made = nullptr;
    rt::status const s = rt::make_stream(&made);
    *stream = made;
    return s;
  });
}
backend_status destroy_stream(int ordinal, void* stream) {
  return on(ordinal, "ending a stream", [&] {
    rt::status const s = rt::synchronise(stream_of(stream));
    rt::status const gone = rt::destroy_stream(stream_of(stream));
    return s == rt::fine ? gone : s;
  });
}
backend_status stream_done(int ordinal, void* stream, bool* done) {
  return on(ordinal, "the work on a stream", [&] {
    rt::status const s = rt::query(stream_of(stream));
    *done = s == rt::fine;
    return s == rt::busy ? rt::fine : s;
  });
}
backend_status copy(int ordinal, void* stream, void* to, void const* from, std::size_t bytes) {
  return on(ordinal, "copying", [&] { return rt::copy(to, from, bytes, stream_of(stream)); });
}
backend_status fill(int ordinal, void* stream, void* to, int value, std::size_t bytes) {
  return on(ordinal, "filling", [&] { return rt::fill(to, value, bytes, stream_of(stream)); });
}

rt::event event_of(void* handle) {
  return static_cast<rt::event>(handle);
}
backend_status make_event(int ordinal, void** event) {
  return on(ordinal, "making an event", [&] {
    rt::event made = nullptr;
    rt::status const s = rt::make_event(&made);
    *event = made;
    return s;
  });
}
backend_status destroy_event(int ordinal, void* event) {
  return on(ordinal, "ending an event", [&] { return rt::destroy_event(event_of(event)); });
}
backend_status record(int ordinal, void* event, void* stream) {
  return on(ordinal, "recording an event",
            [&] { return rt::record(event_of(event), stream_of(stream)); });
}
backend_status wait_event(int ordinal, void* stream, void* event) {
  return on(ordinal, "waiting for an event",
            [&] { return rt::wait_event(stream_of(stream), event_of(event)); });
}
backend_status event_done(int ordinal, void* event, bool* done) {
  return on(ordinal, "an event", [&] {
    rt::status const s = rt::query(event_of(event));
    *done = s == rt::fine;
    return s == rt::busy ? rt::fine : s;
  });
}

backend_status begin_capture(int ordinal, void* stream) {
  bool already = false;
  backend_status const s = on(ordinal, "asking whether a queue is captured",
                              [&] { return rt::is_capturing(stream_of(stream), &already); });
  if (s.failed) return s;
  if (already) return failed(error_code::invalid_state, "the queue is being captured already");
  return on(ordinal, "beginning a capture", [&] { return rt::begin_capture(stream_of(stream)); });
}
backend_status is_capturing(int ordinal, void* stream, bool* capturing) {
  return on(ordinal, "asking whether a queue is captured",
            [&] { return rt::is_capturing(stream_of(stream), capturing); });
}
backend_status end_capture(int ordinal, void* stream, void** ready) {
  rt::graph made = nullptr;
  rt::status const ended = rt::end_capture(stream_of(stream), &made);
  if (ended != rt::fine) {
    rt::forget();
    return failed(error_code::invalid_state, "the capture cannot be ended: %s (%d)",
                  rt::describe(ended), static_cast<int>(ended));
  }
  return on(ordinal, "making a graph ready", [&] {
    rt::graph_exec executable = nullptr;
    rt::status const s = rt::instantiate(&executable, made);
    *ready = executable;
    rt::status const gone = rt::destroy(made);
    return s == rt::fine ? gone : s;
  });
}
backend_status launch_graph(int ordinal, void* graph, void* stream) {
  return on(ordinal, "launching a graph",
            [&] { return rt::launch(static_cast<rt::graph_exec>(graph), stream_of(stream)); });
}
backend_status destroy_graph(int ordinal, void* graph) {
  return on(ordinal, "ending a graph",
            [&] { return rt::destroy(static_cast<rt::graph_exec>(graph)); });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) device_backend const* ferry_backend() {
  static device_backend const table{
      .version = device_backend::current_version,
      .table_bytes = sizeof(device_backend),
      .name = rt::name,
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
      .destroy_stream = destroy_stream,
      .stream_done = stream_done,
      .copy = copy,
      .fill = fill,
      .make_event = make_event,
      .destroy_event = destroy_event,
      .record = record,
      .wait_event = wait_event,
      .event_done = event_done,
      .begin_capture = begin_capture,
      .is_capturing = is_capturing,
      .end_capture = end_capture,
      .launch_graph = launch_graph,
      .destroy_graph = destroy_graph,
      .kernels = kernels_of_backend().table,
  };
  return &table;
}

}  // namespace ferry
