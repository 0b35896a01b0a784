// The rows of limbs.hpp as PTX; included by it. One statement is one chain of carries: the flag is not
// kept between statements. ptxas makes one IMAD.WIDE.U32.X of a pair mad.lo, mad.hi on two halves of a
// 64-bit operand, and no instruction of the moves around it.
#pragma once

namespace cuzk::CUZK_PATH {

// Column %c += %a * %b, with the first carry in or without one (`mad.lo.cc`, `madc.lo.cc`).
#define CUZK_MAD(op, c, a, b)                                                             \
  "{.reg .u32 l, h; mov.b64 {l, h}, %" #c "; " op " l, %" #a ", %" #b ", l; madc.hi.cc.u32 h, %" #a ", %" #b \
  ", h; mov.b64 %" #c ", {l, h};}\n\t"
#define CUZK_FIRST(c, a, b) CUZK_MAD("mad.lo.cc.u32", c, a, b)
#define CUZK_NEXT(c, a, b) CUZK_MAD("madc.lo.cc.u32", c, a, b)
#define CUZK_TOP(t) "addc.u32 %" #t ", %" #t ", 0;"

#define CUZK_COLUMNS1(c) "+&l"((c)[0])
#define CUZK_COLUMNS2(c) CUZK_COLUMNS1(c), "+&l"((c)[1])
#define CUZK_COLUMNS3(c) CUZK_COLUMNS2(c), "+&l"((c)[2])
#define CUZK_COLUMNS4(c) CUZK_COLUMNS3(c), "+&l"((c)[3])
#define CUZK_COLUMNS5(c) CUZK_COLUMNS4(c), "+&l"((c)[4])
#define CUZK_COLUMNS6(c) CUZK_COLUMNS5(c), "+&l"((c)[5])
#define CUZK_EVERY_SECOND1(a) "r"((a)[0])
#define CUZK_EVERY_SECOND2(a) CUZK_EVERY_SECOND1(a), "r"((a)[2])
#define CUZK_EVERY_SECOND3(a) CUZK_EVERY_SECOND2(a), "r"((a)[4])
#define CUZK_EVERY_SECOND4(a) CUZK_EVERY_SECOND3(a), "r"((a)[6])
#define CUZK_EVERY_SECOND5(a) CUZK_EVERY_SECOND4(a), "r"((a)[8])
#define CUZK_EVERY_SECOND6(a) CUZK_EVERY_SECOND5(a), "r"((a)[10])
// columns[j] += a[2 j] * b, top += the carry.
template <int K>
inline void add_products(u64* columns, const u32* a, u32 b, u32& top) {
  if constexpr (K == 1)
    asm(CUZK_FIRST(1, 3, 2) CUZK_TOP(0)
        : "+&r"(top), CUZK_COLUMNS1(columns) : "r"(b), CUZK_EVERY_SECOND1(a));
  else if constexpr (K == 2)
    asm(CUZK_FIRST(1, 4, 3) CUZK_NEXT(2, 5, 3) CUZK_TOP(0)
        : "+&r"(top), CUZK_COLUMNS2(columns) : "r"(b), CUZK_EVERY_SECOND2(a));
  else if constexpr (K == 3)
    asm(CUZK_FIRST(1, 5, 4) CUZK_NEXT(2, 6, 4) CUZK_NEXT(3, 7, 4) CUZK_TOP(0)
        : "+&r"(top), CUZK_COLUMNS3(columns) : "r"(b), CUZK_EVERY_SECOND3(a));
  else if constexpr (K == 4)
    asm(CUZK_FIRST(1, 6, 5) CUZK_NEXT(2, 7, 5) CUZK_NEXT(3, 8, 5) CUZK_NEXT(4, 9, 5) CUZK_TOP(0)
        : "+&r"(top), CUZK_COLUMNS4(columns) : "r"(b), CUZK_EVERY_SECOND4(a));
  else if constexpr (K == 5)
    asm(CUZK_FIRST(1, 7, 6) CUZK_NEXT(2, 8, 6) CUZK_NEXT(3, 9, 6) CUZK_NEXT(4, 10, 6)
        CUZK_NEXT(5, 11, 6) CUZK_TOP(0)
        : "+&r"(top), CUZK_COLUMNS5(columns) : "r"(b), CUZK_EVERY_SECOND5(a));
  else {
    static_assert(K == 6);
    asm(CUZK_FIRST(1, 8, 7) CUZK_NEXT(2, 9, 7) CUZK_NEXT(3, 10, 7) CUZK_NEXT(4, 11, 7)
        CUZK_NEXT(5, 12, 7) CUZK_NEXT(6, 13, 7) CUZK_TOP(0)
        : "+&r"(top), CUZK_COLUMNS6(columns) : "r"(b), CUZK_EVERY_SECOND6(a));
  }
}

// The same after low += x, whose carry is one of column 0.
template <int K>
inline void add_products_after(u32& low, u32 x, u64* columns, const u32* a, u32 b) {
  if constexpr (K == 4)
    asm("add.cc.u32 %0, %0, %5;\n\t"
        CUZK_NEXT(1, 7, 6) CUZK_NEXT(2, 8, 6) CUZK_NEXT(3, 9, 6) CUZK_NEXT(4, 10, 6)
        : "+&r"(low), CUZK_COLUMNS4(columns) : "r"(x), "r"(b), CUZK_EVERY_SECOND4(a));
  else {
    static_assert(K == 6);
    asm("add.cc.u32 %0, %0, %7;\n\t"
        CUZK_NEXT(1, 9, 8) CUZK_NEXT(2, 10, 8) CUZK_NEXT(3, 11, 8) CUZK_NEXT(4, 12, 8)
        CUZK_NEXT(5, 13, 8) CUZK_NEXT(6, 14, 8)
        : "+&r"(low), CUZK_COLUMNS6(columns) : "r"(x), "r"(b), CUZK_EVERY_SECOND6(a));
  }
}

// low += x, quotient = low * inverse, and the row of the quotient.
template <int K>
inline void add_quotient_after(u32& low, u32 x, u32& quotient, u32 inverse, u64* columns, const u32* p) {
  if constexpr (K == 4)
    asm("add.cc.u32 %0, %0, %6; mul.lo.u32 %5, %0, %7;\n\t"
        CUZK_NEXT(1, 8, 5) CUZK_NEXT(2, 9, 5) CUZK_NEXT(3, 10, 5) CUZK_NEXT(4, 11, 5)
        : "+&r"(low), CUZK_COLUMNS4(columns), "=&r"(quotient) : "r"(x), "r"(inverse), CUZK_EVERY_SECOND4(p));
  else {
    static_assert(K == 6);
    asm("add.cc.u32 %0, %0, %8; mul.lo.u32 %7, %0, %9;\n\t"
        CUZK_NEXT(1, 10, 7) CUZK_NEXT(2, 11, 7) CUZK_NEXT(3, 12, 7) CUZK_NEXT(4, 13, 7)
        CUZK_NEXT(5, 14, 7) CUZK_NEXT(6, 15, 7)
        : "+&r"(low), CUZK_COLUMNS6(columns), "=&r"(quotient) : "r"(x), "r"(inverse), CUZK_EVERY_SECOND6(p));
  }
}

// columns[0] += x; columns[j + 1] += a[2 j] * b, top += the carry.
template <int K>
inline void add_word_and_products(u64* columns, u64 x, const u32* a, u32 b, u32& top) {
  static_assert(K == 3);
  asm("add.cc.u64 %1, %1, %5;\n\t"
      CUZK_NEXT(2, 7, 6) CUZK_NEXT(3, 8, 6) CUZK_NEXT(4, 9, 6) CUZK_TOP(0)
      : "+&r"(top), CUZK_COLUMNS4(columns) : "l"(x), "r"(b), CUZK_EVERY_SECOND3(a));
}
// -t, and `less` = that - [t != 0]. Plain C++ here makes ptxas split the products by -t into two, and from a
// zero that it knows it subtracts twice, once for the borrow (21 instructions of 457 in two products).
__constant__ u32 opaque_zero = 0;
inline u32 negated(u32 t, u32& less) {
  u32 minus;
  asm("sub.cc.u32 %0, %3, %2; subc.u32 %1, %0, 0;" : "=&r"(minus), "=r"(less) : "r"(t), "r"(opaque_zero));
  return minus;
}
// The high word of (above, below) * 2.
inline u32 shift_in(u32 below, u32 above) { return __funnelshift_l(below, above, 1); }
#undef CUZK_MAD
#undef CUZK_FIRST
#undef CUZK_NEXT
#undef CUZK_TOP
#undef CUZK_EVERY_SECOND1
#undef CUZK_EVERY_SECOND2
#undef CUZK_EVERY_SECOND3
#undef CUZK_EVERY_SECOND4
#undef CUZK_EVERY_SECOND5
#undef CUZK_EVERY_SECOND6

#define CUZK_COLUMNS8(c) CUZK_COLUMNS4(c), CUZK_COLUMNS4((c) + 4)
#define CUZK_COLUMNS12(c) CUZK_COLUMNS6(c), CUZK_COLUMNS6((c) + 6)
#define CUZK_WORDS4(b) "l"((b)[0]), "l"((b)[1]), "l"((b)[2]), "l"((b)[3])
#define CUZK_WORDS6(b) CUZK_WORDS4(b), "l"((b)[4]), "l"((b)[5])
#define CUZK_WORDS8(b) CUZK_WORDS4(b), CUZK_WORDS4((b) + 4)
#define CUZK_WORDS12(b) CUZK_WORDS6(b), CUZK_WORDS6((b) + 6)
#define CUZK_STEP(op, a, b) op ".cc.u64 %" #a ", %" #a ", %" #b ";\n\t"
// Words 0.. of the operand whose word 0 is %b.
#define CUZK_CHAIN4(op, b0, b1, b2, b3) \
  CUZK_STEP(op, 0, b0) CUZK_STEP(op "c", 1, b1) CUZK_STEP(op "c", 2, b2) CUZK_STEP(op "c", 3, b3)
#define CUZK_CHAIN6(op, b0, b1, b2, b3, b4, b5) \
  CUZK_CHAIN4(op, b0, b1, b2, b3) CUZK_STEP(op "c", 4, b4) CUZK_STEP(op "c", 5, b5)
#define CUZK_CHAIN8(op, b0, b1, b2, b3, b4, b5, b6, b7) \
  CUZK_CHAIN6(op, b0, b1, b2, b3, b4, b5) CUZK_STEP(op "c", 6, b6) CUZK_STEP(op "c", 7, b7)
#define CUZK_CHAIN12(op, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11) \
  CUZK_CHAIN8(op, b0, b1, b2, b3, b4, b5, b6, b7)                          \
  CUZK_STEP(op "c", 8, b8) CUZK_STEP(op "c", 9, b9) CUZK_STEP(op "c", 10, b10) CUZK_STEP(op "c", 11, b11)

// a += b; the sum fits.
template <int W>
inline void add_words(u64* a, const u64* b) {
  if constexpr (W == 4)
    asm(CUZK_CHAIN4("add", 4, 5, 6, 7) : CUZK_COLUMNS4(a) : CUZK_WORDS4(b));
  else if constexpr (W == 6)
    asm(CUZK_CHAIN6("add", 6, 7, 8, 9, 10, 11) : CUZK_COLUMNS6(a) : CUZK_WORDS6(b));
  else if constexpr (W == 8)
    asm(CUZK_CHAIN8("add", 8, 9, 10, 11, 12, 13, 14, 15) : CUZK_COLUMNS8(a) : CUZK_WORDS8(b));
  else {
    static_assert(W == 12);
    asm(CUZK_CHAIN12("add", 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)
        : CUZK_COLUMNS12(a) : CUZK_WORDS12(b));
  }
}

// a -= b; the borrow, 0 or all ones.
template <int W>
inline u32 sub_words(u64* a, const u64* b) {
  u32 borrow;
  if constexpr (W == 4)
    asm(CUZK_CHAIN4("sub", 5, 6, 7, 8) "subc.u32 %4, 0, 0;"
        : CUZK_COLUMNS4(a), "=&r"(borrow) : CUZK_WORDS4(b));
  else if constexpr (W == 6)
    asm(CUZK_CHAIN6("sub", 7, 8, 9, 10, 11, 12) "subc.u32 %6, 0, 0;"
        : CUZK_COLUMNS6(a), "=&r"(borrow) : CUZK_WORDS6(b));
  else if constexpr (W == 8)
    asm(CUZK_CHAIN8("sub", 9, 10, 11, 12, 13, 14, 15, 16) "subc.u32 %8, 0, 0;"
        : CUZK_COLUMNS8(a), "=&r"(borrow) : CUZK_WORDS8(b));
  else {
    static_assert(W == 12);
    asm(CUZK_CHAIN12("sub", 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24) "subc.u32 %12, 0, 0;"
        : CUZK_COLUMNS12(a), "=&r"(borrow) : CUZK_WORDS12(b));
  }
  return borrow;
}

// a += b if `condition` is not zero; a carry out is dropped.
template <int W>
inline void add_words_if(u32 condition, u64* a, const u64* b) {
  if constexpr (W == 4)
    asm("{.reg .pred q; setp.ne.u32 q, %4, 0;\n\t" CUZK_CHAIN4("@q add", 5, 6, 7, 8) "}"
        : CUZK_COLUMNS4(a) : "r"(condition), CUZK_WORDS4(b));
  else {
    static_assert(W == 6);
    asm("{.reg .pred q; setp.ne.u32 q, %6, 0;\n\t" CUZK_CHAIN6("@q add", 7, 8, 9, 10, 11, 12) "}"
        : CUZK_COLUMNS6(a) : "r"(condition), CUZK_WORDS6(b));
  }
}

#undef CUZK_COLUMNS1
#undef CUZK_COLUMNS2
#undef CUZK_COLUMNS3
#undef CUZK_COLUMNS4
#undef CUZK_COLUMNS5
#undef CUZK_COLUMNS6
#undef CUZK_COLUMNS8
#undef CUZK_COLUMNS12
#undef CUZK_WORDS4
#undef CUZK_WORDS6
#undef CUZK_WORDS8
#undef CUZK_WORDS12
#undef CUZK_STEP
#undef CUZK_CHAIN4
#undef CUZK_CHAIN6
#undef CUZK_CHAIN8
#undef CUZK_CHAIN12

}  // namespace cuzk::CUZK_PATH
