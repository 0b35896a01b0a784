// Two lists of entries, each sorted by key, become one: entry i of a list goes to i + (entries of the other that
// come before it). Of equal keys those of the first list come first.
//
// A block takes tile after tile; its first and last key bound the range of the other list in which all of its
// threads search. 8 bytes read and 8 written an entry, the searches read neighbours' words from cache.
#include "partition.hpp"

constexpr int merge_threads = 256, merge_steps = 8;
constexpr size merge_tile = merge_threads * merge_steps;

namespace cuzk::CUZK_PATH {

// First of keys[low, high) that is not below `key`, which is 64 bits wide: one above the largest key may be asked for.
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
  size n = *count, m = *other_count;
  if (grid_rank() == 0) *total = n + m;
  for (size begin = blockIdx.x * merge_tile; begin < n; begin += gridDim.x * merge_tile) {
    size end = begin + merge_tile < n ? begin + merge_tile : n;
    if (threadIdx.x == 0) bounds[0] = first_not_below(other_keys, 0, m, (u64)keys[begin] + last);
    if (threadIdx.x == 32) bounds[1] = first_not_below(other_keys, 0, m, (u64)keys[end - 1] + last);
    __syncthreads();
    size low = bounds[0], high = bounds[1];
    for (size i = begin + threadIdx.x; i < end; i += merge_threads) {
      u32 key = keys[i];
      size place = i + first_not_below(other_keys, low, high, (u64)key + last);
      keys_out[place] = key;
      rows_out[place] = rows[i] + (u32)skip;
    }
    __syncthreads();
  }
}
