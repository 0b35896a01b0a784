// Scalars to entries (key, row) sorted by key: the order in which an MSM fills its buckets.
//
//   s -> |s| = min(s, r - s) = sum_w d_w 2^(c w), |d_w| <= h = 2^(c-1);
//   each d_w != 0 is one entry: key = v h + |d_w| - 1, row = t stride + index of the base | (d_w s < 0) << 31,
//   with w = t sets + v: without tables of the bases' multiples (tables.cu) sets is the number of windows, t is 0.
//
// First the digits, window by window; then two partitions (partition.hpp). The coarse one, by the high bits of
// the key, takes tiles of one window, so that a tile's runs are long: 16 entries in each of 2^10 bins. The fine
// one gives a block a portion of a bin, as a rule the whole bin: it counts the portion's keys, knows where each
// begins, orders segment after segment in shared memory and writes them. Only bins of more than `portion` entries,
// which skewed scalars and a short top window make, are shared by blocks: their keys are counted beforehand,
// and a block reserves one range of every key for its portion.
//
// Bytes: 32 per scalar and 28 per entry: 4 written, 4 read, 2 + 4 written, 2 + 4 read, 4 + 4 written; what a
// tile or portion reads twice, the second time comes from L2. Zero digits cost 8.
//
// 2^24 scalars, c = 20, 13 windows, 218 M entries in 13312 bins, H200. Predicted, not measured: 6.6 GB, 1.7 ms at
// 3.8 TB/s; a warp's 32 entries keep the shared memory's pipe for about 27 cycles in each scatter, 0.8 ms:
// recode 0.5 ms, scatter_coarse 1.0, scatter_fine 1.1, the rest 0.1. 19 M atomics, words of a warp side by side.
// Measured before (2026-11-29): 11.4 ms with tiles of 1024 scalars over all windows, in 1664 bins of 2^12 keys,
// and a range of every key reserved by each 11264 entries: 106 M atomics, runs of 2.7 entries; scatter_fine 7.5 of it.
// Registers per thread: recode 36 (42 let 3 blocks run), scatters 62 and 56 (64 let 2), no spills.
#include "partition.hpp"
#include "recode.hpp"

namespace cuzk::CUZK_PATH {

constexpr u32 threads = 512;
constexpr u32 batch = 8;  // loads of a thread under way at once
constexpr u32 none = ~0u, sign = 1u << 31;

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
  inline SignedDigits digits(size place) const {
    SignedDigits out{};
    if (row(place) == none) return out;
    Fr s = load(scalars + place);
    if (montgomery) s = s.to_plain();
    out.negative = fold_scalar<Fr>(s.w, out.w);
    return out;
  }
};

// Entries [begin, begin + count) of one bin: what a block takes at once.
struct Portion {
  u32 bin, begin, count;
};

}  // namespace cuzk::CUZK_PATH

// digits[w n + place] = |d_w| - 1 | sign << 31, none where d_w is zero; counts[bin] += entries of the bin.
// Shared: bins words.
KERNEL(512, 3)
recode(const Fr* scalars, const u32* row_of, size n, size montgomery, size log_reversed, size width, size windows,
       size sets, size low, size bins, u32* digits, u32* counts) {
  ScalarSource source{scalars, row_of, montgomery, log_reversed};
  u32* histogram = shared_memory<u32>();
  u32 set_bins = (u32)(bins / sets);
  clear(histogram, bins);
  __syncthreads();
  for (size i = grid_rank(); i < n; i += grid_size()) {
    SignedDigits mine = source.digits(i);
    u32* to = digits + i;
    u32 first = 0;  // bin of the window's set
    for (u32 w = 0; w < windows; w++, to += n) {
      bool minus;
      u32 key = mine.next(width, minus);
      *to = key == none ? none : key | (minus ? sign : 0);
      if (key != none) atomicAdd(histogram + first + (key >> low), 1u);
      first += set_bins;
      if (first == bins) first = 0;
    }
  }
  add_counts(histogram, counts, bins);
}

// One block: counts -> starts (bins + 1), a copy of it that moves, the number of entries, and the portions: first
// those of the bins with more than `most` entries, ends[0] of them, then the other bins that are not empty, up
// to ends[1]. Shared: bins + 1 words.
KERNEL(512, 1)
scan_coarse(const u32* counts, size bins, size most, u32* starts, u32* cursors, Portion* portions, u32* ends,
            u64* total) {
  u32* sums = shared_memory<u32>();
  for (u32 k = threadIdx.x; k < bins; k += threads) sums[k] = counts[k];
  scan_in_block(sums, bins, 0);
  for (u32 k = threadIdx.x; k <= bins; k += threads) starts[k] = cursors[k] = sums[k];
  if (threadIdx.x == 0) *total = sums[bins];
  __syncthreads();
  for (u32 k = threadIdx.x; k < bins; k += threads) sums[k] = counts[k] > most ? (counts[k] + most - 1) / most : 0;
  scan_in_block(sums, bins, 0);
  u32 shared = sums[bins];
  for (u32 k = threadIdx.x; k < bins; k += threads) {
    u32 begin = starts[k], end = begin + counts[k];
    for (u32 j = sums[k]; j < sums[k + 1]; j++, begin += most)
      portions[j] = {k, begin, end - begin < most ? end - begin : (u32)most};
  }
  __syncthreads();
  for (u32 k = threadIdx.x; k < bins; k += threads) sums[k] = counts[k] > 0 && counts[k] <= most;
  scan_in_block(sums, bins, shared);
  for (u32 k = threadIdx.x; k < bins; k += threads)
    if (sums[k] < sums[k + 1]) portions[sums[k]] = {k, starts[k], counts[k]};
  if (threadIdx.x == 0) ends[0] = shared, ends[1] = sums[bins];
}

