// JSON as serde writes it, read by a description of the type into the bytes that bincode would hold.
//
// The description fixes the number of items of every list, so every value has a fixed place in the output and
// fields may come in any order. What does not fit it is refused, with the offset in the text and the place
// ("vanilla_proofs: partition 3: challenge 0: comm_d_proofs..."). Nothing outside text and output is touched,
// whatever either says. Host only.
//
// One pass without an object for any value, the interpreter's lock released: the 38 MB of a 32 GiB sector (51 MB in
// Curio's base64) take 0.09 s of one core; orjson and msgspec take 0.7 s for lists of lists of integers, from which
// no byte is taken yet (EPYC, 2026-11).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cuzk {

static_assert(std::endian::native == std::endian::little, "bincode is little-endian");

enum class SerdeKind : std::int64_t { bytes, number, null, text, list, record, variant };

// One row of the description; a, b, c and label by kind:
//   bytes    a: how many              number  a: bytes           null, text (a span of the input, two u64)
//   list     a: items, b: bytes of an item, c: their type, label: what to call one of them, or -1
//   record   a: first field, b: fields                            variant  a: name, b: tag, c: type or -1
struct SerdeType {
  SerdeKind kind;
  std::int64_t a, b, c, label;
};

struct SerdeField {
  std::int64_t name, offset, type;
};

struct SerdeLayout {
  const SerdeType* types;
  std::size_t type_count;
  const SerdeField* fields;
  std::size_t field_count;
  const std::vector<std::string>& names;
};

class SerdeJson {
 public:
  SerdeJson(const char* text, std::size_t size, const SerdeLayout& layout, std::uint8_t* out)
      : begin_(text), at_(text), end_(text + size), layout_(layout), out_(out) {}

  // "" where the whole text is one value of type 0, else what is wrong with it.
  std::string read() {
    try {
      value(0, 0);
      skip_space();
      if (at_ != end_) fail("expected the end of the text, found " + std::to_string(end_ - at_) + " more bytes");
    } catch (const Refused& refused) {
      return refused.message;
    }
    return "";
  }

 private:
  struct Refused {
    std::string message;
  };
  struct Step {
    std::int64_t name, item;  // a field (item -1), or an item that is called by `name` (-1: [item])
  };

  [[noreturn]] void fail(const std::string& problem) const {
    std::string place;
    for (const Step& step : steps_) {
      if (step.item < 0) {
        place += (place.empty() ? "" : place.back() == ' ' ? "" : ".") + layout_.names[step.name];
      } else if (step.name < 0) {
        place += "[" + std::to_string(step.item) + "]";
      } else {
        place += (place.empty() || place.back() == ' ' ? "" : ": ") + layout_.names[step.name] + " " +
                 std::to_string(step.item) + ": ";
      }
    }
    while (!place.empty() && (place.back() == ' ' || place.back() == ':')) place.pop_back();
    throw Refused{"offset " + std::to_string(at_ - begin_) + (place.empty() ? "" : ": " + place) + ": " + problem};
  }

