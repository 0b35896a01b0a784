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

Answer decompress(const std::string& curve, const std::string& group, InBytes data, Out64 out, int threads) {
  CurveId id = curve_id(curve);
  bool g2 = is_g2(group);
  if (pairing_ops(id).decompress == nullptr)
    throw std::invalid_argument("decompress: expected bls12_381, found " + curve);
  std::size_t n = rows_of(data, point_words(id, g2) * 4, "data");  // x alone, 8 bytes a word
  expect_rows(out, n, point_words(id, g2), "out");
  expect_apart(out, data, "data");
  NoGil release;
  return answer(pairing_ops(id).decompress(g2, data.data(), n, words_out(out), threads));
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
  m.def("pairing_product_is_one", &pairing_product_is_one, nb::arg("curve"), array_arg("g1"), array_arg("g2"),
        nb::arg("threads"));
  m.def("pairing", &pairing, nb::arg("curve"), array_arg("g1"), array_arg("g2"), array_arg("out"));
}

}  // namespace cuzk
