// Scalars to entries (key, row) sorted by key: the order in which an MSM fills its buckets.
//
//   s -> |s| = min(s, r - s) = sum_w d_w 2^(c w), |d_w| <= h = 2^(c-1);
//   each d_w != 0 is one entry: key = v h + |d_w| - 1, row = t stride + index of the base | (d_w s < 0) << 31,
//   with w = t sets + v: without tables of the bases' multiples (tables.cu) sets is the number of windows, t is 0.
//
// A partition by the high bits of the key (bins of 2^low keys), then one inside each bin, both by tiles that
// reserve ranges of the output (partition.hpp). The second works on segments: tiles that lie in one bin, as
// many as its size asks for, so that it does not matter how the keys are spread.
//
// Bytes: 64 per scalar (32 read twice) and 22 per entry: 2 + 4 written, 2 read, 2 + 4 read, 4 + 4 written;
// 16 per bucket, cleared, counted and scanned in L2 for the most part. Zero digits are never written.
//
// Predicted, not measured: 2^24 scalars, c = 20, 13 windows, 218 M entries, 6.8 M buckets in 1664 bins, H200:
// 1.1 GB of scalars, 4.8 GB of entries and 0.1 GB of buckets are 1.6 ms at 3.8 TB/s. Latency of the tiles'
// phases, two blocks per processor: count_coarse 0.3 ms, scatter_coarse 1.0, count_fine 0.3, scatter_fine 1.1,
// the rest 0.1; 2.8 ms in all, 0.3 more with scalars in Montgomery form. Registers per thread (limit at the
// intended occupancy): 32 (32), 55 (64), 32 (32), 64 (64), no spills.
#include "partition.hpp"
#include "recode.hpp"

namespace cuzk::CUZK_PATH {

constexpr u32 threads = 512;
constexpr u32 scalars_per_thread = 2;
constexpr u32 entries_per_thread = 22;
constexpr u32 none = ~0u;

// Digits of one scalar, lowest first.
struct SignedDigits {
  u64 w[4];
  bool negative;  // the scalar
  u32 carry;

  // The next digit: key inside the window, or none; `minus` is the sign of the entry. The top window takes
  // what is left, at most h, so that its carry is 0.
  inline u32 next(u32 width, bool& minus) {
    u32 half = 1u << (width - 1), raw = ((u32)w[0] & (2 * half - 1)) + carry;
    carry = raw > half;
#pragma unroll
    for (int i = 0; i < 3; i++) w[i] = w[i] >> width | w[i + 1] << (64 - width);
    w[3] >>= width;
    minus = negative != (carry != 0);
    return (carry ? 2 * half - raw : raw) - 1;  // none where it is zero
  }
};

// Which bucket set and which table of bases the windows go to, one after the other.
struct Window {
  u32 set = 0, table = 0;
  inline void advance(u32 sets) {
    if (++set == sets) set = 0, table++;
  }
};

// Where scalars are, in which form, and which row each of them multiplies.
struct ScalarSource {
  const Fr* scalars;
  const u32* row_of;  // by natural index, none where there is no base; null: the index itself
  size montgomery, log_reversed;  // log2 of their number if they are in bit-reversed order, else 0

  inline u32 natural(size place) const {
    return log_reversed > 0 ? __brev((u32)place) >> (32 - log_reversed) : (u32)place;
  }
  inline u32 row(size place) const {
    u32 index = natural(place);
    return row_of ? row_of[index] : index;
  }
  inline SignedDigits digits(size place, bool live) const {
    SignedDigits out{};
    if (!live || row(place) == none) return out;
    Fr s = load(scalars + place);
    if (montgomery) s = s.to_plain();
    out.negative = fold_scalar<Fr>(s.w, out.w);
    return out;
  }
};

// histogram[bin] += entries of one scalar.
inline void count_digits(SignedDigits digits, u32 width, u32 windows, u32 sets, u32 low, u32* histogram) {
  bool minus;
  Window window;
  for (u32 w = 0; w < windows; w++, window.advance(sets)) {
    u32 key = digits.next(width, minus);
    if (key != none) atomicAdd(histogram + ((window.set << (width - 1)) + key >> low), 1u);
  }
}

}  // namespace cuzk::CUZK_PATH

// counts[bin] += entries of the bin. Shared: bins words.
KERNEL(512, 4)
count_coarse(const Fr* scalars, const u32* row_of, size n, size montgomery, size log_reversed, size width,
             size windows, size sets, size low, size bins, u32* counts) {
  ScalarSource source{scalars, row_of, montgomery, log_reversed};
  u32* histogram = shared_memory<u32>();
  clear(histogram, bins);
  __syncthreads();
  for (size i = grid_rank(); i < n; i += grid_size())
    count_digits(source.digits(i, true), width, windows, sets, low, histogram);
  add_counts(histogram, counts, bins);
}

