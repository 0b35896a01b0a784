// What the points area offers per curve. Pointers are to arrays of words, laid out as vectors.py says.
#pragma once

#include <cstddef>

#include "path.hpp"
#include "curve_constants.hpp"

namespace cuzk {

enum class FieldOp { add, subtract, negate, twice, multiply, square, invert };
enum class FieldId { fp, fr, fp2 };

struct PointsOps {
  // out_i = a_i op b_i in Montgomery form; b is read by the operations of two operands only.
  void (*field)(FieldId field, FieldOp op, const u64* a, const u64* b, u64* out, std::size_t n);
  // out = sum_k scalars[index[k]] * bases[k]; index may be null (then scalars[k]); width 0: chosen.
  void (*msm)(bool g2, const u64* bases, std::size_t n, const u64* scalars, std::size_t scalar_count,
              const unsigned* index, u64* out, int threads, int width);
  int (*msm_width)(std::size_t n);
  // out = sum_i 2^exponents[i] * sums[i], affine, of n sums in extended form (Xyzz).
  void (*weighted_sum)(bool g2, const u64* sums, const unsigned* exponents, std::size_t n, u64* out);
};

}  // namespace cuzk
