// What the points area offers per curve.
#pragma once

#include <cstddef>

#include "path.hpp"
#include "curve_constants.hpp"

namespace cuzk {

struct PointsOps {};

}  // namespace cuzk
