// All wires of a circuit from its programs: instances of one template, up to 64 at a time, on several threads; then
// those that depend on them. The wires (plain) are written once, and read again where ports are bound. Host only.
#pragma once

#include <algorithm>
#include <optional>

#include "compiled_program.hpp"
#include "parallel.hpp"
#include "vector.hpp"

namespace cuzk::CUZK_PATH {

// Some instances of a program, in one thread.
template <class F>
class Batch {
 public:
  Batch(const Circuit& circuit, const CompiledProgram& program, const Places& at, std::size_t first, int lanes)
      : circuit_(circuit), program_(program), at_(at), first_(first), lanes_(lanes), bits_(program.bits),
        fields_(program.fields * static_cast<std::size_t>(lanes)) {
    bits_[0] = ~0ull;
  }

  void run(const u64* data, u64* wires) {
    read_ports(wires);
    std::size_t given = 0, input = 0;
    for (const Operation& operation : program_.operations) {
      const u32* operands = program_.operands.data() + operation.begin;
      const u32* end = program_.operands.data() + operation.end;
      u64 *bits = bits_.data(), *out = bits + operation.target;
      auto bit = [&](int i) { return literal(bits, operands[i]); };
      switch (operation.op) {
        case Op::exclusive_or: *out = bit(0) ^ bit(1); break;
        case Op::conjunction: *out = bit(0) & bit(1); break;
        case Op::choose: *out = chosen(bit(0), bit(1), bit(2)); break;
        case Op::majority: *out = at_least_two(bit(0), bit(1), bit(2)), out[1] = bit(1) & bit(2); break;
        case Op::sum:
          sum_words(bits, operands, static_cast<int>(end - operands) / word_bits, out, static_cast<int>(operation.count));
          break;
        case Op::given:
        case Op::given_bits: take(operation, data, given++); break;
        case Op::public_input: publish(operands, end, input++, wires); break;
        default: element(operation, operands, end);
      }
    }
    for (int lane = 0; lane < lanes_; lane++) write(lane, wires);
  }

 private:
  const Circuit& circuit_;
  const CompiledProgram& program_;
  const Places& at_;
  std::size_t first_;
  int lanes_;
  std::vector<u64> bits_;
  std::vector<F> fields_;  // of a lane one after the other

  F* fields(int lane) { return fields_.data() + program_.fields * static_cast<std::size_t>(lane); }
  Instance<F> instance(int lane) { return {fields(lane), bits_.data(), lane}; }

  void read_ports(const u64* wires) {
    for (int lane = 0; lane < lanes_; lane++) {
      const unsigned* ports = at_.ports + (first_ + static_cast<std::size_t>(lane)) * program_.ports;
      for (std::size_t i = 0; i < program_.ports; i++) {
        const u64* value = wires + std::size_t{ports[i]} * F::N;
        u32 place = program_.places[i];
        if (!(place & 1)) {
          fields(lane)[place >> 1] = F::from_plain(value);
        } else if (value[0] > 1 || value[1] | value[2] | value[3]) {
          throw std::invalid_argument("ports: wire " + std::to_string(ports[i]) + " is not a bit");
        } else {
          bits_[place >> 1] |= value[0] << lane;
        }
      }
    }
  }

  void take(const Operation& operation, const u64* data, std::size_t number) {
    for (int lane = 0; lane < lanes_; lane++) {
      std::size_t index = at_.givens[first_ + static_cast<std::size_t>(lane)] + number;
      const u64* value = data + index * F::N;
      auto refuse = [&](const std::string& what) {
        throw std::invalid_argument("data: value " + std::to_string(index) + what);
      };
      if (!F::is_canonical(value)) refuse(" is not below r");
      int count = static_cast<int>(operation.count);
      if (operation.op == Op::given) {
        fields(lane)[operation.target] = F::from_plain(value);
      } else if (has_bit_from(value, count)) {
        refuse(" has more than " + std::to_string(count) + " bits");
      } else {
        scatter_bits(value, count, lane, bits_.data() + operation.target);
      }
    }
  }

