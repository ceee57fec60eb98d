// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The rest of what the backend's library calls: no test gets so far.

#define FERRY_NOT_PLAYED(call)             \
  extern "C" int call() {                  \
    return 801; /* hipErrorNotSupported */ \
  }

FERRY_NOT_PLAYED(hipDeviceCanAccessPeer)
FERRY_NOT_PLAYED(hipDeviceEnablePeerAccess)
FERRY_NOT_PLAYED(hipDeviceGetAttribute)
FERRY_NOT_PLAYED(hipEventCreateWithFlags)
FERRY_NOT_PLAYED(hipEventDestroy)
FERRY_NOT_PLAYED(hipEventQuery)
FERRY_NOT_PLAYED(hipEventRecord)
FERRY_NOT_PLAYED(hipExtMallocWithFlags)
FERRY_NOT_PLAYED(hipGraphDestroy)
FERRY_NOT_PLAYED(hipGraphExecDestroy)
FERRY_NOT_PLAYED(hipGraphInstantiate)
FERRY_NOT_PLAYED(hipGraphLaunch)
FERRY_NOT_PLAYED(hipHostFree)
FERRY_NOT_PLAYED(hipHostMalloc)
FERRY_NOT_PLAYED(hipIpcCloseMemHandle)
FERRY_NOT_PLAYED(hipIpcGetMemHandle)
FERRY_NOT_PLAYED(hipIpcOpenMemHandle)
FERRY_NOT_PLAYED(hipLaunchKernel)
FERRY_NOT_PLAYED(hipMemcpyAsync)
FERRY_NOT_PLAYED(hipOccupancyMaxActiveBlocksPerMultiprocessor)
FERRY_NOT_PLAYED(hipStreamBeginCapture)
FERRY_NOT_PLAYED(hipStreamEndCapture)
FERRY_NOT_PLAYED(hipStreamIsCapturing)
FERRY_NOT_PLAYED(hipStreamQuery)
FERRY_NOT_PLAYED(hipStreamWaitEvent)
FERRY_NOT_PLAYED(__hipPopCallConfiguration)
FERRY_NOT_PLAYED(__hipPushCallConfiguration)
FERRY_NOT_PLAYED(__hipRegisterVar)
FERRY_NOT_PLAYED(__hipRegisterManagedVar)
