// The vector area of one arithmetic path.
#include <atomic>

#include "field.hpp"
#include "parallel.hpp"
#include "vector_ops.hpp"

namespace cuzk::CUZK_PATH {
namespace {

template <class F>
long long first_not_canonical(const u64* values, std::size_t n, int threads) {
  std::atomic<long long> first{-1};
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i++) {
      if (F::is_canonical(values + i * F::N)) continue;
      long long found = static_cast<long long>(i), seen = first;
      while ((seen < 0 || found < seen) && !first.compare_exchange_weak(seen, found)) {
      }
      return;
    }
  });
  return first;
}

template <class Curve>
VectorOps ops() {
  using Fp = Field<typename Curve::FpParams>;
  using Fr = Field<typename Curve::FrParams>;
  return {
      [](bool fp, const u64* v, std::size_t n, int t) {
        return fp ? first_not_canonical<Fp>(v, n, t) : first_not_canonical<Fr>(v, n, t);
      },
  };
}

}  // namespace

const VectorOps& vector_ops(CurveId id) {
  static const VectorOps bn254 = ops<Bn254>(), bls12_381 = ops<Bls12381>();
  return id == CurveId::bn254 ? bn254 : bls12_381;
}

}  // namespace cuzk::CUZK_PATH
