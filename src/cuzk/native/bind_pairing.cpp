// Python functions of the pairing area.
#include "bind.hpp"
#include "pairing_ops.hpp"

CUZK_DECLARE_OPS(PairingOps, pairing_ops)

namespace cuzk {
namespace {

using Answer = std::pair<long long, std::string>;

Answer answer(const BadPoint& bad) {
  if (bad.reason == nullptr) return {-1, ""};
  return {static_cast<long long>(bad.index), bad.reason};
}

Answer first_bad_point(const std::string& curve, const std::string& group, In64 points, bool subgroup,
                       int threads) {
  CurveId id = curve_id(curve);
  bool g2 = is_g2(group);
  std::size_t n = rows_of(points, point_words(id, g2), "points");
  NoGil release;
  return answer(pairing_ops(id).first_bad_point(g2, words(points), n, subgroup, threads));
}

// `coordinates` of each point are in its encoding: x alone, or x and y.
Answer decode(const std::string& curve, const std::string& group, const InBytes& data, const Out64& out, int threads,
              int coordinates, PairingOps::Decode PairingOps::*which) {
  CurveId id = curve_id(curve);
  bool g2 = is_g2(group);
  auto decoder = pairing_ops(id).*which;
  if (decoder == nullptr) throw std::invalid_argument("curve: expected bls12_381, found " + curve);
  std::size_t n = rows_of(data, point_words(id, g2) * 4 * coordinates, "data");  // 8 bytes a word
  expect_rows(out, n, point_words(id, g2), "out");
  expect_apart(out, data, "data");
  NoGil release;
  return answer(decoder(g2, data.data(), n, words_out(out), threads));
}

Answer decompress(const std::string& curve, const std::string& group, InBytes data, Out64 out, int threads) {
  return decode(curve, group, data, out, threads, 1, &PairingOps::decompress);
}

Answer decode_uncompressed(const std::string& curve, const std::string& group, InBytes data, Out64 out, int threads) {
  return decode(curve, group, data, out, threads, 2, &PairingOps::decode_uncompressed);
}

bool pairing_product_is_one(const std::string& curve, In64 g1, In64 g2, int threads) {
  CurveId id = curve_id(curve);
  std::size_t n = rows_of(g1, point_words(id, false), "g1");
  expect_rows(g2, n, point_words(id, true), "g2");
  NoGil release;
  return pairing_ops(id).product_is_one(words(g1), words(g2), n, threads);
}

void pairing(const std::string& curve, In64 g1, In64 g2, Out64 out) {
  CurveId id = curve_id(curve);
  expect_rows(g1, 1, point_words(id, false), "g1");
  expect_rows(g2, 1, point_words(id, true), "g2");
  expect_rows(out, 12, fp_words(id), "out");
  NoGil release;
  pairing_ops(id).pairing(words(g1), words(g2), words_out(out));
}

}  // namespace

void bind_pairing(nb::module_& m) {
  m.def("first_bad_point", &first_bad_point, nb::arg("curve"), nb::arg("group"), array_arg("points"),
        nb::arg("subgroup"), nb::arg("threads"));
  m.def("decompress", &decompress, nb::arg("curve"), nb::arg("group"), array_arg("data"), array_arg("out"),
        nb::arg("threads"));
  m.def("decode_uncompressed", &decode_uncompressed, nb::arg("curve"), nb::arg("group"), array_arg("data"),
        array_arg("out"), nb::arg("threads"));
  m.def("pairing_product_is_one", &pairing_product_is_one, nb::arg("curve"), array_arg("g1"), array_arg("g2"),
        nb::arg("threads"));
  m.def("pairing", &pairing, nb::arg("curve"), array_arg("g1"), array_arg("g2"), array_arg("out"));
}

}  // namespace cuzk
