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

using Half = ulonglong2;  // half a scalar
static_assert(sizeof(Loose) == 2 * sizeof(Half));

// x, but what is computed from it is computed anew: the places of a thread's elements would otherwise be kept
// in registers from the first use to the last, and spilled.
inline u32 anew(u32 x) {
#ifdef CUZK_DEVICE
  asm volatile("" : "+r"(x));
#endif
  return x;
}

struct Tile {
  u32 log, columns, stride;  // all logarithms
  u32 block;                 // its place among tiles along the index, not across columns
  size base;                 // index of its first element
  Half* shared;

  // Indices of tiles and of blocks are below N <= 2^32.
  Tile(size log_n, size first, size stages, u32 index) : shared(shared_memory<Half>()) {
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
  static u32 slot(u32 p) { return p ^ (p >> 3 & 7); }
  Half& half(u32 p, u32 h) const { return at_slot(slot(p), h); }
  Half& at_slot(u32 slot, u32 h) const { return shared[(slot ^ h << 2) + (h << log)]; }

  Loose element(u32 p) const {
    Loose x;
    auto* halves = reinterpret_cast<Half*>(&x);
    halves[0] = half(p, 0), halves[1] = half(p, 1);
    return x;
  }
  void set(u32 p, const Loose& x) const {
    auto* halves = reinterpret_cast<const Half*>(&x);
    half(p, 0) = halves[0], half(p, 1) = halves[1];
  }
};

// The tile from and to the vector: 16 halves for each thread, neighbours to neighbours. Positions that
// differ in their top four bits lie a constant apart: either these are bits of the row or there are no columns.
inline void fetch(const Tile& tile, const Fr* values) {
  u32 p = threadIdx.x >> 1, h = threadIdx.x & 1, step = blockDim.x >> 1;
  size distance = tile.offset(step) * 2;
  auto* from = reinterpret_cast<const Half*>(values + tile.base + tile.offset(p)) + h;
  Half held[16];
#pragma unroll
  for (u32 j = 0; j < 16; j++) held[j] = from[j * distance];
#pragma unroll
  for (u32 j = 0; j < 16; j++) tile.half(p + j * step, h) = held[j];
  __syncthreads();
}
inline void put_back(const Tile& tile, Fr* values) {
  u32 thread = anew(threadIdx.x), p = thread >> 1, h = thread & 1, step = blockDim.x >> 1;
  size distance = tile.offset(step) * 2;
  auto* to = reinterpret_cast<Half*>(values + tile.base + tile.offset(p)) + h;
#pragma unroll
  for (u32 j = 0; j < 16; j++) to[j * distance] = tile.half(p + j * step, h);
}

// Where this thread's eight elements are: positions that differ in the bits [low, low + 3). Slots of
// disjoint bits add up.
struct Places {
  u32 base, bit[3];

  explicit Places(u32 low) {
    u32 rest = threadIdx.x >> low;
    base = Tile::slot(rest << (low + 3) | (threadIdx.x - (rest << low)));
    for (u32 i = 0; i < 3; i++) bit[i] = Tile::slot(1u << (low + i));
  }
  u32 operator[](u32 q) const {
    return base ^ (q & 1 ? bit[0] : 0) ^ (q & 2 ? bit[1] : 0) ^ (q & 4 ? bit[2] : 0);
  }
};
inline void take(const Tile& tile, Loose (&x)[8], u32 low) {
  Places places(low);
#pragma unroll
  for (u32 q = 0; q < 8; q++) {
    auto* halves = reinterpret_cast<Half*>(x + q);
    halves[0] = tile.at_slot(places[q], 0), halves[1] = tile.at_slot(places[q], 1);
  }
}
inline void give(const Tile& tile, const Loose (&x)[8], u32 low) {
  Places places(anew(low));
#pragma unroll
  for (u32 q = 0; q < 8; q++) {
    auto* halves = reinterpret_cast<const Half*>(x + q);
    tile.at_slot(places[q], 0) = halves[0], tile.at_slot(places[q], 1) = halves[1];
  }
}

// A table is T behind four entries -1 / T[3], -1 / T[2], -1 / T[1], -1. Below, `place` k of a block's constant is
// its place in T; -1 / T[k] is T of k with the bits below its highest inverted, so that for 2^j blocks next
// to each other these lie next to each other too, in opposite order.
//
// Eight entries are four rows of 16-byte pieces: threads that read entries next to each other, or two or four
// apart, touch a quarter of the cache lines that whole constants would spread them over.
struct Table {
  Half* halves;
  static constexpr u32 before = 4;

