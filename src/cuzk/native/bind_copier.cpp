// The class cuzk._core.Copier: copier.hpp over numpy arrays, which are kept alive while they are copied.
#include <deque>

#include "bind.hpp"
#include "copier.hpp"

namespace cuzk {
namespace {

class ArrayCopier {
 public:
  explicit ArrayCopier(int threads) : copier_(threads) {}

  std::uint64_t begin(OutBytes target, InBytes source) {
    std::size_t n = length_of(target, "target"), found = length_of(source, "source");
    if (found != n)
      throw std::invalid_argument("source: expected " + std::to_string(n) + " bytes, found " + std::to_string(found));
    auto to = target.data();
    auto from = source.data();
    if (from < to + n && to < from + n) throw std::invalid_argument("target: shares memory with source");
    Crew& crew = here();
    held_.push_back({~std::uint64_t{0}, target, source});
    std::uint64_t number;
    try {
      number = held_.back().number = crew.begin(to, from, n);
    } catch (...) {  // no memory
      held_.pop_back();
      throw;
    }
    if (crew.short_of_threads(n)) {
      NoGil release;
      crew.start();
    }
    return number;
  }

  std::uint64_t wait(std::uint64_t number) {
    Crew& crew = here();
    if (crew.done() < number) {
      NoGil release;
      crew.wait(number);
    }
    std::uint64_t done = crew.done();  // now: the lock may have been long in coming
    while (!held_.empty() && held_.front().number <= done) held_.pop_front();
    return done;
  }

  void close() {
    {
      Crew& crew = here();
      NoGil release;
      crew.close();
    }
    held_.clear();
  }

  std::size_t threads() { return here().threads(); }

 private:
  struct Held {
    std::uint64_t number;
    OutBytes target;
    InBytes source;
  };
  Crew& here() {
    if (copier_.renew()) held_.clear();
    return copier_.crew();
  }

  std::deque<Held> held_;  // destroyed after the copier, which ends its threads
  Copier copier_;
};

}  // namespace

void bind_copier(nb::module_& m) {
  nb::class_<ArrayCopier>(m, "Copier")
      .def(nb::init<int>(), nb::arg("threads"))
      .def("begin", &ArrayCopier::begin, array_arg("target"), array_arg("source"))
      .def("wait", &ArrayCopier::wait, nb::arg("number"))
      .def("close", &ArrayCopier::close)
      .def_prop_ro("threads", &ArrayCopier::threads);
}

}  // namespace cuzk
