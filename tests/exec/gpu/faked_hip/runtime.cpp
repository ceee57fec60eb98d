// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// A runtime for AMD's GPUs that plays a machine: it lets the backend's library say what it makes of
// devices that are not here. A library of the real one's name takes its place in a test's process.

#include "machine.hpp"

#include <hip/hip_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace ferry::test {

__attribute__((visibility("default"))) faked_machine& machine() {
  static faked_machine here;
  return here;
}

static hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;

}  // namespace ferry::test

using ferry::test::machine;

extern "C" {

hipError_t hipGetDeviceCount(int* count) {
  *count = machine().devices;
  return machine().devices ? hipSuccess : hipErrorNoDevice;
}
hipError_t hipSetDevice(int device) {
  if (device < 0 || device >= machine().devices) return hipErrorInvalidDevice;
  machine().current = device;
  return hipSuccess;
}
hipError_t hipGetDevice(int* device) {
  *device = machine().current;
  return hipSuccess;
}
hipError_t hipDeviceGetName(char* name, int size, hipDevice_t) {
  std::strncpy(name, "a played GPU", static_cast<std::size_t>(size));
  return hipSuccess;
}
hipError_t hipGetDeviceProperties(hipDeviceProp_t* all, int) {
  *all = {};
  std::strncpy(all->gcnArchName, machine().architecture.c_str(), sizeof all->gcnArchName - 1);
  return hipSuccess;
}
hipError_t hipDeviceGetPCIBusId(char* name, int, int device) {
  std::strcpy(name, "0000:c1:00.0");
  name[11] = static_cast<char>('0' + device);
  return hipSuccess;
}
char const* hipGetErrorString(hipError_t status) {
  return status == hipErrorNoDevice ? "no ROCm-capable device is detected" : "a played failure";
}
hipError_t hipGetLastError() {
  return hipSuccess;
}
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  std::swap(*mode, ferry::test::mode);
  return hipSuccess;
}

hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, void const*) {
  *attributes = {};
  return machine().has_code ? hipSuccess : hipErrorNoBinaryForGpu;
}
void** __hipRegisterFatBinary(void const*) {
  static void* module = nullptr;
  return &module;
}
void __hipRegisterFunction(void**, void const*, char*, char const*, unsigned, void*, void*, void*,
                           void*, int*) {}
void __hipUnregisterFatBinary(void**) {}

hipError_t hipMalloc(void** at, size_t bytes) {
  machine().relaxed_calls += ferry::test::mode == hipStreamCaptureModeRelaxed;
  *at = std::malloc(bytes);
  return hipSuccess;
}
hipError_t hipFree(void* at) {
  std::free(at);
  return hipSuccess;
}
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned) {
  *stream = nullptr;
  return hipSuccess;
}
hipError_t hipStreamDestroy(hipStream_t) {
  return hipSuccess;
}
hipError_t hipStreamSynchronize(hipStream_t) {
  return hipSuccess;
}
hipError_t hipMemsetAsync(void* at, int value, size_t bytes, hipStream_t) {
  std::memset(at, value, bytes);
  return hipSuccess;
}

}  // extern "C"