// Entries grouped by bin: their rows, and of their keys the last `low` bits (lows) or, if that is all there
// is to do (low = 0), the keys. Tile t is part t / windows of window t % windows: neighbours reserve in
// different bins, and read the same part of row_of. Shared: 2 bins of a set + 1 words, a word and a half for
// each digit of a tile.
KERNEL(512, 2)
scatter_coarse(const u32* digits, const u32* row_of, size n, size log_reversed, size width, size windows, size sets,
               size low, size tile, size stride, u32* cursors, u16* lows, u32* keys, u32* rows) {
  ScalarSource source{nullptr, row_of, 0, log_reversed};
  u32 bins = 1u << (width - 1 - low);  // of a set
  u32* places = shared_memory<u32>();
  u32* bases = places + bins + 1;
  u32* tile_digits = bases + bins;
  u16* tile_places = reinterpret_cast<u16*>(tile_digits + tile);  // a tile has at most 2^16
  size tiles = (n + tile - 1) / tile * windows;
  for (size t = blockIdx.x; t < tiles; t += gridDim.x) {
    size begin = t / windows * tile;
    u32 w = (u32)(t % windows), set = w % (u32)sets, table = w / (u32)sets;
    u32 count = (u32)(n - begin < tile ? n - begin : tile);
    const u32* from = digits + w * n + begin;
    clear(places, bins);
    __syncthreads();
    for (u32 first = threadIdx.x; first < count; first += batch * threads) {
      u32 digit[batch];
#pragma unroll
      for (u32 j = 0; j < batch; j++) digit[j] = first + j * threads < count ? from[first + j * threads] : none;
#pragma unroll
      for (u32 j = 0; j < batch; j++)
        if (digit[j] != none) atomicAdd(places + ((digit[j] & ~sign) >> low), 1u);
    }
    scan_in_block(places, bins, 0);
    u32 total = places[bins];
    reserve(places, bases, bins, cursors + set * bins);
    bool crowded = is_crowded(places, bins);
    for (u32 first = 0; first < count; first += batch * threads) {
      u32 digit[batch];
#pragma unroll
      for (u32 j = 0; j < batch; j++) {
        u32 i = first + j * threads + threadIdx.x;
        digit[j] = i < count ? from[i] : none;
      }
#pragma unroll
      for (u32 j = 0; j < batch; j++) {
        bool live = digit[j] != none;
        u32 at = take_place(places, (digit[j] & ~sign) >> low, live, crowded);
        if (!live) continue;
        tile_digits[at] = digit[j];
        tile_places[at] = (u16)(first + j * threads + threadIdx.x);
      }
    }
    __syncthreads();
#pragma unroll 4
    for (u32 i = threadIdx.x; i < total; i += threads) {
      u32 digit = tile_digits[i], key = digit & ~sign, at = bases[key >> low] + i;
      rows[at] = source.row(begin + tile_places[i]) + table * (u32)stride | (digit & sign);
      if (low == 0) keys[at] = (set << (width - 1)) + key;
      if (low > 0) lows[at] = (u16)(key & ((1u << low) - 1));
    }
    __syncthreads();
  }
}

