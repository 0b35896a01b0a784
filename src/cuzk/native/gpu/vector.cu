// Elementwise work on vectors of scalars.
#include "kernel.hpp"

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
