# SPDX-License-Identifier: MIT
# How ferry's own targets are compiled. Nothing here leaks to users of the installed package.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

# Warnings, sanitizers and checks of ferry's own code.
add_library(ferry_build INTERFACE)
target_compile_features(ferry_build INTERFACE cxx_std_20)
# Products and sums round separately unless the code says fma: results do not depend on the compiler.
target_compile_options(ferry_build INTERFACE -Wall -Wextra -Wpedantic $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local> -ffp-contract=off
                       $<$<BOOL:${FERRY_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees overflows and uninitialised reads in inlined library code that are not there.
  target_compile_options(ferry_build INTERFACE -Wno-stringop-overflow -Wno-maybe-uninitialized
                         -Wno-array-bounds -Wno-restrict)
endif()
target_compile_definitions(ferry_build INTERFACE $<$<BOOL:${FERRY_CHECKED}>:FERRY_CHECKED>)
if(FERRY_SANITIZE)
  target_compile_options(ferry_build INTERFACE -fsanitize=${FERRY_SANITIZE} -fno-omit-frame-pointer)
  if(FERRY_SANITIZE MATCHES "undefined")
    # A null pointer that is used ends the program anyway.
    target_compile_options(ferry_build INTERFACE -fno-sanitize-recover=undefined -fno-sanitize=null)
  endif()
  target_link_options(ferry_build INTERFACE -fsanitize=${FERRY_SANITIZE})
endif()

# ferry_compile_together(TARGET): several sources at a time, which takes half as long in all. Where two
# of them give one name to two things, one has SKIP_UNITY_BUILD_INCLUSION.
function(ferry_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  # g++ takes what one source of several keeps to itself for something that others might see.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# ferry_runs_once(TARGET): most of its code runs once, so the compiler's time is worth more than the program's.
function(ferry_runs_once target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  ferry_compile_together(${target})
endfunction()

# ferry_sources(TARGET FILE...): private sources, relative to the calling directory.
function(ferry_sources target)
  target_sources(${target} PRIVATE ${ARGN})
endfunction()

# ferry_public_headers(FILE...): headers below include/, relative to it; installed, and each checked
# to compile alone by the target all_verify_interface_header_sets.
function(ferry_public_headers)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/include/)
  target_sources(ferry_headers INTERFACE FILE_SET HEADERS
                 BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${ARGN})
endfunction()
