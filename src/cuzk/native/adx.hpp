// Montgomery arithmetic on x86-64 with mulx, adcx and adox: 4 and 6 words, fully unrolled.
//
// A row adds a * b_i to the accumulator on two independent carry chains (adcx the low halves, adox the high
// ones); the next row adds q * p, q = t0 * (-p^-1) mod 2^64, which turns the lowest word into zero. That
// word is then the zero at the top of the next round, so the registers rotate instead of moving.
// Instructions appear in inline assembly only (see CMakeLists.txt). Included by word.hpp.
#pragma once

namespace cuzk::CUZK_PATH {

// lo_acc += low(word * rdx) on CF, hi_acc += high(...) on OF. (In the other order 4 words take 4 % longer,
// 6 words 1 %: Zen 4, 2026-11.)
#define CUZK_MAC(word, lo_acc, hi_acc)                                                              \
  "mulxq %[" #word "], %[lo], %[hi]\n\t"                                                            \
  "adoxq %[hi], %[" #hi_acc "]\n\t"                                                                 \
  "adcxq %[lo], %[" #lo_acc "]\n\t"
// First row: lo_acc = lo_acc + low, hi_acc = high.
#define CUZK_MUL_FIRST(word, lo_acc, hi_acc)                                                        \
  "mulxq %[" #word "], %[lo], %[" #hi_acc "]\n\t"                                                   \
  "adcq %[lo], %[" #lo_acc "]\n\t"
#define CUZK_LOAD(word) "movq %[" #word "], %%rdx\n\t"
#define CUZK_CLEAR_FLAGS "xorl %k[lo], %k[lo]\n\t"
#define CUZK_CLOSE_MUL(top) "movl $0, %k[lo]\n\t" "adcxq %[lo], %[" #top "]\n\t"
#define CUZK_QUOTIENT(t0) "movq %[" #t0 "], %%rdx\n\t" "imulq %[inverse], %%rdx\n\t" CUZK_CLEAR_FLAGS
#define CUZK_CLOSE_REDUCE(t0, top) "adcxq %[" #t0 "], %[" #top "]\n\t"

#define CUZK_REDUCE4(t0, t1, t2, t3, t4)                                                            \
  CUZK_QUOTIENT(t0) CUZK_MAC(p0, t0, t1) CUZK_MAC(p1, t1, t2) CUZK_MAC(p2, t2, t3)                  \
  CUZK_MAC(p3, t3, t4) CUZK_CLOSE_REDUCE(t0, t4)
#define CUZK_ROUND4(b, t0, t1, t2, t3, t4)                                                          \
  CUZK_LOAD(b) CUZK_CLEAR_FLAGS CUZK_MAC(a0, t0, t1) CUZK_MAC(a1, t1, t2)                           \
  CUZK_MAC(a2, t2, t3) CUZK_MAC(a3, t3, t4) CUZK_CLOSE_MUL(t4)                                      \
  CUZK_REDUCE4(t0, t1, t2, t3, t4)

#define CUZK_REDUCE6(t0, t1, t2, t3, t4, t5, t6)                                                    \
  CUZK_QUOTIENT(t0) CUZK_MAC(p0, t0, t1) CUZK_MAC(p1, t1, t2) CUZK_MAC(p2, t2, t3)                  \
  CUZK_MAC(p3, t3, t4) CUZK_MAC(p4, t4, t5) CUZK_MAC(p5, t5, t6)                                    \
  CUZK_CLOSE_REDUCE(t0, t6)
#define CUZK_ROUND6(b, t0, t1, t2, t3, t4, t5, t6)                                                  \
  CUZK_LOAD(b) CUZK_CLEAR_FLAGS CUZK_MAC(a0, t0, t1) CUZK_MAC(a1, t1, t2)                           \
  CUZK_MAC(a2, t2, t3) CUZK_MAC(a3, t3, t4) CUZK_MAC(a4, t4, t5)                                    \
  CUZK_MAC(a5, t5, t6) CUZK_CLOSE_MUL(t6) CUZK_REDUCE6(t0, t1, t2, t3, t4, t5, t6)

// Input operands name0, name1, ...
#define CUZK_WORDS4(name, array)                                                                    \
  [name##0] "m"(array[0]), [name##1] "m"(array[1]), [name##2] "m"(array[2]), [name##3] "m"(array[3])
#define CUZK_WORDS6(name, array)                                                                    \
  CUZK_WORDS4(name, array), [name##4] "m"(array[4]), [name##5] "m"(array[5])

// An array operand addressed through one register: clang takes two (base and index), and has not enough of
// them for 6 words.
#ifdef __clang__
#define CUZK_ONE_BASE(array)                                                                        \
  const u64* array##_base = array;                                                                  \
  asm("" : "+r"(array##_base));
#define CUZK_ARRAY(array) array##_base
#else
#define CUZK_ONE_BASE(array)
#define CUZK_ARRAY(array) array
#endif

using Words4 = u64[4];
using Words6 = u64[6];

// t - p if that is not negative, else t.
template <class P>
[[gnu::always_inline]] inline void adx_reduce(u64 (&r)[4], u64 t0, u64 t1, u64 t2, u64 t3) {
  u64 s0 = t0, s1 = t1, s2 = t2, s3 = t3;
  asm("subq %[p0], %[s0]\n\t"
      "sbbq %[p1], %[s1]\n\t"
      "sbbq %[p2], %[s2]\n\t"
      "sbbq %[p3], %[s3]\n\t"
      "cmovcq %[t0], %[s0]\n\t"
      "cmovcq %[t1], %[s1]\n\t"
      "cmovcq %[t2], %[s2]\n\t"
      "cmovcq %[t3], %[s3]\n\t"
      : [s0] "+&r"(s0), [s1] "+&r"(s1), [s2] "+&r"(s2), [s3] "+&r"(s3)
      : [t0] "r"(t0), [t1] "r"(t1), [t2] "r"(t2), [t3] "r"(t3), CUZK_WORDS4(p, P::modulus)
      : "cc");
  r[0] = s0, r[1] = s1, r[2] = s2, r[3] = s3;
}
template <class P>
[[gnu::always_inline]] inline void adx_reduce(u64 (&r)[6], u64 t0, u64 t1, u64 t2, u64 t3, u64 t4, u64 t5) {
  u64 s0 = t0, s1 = t1, s2 = t2, s3 = t3, s4 = t4, s5 = t5;
  asm("subq %[p0], %[s0]\n\t"
      "sbbq %[p1], %[s1]\n\t"
      "sbbq %[p2], %[s2]\n\t"
      "sbbq %[p3], %[s3]\n\t"
      "sbbq %[p4], %[s4]\n\t"
      "sbbq %[p5], %[s5]\n\t"
      "cmovcq %[t0], %[s0]\n\t"
      "cmovcq %[t1], %[s1]\n\t"
      "cmovcq %[t2], %[s2]\n\t"
      "cmovcq %[t3], %[s3]\n\t"
      "cmovcq %[t4], %[s4]\n\t"
      "cmovcq %[t5], %[s5]\n\t"
      : [s0] "+&r"(s0), [s1] "+&r"(s1), [s2] "+&r"(s2), [s3] "+&r"(s3), [s4] "+&r"(s4), [s5] "+&r"(s5)
      : [t0] "rm"(t0), [t1] "rm"(t1), [t2] "rm"(t2), [t3] "rm"(t3), [t4] "rm"(t4), [t5] "rm"(t5),
        CUZK_WORDS6(p, P::modulus)
      : "cc");
  r[0] = s0, r[1] = s1, r[2] = s2, r[3] = s3, r[4] = s4, r[5] = s5;
}

template <class P>
[[gnu::always_inline]] inline void adx_add(u64 (&r)[4], const Words4& a, const Words4& b) {
  u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3];
  asm("addq %[b0], %[t0]\n\t"
      "adcq %[b1], %[t1]\n\t"
      "adcq %[b2], %[t2]\n\t"
      "adcq %[b3], %[t3]\n\t"
      : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3)
      : CUZK_WORDS4(b, b)
      : "cc");
  adx_reduce<P>(r, t0, t1, t2, t3);
}
template <class P>
[[gnu::always_inline]] inline void adx_add(u64 (&r)[6], const Words6& a, const Words6& b) {
  u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3], t4 = a[4], t5 = a[5];
  asm("addq %[b0], %[t0]\n\t"
      "adcq %[b1], %[t1]\n\t"
      "adcq %[b2], %[t2]\n\t"
      "adcq %[b3], %[t3]\n\t"
      "adcq %[b4], %[t4]\n\t"
      "adcq %[b5], %[t5]\n\t"
      : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [t4] "+&r"(t4), [t5] "+&r"(t5)
      : CUZK_WORDS6(b, b)
      : "cc");
  adx_reduce<P>(r, t0, t1, t2, t3, t4, t5);
}

// a - b, plus p where that is negative.
template <class P>
[[gnu::always_inline]] inline void adx_sub(u64 (&r)[4], const Words4& a, const Words4& b) {
  u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3], s0, s1, s2, mask;
  asm("subq %[b0], %[t0]\n\t"
      "sbbq %[b1], %[t1]\n\t"
      "sbbq %[b2], %[t2]\n\t"
      "sbbq %[b3], %[t3]\n\t"
      "sbbq %[mask], %[mask]\n\t"
      "movq %[p0], %[s0]\n\t"
      "movq %[p1], %[s1]\n\t"
      "movq %[p2], %[s2]\n\t"
      "andq %[mask], %[s0]\n\t"
      "andq %[mask], %[s1]\n\t"
      "andq %[mask], %[s2]\n\t"
      "andq %[p3], %[mask]\n\t"
      "addq %[s0], %[t0]\n\t"
      "adcq %[s1], %[t1]\n\t"
      "adcq %[s2], %[t2]\n\t"
      "adcq %[mask], %[t3]\n\t"
      : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [s0] "=&r"(s0), [s1] "=&r"(s1),
        [s2] "=&r"(s2), [mask] "=&r"(mask)
      : CUZK_WORDS4(b, b), CUZK_WORDS4(p, P::modulus)
      : "cc");
  r[0] = t0, r[1] = t1, r[2] = t2, r[3] = t3;
}
template <class P>
[[gnu::always_inline]] inline void adx_sub(u64 (&r)[6], const Words6& a, const Words6& b) {
  u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3], t4 = a[4], t5 = a[5], s0, s1, s2, s3, s4, mask;
  asm("subq %[b0], %[t0]\n\t"
      "sbbq %[b1], %[t1]\n\t"
      "sbbq %[b2], %[t2]\n\t"
      "sbbq %[b3], %[t3]\n\t"
      "sbbq %[b4], %[t4]\n\t"
      "sbbq %[b5], %[t5]\n\t"
      "sbbq %[mask], %[mask]\n\t"
      "movq %[p0], %[s0]\n\t"
      "movq %[p1], %[s1]\n\t"
      "movq %[p2], %[s2]\n\t"
      "movq %[p3], %[s3]\n\t"
      "movq %[p4], %[s4]\n\t"
      "andq %[mask], %[s0]\n\t"
      "andq %[mask], %[s1]\n\t"
      "andq %[mask], %[s2]\n\t"
      "andq %[mask], %[s3]\n\t"
      "andq %[mask], %[s4]\n\t"
      "andq %[p5], %[mask]\n\t"
      "addq %[s0], %[t0]\n\t"
      "adcq %[s1], %[t1]\n\t"
      "adcq %[s2], %[t2]\n\t"
      "adcq %[s3], %[t3]\n\t"
      "adcq %[s4], %[t4]\n\t"
      "adcq %[mask], %[t5]\n\t"
      : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [t4] "+&r"(t4), [t5] "+&r"(t5),
        [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [s4] "=&r"(s4), [mask] "=&r"(mask)
      : CUZK_WORDS6(b, b), CUZK_WORDS6(p, P::modulus)
      : "cc");
  r[0] = t0, r[1] = t1, r[2] = t2, r[3] = t3, r[4] = t4, r[5] = t5;
}

template <class P>
[[gnu::always_inline]] inline void adx_mul(u64 (&r)[4], const Words4& a, const Words4& b) {
  u64 t0, t1, t2, t3, t4, lo, hi;
  asm(CUZK_LOAD(b0) CUZK_CLEAR_FLAGS
      "mulxq %[a0], %[t0], %[t1]\n\t"
      CUZK_MUL_FIRST(a1, t1, t2) CUZK_MUL_FIRST(a2, t2, t3) CUZK_MUL_FIRST(a3, t3, t4)
      "adcq $0, %[t4]\n\t"
      CUZK_REDUCE4(t0, t1, t2, t3, t4)
      CUZK_ROUND4(b1, t1, t2, t3, t4, t0)
      CUZK_ROUND4(b2, t2, t3, t4, t0, t1)
      CUZK_ROUND4(b3, t3, t4, t0, t1, t2)
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [lo] "=&r"(lo),
        [hi] "=&r"(hi)
      : CUZK_WORDS4(a, a), CUZK_WORDS4(b, b), CUZK_WORDS4(p, P::modulus), [inverse] "rm"(P::inverse)
      : "rdx", "cc");
  adx_reduce<P>(r, t4, t0, t1, t2);
}

template <class P>
[[gnu::always_inline]] inline void adx_mul(u64 (&r)[6], const Words6& a, const Words6& b) {
  CUZK_ONE_BASE(a) CUZK_ONE_BASE(b)
  u64 t0, t1, t2, t3, t4, t5, t6, lo, hi;
  asm(CUZK_LOAD(b0) CUZK_CLEAR_FLAGS
      "mulxq %[a0], %[t0], %[t1]\n\t"
      CUZK_MUL_FIRST(a1, t1, t2) CUZK_MUL_FIRST(a2, t2, t3) CUZK_MUL_FIRST(a3, t3, t4)
      CUZK_MUL_FIRST(a4, t4, t5) CUZK_MUL_FIRST(a5, t5, t6)
      "adcq $0, %[t6]\n\t"
      CUZK_REDUCE6(t0, t1, t2, t3, t4, t5, t6)
      CUZK_ROUND6(b1, t1, t2, t3, t4, t5, t6, t0)
      CUZK_ROUND6(b2, t2, t3, t4, t5, t6, t0, t1)
      CUZK_ROUND6(b3, t3, t4, t5, t6, t0, t1, t2)
      CUZK_ROUND6(b4, t4, t5, t6, t0, t1, t2, t3)
      CUZK_ROUND6(b5, t5, t6, t0, t1, t2, t3, t4)
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [t5] "=&r"(t5),
        [t6] "=&r"(t6), [lo] "=&r"(lo), [hi] "=&r"(hi)
      : CUZK_WORDS6(a, CUZK_ARRAY(a)), CUZK_WORDS6(b, CUZK_ARRAY(b)), CUZK_WORDS6(p, P::modulus),
        [inverse] "rm"(P::inverse)
      : "rdx", "cc");
  adx_reduce<P>(r, t6, t0, t1, t2, t3, t4);
}

// t += a * b, and t <- (t + q p) / 2^64 with a quotient q that leaves nothing over: sums of products (dot.hpp).
[[gnu::always_inline]] inline void adx_add_row(u64 (&t)[6], const Words4& a, u64 b) {
  u64 lo, hi;
  asm("movq %[b], %%rdx\n\t" CUZK_CLEAR_FLAGS CUZK_MAC(a0, t0, t1) CUZK_MAC(a1, t1, t2) CUZK_MAC(a2, t2, t3)
      CUZK_MAC(a3, t3, t4) CUZK_CLOSE_MUL(t4)
      "adcxq %[lo], %[t5]\n\t"
      "adoxq %[lo], %[t5]\n\t"
      : [t0] "+&r"(t[0]), [t1] "+&r"(t[1]), [t2] "+&r"(t[2]), [t3] "+&r"(t[3]), [t4] "+&r"(t[4]),
        [t5] "+&r"(t[5]), [lo] "=&r"(lo), [hi] "=&r"(hi)
      : CUZK_WORDS4(a, a), [b] "rm"(b)
      : "rdx", "cc");
}
template <class P>
[[gnu::always_inline]] inline void adx_reduce_row(u64 (&t)[6]) {
  u64 lo, hi;
  asm(CUZK_REDUCE4(t0, t1, t2, t3, t4)
      "adcxq %[t0], %[t5]\n\t"
      "adoxq %[t0], %[t5]\n\t"
      : [t0] "+&r"(t[0]), [t1] "+&r"(t[1]), [t2] "+&r"(t[2]), [t3] "+&r"(t[3]), [t4] "+&r"(t[4]),
        [t5] "+&r"(t[5]), [lo] "=&r"(lo), [hi] "=&r"(hi)
      : CUZK_WORDS4(p, P::modulus), [inverse] "rm"(P::inverse)
      : "rdx", "cc");
  for (int i = 0; i < 5; i++) t[i] = t[i + 1];
  t[5] = 0;
}

#undef CUZK_ONE_BASE
#undef CUZK_ARRAY
#undef CUZK_MAC
#undef CUZK_MUL_FIRST
#undef CUZK_LOAD
#undef CUZK_CLEAR_FLAGS
#undef CUZK_CLOSE_MUL
#undef CUZK_QUOTIENT
#undef CUZK_CLOSE_REDUCE
#undef CUZK_WORDS4
#undef CUZK_WORDS6
#undef CUZK_REDUCE4
#undef CUZK_ROUND4
#undef CUZK_REDUCE6
#undef CUZK_ROUND6

}  // namespace cuzk::CUZK_PATH
