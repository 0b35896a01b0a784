// Sparse matrix times witness: out_i = sum over row i of values[coefficients[t]] * w[wires[t]].
//
// Forms as in sparse.hpp: the witness is plain and `values` Montgomery, so that each product is plain; values
// 0 and 1 are +1 and -1 and cost an addition; a sum enters Montgomery form by one more multiplication. Rows
// of few terms take a thread each, in an order that gives a warp rows of equal length; longer ones are cut
// into segments of a warp each, whose sums are then added row by row. Rows without terms are not touched.
//
// Bytes: 8 a term and 32 for its wire's value, the gather that bounds it; 20 and 32 written a row.
#include "kernel.hpp"
#include "place.hpp"

struct Terms {
  const u32 *wires, *coefficients;
  const Fr *values, *witness;

  Fr add(const Fr& sum, size t) const {
    u32 c = coefficients[t];
    Fr w = load(witness + wires[t]);
    if (c == 0) return sum + w;
    if (c == 1) return sum - w;
    return sum + load(values + c) * w;
  }
};

// Sum over the lanes of a warp, for lane 0.
inline Fr sum_of_warp(Fr sum) {
#pragma unroll 1
  for (u32 by = 16; by; by /= 2) {
    Fr other;
    for (int i = 0; i < Fr::N; i++) other.w[i] = __shfl_down_sync(~0u, sum.w[i], by);
    sum = sum + other;
  }
  return sum;
}

inline void put(Fr* out, u32 row, size log_n, const Fr& plain) {
  store(out + place(row, log_n), plain * Fr::from_words(Fr::P::r2));
}

// Rows order[0..rows): their terms stand at row_ptr[row].
KERNEL(256, 4)
sparse_rows(const u64* row_ptr, const u32* order, size rows, const u32* wires, const u32* coefficients,
            const Fr* values, const Fr* witness, Fr* out, size log_n) {
  Terms terms{wires, coefficients, values, witness};
  for (size i = grid_rank(); i < rows; i += grid_size()) {
    u32 row = order[i];
    Fr sum = Fr::zero();
    for (size t = row_ptr[row], end = row_ptr[row + 1]; t < end; t++) sum = terms.add(sum, t);
    put(out, row, log_n, sum);
  }
}

// sums[s] = sum of the terms [begins[s], ends[s]), a warp each.
KERNEL(256, 4)
sparse_segments(const u64* begins, const u64* ends, size segments, const u32* wires,
                const u32* coefficients, const Fr* values, const Fr* witness, Fr* sums) {
  Terms terms{wires, coefficients, values, witness};
  size lane = threadIdx.x % 32;
  for (size s = grid_rank() / 32; s < segments; s += grid_size() / 32) {
    Fr sum = Fr::zero();
    for (size t = begins[s] + lane, end = ends[s]; t < end; t += 32) sum = terms.add(sum, t);
    sum = sum_of_warp(sum);
    if (lane == 0) store(sums + s, sum);
  }
}

// Row order[i] is the sum of the segments [firsts[i], firsts[i + 1]), a warp each.
KERNEL(256, 4)
sparse_join(const u64* firsts, const u32* order, size rows, const Fr* sums, Fr* out, size log_n) {
  size lane = threadIdx.x % 32;
  for (size i = grid_rank() / 32; i < rows; i += grid_size() / 32) {
    Fr sum = Fr::zero();
    for (size s = firsts[i] + lane, end = firsts[i + 1]; s < end; s += 32) sum = sum + load(sums + s);
    sum = sum_of_warp(sum);
    if (lane == 0) put(out, order[i], log_n, sum);
  }
}
