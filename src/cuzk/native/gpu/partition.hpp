// Steps of a partition by one block: its tile of items is counted by bin in shared memory, a range of the
// output is reserved for every bin that is not empty (one global atomic each, however many items it has),
// the items are ordered by bin in shared memory and leave as contiguous runs.
//
// Order inside a bin is free. Positions are 32 bits: the host refuses 2^32 items and more.
#pragma once

#include "kernel.hpp"

namespace cuzk::CUZK_PATH {

using u16 = unsigned short;

constexpr u32 whole_warp = ~0u;

// The sum of `value` over the threads before this one, and over the block. All threads call.
inline u32 sum_before(u32 value, u32& total) {
  __shared__ u32 warp_sums[32];
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, sum = value;
  for (u32 by = 1; by < 32; by *= 2) {
    u32 below = __shfl_up_sync(whole_warp, sum, by);
    if (lane >= by) sum += below;
  }
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  u32 sums = lane < warps ? warp_sums[lane] : 0;
  for (u32 by = 1; by < 32; by *= 2) {
    u32 below = __shfl_up_sync(whole_warp, sums, by);
    if (lane >= by) sums += below;
  }
  total = __shfl_sync(whole_warp, sums, 31);
  u32 warps_before = __shfl_sync(whole_warp, sums, warp > 0 ? warp - 1 : 0);
  __syncthreads();  // warp_sums may be written again
  return sum - value + (warp > 0 ? warps_before : 0);
}

// values[k] becomes first + values[0] + ... + values[k - 1], for k <= count. Begins and ends with a barrier.
inline void scan_in_block(u32* values, u32 count, u32 first) {
  __syncthreads();
  u32 chunk = (count + blockDim.x - 1) / blockDim.x | 1;  // odd: lanes reach different banks
  u32 begin = threadIdx.x * chunk, end = begin + chunk < count ? begin + chunk : count, sum = 0, total;
  for (u32 k = begin; k < end; k++) sum += values[k];
  u32 before = first + sum_before(sum, total);
  for (u32 k = begin; k < end; k++) {
    u32 value = values[k];
    values[k] = before;
    before += value;
  }
  if (threadIdx.x == 0) values[count] = first + total;
  __syncthreads();
}

// Given starts (count + 1 of them, scanned): whether more than an eighth of the tile's items are of one bin.
// Ends with a barrier.
inline bool is_crowded(const u32* starts, u32 count) {
  bool any = false;
  for (u32 k = threadIdx.x; k < count; k += blockDim.x) any |= starts[k + 1] - starts[k] > starts[count] / 8;
  return __syncthreads_or(any);
}

// places[bin]++ for the lanes that are live, each with the value it found. All lanes of the warp call.
//
// Lanes of one bin would wait for each other: if the tile is crowded, those that share the bin of the first (then
// of the next) live lane take their places together where they are many, so that a hot bin costs one atomic per warp.
inline u32 take_place(u32* places, u32 bin, bool live, bool crowded) {
  constexpr int many = 4;
  u32 lane = threadIdx.x % 32, place = 0;
  if (crowded) {
    u32 waiting = __ballot_sync(whole_warp, live);
#pragma unroll
    for (int round = 0; round < 2; round++) {
      if (waiting == 0) break;
      int leader = __ffs((int)waiting) - 1;
      u32 chosen = __shfl_sync(whole_warp, bin, leader);
      u32 same = __ballot_sync(whole_warp, live && bin == chosen);
      waiting &= ~same;
      if (__popc(same) < many) continue;
      u32 first = 0;
      if (lane == (u32)leader) first = atomicAdd(places + chosen, (u32)__popc(same));
      first = __shfl_sync(whole_warp, first, leader);
      if (same >> lane & 1) place = first + (u32)__popc(same & ((1u << lane) - 1)), live = false;
    }
  }
  if (live) place = atomicAdd(places + bin, 1u);
  return place;
}

// First of the sorted keys[low, high) that is not below `key`, else high: a warp together, a step for each factor of 32.
// `key` is 64 bits wide: one above the largest may be asked for.
inline size searched_by_warp(const u32* keys, size low, size high, u64 key) {
  u32 lane = threadIdx.x % 32;
  while (low < high) {
    size width = high - low;  // below 2^32
    u32 below = (u32)__popc(__ballot_sync(whole_warp, keys[low + width * lane / 32] < key));
    if (below < 32) high = low + width * below / 32;
    if (below > 0) low += width * (below - 1) / 32 + 1;
  }
  return low;
}

inline void clear(u32* values, u32 count) {
  for (u32 k = threadIdx.x; k < count; k += blockDim.x) values[k] = 0;
}

// Given starts (count + 1 of them, scanned): item i of the ordered tile, of bin k, goes to bases[k] + i.
// Ends with a barrier. A few atomics of a thread are under way at once: each takes most of a microsecond.
inline void reserve(const u32* starts, u32* bases, u32 count, u32* cursors) {
  constexpr u32 batch = 4;
  for (u32 first = threadIdx.x; first < count; first += batch * blockDim.x) {
    u32 base[batch];
#pragma unroll
    for (u32 j = 0; j < batch; j++) {
      u32 k = first + j * blockDim.x, items = k < count ? starts[k + 1] - starts[k] : 0;
      base[j] = items > 0 ? atomicAdd(cursors + k, items) - starts[k] : 0;  // mod 2^32
    }
#pragma unroll
    for (u32 j = 0; j < batch; j++)
      if (first + j * blockDim.x < count) bases[first + j * blockDim.x] = base[j];
  }
  __syncthreads();
}

// counters[k] += values[k]. Begins with a barrier.
inline void add_counts(const u32* values, u32* counters, u32 count) {
  __syncthreads();
  for (u32 k = threadIdx.x; k < count; k += blockDim.x)
    if (values[k] > 0) atomicAdd(counters + k, values[k]);
}

}  // namespace cuzk::CUZK_PATH
