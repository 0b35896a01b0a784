// Chains of one operation in registers, for the rates a device reaches (bench/rates.py) and for tests of the
// arithmetic. Blocks an SM: as many as bench/rates.py gives it, one wave. Thread i reads its k operands from
// in + k i on, repeats, and leaves all of them in out.
#include "kernel.hpp"

// a = a b, then b = b a.
template <class F>
inline void multiply(const F* in, F* out, size steps) {
  size i = 2 * grid_rank();
  F a = load(in + i), b = load(in + i + 1);
#pragma unroll 1
  for (size k = 0; k < steps; k++) a = a * b, b = b * a;
  store(out + i, a), store(out + i + 1, b);
}
KERNEL(128, Fp::N == 6 ? 6 : 8) multiply_fp(const Fp* in, Fp* out, size steps) { multiply(in, out, steps); }
KERNEL(128, 8) multiply_fr(const Fr* in, Fr* out, size steps) { multiply(in, out, steps); }

// a = a^4.
template <class F>
inline void square(const F* in, F* out, size steps) {
  size i = grid_rank();
  F a = load(in + i);
#pragma unroll 1
  for (size k = 0; k < steps; k++) a = a.squared().squared();
  store(out + i, a);
}
KERNEL(128, Fp::N == 6 ? 6 : 8) square_fp(const Fp* in, Fp* out, size steps) { square(in, out, steps); }
KERNEL(128, 8) square_fr(const Fr* in, Fr* out, size steps) { square(in, out, steps); }

// a = a b + c d, then c = c d - a b.
template <class F>
inline void pairs(const F* in, F* out, size steps) {
  size i = 4 * grid_rank();
  F a = load(in + i), b = load(in + i + 1), c = load(in + i + 2), d = load(in + i + 3);
#pragma unroll 1
  for (size k = 0; k < steps; k++) a = F::sum(a, b, c, d), c = F::difference(c, d, a, b);
  store(out + i, a), store(out + i + 1, b), store(out + i + 2, c), store(out + i + 3, d);
}
KERNEL(128, Fp::N == 6 ? 5 : 6) pairs_fp(const Fp* in, Fp* out, size steps) { pairs(in, out, steps); }
KERNEL(128, 6) pairs_fr(const Fr* in, Fr* out, size steps) { pairs(in, out, steps); }

// a = a + b, then b = a - b.
template <class F>
inline void add(const F* in, F* out, size steps) {
  size i = 2 * grid_rank();
  F a = load(in + i), b = load(in + i + 1);
#pragma unroll 1
  for (size k = 0; k < steps; k++) a = a + b, b = a - b;
  store(out + i, a), store(out + i + 1, b);
}
KERNEL(128, 8) add_fp(const Fp* in, Fp* out, size steps) { add(in, out, steps); }
KERNEL(128, 8) add_fr(const Fr* in, Fr* out, size steps) { add(in, out, steps); }

// a = a^-1 + 1.
template <class F>
inline void invert(const F* in, F* out, size steps) {
  size i = grid_rank();
  F a = load(in + i);
#pragma unroll 1
  for (size k = 0; k < steps; k++) a = a.inverse() + F::one();
  store(out + i, a);
}
KERNEL(128, 2) invert_fp(const Fp* in, Fp* out, size steps) { invert(in, out, steps); }
KERNEL(128, 2) invert_fr(const Fr* in, Fr* out, size steps) { invert(in, out, steps); }
