# SPDX-License-Identifier: MIT
# cmake -DMESSAGES=FILE -P run_to_file.cmake -- COMMAND...: runs it, with what it says in FILE; shows
# that when it fails.
set(command "")
set(begun FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(begun)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(begun TRUE)
  endif()
endforeach()
execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_FILE ${MESSAGES} ERROR_FILE ${MESSAGES})
if(NOT status EQUAL 0)
  file(READ ${MESSAGES} said)
  message(FATAL_ERROR "${said}")
endif()
