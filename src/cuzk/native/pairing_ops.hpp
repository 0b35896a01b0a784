// What the pairing area offers per curve. Pointers are to arrays of words, Montgomery, points affine.
#pragma once

#include <cstddef>

#include "path.hpp"
#include "curve_constants.hpp"

namespace cuzk {

// The first point that fails and why; reason is nullptr where all are good.
struct BadPoint {
  std::size_t index;
  const char* reason;
};

struct PairingOps {
  BadPoint (*first_bad_point)(bool g2, const u64* points, std::size_t n, bool subgroup, int threads);
  // The zcash encodings (encodings.hpp); nullptr where the curve has none.
  using Decode = BadPoint (*)(bool g2, const unsigned char* data, std::size_t n, u64* out, int threads);
  Decode decompress, decode_uncompressed;
  bool (*product_is_one)(const u64* g1, const u64* g2, std::size_t n, int threads);
  void (*pairing)(const u64* g1, const u64* g2, u64* out);
};

}  // namespace cuzk
