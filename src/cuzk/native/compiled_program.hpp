// A program made ready to run: every operand checked, slots replaced by places among bits or among field elements.
// Place 0 of the bits is ONE. Host only.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "program.hpp"
#include "witness_ops.hpp"

namespace cuzk::CUZK_PATH {

struct Operation {
  Op op;
  u32 target;      // the first place it defines
  u32 count;       // bits it defines, or terms of a product's first factor
  u32 begin, end;  // operands
};

// Own variables of one kind that follow each other, in their numbers and in their places.
struct VariableRun {
  bool bits;
  std::size_t first, count;
};

class CompiledProgram {
 public:
  std::vector<Operation> operations;
  std::vector<u32> operands;
  std::vector<u32> places;  // of ports and own variables: 2 * index of a field element, 2 * index + 1 of a bit
  std::vector<VariableRun> runs;
  std::size_t ports, aux, inputs, givens;
  std::size_t bits = 1, fields = 0;

  CompiledProgram(const ProgramInput& in, std::size_t coefficients)
      : ports(in.ports), aux(in.aux), inputs(in.inputs), givens(in.givens), in_(in), coefficients_(coefficients) {
    for (std::size_t i = 0; i < in.ports; i++) define(in.port_bits[i] != 0);
    std::size_t public_inputs = 0, given = 0;
    if (in.starts[0] != 0) refuse("operands that begin at 0");
    for (now_ = 0; now_ < in.operations; now_++) {
      if (in.starts[now_ + 1] < in.starts[now_] || in.starts[now_ + 1] > in.operand_count)
        refuse("operands inside of the program");
      Op op = static_cast<Op>(in.opcodes[now_]);
      step(op);
      public_inputs += op == Op::public_input;
      given += op == Op::given || op == Op::given_bits;
    }
    if (places.size() != ports + aux || public_inputs != inputs || given != givens)
      refuse("as many variables, public inputs and data as it is said to have");
    for (std::size_t i = ports; i < places.size(); i++) {
      bool bit = places[i] & 1;
      if (runs.empty() || runs.back().bits != bit) runs.push_back({bit, places[i] >> 1, 0});
      runs.back().count++;
    }
  }

 private:
  const ProgramInput& in_;
  std::size_t coefficients_, now_ = 0;
  std::size_t next_ = 0;  // operand

  [[noreturn]] void refuse(const char* expected) const {
    throw std::invalid_argument("program: operation " + std::to_string(now_) + ": expected " + expected);
  }

  void define(bool bit) {
    places.push_back(static_cast<u32>(bit ? 2 * bits + 1 : 2 * fields));
    (bit ? bits : fields)++;
  }
  u32 take() {
    if (next_ == in_.starts[now_ + 1]) refuse("more operands");
    return in_.operands[next_++];
  }
  std::size_t left() const { return in_.starts[now_ + 1] - next_; }

  u32 place(u32 slot) const {
    if (slot == 0) return 1;
    if (slot > places.size()) refuse("operands that were defined before");
    return places[slot - 1];
  }
  void push_literal() {
    u32 x = take(), found = place(x >> 1);
    if (!(found & 1)) refuse("a literal of a bit");
    operands.push_back((found & ~1u) | (x & 1));
  }
  void push_field() {
    u32 found = place(take());
    if (found & 1) refuse("a field element");
    operands.push_back(found >> 1);
  }
  void push_pairs() {
    if (left() % 2) refuse("pairs");
    while (left()) {
      u32 number = take();
      if (number >= coefficients_) refuse("the number of a coefficient");
      operands.push_back(number);
      operands.push_back(place(take()));
    }
  }
  u32 take_count(u32 most) {
    u32 count = take();
    if (count < 1 || count > most) refuse("a number of bits that fits");
    return count;
  }

  void step(Op op) {
    next_ = in_.starts[now_];
    Operation made{op, 0, 1, static_cast<u32>(operands.size()), 0};
    bool bit = true;
    switch (op) {
      case Op::given: bit = false; break;
      case Op::given_bits: made.count = take_count(256); break;
      case Op::bits: made.count = take_count(256), push_field(); break;
      case Op::sum:
        made.count = take_count(most_sum_bits);
        if (left() % word_bits) refuse("whole words");
        while (left()) push_literal();
        break;
      case Op::exclusive_or:
      case Op::conjunction: push_literal(), push_literal(); break;
      case Op::choose:
      case Op::majority:
        for (int i = 0; i < 3; i++) push_literal();
        made.count = op == Op::majority ? 2 : 1;
        break;
      case Op::pick: bit = false, push_literal(), push_field(), push_field(); break;
      case Op::linear:
      case Op::public_input: bit = false, push_pairs(); break;
      case Op::product: {
        bit = false;
        std::size_t a = take(), b = take();
        if (2 * (a + b) > left()) refuse("as many pairs as the factors have");
        operands.push_back(static_cast<u32>(2 * a));
        operands.push_back(static_cast<u32>(2 * (a + b)));
        push_pairs();
        break;
      }
      default: refuse("an opcode");
    }
    if (left()) refuse("fewer operands");
    made.end = static_cast<u32>(operands.size());
    made.target = static_cast<u32>(bit ? bits : fields);
    if (op != Op::public_input)
      for (u32 i = 0; i < made.count; i++) define(bit);
    operations.push_back(made);
  }
};

}  // namespace cuzk::CUZK_PATH
