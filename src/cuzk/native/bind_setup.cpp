// Python functions of the setup area.
#include "bind.hpp"
#include "parallel.hpp"
#include "setup_ops.hpp"

CUZK_DECLARE_OPS(SetupOps, setup_ops)

namespace cuzk {
namespace {

void expect_scalars(const SetupOps& ops, const u64* scalars, std::size_t n, int threads) {
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i++)
      if (!ops.is_scalar(scalars + 4 * i))
        throw std::invalid_argument("scalars: entry " + std::to_string(i) + " is not below r");
  });
}

// Every index of a compressed-row matrix, before anything is read through it.
void expect_matrix(const SparseRows& matrix, std::size_t terms, std::size_t points) {
  if (matrix.row_ptr[0] != 0 || matrix.row_ptr[matrix.rows] != terms)
    throw std::invalid_argument("row_ptr: expected to run from 0 to " + std::to_string(terms) + " terms");
  for (std::size_t i = 0; i < matrix.rows; i++)
    if (matrix.row_ptr[i] > matrix.row_ptr[i + 1])
      throw std::invalid_argument("row_ptr: entry " + std::to_string(i + 1) + " is below the one before it");
  for (std::size_t t = 0; t < terms; t++) {
    if (matrix.wires[t] >= points)
      throw std::invalid_argument("wires: term " + std::to_string(t) + " names wire " +
                                  std::to_string(matrix.wires[t]) + " of " + std::to_string(points));
    if (matrix.coefficients[t] >= matrix.values_count)
      throw std::invalid_argument("coefficients: term " + std::to_string(t) + " names value " +
                                  std::to_string(matrix.coefficients[t]) + " of " +
                                  std::to_string(matrix.values_count));
  }
}

void fixed_base(const std::string& curve, const std::string& group, In64 base, In64 scalars, Out64 out,
                int threads) {
  CurveId id = curve_id(curve);
  bool g2 = is_g2(group);
  std::size_t n = rows_of(scalars, 4, "scalars"), width = point_words(id, g2);
  expect_rows(base, 1, width, "base");
  expect_rows(out, n, width, "out");
  expect_apart(out, scalars, "scalars");
  NoGil release;
  const SetupOps& ops = setup_ops(id);
  expect_scalars(ops, words(scalars), n, threads);
  ops.fixed_base(g2, words(base), words(scalars), words_out(out), n, threads);
}

void scale_points(const std::string& curve, const std::string& group, In64 points, In64 scalar, Out64 out,
                  int threads) {
  CurveId id = curve_id(curve);
  bool g2 = is_g2(group);
  std::size_t width = point_words(id, g2), n = rows_of(points, width, "points");
  expect_rows(scalar, 1, 4, "scalar");
  expect_rows(out, n, width, "out");
  expect_apart(out, scalar, "scalar");
  expect_apart_or_same(out, points, "points");
  NoGil release;
  const SetupOps& ops = setup_ops(id);
  expect_scalars(ops, words(scalar), 1, 1);
  ops.scale_points(g2, words(points), words(scalar), words_out(out), n, threads);
}

void group_ntt(const std::string& curve, const std::string& group, Out64 points, In64 root, bool inverse,
               int threads) {
  CurveId id = curve_id(curve);
  bool g2 = is_g2(group);
  std::size_t n = rows_of(points, point_words(id, g2), "points");
  if (n == 0 || (n & (n - 1)) != 0)
    throw std::invalid_argument("points: expected a power of two, found " + std::to_string(n));
  expect_rows(root, 1, 4, "root");
  NoGil release;
  const SetupOps& ops = setup_ops(id);
  ops.group_ntt(g2, words_out(points), n, words(root), inverse, threads);
}

void product_points(const std::string& curve, const std::string& group, In64 row_ptr, In32 wires,
                    In32 coefficients, In64 values, In64 points, Out64 out, int threads) {
  CurveId id = curve_id(curve);
  bool g2 = is_g2(group);
  std::size_t width = point_words(id, g2), entries = length_of(row_ptr, "row_ptr");
  if (entries == 0) throw std::invalid_argument("row_ptr: expected at least one entry");
  std::size_t terms = length_of(wires, "wires"), count = rows_of(points, width, "points");
  if (length_of(coefficients, "coefficients") != terms)
    throw std::invalid_argument("coefficients: expected as many as wires, " + std::to_string(terms));
  SparseRows matrix{entries - 1,   words(row_ptr), wires.data(), coefficients.data(),
                    words(values), rows_of(values, 4, "values")};
  expect_rows(out, matrix.rows, width, "out");
  expect_apart(out, row_ptr, "row_ptr");
  expect_apart(out, wires, "wires");
  expect_apart(out, coefficients, "coefficients");
  expect_apart(out, values, "values");
  expect_apart(out, points, "points");
  NoGil release;
  expect_matrix(matrix, terms, count);
  setup_ops(id).product_points(g2, matrix, words(points), words_out(out), threads);
}

}  // namespace

void bind_setup(nb::module_& m) {
  m.def("fixed_base", &fixed_base, nb::arg("curve"), nb::arg("group"), array_arg("base"), array_arg("scalars"),
        array_arg("out"), nb::arg("threads"));
  m.def("scale_points", &scale_points, nb::arg("curve"), nb::arg("group"), array_arg("points"),
        array_arg("scalar"), array_arg("out"), nb::arg("threads"));
  m.def("group_ntt", &group_ntt, nb::arg("curve"), nb::arg("group"), array_arg("points"), array_arg("root"),
        nb::arg("inverse"), nb::arg("threads"));
  m.def("product_points", &product_points, nb::arg("curve"), nb::arg("group"), array_arg("row_ptr"),
        array_arg("wires"), array_arg("coefficients"), array_arg("values"), array_arg("points"), array_arg("out"),
        nb::arg("threads"));
}

}  // namespace cuzk
