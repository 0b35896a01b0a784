// Batches of hashes and of Merkle paths on several threads. Host only.
#pragma once

#include "hashes_ops.hpp"
#include "parallel.hpp"
#include "poseidon.hpp"
#include "sha256.hpp"
#include "vector.hpp"

namespace cuzk::CUZK_PATH {

constexpr int most_arity = 11;

// Calls f with the permutation of a hash of this arity; false where Filecoin has none.
template <class F, class Call>
bool with_poseidon(int arity, const u64* table, int partial, Call f) {
  switch (arity) {
    case 2: return f(Poseidon<F, 3>{table, partial}), true;
    case 4: return f(Poseidon<F, 5>{table, partial}), true;
    case 8: return f(Poseidon<F, 9>{table, partial}), true;
    case 11: return f(Poseidon<F, 12>{table, partial}), true;
    default: return false;
  }
}

template <class F>
void poseidon_hashes(int arity, const u64* table, int partial, const u64* tag, const u64* inputs, u64* out,
                     std::size_t n, int threads) {
  F first = F::from_plain(tag);
  with_poseidon<F>(arity, table, partial, [&](auto hash) {
    parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
      F children[most_arity];
      for (std::size_t i = begin; i < end; i++) {
        for (int k = 0; k < arity; k++) children[k] = F::from_plain(inputs + (i * arity + k) * F::N);
        store_plain(hash.hash(first, children), out + i * F::N);
      }
    }, 8);
  });
}

// Walks each path from its leaf; parent(level, children, node) hashes `arities[level]` children, in their order.
// The digits of a leaf's index, lowest first and in the bases of the arities, say which child a node is.
template <class Node, class Load, class Parent, class Store>
void walk_paths(const MerklePaths& paths, int threads, Load load, Parent parent, Store store) {
  std::size_t stride = 0;
  for (std::size_t k = 0; k < paths.levels; k++) stride += static_cast<std::size_t>(paths.arities[k] - 1);
  parallel_ranges(threads, paths.n, [&](std::size_t begin, std::size_t end) {
    Node children[most_arity];
    for (std::size_t i = begin; i < end; i++) {
      Node node = load(paths.leaves + i * 4);
      u64 index = paths.indices[i];
      const u64* sibling = paths.siblings + i * stride * 4;
      for (std::size_t level = 0; level < paths.levels; level++) {
        int arity = paths.arities[level], place = static_cast<int>(index % static_cast<u64>(arity));
        index /= static_cast<u64>(arity);
        for (int k = 0; k < arity; k++) {
          if (k == place) {
            children[k] = node;
          } else {
            children[k] = load(sibling);
            sibling += 4;
          }
        }
        node = parent(level, children);
      }
      store(node, i);
    }
  }, 2);
}

template <class F>
void poseidon_roots(const MerklePaths& paths, const u64* const* tables, const int* partial, u64* out,
                    int threads) {
  walk_paths<F>(
      paths, threads, [](const u64* words) { return F::from_plain(words); },
      [&](std::size_t level, const F* children) {
        F node;
        int arity = paths.arities[level];
        with_poseidon<F>(arity, tables[level], partial[level],
                         [&](auto hash) { node = hash.hash(merkle_tag<F>(arity), children); });
        return node;
      },
      [&](const F& root, std::size_t i) { store_plain(root, out + i * 4); });
}

struct TreeDNode {
  u64 w[4];
};

inline void tree_d_roots(const MerklePaths& paths, u64* out, int threads) {
  walk_paths<TreeDNode>(
      paths, threads, [](const u64* words) { return TreeDNode{{words[0], words[1], words[2], words[3]}}; },
      [](std::size_t, const TreeDNode* children) {
        TreeDNode node;
        tree_d_node(children[0].w, children[1].w, node.w);
        return node;
      },
      [&](const TreeDNode& root, std::size_t i) {
        for (int k = 0; k < 4; k++) out[i * 4 + k] = root.w[k];
      });
}

inline void tree_d_nodes(const u64* pairs, u64* out, std::size_t n, int threads) {
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i++) tree_d_node(pairs + i * 8, pairs + i * 8 + 4, out + i * 4);
  }, 256);
}

inline void sdr_labels(const u64* replica_id, const unsigned* layers, const u64* nodes, const u64* parents,
                       u64* out, std::size_t n, int threads) {
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i++) {
      sdr_label(replica_id, layers[i], nodes[i], parents + i * 4 * all_parents, out + i * 4);
    }
  }, 16);
}

}  // namespace cuzk::CUZK_PATH
