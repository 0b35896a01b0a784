// The entries of some of the wires: an MSM over a query takes the sorted digits of the whole witness, drops
// those of wires it has no base for and renumbers the rest, so that digits are made and sorted once.
//
// Tiles in order: entries kept are counted, the counts scanned, the tiles written; order is kept. Bytes: 12
// read per entry and 8 written per entry kept, and two gathers from row_of.
#include "partition.hpp"

namespace cuzk::CUZK_PATH {

constexpr u32 threads = 512;
constexpr u32 warp_rounds = 16;
constexpr u32 tile_entries = threads * warp_rounds;
constexpr u32 none = ~0u, sign = 1u << 31;

// body(i, row in the query or none) for the entries of a tile; a warp takes warp_rounds * 32 in a row and
// calls with all lanes.
template <class Body>
inline void for_entries(const u32* rows, u64 count, const u32* row_of, size tile, Body body) {
  size begin = tile * tile_entries + threadIdx.x / 32 * (32 * warp_rounds) + threadIdx.x % 32;
  for (u32 j = 0; j < warp_rounds; j++) {
    size i = begin + 32 * j;
    u32 row = i < count ? row_of[rows[i] & ~sign] : none;
    body(i, row);
  }
}

}  // namespace cuzk::CUZK_PATH

// kept[tile] = entries of the tile that stay.
KERNEL(512, 2) count_selected(const u32* rows, const u64* count, const u32* row_of, u32* kept) {
  size tiles = (*count + tile_entries - 1) / tile_entries;
  for (size tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    u32 mine = 0, total;
    for_entries(rows, *count, row_of, tile, [&](size, u32 row) { mine += row != none; });
    sum_before(mine, total);
    if (threadIdx.x == 0) kept[tile] = total;
  }
}

// One block: entries kept before each tile, and their number.
KERNEL(512, 1) scan_selected(const u64* count, u32* kept, u64* total) {
  u32 tiles = (u32)((*count + tile_entries - 1) / tile_entries);
  scan_in_block(kept, tiles, 0);
  if (threadIdx.x == 0) *total = kept[tiles];
}

KERNEL(512, 2)
write_selected(const u32* rows, const u64* count, const u32* row_of, const u32* keys, const u32* kept,
               u32* keys_out, u32* rows_out) {
  u32 lane = threadIdx.x % 32;
  size tiles = (*count + tile_entries - 1) / tile_entries;
  for (size tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    u32 mine = 0, total;
    for_entries(rows, *count, row_of, tile, [&](size, u32 row) { mine += row != none; });
    u32 at = kept[tile] + sum_before(mine, total) ;  // of lane 0: where the warp's entries begin
    at = __shfl_sync(whole_warp, at, 0);
    for_entries(rows, *count, row_of, tile, [&](size i, u32 row) {
      u32 staying = __ballot_sync(whole_warp, row != none);
      if (row != none) {
        u32 to = at + (u32)__popc(staying & ((1u << lane) - 1));
        keys_out[to] = keys[i];
        rows_out[to] = row | (rows[i] & sign);
      }
      at += (u32)__popc(staying);
    });
  }
}
