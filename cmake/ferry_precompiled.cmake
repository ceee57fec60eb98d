# SPDX-License-Identifier: MIT
# Headers that most files include are compiled once. The libraries themselves go without in builds that
# are installed, so that every source is known to include what it uses; and a program that holds ferry
# as a subdirectory shares the compiler cache with them.
option(FERRY_PRECOMPILED "compile common headers once, for tests and programs" ${PROJECT_IS_TOP_LEVEL})

set(FERRY_COMMON_HEADERS
    <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <functional> <memory> <mutex>
    <optional> <random> <span> <string> <thread> <vector> <fmt/format.h>)

# Whether the compiler's precompiled headers pass through a compiler cache, which wants to be told so.
add_library(ferry_precompiled INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(ferry_precompiled INTERFACE -fpch-preprocess)
endif()

# ferry_precompile(TARGET [HEADER...]): with the common headers and further ones.
function(ferry_precompile target)
  if(FERRY_PRECOMPILED)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:ferry_precompiled>)
    target_precompile_headers(${target} PRIVATE ${FERRY_COMMON_HEADERS} ${ARGN})
  endif()
endfunction()

# ferry_precompile_as(TARGET OTHER): with what OTHER, compiled in the same way, has precompiled.
function(ferry_precompile_as target other)
  if(FERRY_PRECOMPILED)
    target_link_libraries(${target} PRIVATE ferry_precompiled)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()
