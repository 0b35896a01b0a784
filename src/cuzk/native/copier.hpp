// Copies between places in host memory by threads that wait for the next copy.
//
// A copy is a number: `begin` puts it behind those before it and returns, `wait` returns when it and all before it are
// done; the thread that waits copies, too. Threads take 256 KiB at a time from the oldest copy that has any left, so
// that none rests between one copy and the next. They are started by the first copy that is worth it (some 50 us
// each), and end when there was nothing to copy for 20 ms, or with `close`: batches that follow one another find
// them, and none is there long after the last. Where the system gives no thread, fewer copy, or the caller alone.
//
// Calls may come from any thread. After a fork the child has no threads and an unknown state: it leaves what it
// inherited untouched (and unfreed) and begins anew. Host only.
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "parallel.hpp"

namespace cuzk {

class Crew {
 public:
  explicit Crew(int threads) : workers_(static_cast<std::size_t>(thread_count(threads) - 1)) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() { close(); }

  // Short of threads, `start` is worth a call.
  std::uint64_t begin(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    std::uint64_t number;
    {
      std::lock_guard<std::mutex> hold(lock_);
      copies_.push_back({to, from, n, 0, n});
      number = done_ + copies_.size();
      settle();
    }
    work_.notify_all();
    return number;
  }

  bool short_of_threads(std::size_t n) {
    std::lock_guard<std::mutex> hold(lock_);
    return n >= kWorth && count() < workers_.size();
  }

  void start() {
    std::lock_guard<std::mutex> alone(starting_);
    for (Worker& worker : workers_) {
      {
        std::lock_guard<std::mutex> hold(lock_);
        if (!worker.ended) continue;
        worker.ended = false;
      }
      if (worker.thread.joinable()) worker.thread.join();  // it has ended
      try {
        worker.thread = std::thread([this, &worker] { run(worker); });
      } catch (const std::exception&) {  // no thread, or no memory for one: fewer are slower, not wrong
        std::lock_guard<std::mutex> hold(lock_);
        worker.ended = true;
        return;
      }
    }
  }

  void wait(std::uint64_t number) {
    std::unique_lock<std::mutex> hold(lock_);
    while (done_ < number && !copies_.empty())
      if (!copy_some(hold)) finished_.wait(hold);
  }

  // The number of the last copy that is done, all before it being done, too.
  std::uint64_t done() {
    std::lock_guard<std::mutex> hold(lock_);
    return done_;
  }

  // Give up what no thread has begun; nothing is read or written from then on. Threads come again with `begin`.
  void close() {
    std::lock_guard<std::mutex> alone(starting_);
    std::uint64_t last;
    {
      std::lock_guard<std::mutex> hold(lock_);
      last = done_ + copies_.size();
      for (Copy& copy : copies_) {
        copy.left -= copy.n - copy.next;
        copy.next = copy.n;
      }
      settle();
      closing_ = true;
    }
    work_.notify_all();
    for (Worker& worker : workers_)
      if (worker.thread.joinable()) worker.thread.join();
    std::unique_lock<std::mutex> hold(lock_);
    finished_.wait(hold, [&] { return done_ >= last; });  // a part that another caller copies
    closing_ = false;
  }

  std::size_t threads() {
    std::lock_guard<std::mutex> hold(lock_);
    return count();
  }

 private:
  struct Copy {
    std::uint8_t* to;
    const std::uint8_t* from;
    std::size_t n, next, left;  // bytes: all, those that threads have taken, those that are not copied
  };
  struct Worker {
    std::thread thread;
    bool ended = true;
  };

  static constexpr std::size_t kPart = std::size_t{256} << 10;  // 50 us of one thread
  static constexpr std::size_t kWorth = std::size_t{1} << 20;   // less than that is copied sooner than a thread starts
  static constexpr std::chrono::milliseconds kIdle{20};

  std::mutex lock_, starting_;
  std::condition_variable work_, finished_;
  std::deque<Copy> copies_;  // whose references stay when others come and go at its ends
  std::uint64_t done_ = 0;   // copies before the front one
  bool closing_ = false;
  std::vector<Worker> workers_;

  std::size_t count() const {
    std::size_t found = 0;
    for (const Worker& worker : workers_) found += !worker.ended;
    return found;
  }

  void run(Worker& me) {
    std::unique_lock<std::mutex> hold(lock_);
    for (auto last = std::chrono::steady_clock::now(); !closing_;) {
      if (copy_some(hold)) {
        last = std::chrono::steady_clock::now();
      } else if (work_.wait_until(hold, last + kIdle) == std::cv_status::timeout && !next()) {
        break;
      }
    }
    me.ended = true;
  }

  Copy* next() {
    for (Copy& copy : copies_)
      if (copy.next < copy.n) return &copy;
    return nullptr;
  }

  // One part, with the lock free meanwhile; false where there is none to take.
  bool copy_some(std::unique_lock<std::mutex>& hold) {
    Copy* copy = next();
    if (!copy) return false;
    std::size_t at = copy->next, n = copy->n - at < kPart ? copy->n - at : kPart;
    copy->next += n;
    hold.unlock();
    std::memcpy(copy->to + at, copy->from + at, n);
    hold.lock();
    copy->left -= n;
    settle();
    return true;
  }

  void settle() {
    bool any = false;
    for (; !copies_.empty() && copies_.front().left == 0; done_++, any = true) copies_.pop_front();
    if (any) finished_.notify_all();
  }
};

// The threads of this process: those of the process that it was forked from are not.
class Copier {
 public:
  explicit Copier(int threads) : threads_(threads), crew_(std::make_unique<Crew>(threads)) {}
  ~Copier() { renew(); }

  Crew& crew() { return *crew_; }

  // True in a child at its first call: none of the copies that were begun is under way.
  bool renew() {
    if (pid_ == getpid()) return false;
    (void)crew_.release();
    crew_ = std::make_unique<Crew>(threads_);
    pid_ = getpid();
    return true;
  }

 private:
  int threads_;
  pid_t pid_ = getpid();
  std::unique_ptr<Crew> crew_;
};

}  // namespace cuzk
