// Which base of a query belongs to a wire: the table that renumbers the digits of a witness.
#include "partition.hpp"

namespace cuzk::CUZK_PATH {

inline bool is_infinity(const Point* point) {
  Coordinate x = load(&point->x);  // of most points half the bytes decide
  return x.is_zero() && load(&point->y).is_zero();
}

}  // namespace cuzk::CUZK_PATH

// row_of[wire of base k] = k unless the base is infinite; *infinite += those that are. The wire of base k is
// wires[k] or, without wires, first + k step mod 2^64. Entries of other wires keep their value.
KERNEL(256, 1)
number_rows(const Point* points, size n, const u32* wires, size first, size step, u32* row_of, u64* infinite) {
  u32 mine = 0, total;
  for (size k = grid_rank(); k < n; k += grid_size()) {
    if (is_infinity(points + k))
      mine++;
    else
      row_of[wires ? wires[k] : first + k * step] = (u32)k;
  }
  sum_before(mine, total);
  if (threadIdx.x == 0 && total > 0) atomicAdd(infinite, (u64)total);
}
