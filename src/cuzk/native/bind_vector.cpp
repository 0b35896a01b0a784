// Python functions over vectors of field elements.
#include "bind.hpp"
#include "vector_ops.hpp"

CUZK_DECLARE_OPS(VectorOps, vector_ops)

namespace cuzk {

void bind_vector(nb::module_& m) {
  m.def(
      "first_not_canonical",
      [](const std::string& curve, const std::string& field, In64 values, int threads) {
        CurveId id = curve_id(curve);
        bool fp = is_fp(field);
        std::size_t n = rows_of(values, fp ? fp_words(id) : 4, "values");
        NoGil release;
        return vector_ops(id).first_not_canonical(fp, words(values), n, threads);
      },
      nb::arg("curve"), nb::arg("field"), nb::arg("values"), nb::arg("threads"));
}

}  // namespace cuzk
