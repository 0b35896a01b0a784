// Python functions over batches of Filecoin's hashes.
#include "bind.hpp"
#include "hashes_ops.hpp"
#include "vector_ops.hpp"

CUZK_DECLARE_OPS(HashesOps, hashes_ops)
CUZK_DECLARE_OPS(VectorOps, vector_ops)

namespace cuzk {
namespace {

constexpr CurveId curve = CurveId::bls12_381;

// Hashing a value that is not below r would hash another one.
void expect_canonical(const In64& values, const char* what, int threads) {
  long long bad = vector_ops(curve).first_not_canonical(false, words(values), values.size() / 4, threads);
  if (bad >= 0)
    throw std::invalid_argument(std::string(what) + ": value " + std::to_string(bad) + " is not below r");
}

// Partial rounds of the hash that a table of constants belongs to.
int partial_rounds(const In64& constants, int arity) {
  const HashesOps& ops = hashes_ops(curve);
  std::size_t rows = rows_of(constants, 4, "constants"), without = ops.poseidon_table_rows(arity, 0);
  if (without == 0)
    throw std::invalid_argument("arity: expected 2, 4, 8 or 11, found " + std::to_string(arity));
  std::size_t each = ops.poseidon_table_rows(arity, 1) - without;
  if (rows < without || (rows - without) % each || rows - without > 1000 * each)
    throw std::invalid_argument("constants: " + std::to_string(rows) + " rows are no table of arity " +
                                std::to_string(arity));
  return static_cast<int>((rows - without) / each);
}

void poseidon(int arity, In64 constants, In64 tag, In64 inputs, Out64 out, int threads) {
  int partial = partial_rounds(constants, arity);
  expect_rows(tag, 1, 4, "tag");
  std::size_t n = rows_of(inputs, 4 * static_cast<std::size_t>(arity), "inputs");
  expect_rows(out, n, 4, "out");
  expect_apart(out, constants, "constants");
  expect_apart(out, inputs, "inputs");
  NoGil release;
  expect_canonical(tag, "tag", 1);
  expect_canonical(inputs, "inputs", threads);
  hashes_ops(curve).poseidon(arity, words(constants), partial, words(tag), words(inputs), words_out(out), n,
                             threads);
}

MerklePaths paths_of(const std::vector<int>& arities, const In64& leaves, const In64& siblings,
                     const In64& indices, const Out64& out) {
  std::size_t stride = 0;
  for (int arity : arities) stride += static_cast<std::size_t>(arity - 1);
  std::size_t n = rows_of(leaves, 4, "leaves");
  expect_rows(siblings, n, 4 * stride, "siblings");
  if (length_of(indices, "indices") != n) throw std::invalid_argument("indices: expected as many as leaves");
  expect_rows(out, n, 4, "out");
  expect_apart(out, leaves, "leaves");
  expect_apart(out, siblings, "siblings");
  expect_apart(out, indices, "indices");
  return {n, arities.data(), arities.size(), words(leaves), words(siblings), words(indices)};
}

void poseidon_roots(const std::vector<int>& arities, std::vector<In64> constants, In64 leaves, In64 siblings,
                    In64 indices, Out64 out, int threads) {
  if (constants.size() != arities.size())
    throw std::invalid_argument("constants: expected a table for each level");
  std::vector<const u64*> tables;
  std::vector<int> partial;
  for (std::size_t k = 0; k < arities.size(); k++) {
    partial.push_back(partial_rounds(constants[k], arities[k]));
    tables.push_back(words(constants[k]));
    expect_apart(out, constants[k], "constants");
  }
  MerklePaths paths = paths_of(arities, leaves, siblings, indices, out);
  NoGil release;
  expect_canonical(leaves, "leaves", threads);
  expect_canonical(siblings, "siblings", threads);
  hashes_ops(curve).poseidon_roots(paths, tables.data(), partial.data(), words_out(out), threads);
}

void tree_d_nodes(In64 pairs, Out64 out, int threads) {
  std::size_t n = rows_of(pairs, 8, "pairs");
  expect_rows(out, n, 4, "out");
  expect_apart(out, pairs, "pairs");
  NoGil release;
  hashes_ops(curve).tree_d_nodes(words(pairs), words_out(out), n, threads);
}

void tree_d_roots(In64 leaves, In64 siblings, In64 indices, Out64 out, int threads) {
  if (siblings.ndim() != 2) throw std::invalid_argument("siblings: expected two dimensions");
  std::vector<int> arities(siblings.shape(1) / 4, 2);
  MerklePaths paths = paths_of(arities, leaves, siblings, indices, out);
  NoGil release;
  hashes_ops(curve).tree_d_roots(paths, words_out(out), threads);
}

void sdr_labels(In64 replica_id, In32 layers, In64 nodes, In64 parents, Out64 out, int threads) {
  expect_rows(replica_id, 1, 4, "replica_id");
  std::size_t n = length_of(layers, "layers");
  if (length_of(nodes, "nodes") != n) throw std::invalid_argument("nodes: expected as many as layers");
  expect_rows(parents, n, 4 * 14, "parents");
  expect_rows(out, n, 4, "out");
  expect_apart(out, parents, "parents");
  expect_apart(out, replica_id, "replica_id");
  expect_apart(out, nodes, "nodes");
  NoGil release;
  hashes_ops(curve).sdr_labels(words(replica_id), layers.data(), words(nodes), words(parents), words_out(out),
                               n, threads);
}

}  // namespace

void bind_hashes(nb::module_& m) {
  m.def("poseidon", &poseidon, nb::arg("arity"), array_arg("constants"), array_arg("tag"), array_arg("inputs"),
        array_arg("out"), nb::arg("threads"));
  m.def("poseidon_roots", &poseidon_roots, nb::arg("arities"), array_arg("constants"), array_arg("leaves"),
        array_arg("siblings"), array_arg("indices"), array_arg("out"), nb::arg("threads"));
  m.def("tree_d_nodes", &tree_d_nodes, array_arg("pairs"), array_arg("out"), nb::arg("threads"));
  m.def("tree_d_roots", &tree_d_roots, array_arg("leaves"), array_arg("siblings"), array_arg("indices"),
        array_arg("out"), nb::arg("threads"));
  m.def("sdr_labels", &sdr_labels, array_arg("replica_id"), array_arg("layers"), array_arg("nodes"),
        array_arg("parents"), array_arg("out"), nb::arg("threads"));
}

}  // namespace cuzk
