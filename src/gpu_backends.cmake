# SPDX-License-Identifier: MIT
# The GPU backends: shared libraries that nothing links. ferry opens them when such a device is
# asked for, beside the program, in the library folder next to it, or where they were installed.

# ferry_backend(NAME KERNELS ARCHITECTURES): libferry_NAME.so from the host half and these kernels.
function(ferry_backend name kernels architectures)
  string(TOUPPER ${name} vendor)
  list(JOIN architectures " " listed)
  add_library(ferry_${name} SHARED ${PROJECT_SOURCE_DIR}/src/exec/gpu/backend.cpp
                                   ${PROJECT_SOURCE_DIR}/src/kernels/backend_kernels.cpp)
  target_include_directories(ferry_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(ferry_${name} PRIVATE FERRY_BACKEND_${vendor}
                             FERRY_BACKEND_ARCHITECTURES="${listed}")
  target_link_libraries(ferry_${name} PRIVATE ferry_headers ferry_build ${kernels})
  target_link_options(ferry_${name} PRIVATE -Wl,-z,defs -Wl,--exclude-libs,ALL)
  set_target_properties(ferry_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON)
  if(CMAKE_RUNTIME_OUTPUT_DIRECTORY)
    set_target_properties(ferry_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                          ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  endif()
  install(TARGETS ferry_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
endfunction()

if(FERRY_HIP_TARGETS)
  find_path(FERRY_HIP_INCLUDE hip/hip_runtime_api.h HINTS $ENV{ROCM_PATH}/include /opt/rocm/include)
  find_library(FERRY_HIP_RUNTIME amdhip64 HINTS $ENV{ROCM_PATH}/lib /opt/rocm/lib)
  mark_as_advanced(FERRY_HIP_INCLUDE FERRY_HIP_RUNTIME)
  if(FERRY_HIP_INCLUDE AND FERRY_HIP_RUNTIME)
    ferry_backend(hip ferry_hip_kernels "${FERRY_HIP_TARGETS}")
    target_compile_definitions(ferry_hip PRIVATE __HIP_PLATFORM_AMD__ __HIP_PLATFORM_HCC__)
    target_include_directories(ferry_hip SYSTEM PRIVATE ${FERRY_HIP_INCLUDE})
    target_link_libraries(ferry_hip PRIVATE ${FERRY_HIP_RUNTIME})
  else()
    message(STATUS "No HIP backend: no hip/hip_runtime_api.h or no libamdhip64")
  endif()
endif()

# The runtime is linked statically: what remains is the driver, which it looks for by itself.
if(FERRY_CUDA_COMPILER)
  list(TRANSFORM FERRY_CUDA_ARCHITECTURES PREPEND sm_ OUTPUT_VARIABLE ferry_cuda_names)
  ferry_backend(cuda ferry_cuda_kernels "${ferry_cuda_names}")
  target_link_libraries(ferry_cuda PRIVATE CUDA::cudart_static)
endif()
