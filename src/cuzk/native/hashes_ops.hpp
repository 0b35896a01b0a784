// What the hashes area offers over the scalar field of BLS12-381: batches of Filecoin's hashes. Pointers are to
// nodes of four plain words. See poseidon.hpp, sha256.hpp, merkle_roots.hpp.
#pragma once

#include <cstddef>

#include "curve_constants.hpp"
#include "path.hpp"

namespace cuzk {

// n paths of a tree whose levels have these arities, leaves first; siblings: all of a path one after the other.
struct MerklePaths {
  std::size_t n;
  const int* arities;
  std::size_t levels;
  const u64* leaves;
  const u64* siblings;
  const u64* indices;  // of the leaf
};

struct HashesOps {
  std::size_t (*poseidon_table_rows)(int arity, int partial);  // 0: no such arity
  void (*poseidon)(int arity, const u64* table, int partial, const u64* tag, const u64* inputs, u64* out,
                   std::size_t n, int threads);
  void (*poseidon_roots)(const MerklePaths& paths, const u64* const* tables, const int* partial, u64* out,
                         int threads);
  void (*tree_d_nodes)(const u64* pairs, u64* out, std::size_t n, int threads);
  void (*tree_d_roots)(const MerklePaths& paths, u64* out, int threads);
  void (*sdr_labels)(const u64* replica_id, const unsigned* layers, const u64* nodes, const u64* parents,
                     u64* out, std::size_t n, int threads);
};

}  // namespace cuzk
