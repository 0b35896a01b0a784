// The vector area of one arithmetic path.
#include "lagrange.hpp"
#include "ntt.hpp"
#include "sparse.hpp"
#include "vector.hpp"
#include "vector_ops.hpp"

namespace cuzk::CUZK_PATH {
namespace {

template <class Curve>
VectorOps ops() {
  using Fp = Field<typename Curve::FpParams>;
  using Fr = Field<typename Curve::FrParams>;
  VectorOps o{};
  o.first_not_canonical = [](bool fp, const u64* v, std::size_t n, int t) {
    return fp ? first_not_canonical<Fp>(v, n, t) : first_not_canonical<Fr>(v, n, t);
  };
  o.to_montgomery = [](bool fp, const u64* v, u64* out, std::size_t n, int t) {
    fp ? to_montgomery<Fp>(v, out, n, t) : to_montgomery<Fr>(v, out, n, t);
  };
  o.from_montgomery = [](bool fp, const u64* v, u64* out, std::size_t n, int t) {
    fp ? from_montgomery<Fp>(v, out, n, t) : from_montgomery<Fr>(v, out, n, t);
  };
  o.pointwise = pointwise<Fr>;
  o.combine = combine<Fr>;
  o.powers = [](const u64* base, const u64* first, u64* out, std::size_t n, int t) {
    powers<Fr>(load<Fr>(base, 0), load<Fr>(first, 0), out, n, t);
  };
  o.lagrange = lagrange<Fr>;
  o.product = [](const ProductInput& in, u64* out, std::size_t size, bool reversed, int t) {
    Product<Fr>(in, out, size, reversed, t).run();
  };
  o.twiddles = make_twiddles<Fr>;
  o.ntt = ntt<Fr>;
  return o;
}

}  // namespace

const VectorOps& vector_ops(CurveId id) {
  static const VectorOps bn254 = ops<Bn254>(), bls12_381 = ops<Bls12381>();
  return id == CurveId::bn254 ? bn254 : bls12_381;
}

}  // namespace cuzk::CUZK_PATH
