// Elementwise work on vectors of scalars. A vector of 2^k elements may stand in bit-reversed order: `log_n` is
// then k + 1, else 0 (log2 plus one, because k = 0 is a size too).
#include "kernel.hpp"
#include "place.hpp"

// out_i = (a_i * b_i - minus_i) * scale; b, minus and scale may be null (1, 0, 1). All Montgomery; out may
// be any operand.
KERNEL(256, 1) pointwise(const Fr* a, const Fr* b, const Fr* minus, const Fr* scale, Fr* out, size n) {
  for (size i = grid_rank(); i < n; i += grid_size()) {
    Fr value = load(a + i);
    if (b) value = value * load(b + i);
    if (minus) value = value - load(minus + i);
    if (scale) value = value * load(scale);
    store(out + i, value);
  }
}

// to_k = from_i with i = wires[k], or start + k * step (modulo 2^64) where wires is null.
KERNEL(256, 1)
gather(const Fr* from, const u32* wires, size start, size step, Fr* to, size n, size log_n) {
  for (size k = grid_rank(); k < n; k += grid_size()) {
    size i = wires ? wires[k] : start + k * step;
    store(to + k, load(from + place(i, log_n)));
  }
}

// found = min(found, natural index) over the elements that are not zero.
KERNEL(256, 1) first_nonzero(const Fr* values, u64* found, size n, size log_n) {
  u64 first = ~0ull;
  for (size i = grid_rank(); i < n; i += grid_size()) {
    u64 index = place(i, log_n);
    if (index < first && !load(values + i).is_zero()) first = index;
  }
  if (first != ~0ull) atomicMin(found, first);
}
