# SPDX-License-Identifier: MIT
ferry_sources(ferry_deepseek tokenizer.cpp tokenizer/added_tokens.cpp tokenizer/byte_alphabet.cpp
              tokenizer/byte_pair_encoding.cpp tokenizer/json_place.cpp
              tokenizer/oniguruma_class.cpp tokenizer/oniguruma_pattern.cpp
              tokenizer/oniguruma_properties.cpp tokenizer/pre_tokenizer.cpp
              tokenizer/pre_tokenizer_section.cpp tokenizer/regex.cpp tokenizer/tokenizer_file.cpp)
ferry_public_headers(ferry/deepseek/tokenizer.hpp)
