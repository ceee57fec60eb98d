# SPDX-License-Identifier: MIT
# ferry_test(NAME LABELS label... SOURCES file... [LIBRARIES target...] [TIMEOUT seconds])
# One GoogleTest program; its cases become CTest tests of their own.
function(ferry_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS;SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE FERRY_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(${name} PRIVATE ferry::ferry ferry_build fmt::fmt GTest::gtest GTest::gmock
                        GTest::gtest_main ${arg_LIBRARIES})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()
