// One round of pairwise sums over a list of points sorted by key: of a key's entries 0, 1, 2, ... the first and
// second, third and fourth, ... become their sum, an odd one at the end stays. L entries of a key become
// ceil(L / 2), whichever keys there are: no step looks at a key's whole list.
//
// The list is the entries [skip, skip + limit) of *total, fewer where there are no more; `keys` and `rows`
// point at the first of them, skip is even. The new list is written from entry *base on.
#include "partition.hpp"
#include "tree.hpp"

namespace cuzk::CUZK_PATH {

constexpr int plan_threads = 256, plan_warps = plan_threads / 32, plan_steps = 8;
constexpr int plan_groups = plan_steps * plan_warps;                // of 64 entries, two a lane
constexpr size plan_entries = 2 * plan_threads * plan_steps;        // of one block

// What a round leaves on the device.
struct Round {
  u64 pairs, entries, end;  // end = *base + entries
};

inline size list_length(const u64* total, size skip, size limit) {
  size left = *total > skip ? *total - skip : 0;
  return left < limit ? left : limit;
}

// Whether the first entry of keys[first]'s key has an odd place. All lanes of a warp call: they look at 32 places
// before `first`, which is enough for most keys, then search in steps of 32.
inline bool begins_odd(const u32* keys, size first) {
  u32 lane = threadIdx.x % 32, key = keys[first];
  u32 other = __ballot_sync(whole_warp, first <= lane || keys[first - 1 - lane] != key);
  if (other) return (first - (size)(__ffs((int)other) - 1)) & 1;
  return searched_by_warp(keys, 0, first - 32, key) & 1;
}

// Bit j of an addition's carries: c[j + 1] = generate[j] | propagate[j] & c[j], given c[0].
inline u64 carries(u64 propagate, u64 generate, u64 carry) {
  return (propagate + generate + carry) ^ propagate ^ generate;
}

// Which entries of a block are the second of a pair: those that are an odd number behind their key's first.
//
// A lane has the entries x, y at 2 j, 2 j + 1. y is a second one where x has its key and is none, and x where
// the y before has its key and is none: x'(j) = same(j) & (new(j - 1) | x'(j - 1)), with same(j): x has the key
// of the y before, new(j): y has not x's. That is how carries run, over the lanes of a group and over groups.
struct Seconds {
  uint2 keys[plan_steps];  // this thread's
  u32 (*masks)[plan_groups];  // same, new, then x' and y' of every group
  u32 pairs, before;  // of the block; of the groups before this thread's

  Seconds(const u32* list, size length, size first, u32 (&shared)[4][plan_groups]) : masks(shared) {
    __shared__ u32 group_masks[2][2], begins;
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, t = threadIdx.x;
#pragma unroll
    for (size step = 0; step < plan_steps; step++) {
      size i = place(first, step);
      keys[step] = make_uint2(0, 0);
      if (i + 1 < length) keys[step] = *reinterpret_cast<const uint2*>(list + i);
      else if (i < length) keys[step].x = list[i];
    }
#pragma unroll
    for (size step = 0; step < plan_steps; step++) {
      size i = place(first, step);
      u32 last = __shfl_up_sync(whole_warp, keys[step].y, 1);
      if (lane == 0 && i > 0 && i < length) last = list[i - 1];
      u32 same = __ballot_sync(whole_warp, i > 0 && i < length && last == keys[step].x);
      u32 fresh = __ballot_sync(whole_warp, i + 1 >= length || keys[step].x != keys[step].y);
      if (lane == 0) masks[0][group(step)] = same, masks[1][group(step)] = fresh;
    }
    if (warp == 1) begins = begins_odd(list, first);
    __syncthreads();
    u32 same = 0, generate = 0;
    if (t < plan_groups) {
      same = masks[0][t];
      generate = same & (masks[1][t] << 1 | (t > 0 ? masks[1][t - 1] >> 31 : 0));
      bool with = carries(same, generate, 1) >> 32, without = carries(same, generate, 0) >> 32;
      u32 propagates = __ballot_sync(whole_warp, with), generates = __ballot_sync(whole_warp, without);
      if (lane == 0) group_masks[0][warp] = propagates, group_masks[1][warp] = generates;
    }
    __syncthreads();
    u32 mine = 0;
    if (t < plan_groups) {
      u64 propagate = (u64)group_masks[0][1] << 32 | group_masks[0][0];
      u64 carry = carries(propagate, (u64)group_masks[1][1] << 32 | group_masks[1][0], begins) >> t & 1;
      u32 x = (u32)(carries(same, generate, carry) >> 1), y = ~masks[1][t] & ~x;
      masks[2][t] = x, masks[3][t] = y;
      mine = __popc(x) + __popc(y);
    }
    before = sum_before(mine, pairs);
  }
  static size group(size step) { return step * plan_warps + threadIdx.x / 32; }
  static size place(size first, size step) { return first + 2 * (step * plan_threads + threadIdx.x); }
  bool bit(int mask, size step) const { return masks[mask][group(step)] >> threadIdx.x % 32 & 1; }
};

// Points in 16-byte pieces, each moved by a thread of its own: neighbours read and write side by side.
struct Pieces {
  static constexpr u32 count = sizeof(Point) / 16, of_element = sizeof(Fp) / 16, at_once = 4;
  List list;

