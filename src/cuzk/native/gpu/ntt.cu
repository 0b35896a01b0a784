// Number-theoretic transforms over Fr in place, N = 2^log_n, by division with remainder:
//
//   mod X^m - c^2  ->  mod X^(m/2) - c,  mod X^(m/2) + c        (a, b) -> (a + c b, a - c b)
//
// from X^N - g^N down to X - g w^j: natural order to bit-reversed order, N log_n / 2 products whatever the
// coset g. Block k of stage s has one constant, T[k] g^(N / 2^(s+1)) with T = 1, w_4, w_8, w_8 w_4, ... the
// powers of w in bit-reversed order; one table of T serves all stages, all smaller transforms and, because
// 1 / T[k] = -T[k with the bits below its highest inverted], the inverse. If g^2 = w, g's own T of N
// entries has the constants of the coset too: block k of stage s has entry 2^s + k. Without a coset blocks
// k = 0 multiply by 1; the first three stages skip these products, 7/8 N.
//
// A pass reads and writes the vector once (64 N bytes) and does as many stages in shared memory as a tile has
// bits, two less where it has columns (ntt.hpp); the last one reads N constants (64 N bytes, see shoup.hpp), the
// others few. Inverse passes undo forward ones in opposite order. Between passes values are loose, below 2r.
#include "ntt.hpp"

struct Vectors {  // one or two, transformed in the same launch
  Fr* values;
  u32 index;  // of this block among the tiles of its vector

  Vectors(Fr* first, Fr* second) : values(first), index(blockIdx.x) {
    u32 tiles = gridDim.x / 2;
    if (second && index >= tiles) values = second, index -= tiles;
  }
};

// Stages [first, first + stages), 3 <= stages; tiles of 8 * blockDim elements, at least 16. A pass that is
// not the last has at least 4 stages and four columns in a tile.
KERNEL(256, 2)
divide_pass(Fr* values, Fr* second, Half* table, size log_n, size first, size stages, size coset) {
  Vectors at(values, second);
  Tile tile(log_n, first, stages, at.index);
  fetch(tile, at.values);
  divide(tile, {{table}, (u32)first, (u32)stages, coset != 0});
  if (first + stages == log_n) finish(tile, 0);
  put_back(tile, at.values);
}

// The same backwards. `halvings`: the result is divided by 2^halvings.
KERNEL(256, 2)
join_pass(Fr* values, Fr* second, Half* table, size log_n, size first, size stages, size coset,
          size halvings) {
  Vectors at(values, second);
  Tile tile(log_n, first, stages, at.index);
  fetch(tile, at.values);
  join(tile, {{table}, (u32)first, (u32)stages, coset != 0});
  if (first == 0) finish(tile, (u32)halvings);
  put_back(tile, at.values);
}

// Last pass of an inverse transform and first pass of a transform on a coset: both own the same tiles.
KERNEL(256, 2)
extend_pass(Fr* values, Fr* second, Half* table, Half* coset_table, size log_n, size stages,
            size coset) {
  Vectors at(values, second);
  Tile tile(log_n, 0, stages, at.index);
  fetch(tile, at.values);
  join(tile, {{table}, 0, (u32)stages, false});
  finish(tile, (u32)log_n);
  divide(tile, {{coset_table}, 0, (u32)stages, coset != 0});
  if (stages == log_n) finish(tile, 0);
  put_back(tile, at.values);
}

// A whole transform of fewer than 16 elements, a butterfly for each of up to 8 threads in one block.
KERNEL(8, 1)
transform_few(Loose* values, Half* table, size log_n, size coset, size inverse) {
  u32 t = threadIdx.x, n = 1u << log_n;
  for (u32 i = 0; i < log_n; i++) {
    u32 s = inverse ? (u32)log_n - 1 - i : i, half = n >> (s + 1);
    if (t < n / 2) {
      u32 k = t / half, low = k * half + t;  // k blocks of 2 half before it, t - k half in it
      u32 place = (coset ? 1u << s : 0) + k;
      Loose a = values[low], b = values[low + half];
      if (!inverse) b = b * Table{table}.forwards(place, 0)[0];
      values[low] = a + b;
      values[low + half] = inverse ? (b - a) * Table{table}.backwards(place, 0)[0] : a - b;
    }
    __syncthreads();
  }
  for (u32 i = t; i < n; i += blockDim.x) {
    values[i].value = inverse && log_n ? divided(values[i].value, (u32)log_n) : values[i].reduced();
  }
}

// The table of 2^log entries of a primitive 2^(log + 1)-th root z; squares[i] = z^(2^i), in Montgomery form.
// One block makes the first 2^start, further launches double what there is. A plain scalar times a Montgomery
// one is plain; two products make it a constant.
inline Constant times(const Constant& entry, const Fr& factor) {
  return constant(Fr::from_plain((entry.value * factor).w));
}
KERNEL(256, 1) first_twiddles(Half* table, const Fr* squares, size log, size start) {
  Table t{table};
  const size one = Table::before;
  if (threadIdx.x == 0) t.set(one, constant(Fr::one())), t.set(one - 1, constant(-Fr::one()));
  for (u32 j = 0; j < start; j++) {
    __syncthreads();
    for (u32 i = threadIdx.x; i < 1u << j; i += blockDim.x)
      t.set(one + (1u << j) + i, times(t.forwards(i, 0)[0], squares[log - 1 - j]));
  }
  __syncthreads();
  if (threadIdx.x == 0 && log > 0) t.set(one - 2, t.forwards(1, 0)[0]);
  if (threadIdx.x == 0 && log > 1) t.set(one - 3, t.forwards(3, 0)[0]), t.set(one - 4, t.forwards(2, 0)[0]);
}
KERNEL(256, 1) double_twiddles(Half* table, const Fr* squares, size log, size j) {
  Table t{table};
  Fr step = load(squares + (log - 1 - j));
  for (size i = grid_rank(); i < (size)1 << j; i += grid_size())
    t.set(Table::before + ((size)1 << j) + i, times(t.forwards((u32)i, 0)[0], step));
}

// The table of a coset whose shift is not the root's root: at 2^s + k scales[s] T[k], or, to go back,
// -scales[s] / T[2^s - 1 - k], which is where backwards() looks for block 2^s - 1 - k. What stands before it
// is for block 0 of all, there is none.
KERNEL(256, 1) coset_twiddles(Half* out, Half* table, const Fr* scales, size log, size inverse) {
  Table t{table};
  for (size i = 1 + grid_rank(); i < (size)1 << log; i += grid_size()) {
    u32 s = 31 - __clz((u32)i), below = (1u << s) - 1, k = (u32)i & below;  // i < N <= 2^32
    Constant factor = inverse ? t.backwards(k ^ below, 0)[0] : t.forwards(k, 0)[0];
    Table{out}.set(Table::before + i, times(factor, load(scales + s)));
  }
}
