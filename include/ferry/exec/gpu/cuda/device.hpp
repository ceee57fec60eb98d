// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The instructions that gpu_team is made of, for NVIDIA's GPUs: a team is a warp of 32 lanes.
#if defined(__CUDACC__)
#pragma once

#include <ferry/exec/gpu/cuda/codes.hpp>
#include <ferry/exec/team.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

struct native_device {
  static constexpr int lanes = 32;
  using mask = std::uint32_t;
  using codes = native_codes;
  static constexpr mask all_lanes = ~mask{0};

  /// A kernel's only argument, where the launch has put it.
  template <class T>
  __device__ static T const& argument(T const& parameter) {
    return parameter;
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x) & (lanes - 1); }
  __device__ static int team() {
    return __shfl_sync(all_lanes, static_cast<int>(threadIdx.x) / lanes, 0);
  }
  __device__ static int block() { return static_cast<int>(blockIdx.x); }

  __device__ static std::uint32_t broadcast(std::uint32_t value, int lane) {
    return __shfl_sync(all_lanes, value, lane);
  }
  __device__ static std::uint32_t from_lane(std::uint32_t value, int lane) {
    return __shfl_sync(all_lanes, value, lane);
  }
  __device__ static mask ballot(bool b) { return __ballot_sync(all_lanes, b); }

  /// The value of a lane in the other half of a group of 2 * Step lanes, within each half of which
  /// all lanes hold the same.
  template <int Step>
  __device__ static float other_half(float value) {
    return __shfl_xor_sync(all_lanes, value, Step);
  }

  __device__ static void sync() { __syncwarp(all_lanes); }
  __device__ static void block_sync() { __syncthreads(); }
  /// The barrier that follows orders this team's stores before the releasing team's fence, and a
  /// fence covers whatever is ordered before it.
  __device__ static void drain() {}

  __device__ static void release() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
  /// As release(): a NIC reads what a fence of the whole system covers.
  __device__ static void release_to_bus() { release(); }
  __device__ static void acquire() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

  __device__ static std::uint64_t load_word(std::uint64_t const* at) {
    std::uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
                 : "=l"(value)
                 : "l"(__cvta_generic_to_global(at))
                 : "memory");
    return value;
  }
  __device__ static std::uint32_t load_word(std::uint32_t const* at) {
    std::uint32_t value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];"
                 : "=r"(value)
                 : "l"(__cvta_generic_to_global(at))
                 : "memory");
    return value;
  }
  __device__ static void store_word(std::uint64_t* at, std::uint64_t value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(at)),
                 "l"(value)
                 : "memory");
  }
  __device__ static void store_word(std::uint32_t* at, std::uint32_t value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(at)),
                 "r"(value)
                 : "memory");
  }
  /// One store to a register of another device.
  __device__ static void ring(std::uint64_t* at, std::uint64_t value) {
    asm volatile("st.mmio.relaxed.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(at)),
                 "l"(value)
                 : "memory");
  }
  /// Stores `value` where there is 0. Whether there was.
  __device__ static bool claim(std::uint64_t* at, std::uint64_t value) {
    return atomicCAS_system(reinterpret_cast<unsigned long long*>(at), 0ull,
                            static_cast<unsigned long long>(value)) == 0;
  }
  __device__ static std::uint32_t add(std::uint32_t* at, std::uint32_t value) {
    return atomicAdd(at, value);
  }
  __device__ static std::uint64_t add(std::uint64_t* at, std::uint64_t value) {
    return atomicAdd(reinterpret_cast<unsigned long long*>(at),
                     static_cast<unsigned long long>(value));
  }

  template <class T>
  __device__ static T load(std::byte const* from) {
    return *reinterpret_cast<T const*>(known_global(from));
  }
  __device__ static piece load_piece(std::byte const* from) {
    uint4 const v =
        *static_cast<uint4 const*>(__builtin_assume_aligned(known_global(from), sizeof(uint4)));
    return {{v.x, v.y, v.z, v.w}};
  }
  __device__ static void store_piece(std::byte* to, piece const& v) {
    *reinterpret_cast<uint4*>(known_global(to)) = uint4{v.word[0], v.word[1], v.word[2], v.word[3]};
  }

  /// A store that a peer sees once this team has drained and one team has released. `base` is the
  /// same on all lanes.
  __device__ static void store_through(std::byte* base, std::uint32_t offset, piece const& v) {
    store_piece(base + offset, v);
  }
  template <class T>
  requires(sizeof(T) <= 4) __device__
      static void store_through(std::byte* base, std::uint32_t offset, T value) {
    *reinterpret_cast<T*>(known_global(base + offset)) = value;
  }

  __device__ static void pause() { __nanosleep(32); }
  __device__ static std::uint64_t clock() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }

 private:
  /// The same pointer, as one that the compiler knows to be global memory.
  template <class T>
  __device__ static T* known_global(T* p) {
    __builtin_assume(__isGlobal(p));
    return p;
  }
};

}  // namespace ferry
#endif
