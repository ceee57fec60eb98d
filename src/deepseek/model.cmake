# SPDX-License-Identifier: MIT
# The model's computation.
ferry_sources(ferry_deepseek attention.cpp device_experts.cpp device_layers.cpp device_linear.cpp device_model.cpp
              emulated_row_kernels.cpp experts.cpp gate.cpp host_experts.cpp linear.cpp mlp.cpp
              model.cpp model_layers.cpp model_stages.cpp moe_layer.cpp
              product.cpp rms_norm.cpp rope.cpp row_kernels.cpp row_loops.cpp strip_device.cpp
              layer_weights.cpp weight_reader.cpp)
ferry_public_headers(ferry/deepseek/attention.hpp ferry/deepseek/experts.hpp
                     ferry/deepseek/gate.hpp ferry/deepseek/linear.hpp ferry/deepseek/mlp.hpp
                     ferry/deepseek/model.hpp ferry/deepseek/moe_layer.hpp
                     ferry/deepseek/rms_norm.hpp ferry/deepseek/rope.hpp)
foreach(name add_rows attend choose_experts decode_rows dot exponential fill_cache find gate_rows
        grouped_product narrow_rows next_token normalise_rows quantise_rows random rotate rows_there
        softmax)
  ferry_public_headers(ferry/deepseek/kernels/${name}.hpp)
endforeach()
foreach(name attention gate mlp moe product rms_norm rope)
  ferry_public_headers(ferry/deepseek/reference/${name}.hpp)
endforeach()

set(loop_levels v2 v3 v4)
set(loop_floats 4 8 16)
# The inner loops are compiled once per x86-64 level, and the level is chosen at run time.
foreach(level floats IN ZIP_LISTS loop_levels loop_floats)
  add_library(ferry_deepseek_loops_${level} OBJECT row_loops_level.cpp)
  set_target_properties(ferry_deepseek_loops_${level} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(ferry_deepseek_loops_${level} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(ferry_deepseek_loops_${level} PRIVATE ferry_headers ferry_build)
  target_compile_definitions(ferry_deepseek_loops_${level} PRIVATE
                             FERRY_CPU_LEVEL=level_${level} FERRY_VECTOR_FLOATS=${floats})
  # Vectors are passed between inlined functions only, so their ABI does not matter.
  target_compile_options(ferry_deepseek_loops_${level} PRIVATE -O3 -Wno-psabi)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(ferry_deepseek_loops_${level} PRIVATE -march=x86-64-${level})
  endif()
  target_sources(ferry_deepseek PRIVATE $<TARGET_OBJECTS:ferry_deepseek_loops_${level}>)
endforeach()

# The same kernels for GPUs, in the backends' libraries.
if(TARGET ferry_hip)
  # Two objects of one library need names of their own for what the compiler adds to each.
  list(APPEND FERRY_HIP_COMPILE_FLAGS -Xclang -cuid=ferry_row_kernels)
  ferry_hip_object(ferry_hip_row_kernels gpu_row_kernels.cpp)
  target_link_libraries(ferry_hip PRIVATE ferry_hip_row_kernels)
endif()
if(TARGET ferry_cuda)
  ferry_cuda_object(ferry_cuda_row_kernels gpu_row_kernels.cpp)
  target_link_libraries(ferry_cuda PRIVATE ferry_cuda_row_kernels)
endif()

# oneDNN of the distribution computes with OpenMP's threads; calls keep it on one.
target_link_libraries(ferry_deepseek PRIVATE gomp)
