# SPDX-License-Identifier: MIT
# Model directories for tests, complete, under FERRY_TINY_MODELS: tiny-A, tiny-A-sharded and tiny-B,
# whose weights are made here, and tiny-C. Tests link ferry_tiny_models and find that name defined.
set(FERRY_TINY_MODELS ${PROJECT_BINARY_DIR}/tests/models)

add_executable(ferry_make_tiny make_tiny.cpp)
target_include_directories(ferry_make_tiny PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(ferry_make_tiny PRIVATE ferry_deepseek ferry_build)

add_library(ferry_tiny_models INTERFACE)
target_compile_definitions(ferry_tiny_models INTERFACE FERRY_TINY_MODELS="${FERRY_TINY_MODELS}")

# tiny_model(NAME FROM directory-of-tests/data [SEED seed] [SHARDS n] [SHA256 sum])
function(tiny_model name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FROM;SEED;SHARDS;SHA256" "")
  set(to ${FERRY_TINY_MODELS}/${name})
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/data/${arg_FROM}/*)
  foreach(file ${files})
    get_filename_component(leaf ${file} NAME)
    configure_file(${file} ${to}/${leaf} COPYONLY)
  endforeach()
  if(arg_SEED)
    add_custom_command(
      OUTPUT ${to}/model.safetensors.index.json
      COMMAND ${CMAKE_COMMAND} -D TOOL=$<TARGET_FILE:ferry_make_tiny> -D DIRECTORY=${to}
              -D SEED=${arg_SEED} -D SHARDS=${arg_SHARDS} -D SHA256=${arg_SHA256}
              -P ${PROJECT_SOURCE_DIR}/tests/deepseek/make_tiny.cmake
      DEPENDS ferry_make_tiny ${PROJECT_SOURCE_DIR}/tests/deepseek/make_tiny.cmake
              ${to}/config.json
      COMMENT "Making the weights of ${name}" VERBATIM)
    add_custom_target(ferry_model_${name} ALL DEPENDS ${to}/model.safetensors.index.json)
    add_dependencies(ferry_tiny_models ferry_model_${name})
  endif()
endfunction()

tiny_model(tiny-A FROM tiny-A SEED tiny-A
           SHA256 c2ccc48d4d1cc2226870ea143d71a71c0c9b689e321884bc9ae398424320eb6d)
tiny_model(tiny-A-sharded FROM tiny-A SEED tiny-A SHARDS 3)
tiny_model(tiny-B FROM tiny-B SEED tiny-B
           SHA256 9c75cd3327c77ec9ec8ba6bd8551356b503cb1446e4fe0f57464789bd2a54df6)
tiny_model(tiny-C FROM tiny-C)
