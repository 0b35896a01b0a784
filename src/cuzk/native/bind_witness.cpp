// Python functions that run the programs of templates.
#include "bind.hpp"
#include "witness_ops.hpp"

CUZK_DECLARE_OPS(WitnessOps, witness_ops)

namespace cuzk {
namespace {

constexpr CurveId curve = CurveId::bls12_381;

// opcodes, starts, operands, port_bits; how many variables, public inputs and data it has
using ProgramArg = std::tuple<InBytes, In32, In32, InBytes, std::size_t, std::size_t, std::size_t>;
// number of the template; ports (n, ports), first own variable, public input, and datum or row of each place
using PlacesArg = std::tuple<std::size_t, In32, In32, In32, In32>;

// starts, columns, coefficients; port_bits, aux_bits; how many public inputs it has
using RowsArg = std::tuple<In32, In32, In16, InBytes, InBytes, std::size_t>;

const unsigned* numbers(const In32& array) { return reinterpret_cast<const unsigned*>(array.data()); }

ProgramInput program_of(const ProgramArg& arg) {
  const auto& [opcodes, starts, operands, port_bits, aux, inputs, givens] = arg;
  std::size_t operations = length_of(opcodes, "opcodes");
  if (length_of(starts, "starts") != operations + 1)
    throw std::invalid_argument("starts: expected one more than there are operations");
  return {opcodes.data(), operations,         numbers(starts), numbers(operands), length_of(operands, "operands"),
          port_bits.data(), length_of(port_bits, "port_bits"), aux, inputs, givens};
}

template <class At, class Template>
At places_of(const PlacesArg& arg, const std::vector<Template>& templates) {
  const auto& [number, ports, aux, inputs, last] = arg;
  if (number >= templates.size()) throw std::invalid_argument("places: expected the number of a template");
  std::size_t n = rows_of(ports, templates[number].ports, "ports");
  for (const In32* each : {&aux, &inputs, &last})
    if (length_of(*each, "places") != n) throw std::invalid_argument("places: expected as many as rows of ports");
  return {number, n, numbers(ports), numbers(aux), numbers(inputs), numbers(last)};
}

RowsInput rows_of_template(const RowsArg& arg) {
  const auto& [starts, columns, coefficients, port_bits, aux_bits, inputs] = arg;
  std::size_t terms = length_of(columns, "columns");
  if (length_of(starts, "starts") == 0) throw std::invalid_argument("starts: expected at least one");
  if (length_of(coefficients, "coefficients") != terms)
    throw std::invalid_argument("coefficients: expected as many as columns");
  return {numbers(starts),      numbers(columns), reinterpret_cast<const unsigned short*>(coefficients.data()),
          starts.shape(0) - 1,  terms,            port_bits.data(),
          aux_bits.data(),      length_of(port_bits, "port_bits"), length_of(aux_bits, "aux_bits"), inputs};
}

void run_programs(const std::vector<ProgramArg>& programs, In64 coefficients,
                  const std::vector<std::vector<PlacesArg>>& waves, In64 data, Out64 wires, int threads) {
  Circuit circuit{{}, words(coefficients), rows_of(coefficients, 4, "coefficients"), {}};
  for (const ProgramArg& program : programs) circuit.programs.push_back(program_of(program));
  for (const auto& wave : waves) {
    circuit.waves.emplace_back();
    for (const PlacesArg& places : wave) circuit.waves.back().push_back(places_of<Places>(places, circuit.programs));
  }
  std::size_t data_count = rows_of(data, 4, "data"), wire_count = rows_of(wires, 4, "wires");
  expect_apart(wires, data, "data");
  expect_apart(wires, coefficients, "coefficients");
  NoGil release;
  witness_ops(curve).assign(circuit, words(data), data_count, words_out(wires), wire_count, threads);
}

void placed_product(const std::vector<RowsArg>& templates, In64 coefficients, const std::vector<PlacesArg>& places,
                    std::size_t constraints, std::size_t public_rows, In64 wires, Out64 out, bool bit_reversed,
                    int threads) {
  PlacedMatrix matrix{{}, words(coefficients), rows_of(coefficients, 4, "coefficients"), {}, constraints, public_rows};
  for (const RowsArg& rows : templates) matrix.templates.push_back(rows_of_template(rows));
  for (const PlacesArg& each : places) matrix.places.push_back(places_of<RowPlaces>(each, matrix.templates));
  std::size_t wire_count = rows_of(wires, 4, "wires"), size = rows_of(out, 4, "out");
  if (bit_reversed && (size == 0 || (size & (size - 1))))
    throw std::invalid_argument("out: expected a power of two of rows for bit-reversed order");
  expect_apart(out, wires, "wires");
  expect_apart(out, coefficients, "coefficients");
  NoGil release;
  witness_ops(curve).placed_product(matrix, words(wires), wire_count, words_out(out), size, bit_reversed, threads);
}

}  // namespace

void bind_witness(nb::module_& m) {
  m.def("run_programs", &run_programs, array_arg("programs"), array_arg("coefficients"), array_arg("waves"),
        array_arg("data"), array_arg("wires"), nb::arg("threads"));
  m.def("placed_product", &placed_product, array_arg("templates"), array_arg("coefficients"), array_arg("places"),
        nb::arg("constraints"), nb::arg("public_rows"), array_arg("wires"), array_arg("out"),
        nb::arg("bit_reversed"), nb::arg("threads"));
}

}  // namespace cuzk
