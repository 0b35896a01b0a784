// Entries whose keys are buckets, listed again by rows and by columns of buckets (reduce.cu): bucket
// w 2^(low + high) + hi 2^low + lo lies in row w 2^high + hi and in column w 2^low + lo. By row the order stays;
// by column it is a counting sort (the order inside a column is free).
//
// Bytes an entry: by row 8; by column 4 and an atomic operation to count, then 16, of which 8 scattered.
#include "partition.hpp"

inline u32 column_of(u32 key, size low_bits, size high_bits) {
  return key >> (low_bits + high_bits) << low_bits | key & ((1u << low_bits) - 1);
}

KERNEL(256, 4) row_keys(const u32* keys, const size* count, size low_bits, u32* out) {
  for (size i = grid_rank(); i < *count; i += grid_size()) out[i] = keys[i] >> low_bits;
}

KERNEL(256, 4) count_columns(const u32* keys, const size* count, size low_bits, size high_bits, u32* counts) {
  for (size i = grid_rank(); i < *count; i += grid_size())
    atomicAdd(counts + column_of(keys[i], low_bits, high_bits), 1u);
}

// One block: counts[i] becomes counts[0] + ... + counts[i - 1], i <= n. Entries are fewer than 2^31.
KERNEL(1024, 1) scan_columns(u32* counts, size n) { scan_in_block(counts, (u32)n, 0); }

// `cursors`: where the next entry of each column goes.
KERNEL(256, 4) place_columns(const u32* keys, const u32* rows, const size* count, size low_bits, size high_bits,
                             u32* cursors, u32* out_keys, u32* out_rows) {
  for (size i = grid_rank(); i < *count; i += grid_size()) {
    u32 column = column_of(keys[i], low_bits, high_bits), place = atomicAdd(cursors + column, 1u);
    out_keys[place] = column;
    out_rows[place] = rows[i];
  }
}
