// What the witness area offers over the scalar field of BLS12-381: wires of a circuit from its programs, and the
// values of its rows. See assign.hpp, placed_rows.hpp.
#pragma once

#include <cstddef>
#include <vector>

#include "curve_constants.hpp"
#include "path.hpp"

namespace cuzk {

// A program as it was recorded; operands are in terms of slots.
struct ProgramInput {
  const unsigned char* opcodes;
  std::size_t operations;
  const unsigned *starts, *operands;
  std::size_t operand_count;
  const unsigned char* port_bits;
  std::size_t ports, aux, inputs, givens;
};

// A template in n places: of each, the wires of its ports and the first ones of its own.
struct Places {
  std::size_t program, n;
  const unsigned *ports, *aux, *inputs;
  const unsigned* givens;  // where the instance's data begin
};

struct Circuit {
  std::vector<ProgramInput> programs;
  const u64* coefficients;  // Montgomery
  std::size_t coefficient_count;
  std::vector<std::vector<Places>> waves;  // places of one wave depend on earlier waves only
};

// A template's rows of one of A, B, C.
struct RowsInput {
  const unsigned *starts, *columns;
  const unsigned short* coefficients;
  std::size_t rows, terms;
  const unsigned char *port_bits, *aux_bits;
  std::size_t ports, aux, inputs;
};

struct RowPlaces {
  std::size_t number, n;
  const unsigned *ports, *aux, *inputs;
  const unsigned* rows;  // the first one of each place
};

// Rows of the constraints, then `public_rows` that hold a public input each.
struct PlacedMatrix {
  std::vector<RowsInput> templates;
  const u64* coefficients;  // Montgomery
  std::size_t coefficient_count;
  std::vector<RowPlaces> places;
  std::size_t constraints, public_rows;
};

struct WitnessOps {
  void (*assign)(const Circuit& circuit, const u64* data, std::size_t data_count, u64* wires, std::size_t wire_count,
                 int threads);
  void (*placed_product)(const PlacedMatrix& matrix, const u64* wires, std::size_t wire_count, u64* out,
                         std::size_t size, bool bit_reversed, int threads);
};

}  // namespace cuzk
