# SPDX-License-Identifier: MIT
# Tests of the model's computation.
find_package(nlohmann_json REQUIRED CONFIG)

foreach(name attention experts gate linear mlp rms_norm rope)
  ferry_test(deepseek_${name}_test LABELS unit SOURCES ${name}_test.cpp
             LIBRARIES ferry_deepseek nlohmann_json::nlohmann_json)
endforeach()

# The same as on a machine without AVX-512: there a row's result depends on the number of rows, and
# bf16 has no product of its own.
foreach(name attention linear mlp)
  gtest_discover_tests(deepseek_${name}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX avx2.
                       PROPERTIES LABELS unit TIMEOUT 120 ENVIRONMENT DNNL_MAX_CPU_ISA=AVX2)
endforeach()
