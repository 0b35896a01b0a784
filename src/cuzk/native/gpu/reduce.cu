// From bucket sums to the sum of a window, sum_b (b + 1) B_b over b < L = 2^(c-1), as c points with weights
// 2^e: write b = hi 2^k + lo, then with the row sums R_hi = sum_lo B_b and the column sums C_lo = sum_hi B_b
//
//   sum_b (b + 1) B_b = sum_{j<k} 2^j sum_{lo: bit j} C_lo + sum_{j>=k} 2^j sum_{hi: bit j-k} R_hi + sum_hi R_hi.
//
// All of it is plain sums of many independent lines: 2 full additions (12M + 2S) a bucket for the rows and
// columns, about c 2^(c/2) / 2 for the bits. Reads every bucket twice.
#include "sum.hpp"

// Sums of one line a team of `team` neighbours (a power of two that divides the block): the pointers
// element(0..n-1), null for infinity, n the same for all teams. Serial runs, then trees whose additions are
// spread over the block without gaps; one inlined addition for both. Shared memory: a sum a thread, where
// the first thread of each team finds its line's in its own.
template <class Element>
inline const Sum* sum_lines_of_teams(size n, u32 team, Element element) {
  Sum* slots = shared_memory<Sum>();
  const u32 worker = worker_rank(), teams = blockDim.x / team;
  const size steps = (n + team - 1) / team;
  u32 at = threadIdx.x, stride = team;
  bool has_sum = true;
  Sum sum = Sum::infinity();
#pragma unroll 1
  for (size step = 0;; step++) {
    const Sum* other = nullptr;
    if (step < steps) {
      size i = step * team + threadIdx.x % team;
      if (i < n) other = element(i);
    } else {
      if (has_sum) store(slots + at, sum);
      __syncthreads();
      if (stride == 1) return slots + threadIdx.x;
      stride /= 2;
      has_sum = worker < teams * stride;
      if (has_sum) {
        at = worker / stride * team + worker % stride;
        sum = load(slots + at);
        other = slots + at + stride;
      }
    }
    if (other) add_stored(sum, other);
  }
}

// Row and column sums of all windows. Window w has 2^(low + high) buckets, of which `top` of the last window
// can be there. Lines: first all rows, window by window, then all columns; blocks of `row_blocks` are rows'.
KERNEL(128, sum_blocks) sum_lines(const Sum* buckets, size windows, size low_bits, size high_bits, size top,
                                  size row_team, size column_team, size row_blocks, Sum* rows, Sum* columns) {
  const bool is_row = blockIdx.x < row_blocks;
  const size team = is_row ? row_team : column_team;
  const size line_bits = is_row ? high_bits : low_bits, length = (size)1 << (is_row ? low_bits : high_bits);
  size line = ((size)(blockIdx.x - (is_row ? 0 : row_blocks)) * blockDim.x + threadIdx.x) / team;
  const size window = line >> line_bits, index = line & (((size)1 << line_bits) - 1);
  const size step = is_row ? 1 : (size)1 << low_bits, first = is_row ? index << low_bits : index;
  size end = window + 1 < windows ? (size)1 << (low_bits + high_bits) : window < windows ? top : 0;
  size present = first < end ? (end - first + step - 1) / step : 0;  // buckets of the line below `end`
  const Sum* from = buckets + (window << (low_bits + high_bits)) + first;
  // The block's threads meet at barriers, so all take the steps of a whole line.
  const Sum* sum =
      sum_lines_of_teams(length, (u32)team, [&](size i) { return i < present ? from + i * step : nullptr; });
  if (threadIdx.x % team == 0 && window < windows) store((is_row ? rows : columns) + line, load(sum));
}

// One block a (window, exponent e): out[w (low + high + 1) + e] = the sum of the lines whose bit e is set,
// columns' for e < low, rows' above, and at e = low + high the sum of all rows.
KERNEL(128, sum_blocks) sum_bits(const Sum* rows, const Sum* columns, size low_bits, size high_bits, Sum* out) {
  const size exponents = low_bits + high_bits + 1, window = blockIdx.x / exponents, e = blockIdx.x % exponents;
  const bool is_row = e >= low_bits, all = e + 1 == exponents;
  const size bits = is_row ? high_bits : low_bits, bit = is_row ? e - low_bits : e;
  const Sum* from = (is_row ? rows : columns) + (window << bits);
  const size below = ((size)1 << bit) - 1;
  const Sum* sum = sum_lines_of_teams((size)1 << (all ? bits : bits - 1), blockDim.x, [&](size i) {
    return from + (all ? i : (i & ~below) << 1 | below + 1 | i & below);
  });
  if (threadIdx.x == 0) store(out + blockIdx.x, load(sum));
}
