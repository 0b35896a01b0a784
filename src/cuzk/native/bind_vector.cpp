// Python functions over vectors of field elements.
#include "bind.hpp"
#include "bit_reverse.hpp"
#include "sparse.hpp"
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
  expect_apart_or_same(out, values, "values");
  NoGil release;
  (vector_ops(id).*operation)(fp, words(values), words_out(out), n, threads);
}

void pointwise(const string& curve, In64 a, std::optional<In64> b, std::optional<In64> minus, In64 scale,
               Out64 out, int threads) {
  CurveId id = curve_id(curve);
  std::size_t n = rows_of(a, 4, "a");
  if (b) expect_rows(*b, n, 4, "b");
  if (minus) expect_rows(*minus, n, 4, "minus");
  expect_rows(scale, 1, 4, "scale");
  expect_rows(out, n, 4, "out");
  expect_apart_or_same(out, a, "a");
  if (b) expect_apart_or_same(out, *b, "b");
  if (minus) expect_apart_or_same(out, *minus, "minus");
  const u64 *multiplier = b ? words(*b) : nullptr, *subtrahend = minus ? words(*minus) : nullptr;
  NoGil release;
  vector_ops(id).pointwise(words(a), multiplier, subtrahend, words(scale), words_out(out), n, threads);
}

void combine(const string& curve, std::vector<In64> vectors, In64 factors, Out64 out, int threads) {
  CurveId id = curve_id(curve);
  std::size_t n = rows_of(out, 4, "out");
  expect_rows(factors, vectors.size(), 4, "factors");
  expect_apart(out, factors, "factors");
  std::vector<const u64*> starts;
  for (const In64& vector : vectors) {
    expect_rows(vector, n, 4, "vectors");
    expect_apart_or_same(out, vector, "vectors");
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

void lagrange(const string& curve, In64 root, In64 tau, Out64 out, int threads) {
  CurveId id = curve_id(curve);
  expect_rows(root, 1, 4, "root");
  expect_rows(tau, 1, 4, "tau");
  std::size_t n = rows_of(out, 4, "out");
  NoGil release;
  vector_ops(id).lagrange(words(root), words(tau), words_out(out), n, threads);
}

void product(const string& curve, In64 row_ptr, In32 wires, In32 coefficients, In64 values,
             In64 witness, Out64 out, bool bit_reversed, int threads) {
  CurveId id = curve_id(curve);
  std::size_t pointers = length_of(row_ptr, "row_ptr"), terms = length_of(wires, "wires");
  if (pointers == 0) throw std::invalid_argument("row_ptr: expected rows + 1 entries, found none");
  if (length_of(coefficients, "coefficients") != terms)
    throw std::invalid_argument("coefficients: expected as many as wires");
  ProductInput input{row_ptr.data(),      pointers - 1,   wires.data(),
                     coefficients.data(), terms,          words(values),
                     rows_of(values, 4, "values"),        words(witness),
                     rows_of(witness, 4, "witness")};
  std::size_t size = rows_of(out, 4, "out");
  expect_apart(out, row_ptr, "row_ptr");
  expect_apart(out, wires, "wires");
  expect_apart(out, coefficients, "coefficients");
  expect_apart(out, values, "values");
  expect_apart(out, witness, "witness");
  NoGil release;
  vector_ops(id).product(input, words_out(out), size, bit_reversed, threads);
}

void twiddles(const string& curve, In64 root, Out64 out, int threads) {
  CurveId id = curve_id(curve);
  expect_rows(root, 1, 4, "root");
  std::size_t rows = rows_of(out, 4, "out");
  NoGil release;
  vector_ops(id).twiddles(words(root), words_out(out), 2 * rows, threads);
}

void ntt(const string& curve, Out64 values, In64 root, In64 shift, bool inverse, int threads,
         std::optional<In64> twiddles) {
  CurveId id = curve_id(curve);
  std::size_t n = rows_of(values, 4, "values");
  expect_rows(root, 1, 4, "root");
  expect_rows(shift, 1, 4, "shift");
  std::size_t rows = twiddles ? rows_of(*twiddles, 4, "twiddles") : 0;
  if (twiddles && overlaps(values, *twiddles)) throw std::invalid_argument("values: share memory with twiddles");
  const u64* table = rows ? words(*twiddles) : nullptr;
  NoGil release;
  vector_ops(id).ntt(words_out(values), n, words(root), words(shift), inverse, table, rows, threads);
}

void reverse_rows(Out64 values, int threads) {
  if (values.ndim() != 2) throw std::invalid_argument("values: expected two dimensions");
  std::size_t n = values.shape(0), width = values.shape(1);
  if (n == 0 || (n & (n - 1)))
    throw std::invalid_argument("values: expected a power of two of rows, found " + std::to_string(n));
  u64* data = words_out(values);
  int log_n = 0;
  while (std::size_t{1} << log_n < n) log_n++;
  NoGil release;
  bit_reverse(data, width, log_n, threads);
}

}  // namespace

void bind_vector(nb::module_& m) {
  m.def("first_not_canonical", &first_not_canonical, nb::arg("curve"), nb::arg("field"),
        array_arg("values"), nb::arg("threads"));
  m.def(
      "to_montgomery",
      [](const string& curve, const string& field, In64 values, Out64 out, int threads) {
        convert(&VectorOps::to_montgomery, curve, field, values, out, threads);
      },
      nb::arg("curve"), nb::arg("field"), array_arg("values"), array_arg("out"), nb::arg("threads"));
  m.def(
      "from_montgomery",
      [](const string& curve, const string& field, In64 values, Out64 out, int threads) {
        convert(&VectorOps::from_montgomery, curve, field, values, out, threads);
      },
      nb::arg("curve"), nb::arg("field"), array_arg("values"), array_arg("out"), nb::arg("threads"));
  m.def("pointwise", &pointwise, nb::arg("curve"), array_arg("a"), array_arg("b").none(),
        array_arg("minus").none(), array_arg("scale"), array_arg("out"), nb::arg("threads"));
  m.def("combine", &combine, nb::arg("curve"), array_arg("vectors"), array_arg("factors"), array_arg("out"),
        nb::arg("threads"));
  m.def("powers", &powers, nb::arg("curve"), array_arg("base"), array_arg("first"), array_arg("out"),
        nb::arg("threads"));
  m.def("lagrange", &lagrange, nb::arg("curve"), array_arg("root"), array_arg("tau"), array_arg("out"),
        nb::arg("threads"));
  m.def("product", &product, nb::arg("curve"), array_arg("row_ptr"), array_arg("wires"),
        array_arg("coefficients"), array_arg("values"), array_arg("witness"), array_arg("out"),
        nb::arg("bit_reversed"), nb::arg("threads"));
  m.def("twiddles", &twiddles, nb::arg("curve"), array_arg("root"), array_arg("out"), nb::arg("threads"));
  m.def("ntt", &ntt, nb::arg("curve"), array_arg("values"), array_arg("root"), array_arg("shift"),
        nb::arg("inverse"), nb::arg("threads"), array_arg("twiddles").none() = nb::none());
  m.def("bit_reverse", &reverse_rows, array_arg("values"), nb::arg("threads") = 1);
}

}  // namespace cuzk
