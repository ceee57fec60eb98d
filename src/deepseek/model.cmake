# SPDX-License-Identifier: MIT
# The model's computation.
ferry_sources(ferry_deepseek attend.cpp attention.cpp experts.cpp gate.cpp linear.cpp mlp.cpp
              model.cpp model_layers.cpp moe_layer.cpp
              product.cpp rms_norm.cpp rope.cpp weight_reader.cpp)
ferry_public_headers(ferry/deepseek/attention.hpp ferry/deepseek/experts.hpp
                     ferry/deepseek/gate.hpp ferry/deepseek/linear.hpp ferry/deepseek/mlp.hpp
                     ferry/deepseek/model.hpp ferry/deepseek/moe_layer.hpp
                     ferry/deepseek/rms_norm.hpp ferry/deepseek/rope.hpp)
foreach(name attention gate mlp moe product rms_norm rope)
  ferry_public_headers(ferry/deepseek/reference/${name}.hpp)
endforeach()
# oneDNN of the distribution computes with OpenMP's threads; calls keep it on one.
target_link_libraries(ferry_deepseek PRIVATE gomp)
