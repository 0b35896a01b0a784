// Which rows of a query take part in a sum, and for which wires.
#include "kernel.hpp"

// rows[i] = k for the wire i = wires[k], or start + k * step (modulo 2^64) where wires is null, if points[k] is
// not infinity; every other entry stays what it was. Wires differ. `count` grows by the rows written.
KERNEL(256, 1)
rows_of(const Point* points, const u32* wires, size start, size step, size n, u32* rows, u64* count) {
  u64 written = 0;
  for (size k = grid_rank(); k < n; k += grid_size()) {
    if (load(points + k).is_infinity()) continue;
    rows[wires ? wires[k] : start + k * step] = (u32)k;
    written++;
  }
  if (written) atomicAdd(count, written);
}