// One block: counts -> starts (bins + 1), a copy of it that moves, segments of `tile` entries before each bin
// (bins + 1), the number of entries. Shared: bins + 1 words.
KERNEL(512, 1)
scan_coarse(const u32* counts, size bins, size tile, u32* starts, u32* cursors, u32* segments, u64* total) {
  u32* sums = shared_memory<u32>();
  for (u32 k = threadIdx.x; k < bins; k += threads) sums[k] = counts[k];
  scan_in_block(sums, bins, 0);
  for (u32 k = threadIdx.x; k <= bins; k += threads) starts[k] = cursors[k] = sums[k];
  if (threadIdx.x == 0) *total = sums[bins];
  __syncthreads();
  for (u32 k = threadIdx.x; k < bins; k += threads) sums[k] = (counts[k] + tile - 1) / tile;
  scan_in_block(sums, bins, 0);
  for (u32 k = threadIdx.x; k <= bins; k += threads) segments[k] = sums[k];
}

// Entries grouped by bin: their rows, and of their keys the last `low` bits (lows) or, if that is all there
// is to do (low = 0), the keys. Shared: 2 bins + 1 words, a word and a half for each of tile * windows entries.
KERNEL(512, 2)
scatter_coarse(const Fr* scalars, const u32* row_of, size n, size montgomery, size log_reversed, size width,
               size windows, size sets, size low, size bins, size tile, size stride, u32* cursors, u16* lows,
               u32* keys, u32* rows) {
  constexpr u32 sign = 1u << 15, one_table = scalars_per_thread * threads;  // beside a place in the tile: at most 32
  ScalarSource source{scalars, row_of, montgomery, log_reversed};
  u32* starts = shared_memory<u32>();
  u32* bases = starts + bins + 1;
  u32* tile_keys = bases + bins;
  u16* tile_places = reinterpret_cast<u16*>(tile_keys + tile * windows);
  for (size begin = blockIdx.x * tile; begin < n; begin += gridDim.x * tile) {
    clear(starts, bins);
    SignedDigits mine[scalars_per_thread];
#pragma unroll
    for (u32 j = 0; j < scalars_per_thread; j++) {
      u32 place = j * threads + threadIdx.x;
      mine[j] = source.digits(begin + place, place < tile && begin + place < n);
    }
    __syncthreads();
#pragma unroll
    for (u32 j = 0; j < scalars_per_thread; j++) count_digits(mine[j], width, windows, sets, low, starts);
    scan_in_block(starts, bins, 0);
    u32 total = starts[bins];
    reserve(starts, bases, bins, cursors);
#pragma unroll
    for (u32 j = 0; j < scalars_per_thread; j++) {
      Window window;
      for (u32 w = 0; w < windows; w++, window.advance(sets)) {
        bool minus;
        u32 key = mine[j].next(width, minus);
        bool live = key != none;
        key += window.set << (width - 1);
        u32 at = take_place(starts, key >> low, live);
        if (!live) continue;
        tile_keys[at] = key;
        tile_places[at] = (u16)(j * threads + threadIdx.x + window.table * one_table | (minus ? sign : 0));
      }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < total; i += threads) {
      u32 key = tile_keys[i], place = tile_places[i], at = bases[key >> low] + i;
      u32 table = (place & (sign - 1)) / one_table;
      rows[at] = source.row(begin + place % one_table) + table * (u32)stride | (place & sign) << 16;
      if (low == 0) keys[at] = key;
      if (low > 0) lows[at] = (u16)(key & ((1u << low) - 1));
    }
    __syncthreads();
  }
}

namespace cuzk::CUZK_PATH {

// One segment: entries [begin, begin + count), all of one bin.
struct Segment {
  u32 bin, begin, count;
};

// Segment t; the whole block looks. Ends with a barrier.
inline Segment find_segment(const u32* starts, const u32* segments, u32 bins, u32 tile, u32 t) {
  __shared__ u32 found;
  constexpr u32 batch = 4;
  u32 mine = none;
  for (u32 from = threadIdx.x; from < bins; from += batch * blockDim.x) {
    u32 k[batch], first[batch], end[batch];
#pragma unroll
    for (u32 j = 0; j < batch; j++) {
      k[j] = from + j * blockDim.x < bins ? from + j * blockDim.x : bins - 1;
      first[j] = segments[k[j]], end[j] = segments[k[j] + 1];
    }
#pragma unroll
    for (u32 j = 0; j < batch; j++)
      if (first[j] <= t && t < end[j]) mine = k[j];
  }
  if (mine != none) found = mine;  // the last bin may be looked at twice
  __syncthreads();
  u32 bin = found, begin = starts[bin] + (t - segments[bin]) * tile, left = starts[bin + 1] - begin;
  __syncthreads();
  return {bin, begin, left < tile ? left : tile};
}

}  // namespace cuzk::CUZK_PATH

