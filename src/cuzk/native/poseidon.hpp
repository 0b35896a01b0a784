// Poseidon (Grassi et al., "Poseidon: A New Hash Function for Zero-Knowledge Proof Systems", 2021) in the form
// that Filecoin's circuits use: S-box x^5, state = tag and inputs, digest = element 1 of the last state.
// cuzk.filecoin.poseidon derives the tables and says how they are made. Plain C++ that both compilers read.
#pragma once

#include "dot.hpp"

namespace cuzk::CUZK_PATH {

constexpr int poseidon_full_rounds = 8;  // half of them before the partial rounds

// The S-box and the key that is added after it. A witness generator brings its own, which keeps the steps.
struct PoseidonBox {
  template <class F>
  constexpr void operator()(F& x, const F& key, int /*round*/, int /*element*/) const {
    F square = x.squared();
    x = square.squared() * x + key;
  }
};

// The permutation of T elements. `table` holds, Montgomery, row after row: the keys (T a full round, one a
// partial round), the MDS matrix, the matrix that replaces it before the partial rounds, and for each partial
// round the first column of its sparse matrix and the rest of its first row.
template <class F, int T>
struct Poseidon {
  const u64* table;
  int partial;

  static constexpr size table_rows(int partial) {
    return (size)(T * poseidon_full_rounds + partial + 2 * T * T + partial * (2 * T - 1));
  }

  constexpr F row(int i) const { return F::from_words(table + (size)i * F::N); }

  // state <- state * matrix, a row vector times the T x T matrix that begins at `first`.
  constexpr void multiply(F* state, int first) const {
    F product[T] = {};
    for (int j = 0; j < T; j++) product[j] = dot<T>(state, table + (size)(first + j) * F::N, T);
    for (int j = 0; j < T; j++) state[j] = product[j];
  }

  constexpr void multiply_sparse(F* state, int first) const {
    F head = dot<T>(state, table + (size)first * F::N, 1);
    for (int j = 1; j < T; j++) state[j] = state[j] + state[0] * row(first + T + j - 1);
    state[0] = head;
  }

  // `box` is called in the order of the circuit's constraints: round by round, element by element.
  template <class Box = PoseidonBox>
  constexpr void permute(F* state, Box box = {}) const {
    constexpr int half = poseidon_full_rounds / 2;
    int mds = T * poseidon_full_rounds + partial, pre_sparse = mds + T * T, sparse = pre_sparse + T * T;
    int rounds = poseidon_full_rounds + partial, key = T;
    for (int i = 0; i < T; i++) state[i] = state[i] + row(i);
    for (int round = 0; round < rounds; round++) {
      bool is_partial = round >= half && round < half + partial;
      for (int i = 0; i < (is_partial ? 1 : T); i++) {
        box(state[i], round == rounds - 1 ? F::zero() : row(key++), round, i);
      }
      if (is_partial) multiply_sparse(state, sparse + (round - half) * (2 * T - 1));
      else multiply(state, round == half - 1 ? pre_sparse : mds);
    }
  }

  // The digest of T - 1 inputs, all Montgomery.
  constexpr F hash(const F& tag, const F* inputs) const {
    F state[T] = {};
    state[0] = tag;
    for (int i = 1; i < T; i++) state[i] = inputs[i - 1];
    permute(state);
    return state[1];
  }
};

// The tag of a tree's node, of a column and of comm_r: a bit for every child.
template <class F>
constexpr F merkle_tag(int arity) {
  return F::from_u64((1ull << arity) - 1);
}

}  // namespace cuzk::CUZK_PATH
