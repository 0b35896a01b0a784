// The points area of one arithmetic path.
#include "points_ops.hpp"

#include <cstring>

#include "msm.hpp"
#include "weighted_sum.hpp"

namespace cuzk::CUZK_PATH {
namespace {

template <class F>
F apply(FieldOp op, const F& a, const u64* b) {
  switch (op) {
    case FieldOp::add: return a + F::from_words(b);
    case FieldOp::subtract: return a - F::from_words(b);
    case FieldOp::negate: return -a;
    case FieldOp::twice: return a.doubled();
    case FieldOp::multiply: return a * F::from_words(b);
    case FieldOp::square: return a.squared();
    default: return a.inverse();
  }
}

template <class F>
void apply_all(FieldOp op, const u64* a, const u64* b, u64* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i++) {
    F result = apply(op, F::from_words(a + i * F::N), b + i * F::N);
    std::memcpy(out + i * F::N, &result, sizeof(F));
  }
}

template <class F, class Fr>
void msm_words(const u64* bases, std::size_t n, const ScalarRows& scalars, u64* out, int threads, int width) {
  Affine<F> sum = msm<F, Fr>(reinterpret_cast<const Affine<F>*>(bases), n, scalars, threads, width);
  std::memcpy(out, &sum, sizeof(sum));
}

template <class F>
void weighted_sum_words(const u64* sums, const unsigned* exponents, std::size_t n, u64* out) {
  Affine<F> sum = weighted_sum(reinterpret_cast<const Xyzz<F>*>(sums), exponents, n);
  std::memcpy(out, &sum, sizeof(sum));
}

template <class Curve>
PointsOps ops() {
  using Types = CurveTypes<Curve>;
  return {
      [](FieldId field, FieldOp op, const u64* a, const u64* b, u64* out, std::size_t n) {
        auto run = field == FieldId::fp    ? &apply_all<typename Types::Fp>
                   : field == FieldId::fr  ? &apply_all<typename Types::Fr>
                                           : &apply_all<typename Types::Fp2>;
        run(op, a, b, out, n);
      },
      [](bool g2, const u64* bases, std::size_t n, const u64* scalars, std::size_t scalar_count,
         const unsigned* index, u64* out, int threads, int width) {
        ScalarRows rows{scalars, scalar_count, index};
        auto run = g2 ? &msm_words<typename Types::Fp2, typename Types::Fr>
                      : &msm_words<typename Types::Fp, typename Types::Fr>;
        run(bases, n, rows, out, threads, width);
      },
      [](std::size_t n) { return msm_width<typename Types::Fr>(n); },
      [](bool g2, const u64* sums, const unsigned* exponents, std::size_t n, u64* out) {
        auto run = g2 ? &weighted_sum_words<typename Types::Fp2> : &weighted_sum_words<typename Types::Fp>;
        run(sums, exponents, n, out);
      },
  };
}

}  // namespace

const PointsOps& points_ops(CurveId id) {
  static const PointsOps bn254 = ops<Bn254>(), bls12_381 = ops<Bls12381>();
  return id == CurveId::bn254 ? bn254 : bls12_381;
}

}  // namespace cuzk::CUZK_PATH
