// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The instructions that gpu_team is made of, for AMD's GPUs: a team is a wavefront of 64 lanes.
#if defined(__HIP__)
#pragma once

#include <ferry/exec/gpu/hip/codes.hpp>
#include <ferry/exec/team.hpp>

#include <hip/hip_runtime.h>

#include <cstddef>
#include <cstdint>

namespace ferry {

struct native_device {
  static constexpr int lanes = 64;
  using mask = std::uint64_t;
  using codes = native_codes;

  // Every pointer of a kernel is global memory. Saying so keeps accesses from becoming flat ones,
  // which wait for the block's own memory as well.
  template <class T>
  using global = __attribute__((address_space(1))) T;
  typedef std::uint32_t words __attribute__((ext_vector_type(4)));

  /// A kernel's only argument, where the launch has put it. Its parameter is a copy of that, which
  /// the compiler keeps in memory when it cannot see through every use.
  template <class T>
  __device__ static T const& argument(T const&) {
    return *(T const*)__builtin_amdgcn_kernarg_segment_ptr();
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x) & (lanes - 1); }
  __device__ static int team() {
    return __builtin_amdgcn_readfirstlane(static_cast<int>(threadIdx.x) / lanes);
  }
  __device__ static int block() { return static_cast<int>(blockIdx.x); }

  __device__ static std::uint32_t broadcast(std::uint32_t value, int lane) {
    return static_cast<std::uint32_t>(
        __builtin_amdgcn_readlane(static_cast<int>(value), __builtin_amdgcn_readfirstlane(lane)));
  }
  __device__ static std::uint32_t from_lane(std::uint32_t value, int lane) {
    return static_cast<std::uint32_t>(
        __builtin_amdgcn_ds_bpermute(4 * lane, static_cast<int>(value)));
  }
  __device__ static mask ballot(bool b) { return __builtin_amdgcn_ballot_w64(b); }

  /// The value of a lane in the other half of a group of 2 * Step lanes, within each half of which
  /// all lanes hold the same.
  template <int Step>
  __device__ static float other_half(float value) {
    int const bits = __builtin_bit_cast(int, value);
    if constexpr (Step == 1)
      return moved<0xB1>(bits);  // quad_perm [1, 0, 3, 2]
    else if constexpr (Step == 2)
      return moved<0x4E>(bits);  // quad_perm [2, 3, 0, 1]
    else if constexpr (Step == 4)
      return moved<0x141>(bits);  // row_half_mirror
    else if constexpr (Step == 8)
      return moved<0x140>(bits);  // row_mirror
    else
      return __builtin_bit_cast(float, from_lane(static_cast<std::uint32_t>(bits), lane() ^ Step));
  }

  __device__ static void sync() {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
  }
  __device__ static void block_sync() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  /// A barrier does not wait for stores, and the compiler knows nothing of those that write
  /// through.
  __device__ static void drain() { asm volatile("s_waitcnt vmcnt(0)" ::: "memory"); }

  __device__ static void release() {
    if constexpr (!FERRY_STORES_WRITE_THROUGH) __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    // The compiler drops its own wait where this wave has stored nothing.
    asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
  }
  /// As release(), for what was stored in any way, and for who reads past all caches, as NICs do.
  __device__ static void release_to_bus() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
  }
  __device__ static void acquire() { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, ""); }

  template <class T>
  __device__ static T load_word(T const* at) {
    return __hip_atomic_load(in_global<T>(at), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  }
  template <class T>
  __device__ static void store_word(T* at, T value) {
    __hip_atomic_store(in_global<T>(at), value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  }
  /// One store to a register of another device.
  __device__ static void ring(std::uint64_t* at, std::uint64_t value) {
    if constexpr (FERRY_STORES_WRITE_THROUGH)
      asm volatile("global_store_dwordx2 %0, %1, off sc0 sc1 nt" ::"v"(at), "v"(value) : "memory");
    else
      store_word(at, value);
  }
  /// Stores `value` where there is 0. Whether there was.
  __device__ static bool claim(std::uint64_t* at, std::uint64_t value) {
    std::uint64_t none = 0;
    return __hip_atomic_compare_exchange_strong(in_global<std::uint64_t>(at), &none, value,
                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                                __HIP_MEMORY_SCOPE_SYSTEM);
  }
  template <class T>
  __device__ static T add(T* at, T value) {
    return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }

  template <class T>
  __device__ static T load(std::byte const* from) {
    return *in_global<T>(from);
  }
  __device__ static piece load_piece(std::byte const* from) {
    words const v = *in_global<words>(from);
    return {{v.x, v.y, v.z, v.w}};
  }
  __device__ static void store_piece(std::byte* to, piece const& v) {
    *in_global<words>(to) = words{v.word[0], v.word[1], v.word[2], v.word[3]};
  }

  /// A store that a peer sees once this team has drained. `base` is the same on all lanes.
  __device__ static void store_through(std::byte* base, std::uint32_t offset, piece const& v) {
    words const data{v.word[0], v.word[1], v.word[2], v.word[3]};
    if constexpr (FERRY_STORES_WRITE_THROUGH)
      asm volatile("global_store_dwordx4 %0, %1, %2 sc0 sc1" ::"v"(offset), "v"(data),
                   "s"(in_scalars(base))
                   : "memory");
    else
      *in_global<words>(base + offset) = data;
  }
  template <class T>
  requires(sizeof(T) <= 4) __device__
      static void store_through(std::byte* base, std::uint32_t offset, T value) {
    auto* const to = in_global<T>(base + offset);
    __hip_atomic_store(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  }

  __device__ static void pause() { __builtin_amdgcn_s_sleep(1); }
  __device__ static std::uint64_t clock() { return __builtin_amdgcn_s_memrealtime(); }

 private:
  template <class T>
  __device__ static global<T>* in_global(void const* p) {
    return (global<T>*)p;  // no named cast changes a space
  }
  // The compiler does not see by itself that an operand of its own instruction is the same on all
  // lanes.
  __device__ static std::byte* in_scalars(std::byte* p) {
    auto const bits = reinterpret_cast<std::uint64_t>(p);
    auto const low =
        static_cast<std::uint32_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(bits)));
    auto const high =
        static_cast<std::uint32_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(bits >> 32)));
    return reinterpret_cast<std::byte*>(std::uint64_t{high} << 32 | low);
  }
  template <int Control>
  __device__ static float moved(int bits) {
    return __builtin_bit_cast(float, __builtin_amdgcn_update_dpp(0, bits, Control, 0xF, 0xF, true));
  }
};

}  // namespace ferry
#endif
