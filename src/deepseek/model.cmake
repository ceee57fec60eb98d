# SPDX-License-Identifier: MIT
# The model's computation.
ferry_sources(ferry_deepseek attention.cpp device_experts.cpp device_layers.cpp device_linear.cpp device_model.cpp
              emulated_row_kernels.cpp experts.cpp fixed_products.cpp gate.cpp host_experts.cpp linear.cpp mlp.cpp
              model.cpp model_layers.cpp model_stages.cpp moe_layer.cpp products/played_products.cpp
              product.cpp rms_norm.cpp rope.cpp row_kernels.cpp row_loops.cpp strip_device.cpp
              token_sampler.cpp
              layer_weights.cpp weight_pool.cpp weight_reader.cpp)
# As the exchange's kernels on such lanes (src/kernels).
set_source_files_properties(emulated_row_kernels.cpp TARGET_DIRECTORY ferry_deepseek PROPERTIES
                            COMPILE_OPTIONS -O1 COMPILE_DEFINITIONS FERRY_COMPILER_INLINES)
ferry_public_headers(ferry/deepseek/attention.hpp ferry/deepseek/experts.hpp
                     ferry/deepseek/gate.hpp ferry/deepseek/linear.hpp ferry/deepseek/mlp.hpp
                     ferry/deepseek/model.hpp ferry/deepseek/moe_layer.hpp
                     ferry/deepseek/rms_norm.hpp ferry/deepseek/rope.hpp
                     ferry/deepseek/token_sampler.hpp)
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

# Dense products by the vendors' own libraries: each in a library beside the backend, which is opened
# on demand as that one is, and may be absent.
function(ferry_products name)
  string(TOUPPER ${name} vendor)
  add_library(ferry_${name}_products SHARED products/gpu_products.cpp)
  target_include_directories(ferry_${name}_products PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(ferry_${name}_products PRIVATE FERRY_PRODUCTS_${vendor})
  target_link_libraries(ferry_${name}_products PRIVATE ferry_headers ferry_build ${ARGN})
  target_link_options(ferry_${name}_products PRIVATE -Wl,-z,defs)
  set_target_properties(ferry_${name}_products PROPERTIES CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON)
  if(CMAKE_RUNTIME_OUTPUT_DIRECTORY)
    set_target_properties(ferry_${name}_products PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                          ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  endif()
  install(TARGETS ferry_${name}_products LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
endfunction()
if(TARGET ferry_cuda)
  if(TARGET CUDA::cublasLt)
    ferry_products(cuda CUDA::cublasLt)
  else()
    message(STATUS "No products by cuBLASLt: not found")
  endif()
endif()
if(TARGET ferry_hip)
  find_path(FERRY_HIPBLASLT_INCLUDE hipblaslt/hipblaslt.h HINTS $ENV{ROCM_PATH}/include /opt/rocm/include)
  find_library(FERRY_HIPBLASLT hipblaslt HINTS $ENV{ROCM_PATH}/lib /opt/rocm/lib)
  mark_as_advanced(FERRY_HIPBLASLT_INCLUDE FERRY_HIPBLASLT)
  if(FERRY_HIPBLASLT_INCLUDE AND FERRY_HIPBLASLT)
    ferry_products(hip ${FERRY_HIPBLASLT})
    target_compile_definitions(ferry_hip_products PRIVATE __HIP_PLATFORM_AMD__)
    target_include_directories(ferry_hip_products SYSTEM PRIVATE ${FERRY_HIPBLASLT_INCLUDE})
  else()
    message(STATUS "No products by hipBLASLt: not found")
  endif()
endif()

# oneDNN of the distribution computes with OpenMP's threads; calls keep it on one.
target_link_libraries(ferry_deepseek PRIVATE gomp)
