// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The runtime calls that a backend is made of, for NVIDIA's GPUs.
#if defined(FERRY_BACKEND_CUDA)
#pragma once

#include <ferry/exec/device.hpp>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace ferry {

struct host_runtime {
  static constexpr char const* name = "cuda";
  using status = cudaError_t;
  using stream = cudaStream_t;
  using event = cudaEvent_t;
  using graph = cudaGraph_t;
  using graph_exec = cudaGraphExec_t;
  using memory_name = cudaIpcMemHandle_t;
  using capture_mode = cudaStreamCaptureMode;

  static constexpr status fine = cudaSuccess;
  static constexpr status busy = cudaErrorNotReady;
  static constexpr status no_driver = cudaErrorInsufficientDriver;
  static constexpr status no_device = cudaErrorNoDevice;
  static constexpr status no_code = cudaErrorNoKernelImageForDevice;
  static constexpr status no_memory = cudaErrorMemoryAllocation;
  static constexpr status reached_already = cudaErrorPeerAccessAlreadyEnabled;
  static constexpr capture_mode relaxed = cudaStreamCaptureModeRelaxed;

  static char const* describe(status s) { return cudaGetErrorString(s); }
  /// Forgets the last failure of this thread, which a later call would repeat.
  static void forget() { static_cast<void>(cudaGetLastError()); }

  static status count(int* devices) { return cudaGetDeviceCount(devices); }
  /// `count` says whether it is.
  static bool driver_is_there() { return true; }
  static status make_current(int device) { return cudaSetDevice(device); }
  /// The thread's current device; -1 where it has used none. The runtime says 0 then, and a choice
  /// of device 0 would make a context there, which costs every process memory of that device.
  static status current(int* device) {
    *device = -1;
    void* context = nullptr;
    if (!driver().context || driver().context(&context) != 0 || !context) return fine;
    return cudaGetDevice(device);
  }
  static status exchange_capture_mode(capture_mode* m) {
    return cudaThreadExchangeStreamCaptureMode(m);
  }
  static status model(char* name, int size, int device) {
    cudaDeviceProp all;
    status const s = cudaGetDeviceProperties(&all, device);
    for (int i = 0; i < size; ++i) name[i] = 0;
    for (int i = 0; s == fine && i + 1 < size && all.name[i]; ++i) name[i] = all.name[i];
    return s;
  }
  /// Its UUID: parts of one device that are used apart have one each.
  static status identity(char* name, std::size_t size, int device) {
    cudaDeviceProp all;
    status const s = cudaGetDeviceProperties(&all, device);
    std::size_t at = 0;
    for (char const byte : all.uuid.bytes)
      if (s == fine && at + 2 < size)
        at += static_cast<std::size_t>(
            std::snprintf(name + at, size - at, "%02x", static_cast<unsigned char>(byte)));
    return s;
  }
  /// "sm_90"; whether its own e4m3 is the FNUZ one: never.
  static status architecture(char* name, std::size_t size, bool* fnuz, int device) {
    int major = 0, minor = 0;
    status s = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (s == fine) s = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    std::snprintf(name, size, "sm_%d%d", major, minor);
    *fnuz = false;
    return s;
  }
  /// Of the clock that %globaltimer reads: nanoseconds.
  static std::int64_t ticks_per_second(char const*) { return 1'000'000'000; }

  /// All device memory is coherent for accesses of system scope, which flags are made by. What
  /// peers map is whole pages of the device: a process that opens a smaller allocation may see its
  /// neighbours too.
  static status allocate(memory_kind kind, std::size_t bytes, void** at) {
    if (kind == memory_kind::pinned)
      return cudaHostAlloc(at, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
    constexpr std::size_t page = std::size_t{2} << 20;
    bool const shared = kind == memory_kind::rows || kind == memory_kind::flags;
    return cudaMalloc(at, shared ? (bytes + page - 1) / page * page : bytes);
  }
  static status release(memory_kind kind, void* at) {
    return kind == memory_kind::pinned ? cudaFreeHost(at) : cudaFree(at);
  }
  static status export_memory(memory_name* n, void* at) { return cudaIpcGetMemHandle(n, at); }
  static status import_memory(void** at, memory_name const& n) {
    return cudaIpcOpenMemHandle(at, n, cudaIpcMemLazyEnablePeerAccess);
  }
  static status close_import(void* at) { return cudaIpcCloseMemHandle(at); }
  static status can_reach(int* can, int device, int peer) {
    return cudaDeviceCanAccessPeer(can, device, peer);
  }
  static status reach(int peer) { return cudaDeviceEnablePeerAccess(peer, 0); }

  static status make_stream(stream* s) {
    return cudaStreamCreateWithFlags(s, cudaStreamNonBlocking);
  }
  static status destroy_stream(stream s) { return cudaStreamDestroy(s); }
  static status synchronise(stream s) { return cudaStreamSynchronize(s); }
  static status query(stream s) { return cudaStreamQuery(s); }
  static status copy(void* to, void const* from, std::size_t bytes, stream s) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s);
  }
  static status fill(void* to, int value, std::size_t bytes, stream s) {
    return cudaMemsetAsync(to, value, bytes, s);
  }

  static status make_event(event* e) { return cudaEventCreateWithFlags(e, cudaEventDisableTiming); }
  static status destroy_event(event e) { return cudaEventDestroy(e); }
  static status record(event e, stream s) { return cudaEventRecord(e, s); }
  static status wait_event(stream s, event e) { return cudaStreamWaitEvent(s, e, 0); }
  static status query(event e) { return cudaEventQuery(e); }

  static status begin_capture(stream s) {
    return cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
  }
  static status is_capturing(stream s, bool* capturing) {
    cudaStreamCaptureStatus now;
    status const seen = cudaStreamIsCapturing(s, &now);
    *capturing = seen == fine && now != cudaStreamCaptureStatusNone;
    return seen;
  }
  static status end_capture(stream s, graph* g) { return cudaStreamEndCapture(s, g); }
  static status instantiate(graph_exec* ready, graph g) {
    return cudaGraphInstantiateWithFlags(ready, g, 0);
  }
  static status destroy(graph g) { return cudaGraphDestroy(g); }
  static status launch(graph_exec g, stream s) { return cudaGraphLaunch(g, s); }
  static status destroy(graph_exec g) { return cudaGraphExecDestroy(g); }

 private:
  struct driver_calls {
    int (*context)(void**) = nullptr;  ///< cuCtxGetCurrent
  };
  /// Of the driver's own library, which the runtime has opened.
  static driver_calls const& driver() {
    static driver_calls const calls = [] {
      driver_calls found;
      if (void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
        found.context = reinterpret_cast<int (*)(void**)>(dlsym(library, "cuCtxGetCurrent"));
      return found;
    }();
    return calls;
  }
};

}  // namespace ferry
#endif
