// Python functions over vectors of field elements.
#include "bind.hpp"
#include "vector_ops.hpp"

CUZK_DECLARE_OPS(VectorOps, vector_ops)

namespace cuzk {
namespace {

using std::string;

long long first_not_canonical(const string& curve, const string& field, In64 values, int threads) {
  CurveId id = curve_id(curve);
  bool fp = is_fp(field);
  std::size_t n = rows_of(values, fp ? fp_words(id) : 4, "values");
  NoGil release;
  return vector_ops(id).first_not_canonical(fp, words(values), n, threads);
}

void convert(VectorOps::Convert VectorOps::*operation, const string& curve, const string& field,
             const In64& values, const Out64& out, int threads) {
  CurveId id = curve_id(curve);
  bool fp = is_fp(field);
  std::size_t width = fp ? fp_words(id) : 4, n = rows_of(values, width, "values");
  expect_rows(out, n, width, "out");
  NoGil release;
  (vector_ops(id).*operation)(fp, words(values), words_out(out), n, threads);
}

void pointwise(const string& curve, In64 a, In64 b, std::optional<In64> minus, In64 scale, Out64 out,
               int threads) {
  CurveId id = curve_id(curve);
  std::size_t n = rows_of(a, 4, "a");
  expect_rows(b, n, 4, "b");
  if (minus) expect_rows(*minus, n, 4, "minus");
  expect_rows(scale, 1, 4, "scale");
  expect_rows(out, n, 4, "out");
  const u64* subtrahend = minus ? words(*minus) : nullptr;
  NoGil release;
  vector_ops(id).pointwise(words(a), words(b), subtrahend, words(scale), words_out(out), n, threads);
}

void combine(const string& curve, std::vector<In64> vectors, In64 factors, Out64 out, int threads) {
  CurveId id = curve_id(curve);
  std::size_t n = rows_of(out, 4, "out");
  expect_rows(factors, vectors.size(), 4, "factors");
  std::vector<const u64*> starts;
  for (const In64& vector : vectors) {
    expect_rows(vector, n, 4, "vectors");
    starts.push_back(words(vector));
  }
  NoGil release;
  vector_ops(id).combine(starts.data(), starts.size(), words(factors), words_out(out), n, threads);
}

void powers(const string& curve, In64 base, In64 first, Out64 out, int threads) {
  CurveId id = curve_id(curve);
  expect_rows(base, 1, 4, "base");
  expect_rows(first, 1, 4, "first");
  std::size_t n = rows_of(out, 4, "out");
  NoGil release;
  vector_ops(id).powers(words(base), words(first), words_out(out), n, threads);
}

}  // namespace

void bind_vector(nb::module_& m) {
  m.def("first_not_canonical", &first_not_canonical, nb::arg("curve"), nb::arg("field"),
        nb::arg("values"), nb::arg("threads"));
  m.def(
      "to_montgomery",
      [](const string& curve, const string& field, In64 values, Out64 out, int threads) {
        convert(&VectorOps::to_montgomery, curve, field, values, out, threads);
      },
      nb::arg("curve"), nb::arg("field"), nb::arg("values"), nb::arg("out"), nb::arg("threads"));
  m.def(
      "from_montgomery",
      [](const string& curve, const string& field, In64 values, Out64 out, int threads) {
        convert(&VectorOps::from_montgomery, curve, field, values, out, threads);
      },
      nb::arg("curve"), nb::arg("field"), nb::arg("values"), nb::arg("out"), nb::arg("threads"));
  m.def("pointwise", &pointwise, nb::arg("curve"), nb::arg("a"), nb::arg("b"), nb::arg("minus").none(),
        nb::arg("scale"), nb::arg("out"), nb::arg("threads"));
  m.def("combine", &combine, nb::arg("curve"), nb::arg("vectors"), nb::arg("factors"), nb::arg("out"),
        nb::arg("threads"));
  m.def("powers", &powers, nb::arg("curve"), nb::arg("base"), nb::arg("first"), nb::arg("out"),
        nb::arg("threads"));
}

}  // namespace cuzk
