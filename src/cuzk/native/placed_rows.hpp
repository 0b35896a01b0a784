// One of A, B, C of a circuit of placed templates times its wires, without ever writing the matrix out: a template's
// rows are read again for each of its places. Wires are plain, values of rows Montgomery, as a product's are
// (sparse.hpp). Host only.
//
// 97 rows of 100 of a PoRep are over a few bits with coefficients of 1 or 2: sums of bytes. The three products of the
// 8 MiB circuit take 0.12 s of a core, 0.50 s by the matrices written out (EPYC, 2026-11).
#pragma once

#include <array>
#include <bit>

#include "bit_reverse.hpp"
#include "parallel.hpp"
#include "program.hpp"
#include "vector.hpp"
#include "witness_ops.hpp"

namespace cuzk::CUZK_PATH {

// A template's rows of one matrix, checked, with what is known of their terms.
template <class F>
class TemplateRows {
 public:
  std::size_t rows, ports, aux, inputs;

  TemplateRows(const RowsInput& in, const std::vector<int>& small)
      : rows(in.rows), ports(in.ports), aux(in.aux), inputs(in.inputs), in_(in) {
    std::size_t slots = 1 + ports + aux + inputs;
    is_bit_.assign(slots, 0);
    is_bit_[0] = 1;
    for (std::size_t i = 0; i < ports; i++) is_bit_[1 + i] = in.port_bits[i] != 0;
    for (std::size_t i = 0; i < aux; i++) is_bit_[1 + ports + i] = in.aux_bits[i] != 0;
    if (in.starts[0] != 0 || in.starts[rows] != in.terms) throw std::invalid_argument("rows: expected all terms");
    factors_.resize(in.terms);
    for (std::size_t t = 0; t < in.terms; t++) {
      if (in.columns[t] >= slots) throw std::invalid_argument("rows: expected columns that are slots");
      if (in.coefficients[t] >= small.size()) throw std::invalid_argument("rows: expected numbers of coefficients");
      factors_[t] = small[in.coefficients[t]];
    }
    kinds_.reserve(rows);
    for (std::size_t i = 0; i < rows; i++) {
      if (in.starts[i] > in.starts[i + 1] || in.starts[i + 1] > in.terms)
        throw std::invalid_argument("rows: expected terms in order");
      bool bits = true, few = in.starts[i + 1] - in.starts[i] <= most_terms;
      for (std::size_t t = in.starts[i]; t < in.starts[i + 1]; t++) {
        bits = bits && is_bit_[in.columns[t]];
        few = few && factors_[t] != 0;
      }
      kinds_.push_back(!bits ? Kind::elements : few ? Kind::small : Kind::bits);
    }
  }

  // The rows of one place, one after the other; `wire` gives the four words of a slot's value.
  template <class Wire, class Put>
  void evaluate(const u64* coefficients, std::vector<unsigned char>& bits, Wire wire, Put put) const {
    bool are_bits = true;
    bits.resize(is_bit_.size());
    for (std::size_t slot = 0; slot < is_bit_.size(); slot++) {
      if (!is_bit_[slot]) continue;
      const u64* value = wire(slot);
      are_bits = are_bits && !(value[0] > 1 || value[1] | value[2] | value[3]);
      bits[slot] = static_cast<unsigned char>(value[0]);
    }
    for (std::size_t i = 0; i < rows; i++) {
      std::size_t begin = in_.starts[i], end = in_.starts[i + 1];
      if (!are_bits || kinds_[i] == Kind::elements) {
        put(i, sum_of_elements(begin, end, coefficients, wire) * F::from_words(F::P::r2));
      } else if (kinds_[i] == Kind::small) {
        int sum = 0;
        for (std::size_t t = begin; t < end; t++) sum += factors_[t] * bits[in_.columns[t]];
        put(i, multiple(sum));
      } else {
        F sum = F::zero();
        for (std::size_t t = begin; t < end; t++)
          if (bits[in_.columns[t]]) sum = sum + load<F>(coefficients, in_.coefficients[t]);
        put(i, sum);
      }
    }
  }

  // A coefficient (Montgomery) as a number that rows of bits may add: 0 where it is too large.
  static int as_small(const F& coefficient) {
    for (int k = 1; k <= most_factor; k++) {
      if (coefficient == multiple(k)) return k;
      if (coefficient == multiple(-k)) return -k;
    }
    return 0;
  }

 private:
  enum class Kind : unsigned char { small, bits, elements };
  static constexpr int most_factor = 2, most_terms = 8, most_sum = most_factor * most_terms;

  const RowsInput in_;
  std::vector<unsigned char> is_bit_;
  std::vector<signed char> factors_;
  std::vector<Kind> kinds_;

