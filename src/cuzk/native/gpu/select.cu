// The entries of some of the wires: an MSM over a query takes the sorted digits of the whole witness, drops
// those of wires it has no base for and renumbers the rest, so that digits are made and sorted once.
//
// Tiles in order: entries are renumbered and those kept are counted, the counts scanned, the tiles written;
// order is kept. Bytes per entry: 8 read and written to renumber it, 4 read, and 12 where it is kept; the
// gather from the table of wires is what takes the time once that is larger than L2 (32 bytes an entry).
#include "partition.hpp"

namespace cuzk::CUZK_PATH {

constexpr u32 threads = 512;
constexpr u32 rounds = 16;  // of a warp over its part of the tile
constexpr u32 tile_entries = threads * rounds;
constexpr u32 none = ~0u, sign = 1u << 31;  // a row is below 2^31 - 1: with its sign it is not none

inline size tiles_of(u64 count) { return (count + tile_entries - 1) / tile_entries; }

// This lane's entry of round 0; those of round j are 32 j further on.
inline size first_of(size tile) {
  return tile * tile_entries + threadIdx.x / 32 * (32 * rounds) + threadIdx.x % 32;
}

}  // namespace cuzk::CUZK_PATH

// renumbered[i] = the row that row_of gives entry i, with the entry's sign, or none; kept[tile] = entries of
// the tile that have one. A row is t wires + wire, or t stride + row, in table t of the bases' multiples.
KERNEL(512, 2)
renumber(const u32* rows, const u64* count, const u32* row_of, size wires, size stride, u32* renumbered,
         u32* kept) {
  constexpr u32 batch = 8;  // gathers of a thread under way at once
  size entries = *count;
  for (size tile = blockIdx.x; tile < tiles_of(entries); tile += gridDim.x) {
    size end = first_of(tile) + 32 * rounds;
    u32 mine = 0, total;
    for (size first = first_of(tile); first < end; first += 32 * batch) {
      u32 row[batch];
#pragma unroll
      for (u32 j = 0; j < batch; j++) row[j] = first + 32 * j < entries ? rows[first + 32 * j] : none;
#pragma unroll
      for (u32 j = 0; j < batch; j++) {
        u32 from = row[j] & ~sign, table = row[j] == none ? 0 : from / (u32)wires;
        u32 to = row[j] == none ? none : row_of[from - table * (u32)wires];
        row[j] = to == none ? none : to + table * (u32)stride | (row[j] & sign);
        mine += to != none;
      }
#pragma unroll
      for (u32 j = 0; j < batch; j++)
        if (first + 32 * j < entries) renumbered[first + 32 * j] = row[j];
    }
    sum_before(mine, total);
    if (threadIdx.x == 0) kept[tile] = total;
  }
}

// One block: entries kept before each tile, and their number.
KERNEL(512, 1) scan_selected(const u64* count, u32* kept, u64* total) {
  u32 tiles = (u32)tiles_of(*count);
  scan_in_block(kept, tiles, 0);
  if (threadIdx.x == 0) *total = kept[tiles];
}

// The entries that have a row, in their order.
KERNEL(512, 2)
write_selected(const u32* keys, const u32* renumbered, const u64* count, const u32* kept, u32* keys_out,
               u32* rows_out) {
  u32 lane = threadIdx.x % 32;
  size entries = *count;
  for (size tile = blockIdx.x; tile < tiles_of(entries); tile += gridDim.x) {
    size first = first_of(tile);
    u32 row[rounds], mine = 0, total;
#pragma unroll
    for (u32 j = 0; j < rounds; j++) {
      row[j] = first + 32 * j < entries ? renumbered[first + 32 * j] : none;
      mine += row[j] != none;
    }
    u32 at = kept[tile] + __shfl_sync(whole_warp, sum_before(mine, total), 0);  // of the warp's first entry
#pragma unroll
    for (u32 j = 0; j < rounds; j++) {
      u32 staying = __ballot_sync(whole_warp, row[j] != none);
      u32 to = at + (u32)__popc(staying & ((1u << lane) - 1));
      if (row[j] != none) keys_out[to] = keys[first + 32 * j], rows_out[to] = row[j];
      at += (u32)__popc(staying);
    }
  }
}
