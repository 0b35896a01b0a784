// Python functions of the points area.
#include "bind.hpp"
#include "points_ops.hpp"

CUZK_DECLARE_OPS(PointsOps, points_ops)

namespace cuzk {

void bind_points(nb::module_&) {}

}  // namespace cuzk
