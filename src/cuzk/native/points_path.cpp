// The points area of one arithmetic path.
#include "field.hpp"
#include "parallel.hpp"
#include "points_ops.hpp"

namespace cuzk::CUZK_PATH {

const PointsOps& points_ops(CurveId id) {
  static const PointsOps bn254{}, bls12_381{};
  return id == CurveId::bn254 ? bn254 : bls12_381;
}

}  // namespace cuzk::CUZK_PATH