// counts[key] += entries of the key. Shared: 2^low words.
KERNEL(512, 4)
count_fine(const u16* lows, const u32* starts, const u32* segments, size bins, size low, size tile, u32* counts) {
  constexpr u32 batch = entries_per_thread / 2;  // loads of a thread under way at once
  u32* histogram = shared_memory<u32>();
  u32 keys = 1u << low;
  for (u32 t = blockIdx.x; t < segments[bins]; t += gridDim.x) {
    Segment segment = find_segment(starts, segments, bins, tile, t);
    clear(histogram, keys);
    __syncthreads();
    for (u32 first = threadIdx.x; first < segment.count; first += batch * threads) {
      u32 key[batch];
#pragma unroll
      for (u32 j = 0; j < batch; j++) {
        u32 i = first + j * threads;
        key[j] = i < segment.count ? lows[segment.begin + i] : none;
      }
#pragma unroll
      for (u32 j = 0; j < batch; j++)
        if (key[j] != none) atomicAdd(histogram + key[j], 1u);
    }
    add_counts(histogram, counts + ((size)segment.bin << low), keys);
    __syncthreads();
  }
}

// counts of the keys of a bin -> place of the first entry of each key. Shared: 2^low + 1 words.
KERNEL(512, 2) scan_fine(const u32* starts, size bins, size low, u32* counts) {
  u32* places = shared_memory<u32>();
  u32 keys = 1u << low;
  for (u32 bin = blockIdx.x; bin < bins; bin += gridDim.x) {
    if (starts[bin] == starts[bin + 1]) continue;
    u32* here = counts + ((size)bin << low);
    for (u32 k = threadIdx.x; k < keys; k += threads) places[k] = here[k];
    scan_in_block(places, keys, starts[bin]);
    for (u32 k = threadIdx.x; k < keys; k += threads) here[k] = places[k];
    __syncthreads();
  }
}

// Entries sorted by key. Shared: 2^(low + 1) + 1 words, a word and a half for each of `tile` entries.
KERNEL(512, 2)
scatter_fine(const u16* lows, const u32* rows_in, const u32* starts, const u32* segments, size bins, size low,
             size tile, u32* cursors, u32* keys, u32* rows) {
  u32 bin_keys = 1u << low;
  u32* places = shared_memory<u32>();
  u32* bases = places + bin_keys + 1;
  u32* tile_rows = bases + bin_keys;
  u16* tile_lows = reinterpret_cast<u16*>(tile_rows + tile);
  for (u32 t = blockIdx.x; t < segments[bins]; t += gridDim.x) {
    Segment segment = find_segment(starts, segments, bins, tile, t);
    clear(places, bin_keys);
    __syncthreads();
    u32 held[entries_per_thread];  // low bits of the key, rank among the tile's entries of that key above them
#pragma unroll
    for (u32 j = 0; j < entries_per_thread; j++) {
      u32 i = j * threads + threadIdx.x;
      held[j] = i < segment.count ? lows[segment.begin + i] : 0;
    }
#pragma unroll
    for (u32 j = 0; j < entries_per_thread; j++)
      held[j] |= take_place(places, held[j], j * threads + threadIdx.x < segment.count) << 16;
    scan_in_block(places, bin_keys, 0);
    reserve(places, bases, bin_keys, cursors + ((size)segment.bin << low));
#pragma unroll
    for (u32 j = 0; j < entries_per_thread; j++) {
      u32 i = j * threads + threadIdx.x;
      if (i >= segment.count) continue;
      u32 key = held[j] & 0xffff, at = places[key] + (held[j] >> 16);
      tile_lows[at] = (u16)key;
      tile_rows[at] = rows_in[segment.begin + i];
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < segment.count; i += threads) {
      u32 key = tile_lows[i], at = bases[key] + i;
      keys[at] = (segment.bin << low) + key;
      rows[at] = tile_rows[i];
    }
    __syncthreads();
  }
}

// *first = min(*first, the least i whose scalar is not below r).
KERNEL(256, 1) first_not_canonical(const Fr* scalars, size n, u64* first) {
  for (size i = grid_rank(); i < n; i += grid_size()) {
    Fr s = load(scalars + i);
    if (!Fr::is_canonical(s.w)) {
      atomicMin(first, (u64)i);
      return;
    }
  }
}