  // The operations on field elements, lane by lane.
  void element(const Operation& operation, const u32* operands, const u32* end) {
    for (int lane = 0; lane < lanes_; lane++) {
      F* own = fields(lane);
      Instance<F> at = instance(lane);
      auto sum = [&](const u32* from, const u32* to) { return combination(at, circuit_.coefficients, from, to); };
      if (operation.op == Op::bits) {
        F plain = own[operands[0]].to_plain();
        scatter_bits(plain.w, static_cast<int>(operation.count), lane, bits_.data() + operation.target);
      } else if (operation.op == Op::pick) {
        bool holds = literal(bits_.data(), operands[0]) >> lane & 1;
        own[operation.target] = own[operands[holds ? 1 : 2]];
      } else if (operation.op == Op::linear) {
        own[operation.target] = sum(operands, end);
      } else {  // product
        const u32 *pairs = operands + 2, *b = pairs + operands[0], *c = pairs + operands[1];
        own[operation.target] = sum(pairs, b) * sum(b, c) - sum(c, end);
      }
    }
  }

  void publish(const u32* operands, const u32* end, std::size_t number, u64* wires) {
    for (int lane = 0; lane < lanes_; lane++) {
      std::size_t wire = at_.inputs[first_ + static_cast<std::size_t>(lane)] + number;
      store_plain(combination(instance(lane), circuit_.coefficients, operands, end), wires + wire * F::N);
    }
  }

  void write(int lane, u64* wires) {
    u64* out = wires + std::size_t{at_.aux[first_ + static_cast<std::size_t>(lane)]} * F::N;
    for (const VariableRun& run : program_.runs) {
      const u64* bits = bits_.data() + run.first;
      const F* own = fields(lane) + run.first;
      for (std::size_t i = 0; i < run.count; i++, out += F::N) {  // a loop for either kind: 7 -> 2 ns a bit
        if (run.bits) out[0] = bits[i] >> lane & 1, std::fill(out + 1, out + F::N, 0);
        else store_plain(own[i], out);
      }
    }
  }
};

inline void expect_inside(const Places& at, const CompiledProgram& program, std::size_t data, std::size_t wires) {
  for (std::size_t i = 0; i < at.n; i++) {
    bool inside = at.aux[i] + program.aux <= wires && at.inputs[i] + program.inputs <= wires &&
                  at.givens[i] + program.givens <= data;
    for (std::size_t k = 0; k < program.ports; k++) inside = inside && at.ports[i * program.ports + k] < wires;
    if (!inside) throw std::invalid_argument("places: instance " + std::to_string(i) + " is not inside of the circuit");
  }
}

template <class F>
void assign(const Circuit& circuit, const u64* data, std::size_t data_count, u64* wires, std::size_t wire_count,
            int threads) {
  constexpr std::size_t most_fields = 8192;  // 256 KB: only bits gain by more instances
  struct Task {
    const Places* at;
    std::size_t first;
    int lanes;
  };
  std::vector<CompiledProgram> programs;
  for (const ProgramInput& program : circuit.programs) programs.emplace_back(program, circuit.coefficient_count);
  if (wire_count == 0) throw std::invalid_argument("wires: expected at least ONE");
  wires[0] = 1, wires[1] = wires[2] = wires[3] = 0;
  for (const auto& wave : circuit.waves) {
    std::vector<Task> tasks;
    for (const Places& at : wave) {
      const CompiledProgram& program = programs.at(at.program);
      expect_inside(at, program, data_count, wire_count);
      std::size_t share = (at.n + static_cast<std::size_t>(thread_count(threads)) - 1) /
                          static_cast<std::size_t>(thread_count(threads));
      std::size_t fit = std::max<std::size_t>(1, most_fields / std::max<std::size_t>(1, program.fields));
      std::size_t lanes = std::min({share, fit, std::size_t{most_lanes}});
      for (std::size_t i = 0; i < at.n; i += lanes)
        tasks.push_back({&at, i, static_cast<int>(std::min(lanes, at.n - i))});
    }
    parallel(threads, tasks.size(), [&](std::size_t i) {
      const Task& task = tasks[i];
      Batch<F>(circuit, programs[task.at->program], *task.at, task.first, task.lanes).run(data, wires);
    });
  }
}

}  // namespace cuzk::CUZK_PATH
