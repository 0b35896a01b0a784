// The points area of one arithmetic path.
#include "points_ops.hpp"

#include <cstring>

#include "msm.hpp"

namespace cuzk::CUZK_PATH {
namespace {

template <class F, class Fr>
void msm_words(const u64* bases, std::size_t n, const ScalarRows& scalars, u64* out, int threads, int width) {
  Affine<F> sum = msm<F, Fr>(reinterpret_cast<const Affine<F>*>(bases), n, scalars, threads, width);
  std::memcpy(out, &sum, sizeof(sum));
}

template <class Curve>
PointsOps ops() {
  using Types = CurveTypes<Curve>;
  return {
      [](bool g2, const u64* bases, std::size_t n, const u64* scalars, std::size_t scalar_count,
         const unsigned* index, u64* out, int threads, int width) {
        ScalarRows rows{scalars, scalar_count, index};
        auto run = g2 ? &msm_words<typename Types::Fp2, typename Types::Fr>
                      : &msm_words<typename Types::Fp, typename Types::Fr>;
        run(bases, n, rows, out, threads, width);
      },
  };
}

}  // namespace

const PointsOps& points_ops(CurveId id) {
  static const PointsOps bn254 = ops<Bn254>(), bls12_381 = ops<Bls12381>();
  return id == CurveId::bn254 ? bn254 : bls12_381;
}

}  // namespace cuzk::CUZK_PATH
