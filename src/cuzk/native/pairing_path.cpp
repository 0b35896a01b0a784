// The pairing area of one arithmetic path.
#include "check.hpp"
#include "encodings.hpp"
#include "pairing.hpp"
#include "pairing_ops.hpp"

namespace cuzk::CUZK_PATH {
namespace {

template <class Curve>
void pairing_words(const u64* g1, const u64* g2, u64* out) {
  auto value = final_exponentiation<Curve>(miller_product<Curve>(g1, g2, 1, 1));
  for (const auto& half : {value.a, value.b}) {
    for (const auto& c : {half.c0, half.c1, half.c2}) {
      for (const auto& part : {c.c0, c.c1}) {
        for (u64 word : part.w) *out++ = word;
      }
    }
  }
}

template <class Curve>
PairingOps ops() {
  using Types = CurveTypes<Curve>;
  PairingOps table{};
  table.first_bad_point = [](bool g2, const u64* points, std::size_t n, bool subgroup, int threads) {
    return g2 ? first_bad_point<Curve, typename Types::G2>(points, n, subgroup, threads)
              : first_bad_point<Curve, typename Types::G1>(points, n, subgroup, threads);
  };
  if constexpr (Curve::FpParams::spare_bits >= 3) {
    table.decompress = [](bool g2, const unsigned char* data, std::size_t n, u64* out, int threads) {
      return g2 ? decompress(data, n, out, Types::g2_b(), threads)
                : decompress(data, n, out, Types::g1_b(), threads);
    };
    table.decode_uncompressed = [](bool g2, const unsigned char* data, std::size_t n, u64* out, int threads) {
      return g2 ? decode_uncompressed<typename Types::Fp2>(data, n, out, threads)
                : decode_uncompressed<typename Types::Fp>(data, n, out, threads);
    };
  }
  table.product_is_one = [](const u64* g1, const u64* g2, std::size_t n, int threads) {
    return final_exponentiation<Curve>(miller_product<Curve>(g1, g2, n, threads)).is_one();
  };
  table.pairing = &pairing_words<Curve>;
  return table;
}

}  // namespace

const PairingOps& pairing_ops(CurveId id) {
  static const PairingOps bn254 = ops<Bn254>(), bls12_381 = ops<Bls12381>();
  return id == CurveId::bn254 ? bn254 : bls12_381;
}

}  // namespace cuzk::CUZK_PATH
