// What the points area offers per curve. Pointers are to arrays of words, laid out as vectors.py says.
#pragma once

#include <cstddef>

#include "path.hpp"
#include "curve_constants.hpp"

namespace cuzk {

struct PointsOps {
  // out = sum_k scalars[index[k]] * bases[k]; index may be null (then scalars[k]); width 0: chosen.
  void (*msm)(bool g2, const u64* bases, std::size_t n, const u64* scalars, std::size_t scalar_count,
              const unsigned* index, u64* out, int threads, int width);
};

}  // namespace cuzk
