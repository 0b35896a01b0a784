// The hashes area of one arithmetic path.
#include "hashes_ops.hpp"
#include "merkle_roots.hpp"

namespace cuzk::CUZK_PATH {

// Filecoin's hashes are over one field: the curve's name is taken as for the other areas and checked above.
const HashesOps& hashes_ops(CurveId) {
  using Fr = Field<Bls12381::FrParams>;
  static const HashesOps bls12_381{
      [](int arity, int partial) {
        std::size_t rows = 0;
        with_poseidon<Fr>(arity, nullptr, partial, [&](auto hash) { rows = hash.table_rows(partial); });
        return rows;
      },
      poseidon_hashes<Fr>,
      poseidon_roots<Fr>,
      tree_d_nodes,
      tree_d_roots,
      sdr_labels,
  };
  return bls12_381;
}

}  // namespace cuzk::CUZK_PATH
