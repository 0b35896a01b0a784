// Two lists of entries, each sorted by key, become one: entry i of a list goes to i + (entries of the other that
// come before it). Of equal keys those of the first list come first.
//
// A block takes tile after tile; its first and last key bound the range of the other list in which all of its
// threads search: in shared memory where it fits. 8 bytes read and 8 written an entry, and the other's keys once.
#include "partition.hpp"

constexpr int merge_threads = 256, merge_steps = 8;
constexpr size merge_tile = merge_threads * merge_steps, merge_range = 2 * merge_tile;

namespace cuzk::CUZK_PATH {

// First of keys[low, high) that is not below `key`, as `searched_by_warp`, by one thread.
inline size first_not_below(const u32* keys, size low, size high, u64 key) {
  while (low < high) {
    size middle = (low + high) / 2;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

}  // namespace cuzk::CUZK_PATH

// The *count entries of one list, `skip` added to their rows, to their places among the *other_count of the other. `last`
// is 1 for the second list, whose entries come behind equal ones, else 0. *total becomes how many there are in all.
KERNEL(256, 4) merge_entries(const u32* keys, const u32* rows, const u64* count, size skip, const u32* other_keys,
                             const u64* other_count, size last, u32* keys_out, u32* rows_out, u64* total) {
  __shared__ size bounds[2];
  __shared__ u32 range[merge_range];
  size n = *count, m = *other_count;
  if (grid_rank() == 0) *total = n + m;
  for (size begin = blockIdx.x * merge_tile; begin < n; begin += gridDim.x * merge_tile) {
    size end = begin + merge_tile < n ? begin + merge_tile : n;
    if (threadIdx.x < 64) {
      u32 end_of = threadIdx.x / 32;
      bounds[end_of] = searched_by_warp(other_keys, 0, m, (u64)keys[end_of ? end - 1 : begin] + last);
    }
    __syncthreads();
    size low = bounds[0], high = bounds[1];
    bool fits = high - low <= merge_range;
    if (fits)
      for (size i = low + threadIdx.x; i < high; i += merge_threads) range[i - low] = other_keys[i];
    __syncthreads();
    for (size i = begin + threadIdx.x; i < end; i += merge_threads) {
      u32 key = keys[i];
      size before = fits ? low + first_not_below(range, 0, high - low, (u64)key + last)
                         : first_not_below(other_keys, low, high, (u64)key + last);
      size place = i + before;
      keys_out[place] = key;
      rows_out[place] = rows[i] + (u32)skip;
    }
    __syncthreads();
  }
}
