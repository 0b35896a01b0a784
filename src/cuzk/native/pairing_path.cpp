// The pairing area of one arithmetic path.
#include "field.hpp"
#include "parallel.hpp"
#include "pairing_ops.hpp"

namespace cuzk::CUZK_PATH {

const PairingOps& pairing_ops(CurveId id) {
  static const PairingOps bn254{}, bls12_381{};
  return id == CurveId::bn254 ? bn254 : bls12_381;
}

}  // namespace cuzk::CUZK_PATH
