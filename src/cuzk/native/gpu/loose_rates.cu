// A chain of butterflies in registers, as rates.cu, for the rate and for tests of shoup.hpp.
#include "shoup.hpp"

// (a, b) = (a + w b, a - w b), then (a, b) = (a + b, w (b - a)): a, b loose, w in Montgomery form.
KERNEL(128, 8) butterfly_fr(const Fr* in, Fr* out, size steps) {
  size i = 3 * grid_rank();
  Loose a{load(in + i)}, b{load(in + i + 1)};
  const Fr w = load(in + i + 2);
  const Constant c = constant(w);
#pragma unroll 1
  for (size k = 0; k < steps; k++) {
    Loose product = b * c, sum = a + product;
    b = a - product, a = sum;
    sum = a + b, b = (b - a) * c, a = sum;
  }
  store(out + i, a.value), store(out + i + 1, b.value), store(out + i + 2, w);
}

// x / 2^log and x in [0, r), of loose x.
KERNEL(128, 1) endings_fr(const Fr* in, Fr* out, size log) {
  size i = 2 * grid_rank();
  store(out + i, divided(load(in + i), (u32)log));
  store(out + i + 1, Loose{load(in + i + 1)}.reduced());
}
