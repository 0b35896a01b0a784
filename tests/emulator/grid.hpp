// A CUDA grid on the host: the threads of a block are fibers that switch at barriers, blocks run one after
// the other. Enough of CUDA C++ for the kernels in native/gpu; included before them by the emulator.
#pragma once

#ifndef __x86_64__
#include <ucontext.h>
#endif

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#endif

#define CUZK_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ [[gnu::noinline]]
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct uint3 {
  unsigned x, y, z;
};
using dim3 = uint3;
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

inline uint3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

namespace emulator {

constexpr std::size_t stack_bytes = 256 << 10;
enum State { ready, at_block_barrier, at_warp_barrier, done };

// Where a fiber, or the scheduler, was left.
#ifdef __x86_64__
struct Context {
  void* stack_pointer;
};
// The registers that a call preserves. No system call: swapcontext makes one, half of the time of most tests.
[[gnu::naked, gnu::noinline]] inline void exchange_stacks(Context*, const Context*) {
  asm volatile(
      "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
      "movq %rsp, (%rdi)\n movq (%rsi), %rsp\n"
      "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret");
}
inline void prepare(Context& context, char* stack, std::size_t bytes, void (*entry)(), Context&) {
  auto top = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(stack + bytes) / 16 * 16);
  *--top = nullptr;  // where a return address would be: the entry is never left
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; i++) *--top = nullptr;
  context.stack_pointer = top;
}
#else
using Context = ucontext_t;
inline void exchange_stacks(Context* from, const Context* to) { swapcontext(from, to); }
inline void prepare(Context& context, char* stack, std::size_t bytes, void (*entry)(), Context& scheduler) {
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = bytes;
  context.uc_link = &scheduler;
  makecontext(&context, entry, 0);
}
#endif

struct Fiber {
  Context context;
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  State state = done;
};

struct Release {
  void operator()(void* memory) const { std::free(memory); }
};

struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::unique_ptr<void, Release> dynamic_shared;  // to the byte: the address sanitizer sees what is beyond
  std::size_t shared_bytes = 0;
  std::vector<unsigned> order;  // of its threads, where it is random
  unsigned long long exchange[64][32];  // per warp: what lanes show each other
  Context scheduler;
  std::function<void()> body;
  unsigned current = 0;
};
inline Block block;

// What tests choose (tests/emulator/__init__.py): a seed for the order of blocks and of the threads between
// barriers (0: threads forwards and backwards, blocks in order), and what memory nobody wrote holds.
struct Options {
  unsigned long long seed = 0;
  int poison = 0xa5;
};
inline Options options;

inline unsigned random_below(unsigned n) {
  options.seed ^= options.seed << 13, options.seed ^= options.seed >> 7, options.seed ^= options.seed << 17;
  return static_cast<unsigned>((options.seed >> 32) * n >> 32);
}
inline void shuffle(std::vector<unsigned>& order) {
  for (std::size_t i = order.size(); i > 1; i--)
    std::swap(order[i - 1], order[random_below(static_cast<unsigned>(i))]);
}

inline void place(unsigned thread) {
  block.current = thread;
  threadIdx = {thread % blockDim.x, thread / blockDim.x, 0};
}

inline void wait(State state) {
  unsigned self = block.current;
  block.fibers[self]->state = state;
  exchange_stacks(&block.fibers[self]->context, &block.scheduler);
  place(self);
}

inline void start() {
  block.body();
  Fiber& self = *block.fibers[block.current];
  self.state = done;
  exchange_stacks(&self.context, &block.scheduler);
}

[[noreturn]] inline void fail(const char* why) {
  std::fprintf(stderr, "emulator: %s in block %u\n", why, blockIdx.x);
  std::abort();
}

// Let go of the lanes [begin, end) if all that still run wait at the same kind of barrier.
inline bool release(unsigned begin, unsigned end, State barrier) {
  bool any = false, left = false;
  for (unsigned t = begin; t < end; t++) {
    State state = block.fibers[t]->state;
    left |= state == done;
    if (state == done) continue;
    if (state != barrier) return false;
    any = true;
  }
  if (any && left && barrier == at_warp_barrier) fail("lanes of a warp are gone that others wait for");
  for (unsigned t = begin; any && t < end; t++)
    if (block.fibers[t]->state == barrier) block.fibers[t]->state = ready;
  return any;
}

// Every thread that can run, once; in a random order some, and with them their warps, fall behind.
inline bool run_threads(unsigned threads, bool backwards) {
  bool moved = false;
  if (options.seed) shuffle(block.order);
  for (unsigned i = 0; i < threads; i++) {
    unsigned t = options.seed ? block.order[i] : backwards ? threads - 1 - i : i;
    Fiber& fiber = *block.fibers[t];
    if (fiber.state != ready) continue;
    moved = true;
    if (options.seed && random_below(4) == 0) continue;
    place(t);
    exchange_stacks(&block.scheduler, &fiber.context);
  }
  return moved;
}

