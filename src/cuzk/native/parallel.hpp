// Run tasks 0..count-1 on up to `threads` threads; the caller's thread is one of them. Threads end with
// the call: nothing lingers, and a fork between calls is safe. Host only.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace cuzk {

// Threads that a call asking for so many may use: at least 1, and no more than any machine has cores for.
inline int thread_count(int asked) {
  constexpr int most = 1024;
  return asked < 1 ? 1 : asked > most ? most : asked;
}

template <class Task>
void parallel(int threads, std::size_t count, Task task) {
  std::size_t workers = static_cast<std::size_t>(thread_count(threads));
  if (workers > count) workers = count;
  if (workers <= 1) {
    for (std::size_t i = 0; i < count; i++) task(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  auto work = [&] {
    try {
      for (std::size_t i; (i = next.fetch_add(1)) < count;) task(i);
    } catch (...) {
      std::lock_guard<std::mutex> hold(failure_lock);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> pool;
  pool.reserve(workers - 1);
  for (std::size_t i = 1; i < workers; i++) {
    try {
      pool.emplace_back(work);
    } catch (const std::exception&) {  // no thread (system_error) or no memory for one (bad_alloc)
      break;                           // fewer threads than asked for is slower, not wrong
    }
  }
  work();
  for (auto& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

// Cut 0..total into about 8 pieces per thread and run body(begin, end) on each.
template <class Body>
void parallel_ranges(int threads, std::size_t total, Body body, std::size_t at_least = 1024) {
  std::size_t workers = static_cast<std::size_t>(thread_count(threads));
  std::size_t pieces = workers == 1 ? 1 : workers * 8;
  std::size_t step = (total + pieces - 1) / pieces;
  if (step < at_least) step = at_least;
  std::size_t count = total == 0 ? 0 : (total + step - 1) / step;
  parallel(threads, count, [&](std::size_t i) {
    std::size_t begin = i * step;
    body(begin, begin + step < total ? begin + step : total);
  });
}

}  // namespace cuzk
