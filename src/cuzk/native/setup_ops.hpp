// What the setup area offers per curve: multiples of points, and sums of them by sparse rows. Pointers are
// to arrays of words; scalars plain and below r unless the name says Montgomery.
#pragma once

#include <cstddef>
#include <cstdint>

#include "curve_constants.hpp"
#include "path.hpp"

namespace cuzk {

struct SparseRows {
  std::size_t rows;
  const u64* row_ptr;
  const std::uint32_t* wires;
  const std::uint32_t* coefficients;
  const u64* values;  // Montgomery
  std::size_t values_count;
};

struct SetupOps {
  void (*fixed_base)(bool g2, const u64* base, const u64* scalars, u64* out, std::size_t n, int threads);
  void (*scale_points)(bool g2, const u64* points, const u64* scalar, u64* out, std::size_t n, int threads);
  void (*group_ntt)(bool g2, u64* points, std::size_t n, const u64* root_montgomery, bool inverse, int threads);
  void (*product_points)(bool g2, const SparseRows& matrix, const u64* points, u64* out, int threads);
  bool (*is_scalar)(const u64* scalar);  // below r?
};

}  // namespace cuzk
