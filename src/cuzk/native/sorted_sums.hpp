// Sums of a long list sorted by key, cut into slices that any number of threads share. Host only.
//
// A slice is summed run by run (segment.hpp). A run that crosses a slice's edge leaves a partial sum; the
// partial sums are again a list sorted by key, shorter by half a slice's length, and are summed the same
// way. So a key that holds half of all entries costs no more than any other.
#pragma once

#include <algorithm>
#include <atomic>

#include "parallel.hpp"
#include "segment.hpp"

namespace cuzk::CUZK_PATH {

template <class F>
struct Partial {
  std::size_t key;
  Affine<F> point;
};

// The threads' buffers, kept between calls.
template <class F>
struct Workers {
  int threads;
  std::vector<RunAdder<F>> adders;

  explicit Workers(int asked) : threads(thread_count(asked)), adders(threads) {}

  // body(adder, i) for i = 0..count-1.
  template <class Body>
  void run(std::size_t count, Body body) {
    std::atomic<std::size_t> next{0};
    std::size_t workers = std::min(count, adders.size());
    parallel(threads, workers, [&](std::size_t worker) {
      for (std::size_t i; (i = next.fetch_add(1)) < count;) body(adders[worker], i);
    });
  }
};

// 3/8 MiB of points: with the divisors and their products this stays within a 1 MiB L2 cache.
template <class F>
constexpr std::size_t longest_slice = (std::size_t{3} << 17) / sizeof(Affine<F>);
constexpr std::size_t shortest_slice = 256;

// List: size(); runs(lo, hi, emit(key, begin, end)) for the keys that occur in [lo, hi), with their whole
// extent; gather(lo, hi, points). sums[key] is written for every key that occurs.
template <class F, class List>
void sum_sorted(Workers<F>& workers, const List& list, Affine<F>* sums);

// The list of the partial sums.
template <class F>
struct PartialList {
  std::vector<Partial<F>> entries;

  std::size_t size() const { return entries.size(); }
  template <class Emit>
  void runs(std::size_t lo, std::size_t hi, Emit emit) const {
    while (lo > 0 && entries[lo - 1].key == entries[lo].key) lo--;
    while (lo < hi) {
      std::size_t end = lo + 1;
      while (end < entries.size() && entries[end].key == entries[lo].key) end++;
      emit(entries[lo].key, lo, end);
      lo = end;
    }
  }
  void gather(std::size_t lo, std::size_t hi, Affine<F>* points) const {
    for (std::size_t i = lo; i < hi; i++) points[i - lo] = entries[i].point;
  }
};

// One slice: whole runs to sums, the runs that cross its edges to edges[0] (begins before) and edges[1].
template <class F, class List>
void sum_slice(RunAdder<F>& adder, const List& list, std::size_t lo, std::size_t hi, Affine<F>* sums,
               Partial<F>* edges, bool* used) {
  adder.reserve(hi - lo);
  adder.runs.clear();
  bool begins_before = false, ends_after = false;
  list.runs(lo, hi, [&](std::size_t key, std::size_t begin, std::size_t end) {
    begins_before |= begin < lo;
    ends_after |= end > hi;
    adder.runs.push_back({key, static_cast<u32>(std::max(begin, lo) - lo),
                          static_cast<u32>(std::min(end, hi) - lo)});
  });
  list.gather(lo, hi, adder.points.data());
  adder.sum_runs();
  std::size_t last = adder.runs.size() - 1;
  for (std::size_t i = 0; i <= last; i++) {
    const Run& run = adder.runs[i];
    bool before = begins_before && i == 0, after = ends_after && i == last;
    if (before || after) {
      edges[before ? 0 : 1] = {run.key, adder.points[run.begin]};
      used[before ? 0 : 1] = true;
    } else {
      sums[run.key] = adder.points[run.begin];
    }
  }
}

template <class F, class List>
void sum_sorted(Workers<F>& workers, const List& list, Affine<F>* sums) {
  std::size_t total = list.size();
  if (total == 0) return;
  std::size_t share = (total + workers.threads - 1) / workers.threads;
  std::size_t slice = std::clamp(share, shortest_slice, longest_slice<F>);
  std::size_t slices = (total + slice - 1) / slice;
  std::vector<Partial<F>> edges(2 * slices);
  std::vector<char> used(2 * slices);
  workers.run(slices, [&](RunAdder<F>& adder, std::size_t i) {
    bool mine[2] = {false, false};
    sum_slice(adder, list, i * slice, std::min(total, (i + 1) * slice), sums, &edges[2 * i], mine);
    used[2 * i] = mine[0], used[2 * i + 1] = mine[1];
  });
  PartialList<F> partial;
  for (std::size_t i = 0; i < edges.size(); i++)
    if (used[i]) partial.entries.push_back(edges[i]);
  if (partial.size() > 0) sum_sorted(workers, partial, sums);
}

}  // namespace cuzk::CUZK_PATH
