// Python functions of the pairing area.
#include "bind.hpp"
#include "pairing_ops.hpp"

CUZK_DECLARE_OPS(PairingOps, pairing_ops)

namespace cuzk {

void bind_pairing(nb::module_&) {}

}  // namespace cuzk
