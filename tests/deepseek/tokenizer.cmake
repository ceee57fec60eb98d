# SPDX-License-Identifier: MIT
find_package(nlohmann_json QUIET CONFIG)
ferry_test(deepseek_tokenizer_test LABELS unit parser
           SOURCES tokenizer_test.cpp tokenizer/added_tokens_test.cpp
                   tokenizer/byte_pair_encoding_test.cpp tokenizer/malformed_tokenizer_test.cpp
                   tokenizer/pre_tokenizer_test.cpp tokenizer/regex_test.cpp
                   tokenizer/tokenizer_settings_test.cpp
           LIBRARIES ferry_deepseek nlohmann_json::nlohmann_json)
target_compile_definitions(deepseek_tokenizer_test PRIVATE
                           FERRY_DEMO_MODEL="${PROJECT_SOURCE_DIR}/examples/decode/model")