  Half* at(size entry) const { return halves + (entry / 8 * 32 + entry % 8); }
  // [k] is the constant of place (block << j) + k, or -1 over that, for k < 2^j.
  struct Run {
    const Half* first;
    int step;
    Constant operator[](int k) const {
      Constant c;
      auto* to = reinterpret_cast<Half*>(&c);
#pragma unroll
      for (int i = 0; i < 4; i++) to[i] = first[8 * i + step * k];
      return c;
    }
  };
  Run forwards(u32 block, u32 j) const { return {at(before + ((size)block << j)), 1}; }
  Run backwards(u32 block, u32 j) const {
    u32 above = (block ^ ((1u << (31 - __clz(block | 1))) - 1)) + (block != 0);
    return {at(before - 1 + ((size)above << j)), -1};
  }
  void set(size entry, const Constant& c) const {
    auto* from = reinterpret_cast<const Half*>(&c);
#pragma unroll
    for (int i = 0; i < 4; i++) at(entry)[8 * i] = from[i];
  }
};

// Stage j of up to three on eight elements: 2^j blocks, the first has number `block` << j in its stage. The
// product by c_0 = 1 is skipped where the caller knows of `ones`.
template <u32 j, bool ones>
inline void divide_stage(Loose (&x)[8], const Table& table, u32 block) {
  constexpr u32 half = 4 >> j;
  const Table::Run constants = table.forwards(block, j);
#pragma unroll
  for (u32 k = 0; k < 1u << j; k++) {
    Constant c;
    if (!(ones && k == 0)) c = constants[k];
#pragma unroll
    for (u32 i = 2 * half * k; i < 2 * half * k + half; i++) {
      Loose a = x[i], b = x[i + half];
      if (!(ones && k == 0)) b = b * c;
      x[i] = a + b;
      x[i + half] = a - b;
    }
  }
}
template <u32 j, bool ones>
inline void join_stage(Loose (&x)[8], const Table& table, u32 block) {
  constexpr u32 half = 4 >> j;
  const Table::Run constants = table.backwards(block, j);
#pragma unroll
  for (u32 k = 0; k < 1u << j; k++) {
    Constant c;
    if (!(ones && k == 0)) c = constants[k];
#pragma unroll
    for (u32 i = 2 * half * k; i < 2 * half * k + half; i++) {
      Loose difference = ones && k == 0 ? x[i] - x[i + half] : x[i + half] - x[i];
      x[i] = x[i] + x[i + half];
      x[i + half] = ones && k == 0 ? difference : difference * c;
    }
  }
}

// What a pass knows of the transform.
struct Stages {
  Table table;
  u32 first, count;
  bool coset;

  // The first three have c_0 = 1.
  bool ones() const { return first == 0 && !coset; }
  // The constant's place for the first of the blocks of the tile's stage `done`, in which halves of 2^bit
  // elements meet, plus `within`.
  u32 block(const Tile& tile, u32 done, u32 bit, u32 within) const {
    return (coset ? 1u << (first + done) : 0) + (tile.block << (tile.log - bit - 1)) + within;
  }
};

// The end of a transform: values divided by 2^halvings and below r.
inline void finish(const Tile& tile, u32 halvings) {
  u32 low = tile.log - 3;
  Loose x[8];
  take(tile, x, low);
#pragma unroll
  for (u32 q = 0; q < 8; q++) x[q].value = halvings ? divided(x[q].value, halvings) : x[q].reduced();
  give(tile, x, low);
  __syncthreads();
}

// One stage, from the tile to the tile, for what groups of three leave: a loop of few instructions. As more
// cases of the groups it would cost more registers than there are.
template <bool inverse>
inline void single_stage(const Tile& tile, const Stages& stages, u32 done) {
  u32 bit = tile.columns + stages.count - 1 - done;
#pragma unroll 1
  for (u32 i = threadIdx.x; i < 1u << (tile.log - 1); i += blockDim.x) {
    u32 k = i >> bit, low = (k << bit) + i, high = low + (1u << bit), place = stages.block(tile, done, bit, k);
    Loose a = tile.element(low), b = tile.element(high);
    if (!inverse) b = b * stages.table.forwards(place, 0)[0];
    tile.set(low, a + b);
    tile.set(high, inverse ? (b - a) * stages.table.backwards(place, 0)[0] : a - b);
  }
  __syncthreads();
}

// From the tile to the tile: all rows, from the top.
inline void divide(const Tile& tile, const Stages& stages) {
  u32 done = 0;
  for (; done + 3 <= stages.count; done += 3) {
    u32 low = tile.columns + stages.count - 3 - done;
    Loose x[8];
    take(tile, x, low);
    if (stages.ones() && done == 0) {
      divide_stage<0, true>(x, stages.table, 0);
      divide_stage<1, true>(x, stages.table, 0);
      divide_stage<2, true>(x, stages.table, 0);
      give(tile, x, low);
    } else {
      u32 block = stages.block(tile, done, low + 2, threadIdx.x >> low);
      divide_stage<0, false>(x, stages.table, block);
      divide_stage<1, false>(x, stages.table, block);
      divide_stage<2, false>(x, stages.table, block);
      give(tile, x, low);
    }
    __syncthreads();
  }
  for (; done < stages.count; done++) single_stage<false>(tile, stages, done);
}

// The same from the bottom, inverted.
inline void join(const Tile& tile, const Stages& stages) {
  u32 left = stages.count;
  while (left % 3) single_stage<true>(tile, stages, --left);
  while (left) {
    left -= 3;
    u32 low = tile.columns + stages.count - 3 - left;
    Loose x[8];
    take(tile, x, low);
    if (stages.ones() && left == 0) {
      join_stage<2, true>(x, stages.table, 0);
      join_stage<1, true>(x, stages.table, 0);
      join_stage<0, true>(x, stages.table, 0);
      give(tile, x, low);
    } else {
      u32 block = stages.block(tile, left, low + 2, threadIdx.x >> low);
      join_stage<2, false>(x, stages.table, block);
      join_stage<1, false>(x, stages.table, block);
      join_stage<0, false>(x, stages.table, block);
      give(tile, x, low);
    }
    __syncthreads();
  }
}

}  // namespace cuzk::CUZK_PATH
