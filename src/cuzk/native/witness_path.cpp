// The witness area of one arithmetic path.
#include "assign.hpp"
#include "placed_rows.hpp"

namespace cuzk::CUZK_PATH {

// Filecoin's circuits are over one field: the curve's name is taken as for the other areas and checked above.
const WitnessOps& witness_ops(CurveId) {
  using Fr = Field<Bls12381::FrParams>;
  static const WitnessOps bls12_381{assign<Fr>, placed_product<Fr>};
  return bls12_381;
}

}  // namespace cuzk::CUZK_PATH
