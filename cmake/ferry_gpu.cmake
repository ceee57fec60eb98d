# SPDX-License-Identifier: MIT
# Finds what compiles kernels for GPUs, and says in one line each what is absent.
#
# FERRY_HIP_COMPILER     a clang that knows AMD's GPUs; FERRY_HIP_FLAGS what it needs to find its files
# FERRY_HIP_TARGETS      the architectures that it is asked for
# FERRY_CUDA_COMPILER    nvcc
# All empty where there is none, and in sanitizer builds, which watch the CPU alone.
option(FERRY_HIP "compile the kernels for AMD GPUs (where a compiler is found)" ON)
option(FERRY_CUDA "compile the kernels for NVIDIA GPUs (where a compiler is found)" ON)
set(FERRY_HIP_ARCHITECTURES "" CACHE STRING
    "AMD architectures; empty: gfx90a and gfx942, and gfx950 where the compiler knows it")
set(FERRY_CUDA_ARCHITECTURES "90" CACHE STRING "NVIDIA architectures")
mark_as_advanced(FERRY_HIP_ARCHITECTURES FERRY_CUDA_ARCHITECTURES)

# Debian's bitcode lies where no compiler looks, and knows gfx942 under the name of its forerunner.
function(ferry_hip_bitcode_shim found_in)
  set(shim ${PROJECT_BINARY_DIR}/hip_bitcode)
  file(MAKE_DIRECTORY ${shim})
  file(GLOB files ${found_in}/*.bc)
  foreach(file IN LISTS files)
    cmake_path(GET file FILENAME name)
    file(CREATE_LINK ${file} ${shim}/${name} SYMBOLIC)
  endforeach()
  if(NOT EXISTS ${found_in}/oclc_isa_version_942.bc)
    file(CREATE_LINK ${found_in}/oclc_isa_version_940.bc ${shim}/oclc_isa_version_942.bc SYMBOLIC)
  endif()
endfunction()

# Whether the compiler makes code for an architecture.
function(ferry_hip_knows architecture result)
  set(source ${PROJECT_BINARY_DIR}/CMakeFiles/nothing.hip)
  file(WRITE ${source} "__attribute__((device)) void nothing() {}\n")
  execute_process(
    COMMAND ${FERRY_HIP_COMPILER} -x hip --offload-arch=${architecture} --cuda-device-only
            ${FERRY_HIP_FLAGS} -c ${source} -o ${source}.o
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

set(FERRY_HIP_TARGETS "")
set(FERRY_HIP_COMPILER "")
if(FERRY_HIP AND NOT FERRY_SANITIZE)
  # ROCm's own compiler knows its files; Debian's packages need help.
  find_program(FERRY_ROCM_COMPILER NAMES amdclang++ PATHS $ENV{ROCM_PATH} /opt/rocm
               PATH_SUFFIXES lib/llvm/bin llvm/bin bin)
  set(FERRY_HIP_FLAGS "")
  set(FERRY_HIP_COMPILER "${FERRY_ROCM_COMPILER}")
  if(NOT FERRY_HIP_COMPILER)
    find_program(FERRY_CLANG_19 NAMES clang++-19)
    set(FERRY_HIP_COMPILER "${FERRY_CLANG_19}")
    find_path(FERRY_HIP_BITCODE oclc_isa_version_90a.bc
              PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/amdgcn/bitcode /usr/lib/amdgcn/bitcode)
    find_path(FERRY_HIP_HEADERS hip/hip_runtime.h)
    find_program(FERRY_HIP_BUNDLER NAMES clang-offload-bundler-19)
    find_program(FERRY_HIP_LINKER NAMES ld.lld-19)
    mark_as_advanced(FERRY_HIP_BITCODE FERRY_HIP_HEADERS FERRY_HIP_LINKER)
    if(FERRY_HIP_BITCODE)
      ferry_hip_bitcode_shim(${FERRY_HIP_BITCODE})
      set(FERRY_HIP_FLAGS --rocm-path=/usr --rocm-device-lib-path=${PROJECT_BINARY_DIR}/hip_bitcode)
    endif()
    if(NOT FERRY_HIP_BITCODE OR NOT FERRY_HIP_HEADERS OR NOT FERRY_HIP_LINKER)
      set(FERRY_HIP_COMPILER "")
    endif()
  else()
    cmake_path(GET FERRY_HIP_COMPILER PARENT_PATH ferry_hip_bin)
    find_program(FERRY_HIP_BUNDLER NAMES clang-offload-bundler HINTS ${ferry_hip_bin})
  endif()
  mark_as_advanced(FERRY_ROCM_COMPILER FERRY_CLANG_19 FERRY_HIP_BUNDLER)
  if(FERRY_HIP_COMPILER AND FERRY_HIP_BUNDLER)
    set(FERRY_HIP_TARGETS ${FERRY_HIP_ARCHITECTURES})
    if(NOT FERRY_HIP_TARGETS)
      foreach(architecture IN ITEMS gfx90a gfx942 gfx950)
        ferry_hip_knows(${architecture} known)
        if(known)
          list(APPEND FERRY_HIP_TARGETS ${architecture})
        endif()
      endforeach()
    endif()
    list(JOIN FERRY_HIP_TARGETS ", " ferry_listed)
    message(STATUS "Kernels for AMD GPUs: ${ferry_listed}, by ${FERRY_HIP_COMPILER}")
  else()
    message(STATUS "No kernels for AMD GPUs: no clang 19 with HIP's headers, bitcode, lld and "
                   "clang-tools, and no ROCm")
  endif()
endif()

set(FERRY_CUDA_COMPILER "")
if(FERRY_CUDA AND NOT FERRY_SANITIZE)
  find_package(CUDAToolkit 12 QUIET)
  if(CUDAToolkit_NVCC_EXECUTABLE)
    set(FERRY_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
    message(STATUS "Kernels for NVIDIA GPUs: sm_${FERRY_CUDA_ARCHITECTURES}, by ${FERRY_CUDA_COMPILER}")
  else()
    message(STATUS "No kernels for NVIDIA GPUs: no nvcc")
  endif()
endif()

# Flags of device code. Products and sums round separately unless the code says fma, as on CPUs. The
# SLP vectoriser makes vectors of pointers, which the compiler then no longer knows to be global.
set(FERRY_HIP_COMPILE_FLAGS -std=c++20 -O3 -ffp-contract=off -fno-slp-vectorize -fPIC
                            -fvisibility=hidden -Wall -Wextra)
# 20011 to 20015: a function that both sides may call calls one that is the device's own. The host's
# compiler knows no `#pragma unroll`.
set(FERRY_CUDA_COMPILE_FLAGS -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr
                             -diag-suppress=20011,20012,20013,20014,20015
                             -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-unknown-pragmas)
if(FERRY_WERROR)
  list(APPEND FERRY_HIP_COMPILE_FLAGS -Werror)
  list(APPEND FERRY_CUDA_COMPILE_FLAGS -Werror=all-warnings)
endif()

# An object that a custom command makes, as a target that others link.
function(ferry_object_target name object)
  add_custom_target(${name}_made ALL DEPENDS ${object})
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_made)
  target_sources(${name} INTERFACE ${object})
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
endfunction()

# ferry_hip_object(NAME SOURCE): the interface library NAME, whose users link SOURCE with its code for
# every architecture. The bare code object for each lies in the build folder as NAME_<arch>.co.
function(ferry_hip_object name source)
  set(includes -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src)
  cmake_path(ABSOLUTE_PATH source)
  set(at ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(bundled host-${CMAKE_SYSTEM_PROCESSOR}-unknown-linux-gnu)
  set(inputs -input=/dev/null)
  set(code_objects "")
  foreach(architecture IN LISTS FERRY_HIP_TARGETS)
    set(code ${at}_${architecture}.co)
    add_custom_command(
      OUTPUT ${code}
      COMMAND ${FERRY_HIP_COMPILER} -x hip --offload-arch=${architecture} --cuda-device-only
              --no-gpu-bundle-output ${FERRY_HIP_FLAGS} ${FERRY_HIP_COMPILE_FLAGS} ${includes}
              -MD -MF ${code}.d -MT ${code} -c ${source} -o ${code}
      DEPENDS ${source} DEPFILE ${code}.d VERBATIM
      COMMENT "Compiling ${name} for ${architecture}")
    list(APPEND code_objects ${code})
    list(APPEND inputs -input=${code})
    string(APPEND bundled ",hipv4-amdgcn-amd-amdhsa--${architecture}")
  endforeach()
  add_custom_command(
    OUTPUT ${at}.hipfb
    COMMAND ${FERRY_HIP_BUNDLER} -type=o -bundle-align=4096 -targets=${bundled} ${inputs}
            -output=${at}.hipfb
    DEPENDS ${code_objects} VERBATIM COMMENT "Bundling ${name}")
  add_custom_command(
    OUTPUT ${at}.o
    COMMAND ${FERRY_HIP_COMPILER} -x hip --cuda-host-only -Xclang -fcuda-include-gpubinary -Xclang
            ${at}.hipfb ${FERRY_HIP_FLAGS} ${FERRY_HIP_COMPILE_FLAGS} ${includes}
            -MD -MF ${at}.o.d -MT ${at}.o -c ${source} -o ${at}.o
    DEPENDS ${source} ${at}.hipfb DEPFILE ${at}.o.d VERBATIM
    COMMENT "Compiling ${name} for the host of AMD GPUs")
  ferry_object_target(${name} ${at}.o)
endfunction()

# ferry_cuda_object(NAME SOURCE): likewise with nvcc. In the build folder's NAME_code lie the PTX, under
# the source's name, and as registers.txt what the assembler says of each kernel.
function(ferry_cuda_object name source)
  set(includes -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src)
  cmake_path(ABSOLUTE_PATH source)
  set(at ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(codes "")
  foreach(architecture IN LISTS FERRY_CUDA_ARCHITECTURES)
    list(APPEND codes -gencode=arch=compute_${architecture},code=[sm_${architecture},compute_${architecture}])
  endforeach()
  add_custom_command(
    OUTPUT ${at}.o
    COMMAND ${CMAKE_COMMAND} -E make_directory ${at}_code
    COMMAND ${CMAKE_COMMAND} -DMESSAGES=${at}_code/registers.txt
            -P ${PROJECT_SOURCE_DIR}/cmake/run_to_file.cmake --
            ${FERRY_CUDA_COMPILER} -x cu -ccbin ${CMAKE_CXX_COMPILER} ${codes}
            ${FERRY_CUDA_COMPILE_FLAGS} ${includes} --keep --keep-dir ${at}_code -Xptxas=-v
            -MD -MF ${at}.o.d -MT ${at}.o -c ${source} -o ${at}.o
    DEPENDS ${source} DEPFILE ${at}.o.d VERBATIM
    COMMENT "Compiling ${name} for NVIDIA GPUs")
  ferry_object_target(${name} ${at}.o)
endfunction()
