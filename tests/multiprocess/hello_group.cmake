# SPDX-License-Identifier: MIT
# cmake -DCOMMAND="program;argument;..." -DRANKS=n -P: runs the command, which starts
# 01_hello_group on n ranks, and holds its output against what each rank has to print.
execute_process(COMMAND ${COMMAND} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err
                TIMEOUT 50)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${COMMAND}\nended with ${status}\n${out}\n${err}")
endif()
math(EXPR last "${RANKS} - 1")
set(all "")
foreach(rank RANGE ${last})
  string(APPEND all " ${rank}")
endforeach()
foreach(rank RANGE ${last})
  string(FIND "${out}" "rank ${rank} of ${RANKS} was greeted by ranks${all}\n" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "rank ${rank} was not greeted by all:\n${out}\n${err}")
  endif()
endforeach()
