# SPDX-License-Identifier: MIT
# Tests of the model's computation.
find_package(nlohmann_json REQUIRED CONFIG)
find_package(oneDNN REQUIRED)

set(model_references attention gate mlp moe product rms_norm rope)
foreach(name attention experts gate linear mlp rms_norm rope)
  ferry_test(deepseek_${name}_test LABELS unit SOURCES ${name}_test.cpp
             LIBRARIES ferry_deepseek nlohmann_json::nlohmann_json)
endforeach()

# Fibers switch stacks in a way that sanitizers do not follow.
set(kernels add_rows attend choose_experts decode_rows dot exponential
            fill_cache find gate_rows grouped_product narrow_rows next_token
            normalise_rows quantise_rows random rows_there rotate softmax)
list(TRANSFORM kernels PREPEND kernels/)
list(TRANSFORM kernels APPEND _test.cpp)
ferry_test(deepseek_kernels_test LABELS unit SOURCES ${kernels} LIBRARIES ferry_deepseek)
ferry_test(deepseek_token_sampler_test LABELS unit
           SOURCES fixed_products_test.cpp token_sampler_test.cpp LIBRARIES ferry_deepseek)
# hipBLASLt is in no package of this distribution: against what ferry uses of it, the sources compile.
if(NOT TARGET ferry_hip_products AND NOT FERRY_SANITIZE AND NOT FERRY_TEST_LABELS)
  add_library(ferry_hip_products_declared OBJECT
              ${PROJECT_SOURCE_DIR}/src/deepseek/products/gpu_products.cpp)
  target_compile_definitions(ferry_hip_products_declared PRIVATE FERRY_PRODUCTS_HIP)
  target_include_directories(ferry_hip_products_declared PRIVATE
                             ${CMAKE_CURRENT_SOURCE_DIR}/hipblaslt_declarations
                             ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(ferry_hip_products_declared PRIVATE ferry_headers ferry_build)
endif()
ferry_test(deepseek_row_loops_test LABELS unit SOURCES row_loops_test.cpp LIBRARIES ferry_deepseek)
ferry_test(deepseek_weight_pool_test LABELS unit SOURCES weight_pool_test.cpp LIBRARIES ferry_deepseek
           oneDNN::dnnl)
ferry_test(deepseek_moe_layer_test LABELS unit SOURCES moe_layer_test.cpp
           LIBRARIES ferry_deepseek nlohmann_json::nlohmann_json)
ferry_test(deepseek_model_test LABELS unit SOURCES model_test.cpp
           LIBRARIES ferry_deepseek ferry_tiny_models nlohmann_json::nlohmann_json)

ferry_test(deepseek_placed_model_test LABELS unit SOURCES placed_model_test.cpp PROCESSORS 2
           LIBRARIES ferry_deepseek ferry_tiny_models)

# Fibers, as above.
ferry_test(deepseek_device_model_test LABELS unit SOURCES device_model_test.cpp
           LIBRARIES ferry_deepseek ferry_tiny_models nlohmann_json::nlohmann_json)
ferry_test(deepseek_device_golden_test LABELS unit SOURCES device_golden_test.cpp
           LIBRARIES ferry_deepseek nlohmann_json::nlohmann_json)
ferry_gpu_test(device_golden deepseek_device_golden_test device_golden.*)
ferry_gpu_test(device_model deepseek_device_model_test *golden*:*every_batch*:*leaves_logits*)

list(TRANSFORM model_references PREPEND reference/)
list(TRANSFORM model_references APPEND _test.cpp)
ferry_test(deepseek_reference_model_test LABELS unit SOURCES ${model_references}
           LIBRARIES ferry_deepseek nlohmann_json::nlohmann_json)

# The same as on a machine without AVX-512: there a row's result depends on the number of rows, and
# bf16 has no product of its own.
if(NOT FERRY_TEST_LABELS)
  foreach(name attention linear mlp model)
    gtest_discover_tests(deepseek_${name}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX avx2.
                         PROPERTIES LABELS unit TIMEOUT 120 ENVIRONMENT DNNL_MAX_CPU_ISA=AVX2)
  endforeach()
endif()
