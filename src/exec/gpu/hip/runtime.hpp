// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The runtime calls that a backend is made of, for AMD's GPUs.
#if defined(FERRY_BACKEND_HIP)
#pragma once

#include <ferry/exec/device.hpp>

#include <hip/hip_runtime_api.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry {

struct host_runtime {
  static constexpr char const* name = "hip";
  using status = hipError_t;
  using stream = hipStream_t;
  using event = hipEvent_t;
  using graph = hipGraph_t;
  using graph_exec = hipGraphExec_t;
  using memory_name = hipIpcMemHandle_t;
  using capture_mode = hipStreamCaptureMode;

  static constexpr status fine = hipSuccess;
  static constexpr status busy = hipErrorNotReady;
  static constexpr status no_driver = hipErrorInsufficientDriver;
  static constexpr status no_device = hipErrorNoDevice;
  static constexpr status no_code = hipErrorNoBinaryForGpu;
  static constexpr status no_memory = hipErrorOutOfMemory;
  static constexpr status reached_already = hipErrorPeerAccessAlreadyEnabled;
  static constexpr capture_mode relaxed = hipStreamCaptureModeRelaxed;

  static char const* describe(status s) { return hipGetErrorString(s); }
  /// Forgets the last failure of this thread, which a later call would repeat.
  static void forget() { static_cast<void>(hipGetLastError()); }

  static status count(int* devices) { return hipGetDeviceCount(devices); }
  /// The runtime says the same where there is no driver and where there is no device.
  static bool driver_is_there() { return access("/dev/kfd", F_OK) == 0; }
  static status make_current(int device) { return hipSetDevice(device); }
  static status current(int* device) { return hipGetDevice(device); }
  static status exchange_capture_mode(capture_mode* m) {
    return hipThreadExchangeStreamCaptureMode(m);
  }
  static status model(char* name, int size, int device) {
    return hipDeviceGetName(name, size, device);
  }
  /// Its place on the bus.
  static status identity(char* name, std::size_t size, int device) {
    return hipDeviceGetPCIBusId(name, static_cast<int>(size), device);
  }
  /// "gfx942", without what follows of features; whether its own e4m3 is the FNUZ one.
  static status architecture(char* name, std::size_t size, bool* fnuz, int device) {
    hipDeviceProp_t all;
    status const s = hipGetDeviceProperties(&all, device);
    if (s != fine) return s;
    std::size_t n = 0;
    for (; n + 1 < size && all.gcnArchName[n] && all.gcnArchName[n] != ':'; ++n)
      name[n] = all.gcnArchName[n];
    name[n] = 0;
    char const only[] = "gfx942";
    *fnuz = n == sizeof only - 1;
    for (std::size_t i = 0; i < n && *fnuz; ++i) *fnuz = name[i] == only[i];
    return fine;
  }
  /// Of the clock that s_memrealtime reads, which older runtimes cannot be asked for: 25 MHz before
  /// gfx94, and 100 MHz from there on.
  static std::int64_t ticks_per_second(char const* architecture) {
    return std::strcmp(architecture, "gfx90a") == 0 ? 25'000'000 : 100'000'000;
  }

  /// Flags lie where no cache of this device, nor of a peer, holds them: fine-grained memory alone
  /// is no more coherent than the other on these devices.
  static status allocate(memory_kind kind, std::size_t bytes, void** at) {
    constexpr unsigned uncached = 0x3;  // older headers have no name for it
    if (kind == memory_kind::flags) return hipExtMallocWithFlags(at, bytes, uncached);
    if (kind == memory_kind::pinned)  // words in it are looked at while kernels run
      return hipHostMalloc(at, bytes,
                           hipHostMallocMapped | hipHostMallocPortable | hipHostMallocCoherent);
    return hipMalloc(at, bytes);
  }
  static status release(memory_kind kind, void* at) {
    return kind == memory_kind::pinned ? hipHostFree(at) : hipFree(at);
  }
  static status export_memory(memory_name* n, void* at) { return hipIpcGetMemHandle(n, at); }
  static status import_memory(void** at, memory_name const& n) {
    return hipIpcOpenMemHandle(at, n, hipIpcMemLazyEnablePeerAccess);
  }
  static status close_import(void* at) { return hipIpcCloseMemHandle(at); }
  static status can_reach(int* can, int device, int peer) {
    return hipDeviceCanAccessPeer(can, device, peer);
  }
  static status reach(int peer) { return hipDeviceEnablePeerAccess(peer, 0); }

  static status make_stream(stream* s) { return hipStreamCreateWithFlags(s, hipStreamNonBlocking); }
  static status destroy_stream(stream s) { return hipStreamDestroy(s); }
  static status synchronise(stream s) { return hipStreamSynchronize(s); }
  static status query(stream s) { return hipStreamQuery(s); }
  static status copy(void* to, void const* from, std::size_t bytes, stream s) {
    return hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, s);
  }
  static status fill(void* to, int value, std::size_t bytes, stream s) {
    return hipMemsetAsync(to, value, bytes, s);
  }

  static status make_event(event* e) { return hipEventCreateWithFlags(e, hipEventDisableTiming); }
  static status destroy_event(event e) { return hipEventDestroy(e); }
  static status record(event e, stream s) { return hipEventRecord(e, s); }
  static status wait_event(stream s, event e) { return hipStreamWaitEvent(s, e, 0); }
  static status query(event e) { return hipEventQuery(e); }

  static status begin_capture(stream s) {
    return hipStreamBeginCapture(s, hipStreamCaptureModeThreadLocal);
  }
  static status is_capturing(stream s, bool* capturing) {
    hipStreamCaptureStatus now;
    status const seen = hipStreamIsCapturing(s, &now);
    *capturing = seen == fine && now != hipStreamCaptureStatusNone;
    return seen;
  }
  static status end_capture(stream s, graph* g) { return hipStreamEndCapture(s, g); }
  static status instantiate(graph_exec* ready, graph g) {
    return hipGraphInstantiate(ready, g, nullptr, nullptr, 0);
  }
  static status destroy(graph g) { return hipGraphDestroy(g); }
  static status launch(graph_exec g, stream s) { return hipGraphLaunch(g, s); }
  static status destroy(graph_exec g) { return hipGraphExecDestroy(g); }
};

}  // namespace ferry
#endif
