// One round of pairwise sums over a list of points sorted by key: the couples (2 j, 2 j + 1) of equal key
// become their sum, all other entries stay. A key's L entries become at most L / 2 + 1, whichever keys there
// are: no step looks at a key's whole list.
//
// The list is the entries [skip, skip + limit) of *total, fewer where there are no more; `keys` and `rows`
// point at the first of them, skip is even. The new list is written from entry *base on.
#include "partition.hpp"
#include "tree.hpp"

namespace cuzk::CUZK_PATH {

constexpr int plan_threads = 256, plan_warps = plan_threads / 32, plan_steps = 8;
constexpr size plan_couples = plan_threads * plan_steps;  // of one block

// What a round leaves on the device.
struct Round {
  u64 pairs, entries, end;  // end = *base + entries
};

inline size list_length(const u64* total, size skip, size limit) {
  size left = *total > skip ? *total - skip : 0;
  return left < limit ? left : limit;
}

// The keys of this thread's couples; where the list ends within a couple or before it, two different ones.
struct Couples {
  uint2 keys[plan_steps];

  Couples(const u32* list, size length) {
#pragma unroll
    for (size step = 0; step < plan_steps; step++) {
      size j = place(step);
      if (2 * j + 1 < length) keys[step] = reinterpret_cast<const uint2*>(list)[j];
      else keys[step] = 2 * j < length ? make_uint2(list[2 * j], ~list[2 * j]) : make_uint2(0, 1);
    }
  }
  static size place(size step) { return blockIdx.x * plan_couples + step * plan_threads + threadIdx.x; }
  bool is_pair(size step) const { return keys[step].x == keys[step].y; }
};

// The blocks that share a processor come to their inversions at different times, so that the others work
// meanwhile, and one's memory-bound way up meets another's way back: their first steps are 1 / blocks,
// 2 / blocks, ... of the others. A short step is not worth a second inversion.
inline size first_step(size longest) {
  if (longest < 32) return longest;
  size part = blockIdx.x * (size)tree_blocks / gridDim.x + 1;
  return (longest * part + tree_blocks - 1) / tree_blocks;
}

}  // namespace cuzk::CUZK_PATH

// counts[b] = pairs among the couples of block b.
KERNEL(plan_threads, 1)
tree_count(const u32* keys, const u64* total, size skip, size limit, u32* counts) {
  size length = list_length(total, skip, limit);
  u32 mine = 0, sum;
  if (2 * blockIdx.x * plan_couples >= length) return;
  Couples own(keys, length);
#pragma unroll
  for (size step = 0; step < plan_steps; step++) mine += own.is_pair(step);
  sum_before(mine, sum);
  if (threadIdx.x == 0) counts[blockIdx.x] = sum;
}

// counts[b] becomes the sum of those before it. One block.
KERNEL(plan_threads, 1)
tree_scan(u32* counts, const u64* total, size skip, size limit, const u64* base, Round* round) {
  size length = list_length(total, skip, limit);
  size blocks = (length + 2 * plan_couples - 1) / (2 * plan_couples);
  size share = (blocks + plan_threads - 1) / plan_threads, begin = threadIdx.x * share;
  size end = begin + share < blocks ? begin + share : blocks;
  u32 mine = 0, sum;  // pairs are fewer than 2^31
  for (size b = begin; b < end; b++) mine += counts[b];
  u32 before = sum_before(mine, sum);
  for (size b = begin; b < end; b++) {
    u32 count = counts[b];
    counts[b] = before;
    before += count;
  }
  if (threadIdx.x == 0) *round = {sum, length - sum, *base + length - sum};
}

// Name the pairs, write the new keys, copy the entries that stay. Entry i becomes i - (pairs before it).
KERNEL(plan_threads, 4)
tree_place(const u32* keys, const u32* rows, const Point* points, const u64* total, size skip, size limit,
           const u32* counts, const u64* base, u32* couples, u32* keys_out, Point* points_out) {
  __shared__ u32 masks[plan_steps * plan_warps], pairs_before[plan_steps * plan_warps];
  __shared__ unsigned short stays[2 * plan_couples];  // which entries of the block
  size length = list_length(total, skip, limit), first = 2 * blockIdx.x * plan_couples;
  if (first >= length) return;
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Couples own(keys, length);
#pragma unroll
  for (size step = 0; step < plan_steps; step++) {
    u32 mask = __ballot_sync(~0u, own.is_pair(step));
    if (lane == 0) masks[step * plan_warps + warp] = mask;
  }
  __syncthreads();
  bool counts_one = threadIdx.x < plan_steps * plan_warps;
  u32 pairs, before = sum_before(counts_one ? (u32)__popc(masks[threadIdx.x]) : 0, pairs);
  if (counts_one) pairs_before[threadIdx.x] = before;
  __syncthreads();
  u32 earlier = counts[blockIdx.x];
  keys_out += *base, points_out += *base;
#pragma unroll
  for (size step = 0; step < plan_steps; step++) {
    size j = Couples::place(step), of = step * plan_warps + warp;
    u32 here = pairs_before[of] + __popc(masks[of] & ((1u << lane) - 1)), e = (u32)(2 * j - first);
    u32* key = keys_out + 2 * j - earlier - here;
    if (2 * j < length) key[0] = own.keys[step].x;
    if (own.is_pair(step)) {
      couples[earlier + here] = (u32)j;
    } else {
      if (2 * j + 1 < length) key[1] = own.keys[step].y;
      stays[e - 2 * here] = e, stays[e - 2 * here + 1] = e + 1;
    }
  }
  __syncthreads();
  List list{points, rows};
  size entries = length - first < 2 * plan_couples ? length - first : 2 * plan_couples;
  for (u32 s = threadIdx.x; s + 2 * pairs < entries; s += plan_threads) {
    u32 e = stays[s], row = list.row(first + e);
    store(points_out + first + e - earlier - (e - s) / 2, Point{list.x(row), list.y(row)});
  }
}

// The sums of the pairs, a share of equal length for every block. `products` holds most * planes elements of
// Fp for every thread of the grid: that many pairs a thread takes at most between two inversions.
KERNEL(tree_threads, tree_blocks)
tree_add(const Point* points, const u32* rows, const u32* couples, const Round* round, const u64* base,
         Point* points_out, ulonglong2* products, size most) {
  size pairs = round->pairs, threads = (size)gridDim.x * tree_threads, depth = (pairs + threads - 1) / threads;
  size begin = blockIdx.x * depth * tree_threads, step = first_step(depth < most ? depth : most);
  if (begin >= pairs) return;
  size end = begin + depth * tree_threads < pairs ? begin + depth * tree_threads : pairs;
  ulonglong2* mine = products + blockIdx.x * most * Products::planes * Products::pieces * tree_threads;
  points_out += *base;
#pragma unroll 1
  for (size turn = 0; begin < end; turn++, begin += step * tree_threads, step = most) {
    size stop = begin + step * tree_threads < end ? begin + step * tree_threads : end;
    size first = begin + threadIdx.x;
    int count = first < stop ? (int)((stop - first - 1) / tree_threads + 1) : 0;
    Walk walk{{points, rows}, couples + first, points_out - (i64)first, {mine + threadIdx.x}, count};
    walk.back(inverted_in_block(walk.up(), turn));
  }
}

// rows[i] = i: the new list as one of entries for the kernels that gather.
KERNEL(256, 1) tree_rows(const u64* total, u32* rows) {
  for (size i = grid_rank(); i < *total; i += grid_size()) rows[i] = (u32)i;
}
