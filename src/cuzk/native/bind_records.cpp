// Inner loops over bytes: variable-length records and coefficient dictionaries of files.
#include "bind.hpp"
#include "records.hpp"

#include <cstring>

namespace cuzk {
namespace {

using Counts = std::tuple<std::size_t, std::size_t, std::size_t>;

const u64* scalar_modulus(CurveId id) {
  return id == CurveId::bn254 ? Bn254Fr::modulus : Bls12381Fr::modulus;
}

// A (k, 4) numpy array that owns a copy of the values.
nb::object as_array(const std::vector<Value>& values) {
  std::size_t bytes = values.size() * sizeof(Value);
  u64* copy = new u64[bytes / sizeof(u64) + 1];
  std::memcpy(copy, values.data(), bytes);
  nb::capsule owner(copy, [](void* memory) noexcept { delete[] static_cast<u64*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<2>>(copy, {values.size(), 4}, owner));
}

Counts r1cs_terms(const std::string& curve, InBytes data, std::size_t constraints, std::size_t wires) {
  const u64* modulus = scalar_modulus(curve_id(curve));
  std::size_t bytes = length_of(data, "data"), counts[3] = {};
  NoGil release;
  walk_constraints(
      data.data(), bytes, constraints, wires, modulus,
      [&](int m, std::uint32_t, const Value&) { counts[m]++; }, [](int, std::size_t) {});
  return {counts[0], counts[1], counts[2]};
}

// One matrix being filled.
struct Rows {
  std::uint64_t* row_ptr;
  std::uint32_t *wires, *coefficients;
  std::size_t room, count = 0;
};

Dictionary fill(const std::uint8_t* data, std::size_t bytes, std::size_t constraints,
                const u64* modulus, Rows (&matrices)[3]) {
  Dictionary dictionary;
  Value minus_one = {modulus[0] - 1, modulus[1], modulus[2], modulus[3]};
  dictionary.number(Value{1});
  dictionary.number(minus_one);
  for (Rows& rows : matrices) rows.row_ptr[0] = 0;
  walk_constraints(
      data, bytes, constraints, std::size_t{1} << 32, modulus,
      [&](int m, std::uint32_t wire, const Value& value) {
        Rows& rows = matrices[m];
        if (rows.count == rows.room)
          throw std::invalid_argument("arrays for " + std::to_string(rows.room) + " terms are too short");
        rows.wires[rows.count] = wire;
        rows.coefficients[rows.count++] = dictionary.number(value);
      },
      [&](int m, std::size_t i) { matrices[m].row_ptr[i + 1] = matrices[m].count; });
  return dictionary;
}

nb::object r1cs_fill(const std::string& curve, InBytes data, std::size_t constraints,
                     std::vector<Out64> row_ptrs, std::vector<Out32> wires,
                     std::vector<Out32> coefficients) {
  const u64* modulus = scalar_modulus(curve_id(curve));
  std::size_t bytes = length_of(data, "data");
  if (row_ptrs.size() != 3 || wires.size() != 3 || coefficients.size() != 3)
    throw std::invalid_argument("row_ptrs, wires, coefficients: expected three arrays each");
  Rows matrices[3];
  for (int m = 0; m < 3; m++) {
    std::size_t room = length_of(wires[m], "wires");
    if (length_of(row_ptrs[m], "row_ptrs") <= constraints)
      throw std::invalid_argument("row_ptrs: expected room for constraints + 1");
    if (length_of(coefficients[m], "coefficients") != room)
      throw std::invalid_argument("coefficients: expected as many as wires");
    matrices[m] = {row_ptrs[m].data(), wires[m].data(), coefficients[m].data(), room};
  }
  std::vector<Value> values;
  {
    NoGil release;
    values = fill(data.data(), bytes, constraints, modulus, matrices).values();
  }
  return as_array(values);
}

nb::object number_values(InBytes records, std::size_t offset, In64 seed, Out32 out) {
  if (records.ndim() != 2) throw std::invalid_argument("records: expected shape (n, stride)");
  std::size_t n = records.shape(0), stride = records.shape(1), seeds = rows_of(seed, 4, "seed");
  if (stride < sizeof(Value) || offset > stride - sizeof(Value))
    throw std::invalid_argument("offset: a 32-byte value does not fit in records of " +
                                std::to_string(stride) + " bytes");
  if (length_of(out, "out") != n) throw std::invalid_argument("out: expected one number per record");
  std::vector<Value> values;
  {
    NoGil release;
    Dictionary dictionary;
    auto bytes_of_seed = reinterpret_cast<const std::uint8_t*>(seed.data());
    for (std::size_t i = 0; i < seeds; i++)
      if (dictionary.number(value_at(bytes_of_seed + i * sizeof(Value))) != i)
        throw std::invalid_argument("seed: value " + std::to_string(i) + " occurs twice");
    const std::uint8_t* at = records.data() + offset;
    for (std::size_t i = 0; i < n; i++, at += stride) out.data()[i] = dictionary.number(value_at(at));
    values = dictionary.values();
  }
  return as_array(values);
}

}  // namespace

void bind_records(nb::module_& m) {
  m.def("r1cs_terms", &r1cs_terms, nb::arg("curve"), array_arg("data"), nb::arg("constraints"),
        nb::arg("wires"));
  m.def("r1cs_fill", &r1cs_fill, nb::arg("curve"), array_arg("data"), nb::arg("constraints"),
        array_arg("row_ptrs"), array_arg("wires"), array_arg("coefficients"));
  m.def("number_values", &number_values, array_arg("records"), nb::arg("offset"), array_arg("seed"),
        array_arg("out"));
}

}  // namespace cuzk
