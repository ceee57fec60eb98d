# SPDX-License-Identifier: MIT
# ferry_test(NAME LABELS label... SOURCES file... [LIBRARIES target...] [TIMEOUT seconds]
#            [PROCESSORS n] [SERIAL])
# One GoogleTest program; each of its cases becomes a test of CTest.
#
# LABELS      `exchange`, `kernels`, `protocol` and `parser` also choose what the sanitizer builds hold: with
#             FERRY_TEST_LABELS set, only programs that carry one of its labels exist: ask if(TARGET NAME)
#             before saying more about one
# TIMEOUT     of one case, in seconds; sanitizer builds allow three times as much. Default 300
# PROCESSORS  how many cores a case keeps busy, where that is more than one
# SERIAL      a case that measures time or fills the machine: nothing runs beside it

set(FERRY_TEST_LABELS "" CACHE STRING "build only tests with one of these labels; empty: all")

# How a test is compiled.
function(ferry_test_options name)
  ferry_runs_once(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ferry::ferry ferry_build fmt::fmt GTest::gtest GTest::gmock
                        GTest::gtest_main ferry_test_data)
endfunction()

function(ferry_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "TIMEOUT;PROCESSORS" "LABELS;SOURCES;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ferry_test(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_LABELS OR NOT arg_SOURCES)
    message(FATAL_ERROR "ferry_test(${name}): LABELS and SOURCES are needed")
  endif()
  if(FERRY_TEST_LABELS)
    set(wanted FALSE)
    foreach(label IN LISTS arg_LABELS)
      if(label IN_LIST FERRY_TEST_LABELS)
        set(wanted TRUE)
      endif()
    endforeach()
    if(NOT wanted)
      return()
    endif()
  endif()

  add_executable(${name} ${arg_SOURCES})
  ferry_test_options(${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  ferry_precompile_as(${name} ferry_test_headers)

  set(timeout 300)
  if(arg_TIMEOUT)
    set(timeout ${arg_TIMEOUT})
  endif()
  if(FERRY_SANITIZE)
    math(EXPR timeout "3 * ${timeout}")
  endif()
  set(properties TIMEOUT ${timeout})
  if(arg_PROCESSORS)
    list(APPEND properties PROCESSORS ${arg_PROCESSORS})
  endif()
  if(arg_SERIAL)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
                       TEST_LIST ${name}_cases PROPERTIES ${properties})
  # A list of labels does not survive gtest_discover_tests' own PROPERTIES.
  set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
  file(CONFIGURE OUTPUT ${labels_file} @ONLY CONTENT [[
if(@name@_cases)
  set_tests_properties(${@name@_cases} PROPERTIES LABELS "@arg_LABELS@")
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
endfunction()

# ferry_gpu_test(NAME PROGRAM FILTER): the cases that FILTER chooses, once more as the test gpu.NAME on
# the first GPU that is there; skipped, with the reason, where none is.
# Ranks are threads that share it: all their streams need queues of the hardware of their own, or one
# rank's waiting kernel stands before another's.
function(ferry_gpu_test name program filter)
  if(NOT TARGET ${program})
    return()
  endif()
  add_test(NAME gpu.${name} COMMAND ${program} --gtest_filter=${filter})
  set_tests_properties(gpu.${name} PROPERTIES LABELS gpu TIMEOUT 300 RUN_SERIAL TRUE
                       SKIP_REGULAR_EXPRESSION "no device for this test"
                       FAIL_REGULAR_EXPRESSION "0 tests from 0 test suites ran"
                       ENVIRONMENT
                       "FERRY_TEST_DEVICE=gpu;CUDA_DEVICE_MAX_CONNECTIONS=32;GPU_MAX_HW_QUEUES=32")
endfunction()
