// Python functions that run the programs of templates.
#include "bind.hpp"
#include "witness_ops.hpp"

CUZK_DECLARE_OPS(WitnessOps, witness_ops)

namespace cuzk {
namespace {

constexpr CurveId curve = CurveId::bls12_381;

// opcodes, starts, operands, port_bits; how many variables, public inputs and data it has
using ProgramArg = std::tuple<InBytes, In32, In32, InBytes, std::size_t, std::size_t, std::size_t>;
// number of the program; ports (n, ports), first own variable, public input and datum of each instance
using PlacesArg = std::tuple<std::size_t, In32, In32, In32, In32>;

const unsigned* numbers(const In32& array) { return reinterpret_cast<const unsigned*>(array.data()); }

ProgramInput program_of(const ProgramArg& arg) {
  const auto& [opcodes, starts, operands, port_bits, aux, inputs, givens] = arg;
  std::size_t operations = length_of(opcodes, "opcodes");
  if (length_of(starts, "starts") != operations + 1)
    throw std::invalid_argument("starts: expected one more than there are operations");
  return {opcodes.data(), operations,         numbers(starts), numbers(operands), length_of(operands, "operands"),
          port_bits.data(), length_of(port_bits, "port_bits"), aux, inputs, givens};
}

Places places_of(const PlacesArg& arg, const std::vector<ProgramInput>& programs) {
  const auto& [program, ports, aux, inputs, givens] = arg;
  if (program >= programs.size()) throw std::invalid_argument("places: expected the number of a program");
  std::size_t n = rows_of(ports, programs[program].ports, "ports");
  for (const In32* each : {&aux, &inputs, &givens})
    if (length_of(*each, "places") != n) throw std::invalid_argument("places: expected as many as rows of ports");
  return {program, n, numbers(ports), numbers(aux), numbers(inputs), numbers(givens)};
}

void run_programs(const std::vector<ProgramArg>& programs, In64 coefficients,
                  const std::vector<std::vector<PlacesArg>>& waves, In64 data, Out64 wires, int threads) {
  Circuit circuit{{}, words(coefficients), rows_of(coefficients, 4, "coefficients"), {}};
  for (const ProgramArg& program : programs) circuit.programs.push_back(program_of(program));
  for (const auto& wave : waves) {
    circuit.waves.emplace_back();
    for (const PlacesArg& places : wave) circuit.waves.back().push_back(places_of(places, circuit.programs));
  }
  std::size_t data_count = rows_of(data, 4, "data"), wire_count = rows_of(wires, 4, "wires");
  expect_apart(wires, data, "data");
  expect_apart(wires, coefficients, "coefficients");
  NoGil release;
  witness_ops(curve).assign(circuit, words(data), data_count, words_out(wires), wire_count, threads);
}

}  // namespace

void bind_witness(nb::module_& m) {
  m.def("run_programs", &run_programs, nb::arg("programs"), array_arg("coefficients"), nb::arg("waves"),
        array_arg("data"), array_arg("wires"), nb::arg("threads"));
}

}  // namespace cuzk
