// What the pairing area offers per curve.
#pragma once

#include <cstddef>

#include "path.hpp"
#include "curve_constants.hpp"

namespace cuzk {

struct PairingOps {};

}  // namespace cuzk