  static const F& multiple(int k) {
    static const auto table = [] {
      std::array<F, 2 * most_sum + 1> values{};
      for (int i = 1; i <= most_sum; i++) {
        values[most_sum + i] = values[most_sum + i - 1] + F::one();
        values[most_sum - i] = values[most_sum - i + 1] - F::one();
      }
      return values;
    }();
    return table[static_cast<std::size_t>(most_sum + k)];
  }

  // Plain: coefficients are Montgomery, wires are not.
  template <class Wire>
  F sum_of_elements(std::size_t begin, std::size_t end, const u64* coefficients, Wire wire) const {
    F sum = F::zero();
    MergedTerms<F> terms;
    for (std::size_t t = begin; t < end; t++) {
      F value = F::from_words(wire(in_.columns[t]));
      std::size_t number = in_.coefficients[t];
      if (number < 2) sum = number ? sum - value : sum + value;
      else terms.add(value, load<F>(coefficients, number), sum);
    }
    return terms.finish(sum);
  }
};

struct RowTask {
  const RowPlaces* at;
  std::size_t begin, end;
};

// Pieces of about as many rows, every place in one of them.
template <class F>
std::vector<RowTask> row_tasks(const PlacedMatrix& matrix, const std::vector<TemplateRows<F>>& templates,
                               std::size_t wire_count) {
  constexpr std::size_t task_rows = 16384;
  std::vector<RowTask> tasks;
  std::size_t there = 0;
  for (const RowPlaces& at : matrix.places) {
    const TemplateRows<F>& rows = templates.at(at.number);
    for (std::size_t i = 0; i < at.n; i++) {
      bool inside = at.aux[i] + rows.aux <= wire_count && at.inputs[i] + rows.inputs <= wire_count &&
                    at.rows[i] + rows.rows <= matrix.constraints;
      for (std::size_t k = 0; k < rows.ports; k++) inside = inside && at.ports[i * rows.ports + k] < wire_count;
      if (!inside)
        throw std::invalid_argument("places: instance " + std::to_string(i) + " is not inside of the circuit");
    }
    there += at.n * rows.rows;
    std::size_t step = 1 + task_rows / std::max<std::size_t>(1, rows.rows);
    for (std::size_t i = 0; i < at.n; i += step) tasks.push_back({&at, i, std::min(i + step, at.n)});
  }
  if (there != matrix.constraints)
    throw std::invalid_argument("places: expected " + std::to_string(matrix.constraints) + " rows, found " +
                                std::to_string(there));
  return tasks;
}

// The rows of one place; `bits` is memory to work in.
template <class F>
void place_rows(const PlacedMatrix& matrix, const TemplateRows<F>& rows, const RowPlaces& at, std::size_t i,
                const u64* wires, u64* out, std::vector<unsigned char>& bits) {
  auto wire = [&](std::size_t slot) {
    std::size_t own = 1 + rows.ports, index = 0;
    if (slot >= own + rows.aux) index = at.inputs[i] + (slot - own - rows.aux);
    else if (slot >= own) index = at.aux[i] + (slot - own);
    else if (slot > 0) index = at.ports[i * rows.ports + slot - 1];
    return wires + index * F::N;
  };
  rows.evaluate(matrix.coefficients, bits, wire,
                [&](std::size_t row, const F& value) { store(out, at.rows[i] + row, value); });
}

template <class F>
void placed_product(const PlacedMatrix& matrix, const u64* wires, std::size_t wire_count, u64* out,
                    std::size_t size, bool bit_reversed, int threads) {
  if (matrix.public_rows > wire_count || matrix.public_rows > size ||
      matrix.constraints > size - matrix.public_rows)
    throw std::invalid_argument("out: expected room for all rows");
  std::vector<int> small;
  for (std::size_t i = 0; i < matrix.coefficient_count; i++)
    small.push_back(TemplateRows<F>::as_small(load<F>(matrix.coefficients, i)));
  std::vector<TemplateRows<F>> templates;
  for (const RowsInput& rows : matrix.templates) {
    if (rows.inputs > wire_count) throw std::invalid_argument("inputs: expected no more than there are wires");
    templates.emplace_back(rows, small);
  }
  std::vector<RowTask> tasks = row_tasks(matrix, templates, wire_count);
  parallel(threads, tasks.size(), [&](std::size_t number) {
    const RowTask& task = tasks[number];
    std::vector<unsigned char> bits;
    for (std::size_t i = task.begin; i < task.end; i++)
      place_rows(matrix, templates[task.at->number], *task.at, i, wires, out, bits);
  });
  for (std::size_t i = 0; i < matrix.public_rows; i++)
    store(out, matrix.constraints + i, F::from_plain(wires + i * F::N));
  std::fill(out + (matrix.constraints + matrix.public_rows) * F::N, out + size * F::N, 0);
  if (bit_reversed) bit_reverse(out, F::N, static_cast<int>(std::bit_width(size)) - 1, threads);
}

}  // namespace cuzk::CUZK_PATH