  std::string here() const {
    if (at_ == end_) return "the end of the text";
    unsigned char c = static_cast<unsigned char>(*at_);
    if (c > 0x20 && c < 0x7f) return std::string("'") + *at_ + "'";
    return "byte " + std::to_string(c);
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) at_++;
  }

  bool take(char c) {
    skip_space();
    if (at_ == end_ || *at_ != c) return false;
    at_++;
    return true;
  }

  void expect(char c, const char* what) {
    if (!take(c)) fail(std::string("expected ") + what + ", found " + here());
  }

  std::string_view string(const char* what) {
    expect('"', what);
    const char* first = at_;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ == '\\' || static_cast<unsigned char>(*at_) < 0x20)
        fail(std::string("expected ") + what + " without escapes, found " + here());
      at_++;
    }
    if (at_ == end_) fail(std::string("expected ") + what + ", found the end of the text in it");
    return {first, static_cast<std::size_t>(at_++ - first)};
  }

  std::uint64_t number(std::uint64_t largest) {
    skip_space();
    const char* first = at_;
    std::uint64_t sum = 0;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; at_++) {
      unsigned digit = static_cast<unsigned>(*at_ - '0');
      if (sum > (largest - digit) / 10 || (at_ != first && *first == '0')) {
        at_ = first;
        fail("expected a number up to " + std::to_string(largest) + ", found a larger one or a leading zero");
      }
      sum = 10 * sum + digit;
    }
    if (at_ == first) fail("expected a number, found " + here());
    return sum;
  }

  // Nearly all of a text: a number of one to three digits and what follows it, without the general way's tests.
  std::uint8_t byte() {
    if (end_ - at_ >= 4) {
      unsigned value = digit(at_[0]), next = digit(at_[1]);
      if (value > 9 || (value == 0 && next <= 9)) return static_cast<std::uint8_t>(number(255));
      const char* after = at_ + 1;
      if (next <= 9) {
        value = 10 * value + next;
        after++;
        if (unsigned third = digit(*after); third <= 9) {
          value = 10 * value + third;
          after++;
          if (digit(*after) <= 9) value = 256;
        }
      }
      if (value <= 255) {
        at_ = after;
        return static_cast<std::uint8_t>(value);
      }
    }
    return static_cast<std::uint8_t>(number(255));
  }

  static unsigned digit(char c) { return static_cast<unsigned char>(c - '0'); }

  void bytes(std::size_t count, std::uint8_t* out) {
    expect('[', "'[' of an array of bytes");
    for (std::size_t i = 0; i < count; i++) {
      if (i && !take(','))
        fail("expected an array of " + std::to_string(count) + " bytes, found " + here() + " after " +
             std::to_string(i));
      out[i] = byte();
    }
    if (!take(']')) fail("expected ']' after " + std::to_string(count) + " bytes, found " + here());
  }

  void list(const SerdeType& type, std::size_t offset) {
    std::uint64_t count = static_cast<std::uint64_t>(type.a);
    std::string what = type.label < 0 ? "items" : layout_.names[type.label] + "s";
    store(offset, count, 8);
    expect('[', "'[' of a list");
    steps_.push_back({type.label, 0});
    for (std::uint64_t i = 0; i < count; i++) {
      steps_.back().item = static_cast<std::int64_t>(i);
      if (i && !take(',')) {
        steps_.pop_back();
        fail("expected " + std::to_string(count) + " " + what + ", found " + here() + " after " + std::to_string(i));
      }
      value(type.c, offset + 8 + i * static_cast<std::size_t>(type.b));
    }
    steps_.pop_back();
    if (!take(']')) fail("expected " + std::to_string(count) + " " + what + ", found " + here() + " after them");
  }

  // The field of that name, tried first at `guess`: written in order, one comparison is enough.
  std::size_t find(const SerdeType& type, std::string_view key, std::size_t guess) {
    std::size_t count = static_cast<std::size_t>(type.b);
    for (std::size_t i = 0; i < count; i++) {
      std::size_t field = (guess + i) % count;
      if (layout_.names[layout_.fields[type.a + field].name] == key) return field;
    }
    fail("expected one of its " + std::to_string(count) + " fields, found " +
         (key.size() > 40 ? "another" : "\"" + printable(key) + "\""));
  }

  void record(const SerdeType& type, std::size_t offset) {
    std::uint64_t seen = 0;
    std::size_t guess = 0;
    expect('{', "'{' of an object");
    for (bool first = true; !take('}'); first = false) {
      if (!first) expect(',', "',' or '}' of an object");
      std::size_t number = find(type, string("the name of a field"), guess);
      const SerdeField& field = layout_.fields[type.a + number];
      steps_.push_back({field.name, -1});
      if (seen >> number & 1) fail("expected the field once, found it again");
      expect(':', "':' after the name of a field");
      value(field.type, offset + static_cast<std::size_t>(field.offset));
      steps_.pop_back();
      seen |= std::uint64_t{1} << number;
      guess = number + 1;
    }
    for (std::int64_t i = 0; i < type.b; i++) {
      const SerdeField& field = layout_.fields[type.a + i];
      if (!(seen >> i & 1) && layout_.types[field.type].kind != SerdeKind::null)
        fail("expected the field \"" + layout_.names[field.name] + "\", found none before '}'");
    }
  }

  void variant(const SerdeType& type, std::size_t offset) {
    const std::string& name = layout_.names[type.a];
    if (type.c >= 0) expect('{', "'{' of a variant");
    const char* first = at_;
    std::string_view found = string("the name of a variant");
    if (found != name) {
      at_ = first;
      fail("expected \"" + name + "\", found " +
           (found.size() > 60 ? "another name" : "\"" + printable(found) + "\""));
    }
    store(offset, static_cast<std::uint64_t>(type.b), 4);
    if (type.c < 0) return;
    expect(':', "':' after the name of a variant");
    value(type.c, offset + 4);
    expect('}', "'}' of a variant");
  }

  void value(std::int64_t index, std::size_t offset) {
    const SerdeType& type = layout_.types[index];
    switch (type.kind) {
      case SerdeKind::bytes:
        return bytes(static_cast<std::size_t>(type.a), out_ + offset);
      case SerdeKind::number:
        return store(offset, number(type.a == 8 ? ~std::uint64_t{0} : 0xffffffffu), type.a);
      case SerdeKind::null:
        skip_space();
        if (end_ - at_ < 4 || std::memcmp(at_, "null", 4) != 0) fail("expected null, found " + here());
        at_ += 4;
        return;
      case SerdeKind::text: {
        std::string_view span = string("a string");
        store(offset, static_cast<std::uint64_t>(span.data() - begin_), 8);
        return store(offset + 8, span.size(), 8);
      }
      case SerdeKind::list:
        return list(type, offset);
      case SerdeKind::record:
        return record(type, offset);
      case SerdeKind::variant:
        return variant(type, offset);
    }
  }

  void store(std::size_t offset, std::uint64_t word, std::int64_t bytes) {
    std::memcpy(out_ + offset, &word, static_cast<std::size_t>(bytes));
  }

  static std::string printable(std::string_view text) {
    std::string out;
    for (char c : text) out += c >= 0x20 && c < 0x7f ? c : '?';
    return out;
  }

  const char *begin_, *at_, *end_;
  const SerdeLayout& layout_;
  std::uint8_t* out_;
  std::vector<Step> steps_;
};

