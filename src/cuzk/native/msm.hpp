// Multi-scalar multiplication, sum_k s_k P_k: Pippenger's buckets over signed digits. Host only.
//
// A group of windows at a time: the digits are sorted by (window, bucket) (counting sort: a list of rows
// of bases, each with a sign), every bucket is summed by batched affine additions (sorted_sums.hpp), and
// the buckets of a window, S_e with digit e + 1, e = i 2^h + j, are reduced in two dimensions,
//
//   sum_e (e + 1) S_e = 2^h sum_i i R_i + sum_j (j + 1) C_j,   R_i = sum_j S_e,  C_j = sum_i S_e,
//
// with two batched affine additions a bucket; the running sums over R and C are short and in XYZZ form.
#pragma once

#include <cmath>

#include "digits.hpp"
#include "sorted_sums.hpp"
#include "straus.hpp"

namespace cuzk::CUZK_PATH {

// Entries of a group of windows, sorted: key = (window - first) * buckets + bucket, ends[key] one past the
// key's last entry.
template <class F>
struct SortedDigits {
  const Affine<F>* bases;
  std::vector<u32> entries;
  std::vector<u32> ends;
  std::size_t total = 0;

  std::size_t size() const { return total; }

  template <class Emit>
  void runs(std::size_t lo, std::size_t hi, Emit emit) const {
    std::size_t key = std::upper_bound(ends.begin(), ends.end(), static_cast<u32>(lo)) - ends.begin();
    std::size_t begin = key == 0 ? 0 : ends[key - 1];
    for (; begin < hi; key++) {
      std::size_t end = ends[key];
      if (end > begin) emit(key, begin, end);
      begin = end;
    }
  }

  void gather(std::size_t lo, std::size_t hi, Affine<F>* points) const {
    constexpr std::size_t ahead = 16;  // rows on their way from memory
    for (std::size_t i = lo; i < hi; i++) {
      if (i + ahead < total) prefetch(bases + (entries[i + ahead] & ~sign_bit));
      u32 entry = entries[i];
      const Affine<F>& base = bases[entry & ~sign_bit];
      Affine<F>& out = points[i - lo];
      out = base;
      if (entry & sign_bit) out.y = -base.y;
    }
  }

  static void prefetch(const Affine<F>* point) {
    const char* line = reinterpret_cast<const char*>(point);
    for (std::size_t at = 0; at < sizeof(*point); at += 64) __builtin_prefetch(line + at);
    __builtin_prefetch(line + sizeof(*point) - 1);
  }
};

template <class F>
void sort_digits(SortedDigits<F>& sorted, const LiveScalars& live, const Windows& windows, int first, int count,
                 int threads) {
  std::size_t buckets = windows.buckets(), n = live.size();
  sorted.ends.assign(count * buckets, 0);
  parallel(threads, count, [&](std::size_t w) {
    u32* counts = &sorted.ends[w * buckets];
    windows.for_digits(live, first + w, 0, n, [&](std::size_t, std::size_t d, bool) { counts[d - 1]++; });
  });
  std::size_t total = 0;
  for (u32& end : sorted.ends) {
    u32 found = end;
    end = static_cast<u32>(total);  // where the key begins; filling moves it to where it ends
    total += found;
  }
  sorted.total = total;
  if (sorted.entries.size() < total) sorted.entries.resize(total);
  parallel(threads, count, [&](std::size_t w) {
    u32* next = &sorted.ends[w * buckets];
    u32* out = sorted.entries.data();
    windows.for_digits(live, first + w, 0, n, [&](std::size_t k, std::size_t d, bool negative) {
      out[next[d - 1]++] = live.entries[k] ^ (negative ? sign_bit : 0);
    });
  });
}

// All buckets of a group as the list of its rows, or of its columns: runs of one length.
template <class F>
struct BucketLines {
  const Affine<F>* sums;
  std::size_t total, lines, length, stride, step;  // per window: lines; a line begins at line * step

