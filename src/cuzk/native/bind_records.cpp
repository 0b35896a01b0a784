// Inner loops of the file readers: variable-length records and coefficient dictionaries.
#include "bind.hpp"

namespace cuzk {

void bind_records(nb::module_&) {}

}  // namespace cuzk
