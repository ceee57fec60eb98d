# SPDX-License-Identifier: MIT
# cmake -D TOOL=... -D DIRECTORY=... -D SEED=... [-D SHARDS=n] [-D SHA256=...] -P make_tiny.cmake
# Runs ferry_make_tiny and compares what it wrote with the published sum.
if(NOT SHARDS)
  set(SHARDS 1)
endif()
execute_process(COMMAND ${TOOL} ${DIRECTORY} ${SEED} ${SHARDS} COMMAND_ERROR_IS_FATAL ANY)
if(SHA256)
  file(SHA256 ${DIRECTORY}/model.safetensors actual)
  if(NOT actual STREQUAL SHA256)
    file(REMOVE ${DIRECTORY}/model.safetensors)
    message(FATAL_ERROR "${DIRECTORY}/model.safetensors has sha256 ${actual}, not ${SHA256}")
  endif()
endif()
