// What the vector area offers per curve: loops over field elements. Pointers are to arrays of words;
// `fp` picks the base field, everything else is in Fr. See vector.hpp, sparse.hpp, ntt.hpp, lagrange.hpp.
#pragma once

#include <cstddef>

#include "path.hpp"
#include "curve_constants.hpp"

namespace cuzk {

struct ProductInput;  // sparse.hpp

struct VectorOps {
  using Convert = void (*)(bool fp, const u64* values, u64* out, std::size_t n, int threads);

  long long (*first_not_canonical)(bool fp, const u64* values, std::size_t n, int threads);
  Convert to_montgomery, from_montgomery;
  void (*pointwise)(const u64* a, const u64* b, const u64* minus, const u64* scale, u64* out,
                    std::size_t n, int threads);
  void (*combine)(const u64* const* vectors, std::size_t count, const u64* factors, u64* out,
                  std::size_t n, int threads);
  void (*powers)(const u64* base, const u64* first, u64* out, std::size_t n, int threads);
  void (*lagrange)(const u64* root, const u64* tau, u64* out, std::size_t n, int threads);
  void (*product)(const ProductInput& input, u64* out, std::size_t size, bool bit_reversed, int threads);
  void (*twiddles)(const u64* root, u64* out, std::size_t n, int threads);
  void (*ntt)(u64* values, std::size_t n, const u64* root, const u64* shift, bool inverse,
              const u64* twiddles, std::size_t twiddles_rows, int threads);
};

}  // namespace cuzk