inline void run_block(unsigned threads) {
  if (block.shared_bytes) std::memset(block.dynamic_shared.get(), options.poison, block.shared_bytes);
  while (block.fibers.size() < threads) block.fibers.push_back(std::make_unique<Fiber>());
  block.order.clear();
  for (unsigned t = 0; t < threads; t++) {
    Fiber& fiber = *block.fibers[t];
    ASAN_UNPOISON_MEMORY_REGION(fiber.stack.get(), stack_bytes);  // frames that were never left
    prepare(fiber.context, fiber.stack.get(), stack_bytes, start, block.scheduler);
    fiber.state = ready;
    block.order.push_back(t);
  }
  bool backwards = blockIdx.x % 2;  // one order would hide many a barrier that is missing
  for (bool moved = true; moved; backwards = !backwards) {
    moved = run_threads(threads, backwards);
    for (unsigned t = 0; t < threads; t += 32)
      moved |= release(t, t + 32 < threads ? t + 32 : threads, at_warp_barrier);
    moved |= release(0, threads, at_block_barrier);
  }
  for (unsigned t = 0; t < threads; t++)
    if (block.fibers[t]->state != done) fail("threads wait at different barriers");
}

template <class... Parameters>
constexpr unsigned parameters(void (*)(Parameters...)) {
  return sizeof...(Parameters);
}

template <class... Parameters>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, std::size_t shared,
            const unsigned long long* args) {
  static_assert(((sizeof(Parameters) == 8) && ...), "kernel parameters are 64 bits wide");
  void* memory = nullptr;
  if (posix_memalign(&memory, 16, shared)) fail("no memory");
  block.dynamic_shared.reset(memory), block.shared_bytes = shared;
  gridDim = {blocks, 1, 1}, blockDim = {threads, 1, 1};
  block.body = [=] {
    std::size_t i = sizeof...(Parameters);  // braces fix the order of evaluation
    auto next = [&]<class T>(T*) {
      unsigned long long word = args[sizeof...(Parameters) - i--];
      T value;
      std::memcpy(&value, &word, 8);
      return value;
    };
    std::tuple<Parameters...> values{next(static_cast<Parameters*>(nullptr))...};
    std::apply(kernel, values);
  };
  std::vector<unsigned> order(blocks);
  for (unsigned b = 0; b < blocks; b++) order[b] = b;
  if (options.seed) shuffle(order);
  for (unsigned b : order) {
    blockIdx = {b, 0, 0};
    run_block(threads);
  }
}

}  // namespace emulator

inline void* emulated_shared() { return emulator::block.dynamic_shared.get(); }

inline void __syncthreads() { emulator::wait(emulator::at_block_barrier); }
inline void __syncwarp(unsigned = ~0u) { emulator::wait(emulator::at_warp_barrier); }
inline void __threadfence() {}
inline int __syncthreads_or(int predicate) {
  static int any;
  __syncthreads();
  any = 0;
  __syncthreads();
  if (predicate) any = 1;
  __syncthreads();
  return any;
}

// Every lane shows a value, then reads that of the lane it asks for.
template <class T>
T __shfl_sync(unsigned, T value, int lane, int width = 32) {
  static_assert(sizeof(T) <= 8);
  unsigned self = emulator::block.current % 32;
  auto* row = emulator::block.exchange[emulator::block.current / 32];
  std::memcpy(&row[self], &value, sizeof(T));
  __syncwarp();
  T result;
  std::memcpy(&result, &row[self / width * width + lane % width], sizeof(T));
  __syncwarp();
  return result;
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by, int = 32) {
  return __shfl_sync(mask, value, emulator::block.current % 32 ^ by);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int = 32) {
  unsigned lane = emulator::block.current % 32;
  return __shfl_sync(mask, value, lane + by < 32 ? lane + by : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int = 32) {
  unsigned lane = emulator::block.current % 32;
  return __shfl_sync(mask, value, lane >= by ? lane - by : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  auto* row = emulator::block.exchange[emulator::block.current / 32];
  row[emulator::block.current % 32] = predicate != 0;
  __syncwarp();
  unsigned bits = 0;
  for (int lane = 0; lane < 32; lane++)
    if (mask >> lane & 1 && row[lane]) bits |= 1u << lane;
  __syncwarp();
  return bits;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }

template <class T>
T atomicAdd(T* at, T value) {
  T before = *at;
  *at += value;
  return before;
}
template <class T>
T atomicMin(T* at, T value) {
  T before = *at;
  if (value < before) *at = value;
  return before;
}
template <class T>
T atomicMax(T* at, T value) {
  T before = *at;
  if (value > before) *at = value;
  return before;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
  return y;
}
template <class T>
T __ldg(const T* at) {
  return *at;
}
