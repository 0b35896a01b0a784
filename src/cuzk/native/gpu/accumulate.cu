// Bucket sums of a sorted list of signed points: B_k = sum of +-points[row] over the entries with key k.
//
// 1. The list is cut into as many slices of equal length as there are threads, so that no distribution of
//    keys is slower than another. A thread walks its slice; buckets that lie inside it are written at once,
//    the sums of its first and its last key, which may go on in the neighbours, become two *pieces*.
// 2. The 2 T pieces, sorted by key, are summed by runs of equal key: a block takes P consecutive ones (a tree
//    per run in log2 P rounds), writes the runs that lie inside it and leaves two pieces to the next level.
//
// With e entries in b buckets that are not empty and T slices: e - b mixed additions (8M + 2S), at most
// 2 T (1 + 2 / P + ...) full ones; 8 e bytes of entries and e points of n (random) read, b sums written. On top of
// buckets that hold sums already (`kept`) it is e mixed ones, one full one more a run of pieces, b sums read.
#include "sum.hpp"

constexpr u32 no_key = ~0u;  // sorts last; keys are below 2^32 - 1

inline void prefetch(const Point* point) {
#ifdef CUZK_DEVICE
  asm volatile("prefetch.global.L2 [%0];" ::"l"(point));
  asm volatile("prefetch.global.L2 [%0];" ::"l"((const char*)(point + 1) - 16));
#endif
}

// A row is an index below 2^31 and, on top, the sign.
inline const Point* point_of(const Point* points, u32 row) { return points + (row & ~0u >> 1); }
inline Point signed_point(const Point* points, u32 row) {
  Point point = load(point_of(points, row));
  if (row >> 31) point.y = -point.y;
  return point;
}

struct Entry {
  u32 key, row;
};
inline Entry entry(const u32* keys, const u32* rows, size i) { return {keys[i], rows[i]}; }

inline void put_piece(u32* keys, Sum* sums, size i, u32 key, const Sum& sum) {
  keys[i] = key;
  store(sums + i, sum);
}

// *count entries, sorted by key; slice t is [t L, (t + 1) L) and thread t's. Pieces 2 t and 2 t + 1 are the sums of the
// slice's first and last key; a slice of one key has no sum in the second, an empty one no keys. With `kept` a bucket
// inside the slice goes on from the sum that it has: pieces must not, or it would be added twice.
template <bool kept>
inline void accumulate(const Point* points, const u32* keys, const u32* rows, const size* count, Sum* buckets,
                       u32* piece_keys, Sum* pieces) {
  size entries = *count, length = (entries + grid_size() - 1) / grid_size();
  size i = grid_rank() * length, end = i + length < entries ? i + length : entries, piece = 2 * grid_rank();
  u32 first = no_key, key = no_key, last = no_key;
  Sum sum = Sum::infinity();
  Entry now{}, next{};
  if (i < end) {
    now = entry(keys, rows, i), next = entry(keys, rows, i + 1 < end ? i + 1 : i);
    first = key = now.key;
    if constexpr (kept) last = keys[end - 1];
  }
  while (i < end) {
    Point point;
    bool to_add = false;
    while (i < end && !to_add) {  // the first point of a bucket is no addition: take the next one at once
      if (now.key != key) {
        if (key == first) put_piece(piece_keys, pieces, piece, key, sum);
        else store(buckets + key, sum);
        key = now.key, sum = Sum::infinity();
        if constexpr (kept) {
          if (key != last) sum = load(buckets + key);
        }
      }
      point = signed_point(points, now.row);
      prefetch(point_of(points, next.row));  // it is fetched while this one is added
      i++, now = next;
      if (i + 1 < end) next = entry(keys, rows, i + 1);
      if (point.is_infinity()) continue;
      to_add = !sum.is_infinity();
      if (!to_add) sum = Sum::from_affine(point);
    }
    if (to_add) add_point(sum, point);
  }
  if (key == first) {
    put_piece(piece_keys, pieces, piece, key, sum);
    sum = Sum::infinity();
  }
  put_piece(piece_keys, pieces, piece + 1, key, sum);
}

// buckets: a sum for every key, infinity before.
KERNEL(128, sum_blocks) accumulate_slices(const Point* points, const u32* keys, const u32* rows, const size* count,
                                            Sum* buckets, u32* piece_keys, Sum* pieces) {
  accumulate<false>(points, keys, rows, count, buckets, piece_keys, pieces);
}

// The same on top of what the buckets hold.
KERNEL(128, sum_blocks) accumulate_kept(const Point* points, const u32* keys, const u32* rows, const size* count,
                                          Sum* buckets, u32* piece_keys, Sum* pieces) {
  accumulate<true>(points, keys, rows, count, buckets, piece_keys, pieces);
}

// First of the sorted keys that is not below `key`.
inline u32 lower_bound(const u32* keys, u32 n, size key) {
  u32 low = 0;
  for (u32 high = n; low < high;) {
    u32 middle = (low + high) / 2;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

// n pieces, one a thread; shared memory for as many sums, keys and places. Runs that lie inside the block (all
// of them if there is only one block) go to their buckets, on top of what these hold if they are `kept`; its first and
// last run are the next level's pieces.
template <bool kept>
inline void merge(const u32* keys, const Sum* pieces, size n, Sum* buckets, u32* next_keys, Sum* next_pieces) {
  __shared__ u32 pairs;
  Sum* sums = shared_memory<Sum>();
  u32* block_keys = reinterpret_cast<u32*>(sums + blockDim.x);
  u32* firsts = block_keys + blockDim.x;  // of the pairs that a round adds
  const u32 t = threadIdx.x, worker = worker_rank();
  size i = grid_rank(), out = 2 * blockIdx.x;
  u32 key = i < n ? keys[i] : no_key;
  block_keys[t] = key;
  store(sums + t, i < n ? load(pieces + i) : Sum::infinity());
  __syncthreads();
  const u32 head = lower_bound(block_keys, blockDim.x, key), tail = lower_bound(block_keys, blockDim.x, (size)key + 1);
  for (u32 stride = 1; stride < blockDim.x; stride *= 2) {
    if (t == 0) pairs = 0;
    __syncthreads();
    if ((t - head) % (2 * stride) == 0 && t + stride < tail) firsts[atomicAdd(&pairs, 1u)] = t;
    __syncthreads();
    if (worker < pairs) {
      u32 first = firsts[worker];
      Sum sum = load(sums + first);
      add_stored(sum, sums + first + stride);
      store(sums + first, sum);
    }
    __syncthreads();
  }
  if (t != head) return;
  const bool opens = head == 0, closes = tail == blockDim.x, last_level = gridDim.x == 1;
  if (last_level || !(opens || closes)) {
    if (key == no_key) return;
    Sum sum = load(sums + t);
    if constexpr (kept) add_stored(sum, buckets + key);
    store(buckets + key, sum);
    return;
  }
  if (opens) put_piece(next_keys, next_pieces, out, key, load(sums + t));
  if (closes) put_piece(next_keys, next_pieces, out + 1, key, opens ? Sum::infinity() : load(sums + t));
}

KERNEL(128, sum_blocks) merge_pieces(const u32* keys, const Sum* pieces, size n, Sum* buckets, u32* next_keys,
                                     Sum* next_pieces) {
  merge<false>(keys, pieces, n, buckets, next_keys, next_pieces);
}

KERNEL(128, sum_blocks) merge_kept(const u32* keys, const Sum* pieces, size n, Sum* buckets, u32* next_keys,
                                   Sum* next_pieces) {
  merge<true>(keys, pieces, n, buckets, next_keys, next_pieces);
}