  std::size_t size() const { return total; }
  template <class Emit>
  void runs(std::size_t lo, std::size_t hi, Emit emit) const {
    for (std::size_t line = lo / length; line * length < hi; line++)
      emit(line, line * length, (line + 1) * length);
  }
  void gather(std::size_t lo, std::size_t hi, Affine<F>* points) const {
    for (std::size_t i = lo; i < hi; i++) {
      std::size_t line = i / length, window = line / lines;
      points[i - lo] = sums[window * lines * length + line % lines * step + i % length * stride];
    }
  }
};

// sum_i (i + from) lines[i], from 0 or 1.
template <class F>
[[gnu::noinline]] Xyzz<F> running_sum(const Affine<F>* lines, std::size_t count, std::size_t from) {
  Xyzz<F> partial = Xyzz<F>::infinity(), sum = partial;
  for (std::size_t i = count; i-- > 1 - from;) {
    partial = partial + lines[i];
    sum = sum + partial;
  }
  return sum;
}

// The weighted sums of the windows of a group.
template <class F>
void reduce_buckets(Workers<F>& workers, const std::vector<Affine<F>>& sums, int c, int count, Xyzz<F>* out) {
  int h = c / 2;  // c - 1 bits: columns take the larger half
  std::size_t columns = std::size_t{1} << h, rows = std::size_t{1} << (c - 1 - h);
  std::size_t total = count * rows * columns;
  std::vector<Affine<F>> row_sums(count * rows), column_sums(count * columns);
  sum_sorted(workers, BucketLines<F>{sums.data(), total, rows, columns, 1, columns}, row_sums.data());
  sum_sorted(workers, BucketLines<F>{sums.data(), total, columns, rows, columns, 1}, column_sums.data());
  parallel(workers.threads, count, [&](std::size_t w) {
    Xyzz<F> sum = running_sum(&row_sums[w * rows], rows, 0);
    for (int i = 0; i < h; i++) sum = sum.doubled();
    out[w] = sum + running_sum(&column_sums[w * columns], columns, 1);
  });
}

// Additions, in units of a batched affine one, that a window width costs. Within 2 % of the best width
// where all were tried: 8 at 2^10 points, 11 at 2^13 (chosen 10), 13 to 15 at 2^16 (BLS12-381 G1, EPYC
// Zen 4, 2026-11).
inline double window_cost(const LiveScalars& live, int c) {
  constexpr double bucket = 2.2, running = 2.5;
  Windows windows(c, live.max_bits);
  double buckets = static_cast<double>(windows.buckets()), cost = 0;
  std::size_t at_least[258] = {};
  for (int b = 256; b >= 0; b--) at_least[b] = at_least[b + 1] + live.bits[b];
  for (int w = 0; w < windows.count; w++) {
    double entries = static_cast<double>(at_least[std::max(1, std::min(257, c * w))]);
    cost += entries + bucket * std::min(buckets, 2 * entries) + running * 4 * std::sqrt(buckets) + buckets / 20;
  }
  return cost;
}

inline int window_width(const LiveScalars& live) {
  int best = 2;
  double least = window_cost(live, best);
  for (int c = 3; c <= 22; c++) {
    double cost = window_cost(live, c);
    if (cost < least) least = cost, best = c;
  }
  return best;
}

// Windows at a time: one a thread, or as many as make 2^20 entries or buckets; groups of equal size. n:
// the larger of both counts of a window.
inline int group_size(int windows, std::size_t n, int threads) {
  std::size_t most = std::max<std::size_t>(threads, (std::size_t{1} << 20) / n);
  most = std::max<std::size_t>(1, std::min(most, ((std::size_t{1} << 32) - 1) / n));
  std::size_t groups = (windows + most - 1) / most;
  return static_cast<int>((windows + groups - 1) / groups);
}

template <class F>
Xyzz<F> pippenger(LiveScalars& live, const Affine<F>* bases, int c, int threads) {
  Windows windows(c, live.max_bits);
  windows.shift(live, threads);
  int group = group_size(windows.count, std::max(live.size(), windows.buckets()), thread_count(threads));
  Workers<F> workers(threads);
  SortedDigits<F> sorted{bases, {}, {}};
  std::vector<Affine<F>> sums;
  std::vector<Xyzz<F>> weighted(windows.count);
  for (int first = 0; first < windows.count; first += group) {
    int count = std::min(group, windows.count - first);
    sort_digits(sorted, live, windows, first, count, threads);
    sums.assign(count * windows.buckets(), Affine<F>::infinity());
    sum_sorted(workers, sorted, sums.data());
    reduce_buckets(workers, sums, c, count, &weighted[first]);
  }
  Xyzz<F> sum = weighted[windows.count - 1];
  for (int w = windows.count - 1; w-- > 0;) {
    for (int i = 0; i < c; i++) sum = sum.doubled();
    sum = sum + weighted[w];
  }
  return sum;
}

// 32: at 48 buckets take 10 to 20 % less, at 16 they take 20 % more (both curves, G1 and G2; EPYC Zen 4,
// 2026-11).
constexpr std::size_t most_straus_points = 32;

// The width for n scalars of full length.
template <class Fr>
int msm_width(std::size_t n) {
  if (n <= most_straus_points) return straus_width;
  LiveScalars full;
  full.max_bits = Fr::P::bits - 1;
  full.bits[full.max_bits] = n;
  return window_width(full);
}

// `width` 0: chosen.
template <class F, class Fr>
Affine<F> msm(const Affine<F>* bases, std::size_t n, const ScalarRows& scalars, int threads, int width = 0) {
  if (n >= sign_bit) throw std::invalid_argument("bases: expected fewer than 2^31 points");
  LiveScalars live = live_scalars<F, Fr>(bases, n, scalars, threads);
  if (live.size() == 0) return Affine<F>::infinity();
  if (width == 0 && live.size() <= most_straus_points) return straus(live, bases, threads).to_affine();
  return pippenger(live, bases, width == 0 ? window_width(live) : width, threads).to_affine();
}

}  // namespace cuzk::CUZK_PATH
