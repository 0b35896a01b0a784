// What the vector area offers per curve: loops over field elements. Pointers are to arrays of words.
#pragma once

#include <cstddef>

#include "path.hpp"
#include "curve_constants.hpp"

namespace cuzk {

struct VectorOps {
  long long (*first_not_canonical)(bool fp, const u64* values, std::size_t n, int threads);
};

}  // namespace cuzk
