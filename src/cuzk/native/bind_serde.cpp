// The reader of JSON that serde wrote (serde_json.hpp).
#include "bind.hpp"
#include "serde_json.hpp"

namespace cuzk {
namespace {

using InSigned = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;
using OutBytes = nb::ndarray<std::uint8_t, nb::c_contig, nb::device::cpu>;

std::string read_serde_json(InBytes text, InSigned types, InSigned fields, const std::vector<std::string>& names,
                            OutBytes out) {
  static_assert(sizeof(SerdeType) == 5 * sizeof(std::int64_t) && sizeof(SerdeField) == 3 * sizeof(std::int64_t));
  std::size_t size = length_of(text, "text"), room = length_of(out, "out");
  SerdeLayout layout{reinterpret_cast<const SerdeType*>(types.data()), rows_of(types, 5, "types"),
                     reinterpret_cast<const SerdeField*>(fields.data()), rows_of(fields, 3, "fields"), names};
  if (layout.type_count == 0) throw std::invalid_argument("types: expected at least one");
  std::size_t needed = serde_size(layout, 0);
  if (needed != room)
    throw std::invalid_argument("out: expected " + std::to_string(needed) + " bytes, found " + std::to_string(room));
  NoGil release;
  return SerdeJson(reinterpret_cast<const char*>(text.data()), size, layout, out.data()).read();
}

}  // namespace

void bind_serde(nb::module_& m) {
  m.def("read_serde_json", &read_serde_json, array_arg("text"), array_arg("types"), array_arg("fields"),
        nb::arg("names"), array_arg("out"));
}

}  // namespace cuzk
