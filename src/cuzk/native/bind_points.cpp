// Python functions of the points area.
#include "bind.hpp"
#include "points_ops.hpp"

CUZK_DECLARE_OPS(PointsOps, points_ops)

namespace cuzk {
namespace {

FieldId field_id(const std::string& name) {
  if (name == "fp2") return FieldId::fp2;
  return is_fp(name) ? FieldId::fp : FieldId::fr;
}

FieldOp field_op_named(const std::string& name) {
  const char* names[] = {"add", "subtract", "negate", "twice", "multiply", "square", "invert"};
  for (int i = 0; i < 7; i++)
    if (name == names[i]) return static_cast<FieldOp>(i);
  throw std::invalid_argument("operation: expected add, subtract, negate, twice, multiply, square or invert, found " +
                              name);
}

void field_op(const std::string& curve, const std::string& field, const std::string& op, In64 a, In64 b, Out64 out) {
  CurveId id = curve_id(curve);
  FieldId which = field_id(field);
  std::size_t width = which == FieldId::fr ? 4 : fp_words(id) * (which == FieldId::fp2 ? 2 : 1);
  std::size_t n = rows_of(a, width, "a");
  expect_rows(b, n, width, "b");
  expect_rows(out, n, width, "out");
  expect_apart_or_same(out, a, "a");
  expect_apart_or_same(out, b, "b");
  FieldOp operation = field_op_named(op);
  NoGil release;
  points_ops(id).field(which, operation, words(a), words(b), words_out(out), n);
}

void msm(const std::string& curve, const std::string& group, In64 bases, In64 scalars,
         std::optional<In32> index, Out64 out, int threads, int width) {
  CurveId id = curve_id(curve);
  bool g2 = is_g2(group);
  std::size_t row_words = point_words(id, g2);
  std::size_t n = rows_of(bases, row_words, "bases"), scalar_count = rows_of(scalars, 4, "scalars");
  expect_rows(out, 1, row_words, "out");
  std::size_t terms = index ? length_of(*index, "index") : scalar_count;
  if (terms != n)
    throw std::invalid_argument(std::string(index ? "index" : "scalars") + ": expected " + std::to_string(n) +
                                " rows, one a base, found " + std::to_string(terms));
  if (width < 0 || width > 22)
    throw std::invalid_argument("width: expected 0 (chosen) or 1 to 22 bits, found " + std::to_string(width));
  const unsigned* rows = index ? index->data() : nullptr;
  NoGil release;
  points_ops(id).msm(g2, words(bases), n, words(scalars), scalar_count, rows, words_out(out), threads, width);
}

constexpr unsigned max_exponent = 1023;  // of a weight 2^e; scalars have 255 bits

void weighted_sum(const std::string& curve, const std::string& group, In64 sums, In32 exponents, Out64 out) {
  CurveId id = curve_id(curve);
  bool g2 = is_g2(group);
  std::size_t row_words = point_words(id, g2);
  std::size_t n = rows_of(sums, 2 * row_words, "sums"), count = length_of(exponents, "exponents");
  expect_rows(out, 1, row_words, "out");
  if (count != n)
    throw std::invalid_argument("exponents: expected " + std::to_string(n) + ", one a sum, found " +
                                std::to_string(count));
  for (std::size_t i = 0; i < n; i++)
    if (exponents.data()[i] > max_exponent)
      throw std::invalid_argument("exponents: expected at most " + std::to_string(max_exponent) + ", found " +
                                  std::to_string(exponents.data()[i]) + " at " + std::to_string(i));
  NoGil release;
  points_ops(id).weighted_sum(g2, words(sums), exponents.data(), n, words_out(out));
}

}  // namespace

void bind_points(nb::module_& m) {
  m.def("field_op", &field_op, nb::arg("curve"), nb::arg("field"), nb::arg("op"), array_arg("a"), array_arg("b"),
        array_arg("out"));
  m.def("msm", &msm, nb::arg("curve"), nb::arg("group"), array_arg("bases"), array_arg("scalars"),
        array_arg("index").none(), array_arg("out"), nb::arg("threads"), nb::arg("width") = 0);
  m.def(
      "msm_width", [](const std::string& curve, std::size_t n) { return points_ops(curve_id(curve)).msm_width(n); },
      nb::arg("curve"), nb::arg("n"));
  m.def("weighted_sum", &weighted_sum, nb::arg("curve"), nb::arg("group"), array_arg("sums"), array_arg("exponents"),
        array_arg("out"));
}

}  // namespace cuzk
