// Stages of a transform of N = 2^log_n scalars on a tile in shared memory; see ntt.cu for the transform.
//
// A pass does the stages [first, first + stages). Its index i of N splits into block (first bits), row
// (stages bits) and column (the rest, "stride" bits). A tile of 8 * blockDim elements holds all rows of
// 2^columns adjacent columns, or, in the pass that has no columns, consecutive elements. Position p in it
// is row and column; 8 of its elements are in a thread's registers for up to three stages at a time:
// those whose positions differ in the bits [low, low + 3).
#pragma once

#include "shoup.hpp"

namespace cuzk::CUZK_PATH {

using Piece = ulonglong2;  // half a scalar
static_assert(sizeof(Loose) == 2 * sizeof(Piece));

struct Tile {
  u32 log, columns, stride;  // all logarithms
  u32 block;                 // its place among tiles along the index, not across columns
  size base;                 // index of its first element
  Piece* shared;

  // Indices of tiles and of blocks are below N <= 2^32.
  Tile(size log_n, size first, size stages, u32 index) : shared(shared_memory<Piece>()) {
    log = 34 - __clz(blockDim.x);
    stride = (u32)(log_n - first - stages);
    columns = stride ? log - (u32)stages : 0;
    u32 beside = stride - columns;
    block = index >> beside;
    base = ((size)block << (log - columns + stride)) + ((size)(index - (block << beside)) << columns);
  }

  // Index of position p in the vector, from the tile's first.
  size offset(u32 p) const {
    return ((size)(p >> columns) << stride) + (p & ((1u << columns) - 1));
  }
  // Where half h of the element at p is: eight lanes that touch positions which differ in three bits next to
  // each other, or four neighbours in both halves, meet no bank twice.
  Piece& half(u32 p, u32 h) const { return shared[(h << log) + (p ^ (p >> 3 & 7) ^ h << 2)]; }
};

// The tile from and to the vector: 16 pieces for each thread, neighbours to neighbours. Positions that
// differ in their top four bits lie a constant apart: either these are bits of the row or there are no columns.
inline void fetch(const Tile& tile, const Fr* values) {
  u32 p = threadIdx.x >> 1, h = threadIdx.x & 1, step = blockDim.x >> 1;
  size distance = tile.offset(step) * 2;
  auto* from = reinterpret_cast<const Piece*>(values + tile.base + tile.offset(p)) + h;
  Piece pieces[16];
#pragma unroll
  for (u32 j = 0; j < 16; j++) pieces[j] = from[j * distance];
#pragma unroll
  for (u32 j = 0; j < 16; j++) tile.half(p + j * step, h) = pieces[j];
  __syncthreads();
}
inline void put_back(const Tile& tile, Fr* values) {
  u32 p = threadIdx.x >> 1, h = threadIdx.x & 1, step = blockDim.x >> 1;
  size distance = tile.offset(step) * 2;
  auto* to = reinterpret_cast<Piece*>(values + tile.base + tile.offset(p)) + h;
#pragma unroll 4  // all 16 places would be kept in registers, and spilled, from the fetch on
  for (u32 j = 0; j < 16; j++) to[j * distance] = tile.half(p + j * step, h);
}

// Three bits turned right.
inline u32 turned(u32 q, u32 by) { return (q >> by | q << (3 - by)) & 7; }

// This thread's position with the bits [low, low + 3) zero.
inline u32 position(u32 low) {
  u32 rest = threadIdx.x >> low;
  return rest << (low + 3) | (threadIdx.x - (rest << low));
}
// x[q] is the element whose three bits are q turned by `by`.
inline void take(const Tile& tile, Loose (&x)[8], u32 low, u32 by) {
  u32 p = position(low);
#pragma unroll
  for (u32 q = 0; q < 8; q++) {
    auto* piece = reinterpret_cast<Piece*>(x + q);
#pragma unroll
    for (u32 h = 0; h < 2; h++) piece[h] = tile.half(p | turned(q, by) << low, h);
  }
}
inline void give(const Tile& tile, const Loose (&x)[8], u32 low, u32 by) {
  u32 p = position(low);
#pragma unroll
  for (u32 q = 0; q < 8; q++) {
    auto* piece = reinterpret_cast<const Piece*>(x + q);
#pragma unroll
    for (u32 h = 0; h < 2; h++) tile.half(p | turned(q, by) << low, h) = piece[h];
  }
}

// The table's entry 1 + k is c_k, that of the mirror of k is -1 / c_k: the bits of k below its highest
// are inverted. Entry 0, for the mirror of k = 0, is -1.
inline u32 mirrored(u32 k) { return k ? 1 + (k ^ ((1u << (31 - __clz(k))) - 1)) : 0; }

// Stages on eight elements, of which the i-th and the (i + 4)-th meet in every stage: each turns the three
// bits left by one. `block` is the number of their block in the first stage; k = 0 is skipped where c_0 = 1.
template <bool ones>
inline void divide_stage(Loose (&x)[8], const Constant* table, u32 block, u32 j) {
  Loose y[8];
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    u32 k = i & ((1u << j) - 1);
    Loose b = x[i + 4];
    if (!(ones && k == 0)) b = b * load(table + 1 + ((block << j) + k));
    y[2 * i] = x[i] + b;
    y[2 * i + 1] = x[i] - b;
  }
#pragma unroll
  for (u32 i = 0; i < 8; i++) x[i] = y[i];
}
template <bool ones>
inline void join_stage(Loose (&x)[8], const Constant* table, u32 block, u32 j) {
  Loose y[8];
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    u32 k = i & ((1u << j) - 1);
    Loose a = x[2 * i], b = x[2 * i + 1];
    y[i] = a + b;
    y[i + 4] = ones && k == 0 ? a - b : (b - a) * load(table + mirrored((block << j) + k));
  }
