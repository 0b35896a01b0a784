// What every kernel source begins with. A source is compiled once per curve (CUZK_CURVE, a struct of
// curve_constants.hpp) and, if it sums points, per group (CUZK_GROUP, G1 or G2): by NVRTC for a GPU, and by
// the host's compiler for the emulator of the tests.
//
// Every kernel parameter is 64 bits wide: a pointer or a `size`. A pointer to field elements or points is
// aligned to 16 bytes.
#pragma once

#include "curve.hpp"

#define KERNEL(threads, blocks_per_processor) \
  extern "C" __global__ void __launch_bounds__(threads, blocks_per_processor)

namespace cuzk::CUZK_PATH {

using Curve = CUZK_CURVE;
using Types = CurveTypes<Curve>;
using Fr = typename Types::Fr;
using Fp = typename Types::Fp;

#ifdef CUZK_GROUP
using G1 = typename Types::G1;
using G2 = typename Types::G2;
using Point = CUZK_GROUP;  // affine
using Coordinate = decltype(Point::x);
using Sum = Xyzz<Coordinate>;
#endif

// Place of this thread in the grid, and the number of threads.
inline size grid_rank() { return (size)blockIdx.x * blockDim.x + threadIdx.x; }
inline size grid_size() { return (size)gridDim.x * blockDim.x; }

// One element (field, point or sum) in 16-byte pieces.
template <class T>
inline T load(const T* from) {
  static_assert(sizeof(T) % 16 == 0);
  T value;
  auto* to = reinterpret_cast<ulonglong2*>(&value);
#pragma unroll
  for (size i = 0; i < sizeof(T) / 16; i++) to[i] = reinterpret_cast<const ulonglong2*>(from)[i];
  return value;
}
template <class T>
inline void store(T* to, const T& value) {
  static_assert(sizeof(T) % 16 == 0);
  auto* from = reinterpret_cast<const ulonglong2*>(&value);
#pragma unroll
  for (size i = 0; i < sizeof(T) / 16; i++) reinterpret_cast<ulonglong2*>(to)[i] = from[i];
}

// The block's dynamic shared memory.
template <class T>
inline T* shared_memory() {
#ifdef CUZK_EMULATED
  return reinterpret_cast<T*>(emulated_shared());
#else
  extern __shared__ ulonglong2 dynamic_shared[];
  return reinterpret_cast<T*>(dynamic_shared);
#endif
}

}  // namespace cuzk::CUZK_PATH

using namespace cuzk;
using namespace cuzk::CUZK_PATH;