  ulonglong2 raw(u32 row, u32 k) const { return reinterpret_cast<const ulonglong2*>(list.at(row))[k]; }
  // Borrows run through a whole element: every thread that holds a piece of it subtracts all of it.
  ulonglong2 negated(u32 row, u32 k) const {
    Fp negative = -load(reinterpret_cast<const Fp*>(list.at(row)) + k / of_element);
    auto* words = reinterpret_cast<const ulonglong2*>(&negative);
    ulonglong2 value{0, 0};  // by masks: a choice would put the element into local memory
#pragma unroll
    for (u32 i = 0; i < of_element; i++) {
      u64 mask = 0 - (u64)(k % of_element == i);
      value.x |= words[i].x & mask, value.y |= words[i].y & mask;
    }
    return value;
  }
  static bool is_signed(u32 row, u32 k) { return k >= count / 2 && row >> 31; }
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

// counts[b] = entries of block b that are the second of a pair.
KERNEL(plan_threads, 4)
tree_count(const u32* keys, const u64* total, size skip, size limit, u32* counts) {
  __shared__ u32 masks[4][plan_groups];
  size length = list_length(total, skip, limit), first = blockIdx.x * plan_entries;
  if (first >= length) return;
  Seconds seconds(keys, length, first, masks);
  if (threadIdx.x == 0) counts[blockIdx.x] = seconds.pairs;
}

// counts[b] becomes the sum of those before it. One block.
KERNEL(plan_threads, 1)
tree_scan(u32* counts, const u64* total, size skip, size limit, const u64* base, Round* round) {
  size length = list_length(total, skip, limit);
  size blocks = (length + plan_entries - 1) / plan_entries;
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

// Name the pairs by their first entry, write the new keys, copy the entries that stay. Entry i becomes
// i - (seconds before it).
KERNEL(plan_threads, 4)
tree_place(const u32* keys, const u32* rows, const Point* points, const u64* total, size skip, size limit,
           const u32* counts, const u64* base, u32* couples, u32* keys_out, Point* points_out) {
  __shared__ u32 masks[4][plan_groups], seconds_before[plan_groups];
  __shared__ unsigned short stays[plan_entries];  // which entries of the block
  size length = list_length(total, skip, limit), first = blockIdx.x * plan_entries;
  if (first >= length) return;
  Seconds own(keys, length, first, masks);
  if (threadIdx.x < plan_groups) seconds_before[threadIdx.x] = own.before;
  __syncthreads();
  u32 earlier = counts[blockIdx.x], cut = masks[2][0] & 1;  // the first entry's pair is half another block's
  u32 below = (1u << threadIdx.x % 32) - 1;
  keys_out += *base, points_out += *base;
#pragma unroll
  for (size step = 0; step < plan_steps; step++) {
    size i = Seconds::place(first, step), of = Seconds::group(step);
    if (i >= length) break;
    bool x = own.bit(2, step), y = own.bit(3, step), two = i + 1 < length;
    u32 here = seconds_before[of] + __popc(masks[2][of] & below) + __popc(masks[3][of] & below);
    u32 e = (u32)(i - first), s = e - 2 * here + cut, q = earlier + here;
    if (x) couples[q] = (u32)i - 1;
    else keys_out[i - q] = own.keys[step].x;
    bool stay = !x && !y && own.bit(1, step);
    if (stay) stays[s] = e;
    here += x, q += x, s = e + 1 - 2 * here + cut;
    if (y) couples[q] = (u32)i;
    else if (two) keys_out[i + 1 - q] = own.keys[step].y;
    stay = two && !y && (i + 2 >= length || keys[i + 2] != own.keys[step].y);
    if (stay) stays[s] = e + 1;
  }
  __syncthreads();
  u32 entries = length - first < plan_entries ? (u32)(length - first) : (u32)plan_entries;
  bool last_is_second = masks[3][plan_groups - 1] >> 31;
  size next = first + plan_entries;
  bool cut_again = next < length && !last_is_second && keys[next] == keys[next - 1];
  u32 pieces = (entries + cut - 2 * own.pairs - cut_again) * Pieces::count;
  Pieces list{{points, rows}};
  auto* out = reinterpret_cast<ulonglong2*>(points_out + first - earlier);
#pragma unroll 1
  for (u32 begin = threadIdx.x; begin < pieces; begin += plan_threads * Pieces::at_once) {
    ulonglong2 values[Pieces::at_once];
    u32 from[Pieces::at_once];
#pragma unroll
    for (u32 k = 0; k < Pieces::at_once; k++) {
      u32 w = begin + k * plan_threads;
      if (w >= pieces) continue;
      from[k] = list.list.row(first + stays[w / Pieces::count]);
      values[k] = list.raw(from[k], w % Pieces::count);
    }
#pragma unroll
    for (u32 k = 0; k < Pieces::at_once; k++) {
      u32 w = begin + k * plan_threads, s = w / Pieces::count, piece = w % Pieces::count;
      if (w >= pieces) continue;
      if (Pieces::is_signed(from[k], piece)) values[k] = list.negated(from[k], piece);
      u32 e = stays[s];
      out[(size)(e - (e + cut - s) / 2) * Pieces::count + piece] = values[k];
    }
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