#pragma unroll
  for (u32 i = 0; i < 8; i++) x[i] = y[i];
}

// What a pass knows of the transform.
struct Stages {
  const Constant* table;
  u32 first, count;
  bool coset, ones;  // ones: the first three have c_0 = 1 (the pass begins with stage 0, no coset)

  // Stages of the group at the top of the rows: what threes leave.
  u32 top() const { return (count - 1) % 3 + 1; }
  // Number of this thread's block in the first stage of the group at `low`, as the table counts.
  u32 block(const Tile& tile, u32 low, u32 done) const {
    return (coset ? 1u << (first + done) : 0) + (tile.block << (tile.log - low - 3)) + (threadIdx.x >> low);
  }
};

// x / 2^log by one step of Montgomery's reduction; 0 < log < 64, x < 2r.
inline Fr divided(const Fr& x, u32 log) {
  using P = Fr::P;
  u64 t[Fr::N + 1] = {x.w[0] << (64 - log)};
  for (int j = 1; j < Fr::N; j++) t[j] = x.w[j] << (64 - log) | x.w[j - 1] >> log;
  t[Fr::N] = x.w[Fr::N - 1] >> log;
  u64 q = t[0] * P::inverse, carry = 0;
  mul_add(q, P::modulus[0], t[0], carry);
  for (int j = 1; j < Fr::N; j++) t[j - 1] = mul_add(q, P::modulus[j], t[j], carry);
  t[Fr::N - 1] = t[Fr::N] + carry;
  return Fr::from_words(t).reduced_once();
}

// What follows the last stage of a pass: nothing, or the end of the transform, with values below r.
struct Finish {
  bool last;
  u32 halvings;
  const Constant* scale;

  void operator()(Loose (&x)[8]) const {
    if (!last) return;
    if (scale) {
#pragma unroll
      for (u32 q = 0; q < 8; q++) x[q] = x[q] * load(scale);
    }
#pragma unroll
    for (u32 q = 0; q < 8; q++) x[q].value = halvings ? divided(x[q].value, halvings) : x[q].reduced();
  }
};

// From the tile to the tile: all rows, from the top.
inline void divide(const Tile& tile, const Stages& stages, const Finish& finish) {
  u32 done = 0, count = stages.top(), low = tile.columns + stages.count - 3;
  while (true) {
    Loose x[8];
    take(tile, x, low, 0);
    u32 block = stages.block(tile, low, done);
    if (stages.ones && done == 0) {
#pragma unroll
      for (u32 j = 0; j < 3; j++) divide_stage<true>(x, stages.table, 0, j);
    } else {
#pragma unroll 1
      for (u32 j = 0; j < count; j++) divide_stage<false>(x, stages.table, block, j);
    }
    bool last = done + count == stages.count;
    if (last) finish(x);
    give(tile, x, low, count);
    __syncthreads();
    if (last) return;
    done += count, low -= count, count = 3;
  }
}

// The same from the bottom, inverted.
inline void join(const Tile& tile, const Stages& stages, const Finish& finish) {
  u32 left = stages.count, low = tile.columns;
  while (left) {
    u32 count = left > 3 ? 3 : left;
    low = tile.columns + (left > 3 ? stages.count - left : stages.count - 3);
    left -= count;
    Loose x[8];
    take(tile, x, low, count);
    u32 block = stages.block(tile, low, left);
    if (stages.ones && left == 0) {
#pragma unroll
      for (u32 j = 3; j-- > 0;) join_stage<true>(x, stages.table, 0, j);
    } else {
#pragma unroll 1
      for (u32 j = count; j-- > 0;) join_stage<false>(x, stages.table, block, j);
    }
    if (left == 0) finish(x);
    give(tile, x, low, 0);
    __syncthreads();
  }
}

}  // namespace cuzk::CUZK_PATH
