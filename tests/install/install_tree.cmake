# SPDX-License-Identifier: MIT
# cmake -DBUILD=... -DTREE=... -P install_tree.cmake: installs BUILD into an empty TREE and looks
# that nothing of the build leaked into the package.
file(REMOVE_RECURSE ${TREE})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${TREE}
                COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)

file(GLOB_RECURSE package_files ${TREE}/*.cmake)
if(NOT package_files)
  message(FATAL_ERROR "nothing was installed below ${TREE}")
endif()
cmake_path(GET BUILD PARENT_PATH outside)
foreach(file IN LISTS package_files)
  file(READ ${file} text)
  foreach(leak IN ITEMS ferry_build "-Werror" "-fsanitize" ${outside})
    string(FIND "${text}" "${leak}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} holds ${leak}")
    endif()
  endforeach()
endforeach()