namespace cuzk::CUZK_PATH {

// histogram[key] += 1 for `count` entries. The block calls.
inline void count_keys(const u16* lows, u32 count, u32* histogram) {
  for (u32 first = threadIdx.x; first < count; first += batch * threads) {
    u32 key[batch];
#pragma unroll
    for (u32 j = 0; j < batch; j++) key[j] = first + j * threads < count ? lows[first + j * threads] : none;
#pragma unroll
    for (u32 j = 0; j < batch; j++)
      if (key[j] != none) atomicAdd(histogram + key[j], 1u);
  }
}

// The entries ordered by key in shared memory. `places`: of the first entry of each key; they move to the last's end.
inline void order_by_key(const u16* lows, const u32* rows, u32 count, u32* places, bool crowded,
                         u16* ordered_lows, u32* ordered_rows) {
  for (u32 first = 0; first < count; first += batch * threads) {
    u32 key[batch], row[batch];
#pragma unroll
    for (u32 j = 0; j < batch; j++) {
      u32 i = first + j * threads + threadIdx.x;
      key[j] = i < count ? lows[i] : none;
      row[j] = i < count ? rows[i] : 0;
    }
#pragma unroll
    for (u32 j = 0; j < batch; j++) {
      bool live = key[j] != none;
      u32 at = take_place(places, key[j], live, crowded);
      if (live) ordered_lows[at] = (u16)key[j], ordered_rows[at] = row[j];
    }
  }
  __syncthreads();
}

// Entry i of those ordered leaves for place bases[key] + i.
inline void write_ordered(const u16* ordered_lows, const u32* ordered_rows, u32 count, const u32* bases,
                          u32 first_key, u32* keys, u32* rows) {
  for (u32 first = threadIdx.x; first < count; first += batch * threads) {
    u32 key[batch], at[batch], row[batch];
#pragma unroll
    for (u32 j = 0; j < batch; j++) {
      u32 i = first + j * threads < count ? first + j * threads : count - 1;
      key[j] = ordered_lows[i], row[j] = ordered_rows[i];
    }
#pragma unroll
    for (u32 j = 0; j < batch; j++) at[j] = bases[key[j]] + first + j * threads;
#pragma unroll
    for (u32 j = 0; j < batch; j++)
      if (first + j * threads < count) keys[at[j]] = first_key + key[j], rows[at[j]] = row[j];
  }
}

}  // namespace cuzk::CUZK_PATH

// counts[key] += entries of the key, in the bins that blocks share. Shared: 2^low words.
KERNEL(512, 4) count_fine(const u16* lows, const Portion* portions, const u32* ends, size low, u32* counts) {
  u32* histogram = shared_memory<u32>();
  u32 keys = 1u << low;
  for (u32 t = blockIdx.x; t < ends[0]; t += gridDim.x) {
    Portion portion = portions[t];
    clear(histogram, keys);
    __syncthreads();
    count_keys(lows + portion.begin, portion.count, histogram);
    add_counts(histogram, counts + ((size)portion.bin << low), keys);
    __syncthreads();
  }
}

// In those bins: counts of keys -> place of the first entry of each key. Shared: 2^low + 1 words.
KERNEL(512, 2)
scan_fine(const u32* starts, const Portion* portions, const u32* ends, size low, u32* counts) {
  u32* places = shared_memory<u32>();
  u32 keys = 1u << low;
  for (u32 t = blockIdx.x; t < ends[0]; t += gridDim.x) {
    Portion portion = portions[t];
    if (portion.begin != starts[portion.bin]) continue;  // one block for each bin
    u32* here = counts + ((size)portion.bin << low);
    for (u32 k = threadIdx.x; k < keys; k += threads) places[k] = here[k];
    scan_in_block(places, keys, portion.begin);
    for (u32 k = threadIdx.x; k < keys; k += threads) here[k] = places[k];
    __syncthreads();
  }
}

// Entries sorted by key. Shared: 2^(low + 1) + 1 words, a word and a half for each of `segment` entries.
KERNEL(512, 2)
scatter_fine(const u16* lows, const u32* rows_in, const Portion* portions, const u32* ends, size low, size segment,
             u32* cursors, u32* keys, u32* rows) {
  u32 bin_keys = 1u << low;
  u32* places = shared_memory<u32>();
  u32* bases = places + bin_keys + 1;
  u32* tile_rows = bases + bin_keys;
  u16* tile_lows = reinterpret_cast<u16*>(tile_rows + segment);
  for (u32 t = blockIdx.x; t < ends[1]; t += gridDim.x) {
    Portion portion = portions[t];
    bool many = portion.count > segment;  // then in equal parts
    u32 first_key = portion.bin << low, end = portion.begin + portion.count;
    clear(places, bin_keys);
    __syncthreads();
    count_keys(lows + portion.begin, portion.count, places);
    scan_in_block(places, bin_keys, 0);
    if (t < ends[0]) reserve(places, bases, bin_keys, cursors + first_key);
    for (u32 k = threadIdx.x; k < bin_keys; k += threads) {
      if (t >= ends[0]) bases[k] = portion.begin;
      if (many) bases[k] += places[k];  // where the key's next entry goes; less its place in the segment below
    }
    u32 parts = (portion.count + (u32)segment - 1) / (u32)segment, part = (portion.count + parts - 1) / parts;
    for (u32 begin = portion.begin, count; begin < end; begin += count) {
      count = end - begin < part ? end - begin : part;
      if (many) {
        clear(places, bin_keys);
        __syncthreads();
        count_keys(lows + begin, count, places);
        scan_in_block(places, bin_keys, 0);
        for (u32 k = threadIdx.x; k < bin_keys; k += threads) bases[k] -= places[k];
      }
      bool crowded = is_crowded(places, bin_keys);
      order_by_key(lows + begin, rows_in + begin, count, places, crowded, tile_lows, tile_rows);
      write_ordered(tile_lows, tile_rows, count, bases, first_key, keys, rows);
      __syncthreads();
      if (many)
        for (u32 k = threadIdx.x; k < bin_keys; k += threads) bases[k] += places[k];
    }
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