// Bytes that a type takes in the output; refuses a description whose numbers do not fit each other, so that a
// slip there is an error and not a write elsewhere. Types refer to later rows only, which ends the recursion.
inline std::size_t serde_size(const SerdeLayout& layout, std::size_t index) {
  auto refuse = [&] { throw std::invalid_argument("type " + std::to_string(index) + ": not a description"); };
  auto named = [&](std::int64_t name) { return name >= 0 && name < (std::int64_t)layout.names.size(); };
  auto size_of = [&](std::int64_t other) {
    if (other <= (std::int64_t)index || other >= (std::int64_t)layout.type_count) refuse();
    return serde_size(layout, static_cast<std::size_t>(other));
  };
  const SerdeType& type = layout.types[index];
  switch (type.kind) {
    case SerdeKind::bytes:
      if (type.a < 0 || type.a > 1 << 20) refuse();
      return static_cast<std::size_t>(type.a);
    case SerdeKind::number:
      if (type.a != 4 && type.a != 8) refuse();
      return static_cast<std::size_t>(type.a);
    case SerdeKind::null:
      return 0;
    case SerdeKind::text:
      return 16;
    case SerdeKind::list:
      if (type.a < 0 || type.a > 1 << 30 || type.label < -1 || (type.label >= 0 && !named(type.label))) refuse();
      if (type.b < 0 || type.b > std::int64_t{1} << 32 || size_of(type.c) != (std::size_t)type.b) refuse();
      if (type.a * type.b > std::int64_t{1} << 40) refuse();
      return 8 + static_cast<std::size_t>(type.a * type.b);
    case SerdeKind::record: {
      std::size_t end = 0;
      std::int64_t fields = static_cast<std::int64_t>(layout.field_count);
      if (type.a < 0 || type.a > fields || type.b < 0 || type.b > 64 || type.b > fields - type.a) refuse();
      for (std::int64_t i = type.a; i < type.a + type.b; i++) {
        const SerdeField& field = layout.fields[i];
        if (!named(field.name) || field.offset != (std::int64_t)end) refuse();
        end += size_of(field.type);
      }
      return end;
    }
    case SerdeKind::variant:
      if (!named(type.a) || type.b < 0) refuse();
      return 4 + (type.c < 0 ? 0 : size_of(type.c));
  }
  refuse();
  return 0;
}

}  // namespace cuzk
