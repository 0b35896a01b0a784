// The setup area of one arithmetic path.
#include "fixed_base.hpp"
#include "group_ntt.hpp"
#include "ntt.hpp"
#include "product_points.hpp"
#include "setup_ops.hpp"

namespace cuzk::CUZK_PATH {
namespace {

template <class Curve>
using Fr = typename CurveTypes<Curve>::Fr;

// Calls body with the coordinates' field as a template argument.
template <class Curve, class Body>
void with_group(bool g2, Body body) {
  if (g2)
    body.template operator()<typename CurveTypes<Curve>::Fp2>();
  else
    body.template operator()<typename CurveTypes<Curve>::Fp>();
}

template <class F>
const Affine<F>* points_in(const u64* words) {
  return reinterpret_cast<const Affine<F>*>(words);
}
template <class F>
Affine<F>* points_out(u64* words) {
  return reinterpret_cast<Affine<F>*>(words);
}

template <class Curve>
SetupOps ops() {
  return {
      [](bool g2, const u64* base, const u64* scalars, u64* out, std::size_t n, int threads) {
        with_group<Curve>(g2, [&]<class F>() {
          fixed_base<F, Fr<Curve>>(*points_in<F>(base), scalars, points_out<F>(out), n, threads);
        });
      },
      [](bool g2, const u64* points, const u64* scalar, u64* out, std::size_t n, int threads) {
        with_group<Curve>(g2, [&]<class F>() {
          scale_points<F, Fr<Curve>>(points_in<F>(points), scalar, points_out<F>(out), n, threads);
        });
      },
      [](bool g2, u64* points, std::size_t n, const u64* root, bool inverse, int threads) {
        with_group<Curve>(g2, [&]<class F>() {
          group_ntt(points_out<F>(points), n, checked_root<Fr<Curve>>(root, n), inverse, threads);
        });
      },
      [](bool g2, const SparseRows& m, const u64* points, u64* out, int threads) {
        with_group<Curve>(g2, [&]<class F>() {
          Rows rows{m.row_ptr, m.wires, m.coefficients};
          auto values = reinterpret_cast<const Fr<Curve>*>(m.values);
          PointProduct<F, Fr<Curve>>(rows, values, m.values_count, points_in<F>(points), threads)
              .run(points_out<F>(out), m.rows, threads);
        });
      },
      [](const u64* scalar) { return Fr<Curve>::is_canonical(scalar); },
  };
}

}  // namespace

const SetupOps& setup_ops(CurveId id) {
  static const SetupOps bn254 = ops<Bn254>(), bls12_381 = ops<Bls12381>();
  return id == CurveId::bn254 ? bn254 : bls12_381;
}

}  // namespace cuzk::CUZK_PATH
