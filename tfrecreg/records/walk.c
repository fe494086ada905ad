/* From record to record through a stretch of a TFRecord stream, both checksums of each checked.
 *
 * The compiled twin of walk.py: the same findings, without a cost of Python a record. Plain C that
 * knows nothing of Python, loaded by native.py, so that one library serves all its versions and
 * runs without the lock of the interpreter.
 *
 * CRC32C is computed by whatever the processor has: SSE 4.2 with carry-less multiplication, ARMv8's
 * CRC instructions, or tables (slicing by 8) where it has neither.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#define HEADER_BYTES 12u
#define FOOTER_BYTES 4u
#define MASK_DELTA 0xa282ead8u
#define MAX_LENGTH (UINT64_C(1) << 31)
#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41 with its bits reversed */

#ifndef TFRECREG_SOURCE
#define TFRECREG_SOURCE 0
#endif

/* The same order as in native.py. */
enum stop { FULL, SHORT, SHORT_RECORD, LENGTH, HUGE_LENGTH, DATA };
enum engine { BEST = -1, TABLES, SSE42, ARMV8 };

/* What a walk found; the same fields as in native.py. */
struct report {
    uint64_t records;       /* walked over */
    uint64_t payload_bytes; /* of them */
    uint64_t end;           /* where the first record starts that was not walked over */
    uint64_t length;        /* what its header states, if that holds */
    uint32_t stop;          /* why it was not walked over */
    uint32_t crc;           /* with DATA: the masked checksum of its data as they are, */
    uint32_t stored;        /* and the one behind them */
    uint32_t unused;
};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE32(word) (word)
#define LITTLE64(word) (word)
#else
#define LITTLE32(word) __builtin_bswap32(word)
#define LITTLE64(word) __builtin_bswap64(word)
#endif

static inline uint32_t load32(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return LITTLE32(word);
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return LITTLE64(word);
}

static uint32_t mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + MASK_DELTA;
}

/* The functions below take and give the state of the register, which begins as all ones and is
 * inverted at the end. */
typedef uint32_t (*crc_function)(uint32_t state, const uint8_t *data, size_t size);

/* ---- tables ---- */

/* tables[k][b]: what the byte b does to the register, k bytes before the end of eight. */
static uint32_t tables[8][256];

static uint32_t table_word(uint32_t state, uint64_t word)
{
    word ^= state;
    return tables[7][word & 255] ^ tables[6][word >> 8 & 255] ^ tables[5][word >> 16 & 255] ^
           tables[4][word >> 24 & 255] ^ tables[3][word >> 32 & 255] ^
           tables[2][word >> 40 & 255] ^ tables[1][word >> 48 & 255] ^ tables[0][word >> 56];
}

static uint32_t crc_tables(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8)
        state = table_word(state, load64(data));
    for (; size; data++, size--)
        state = tables[0][(state ^ *data) & 255] ^ state >> 8;
    return state;
}

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t state = byte;
        for (int bit = 0; bit < 8; bit++)
            state = state >> 1 ^ (state & 1 ? POLYNOMIAL : 0);
        tables[0][byte] = state;
    }
    for (int k = 1; k < 8; k++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables[k - 1][byte];
            tables[k][byte] = tables[0][before & 255] ^ before >> 8;
        }
}

/* ---- SSE 4.2 ---- */

#if defined(__x86_64__)

/* The instruction takes eight bytes a cycle but gives its result after three, so three parts of
 * the data go through it at once, of so many words each at most. */
#define PART_WORDS 256
#define PART_LEAST 4

/* shifts[n]: x^(64 n - 33) modulo the polynomial, bits reversed. The carry-less product of it and
 * a register, put through the instruction, is the register after 8 n bytes of zeros: the product
 * of two reversed numbers is short of a factor x, and the instruction multiplies by x^32. */
static uint32_t shifts[2 * PART_WORDS + 1];

static void make_shifts(void)
{
    uint32_t shift = 1; /* x^31 */
    for (int n = 1; n <= 2 * PART_WORDS; n++) {
        shifts[n] = shift;
        shift = table_word(shift, 0);
    }
}

/* In assembler, so that every compiler takes it, whatever it was told to compile for. */
static inline uint64_t crc_word(uint64_t state, uint64_t word)
{
    __asm__("crc32q %1, %0" : "+r"(state) : "r"(word));
    return state;
}

static inline uint32_t crc_byte(uint32_t state, uint8_t byte)
{
    __asm__("crc32b %1, %0" : "+r"(state) : "q"(byte));
    return state;
}

static inline uint64_t product(uint64_t state, uint32_t shift)
{
    __m128i a = _mm_cvtsi64_si128((long long)state), b = _mm_cvtsi64_si128((long long)shift);
    __asm__("pclmulqdq $0, %1, %0" : "+x"(a) : "x"(b));
    return (uint64_t)_mm_cvtsi128_si64(a);
}

static uint32_t crc_sse42(uint32_t start, const uint8_t *data, size_t size)
{
    uint64_t state = start;
    while (size >= 3 * 8 * PART_LEAST) {
        size_t words = size / 24 < PART_WORDS ? size / 24 : PART_WORDS;
        const uint8_t *two = data + 8 * words, *three = two + 8 * words;
        uint64_t second = 0, third = 0;
        for (const uint8_t *end = two; data < end; data += 8, two += 8, three += 8) {
            state = crc_word(state, load64(data));
            second = crc_word(second, load64(two));
            third = crc_word(third, load64(three));
        }
        const uint64_t both = product(state, shifts[2 * words]) ^ product(second, shifts[words]);
        state = crc_word(0, both) ^ third;
        data = three;
        size -= 24 * words;
    }
    for (; size >= 8; data += 8, size -= 8)
        state = crc_word(state, load64(data));
    uint32_t last = (uint32_t)state;
    for (; size; data++, size--)
        last = crc_byte(last, *data);
    return last;
}

#endif

/* ---- ARMv8 ---- */

#if defined(__aarch64__)

static uint32_t crc_armv8(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8)
        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(load64(data)));
    for (; size; data++, size--)
        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1"
                : "+r"(state)
                : "r"((uint32_t)*data));
    return state;
}

#endif

/* ---- what is called from outside ---- */

static int32_t best = TABLES;

/* Make the tables and see what the processor can do. To be called once, before anything else. */
int32_t tfrecreg_prepare(void)
{
    make_tables();
#if defined(__x86_64__)
    uint32_t a, b, c = 0, d;
    const uint32_t needed = bit_SSE4_2 | bit_PCLMUL;
    make_shifts();
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & needed) == needed)
        best = SSE42;
#elif defined(__aarch64__) && defined(__linux__)
    if (getauxval(AT_HWCAP) & 1u << 7) /* HWCAP_CRC32 */
        best = ARMV8;
#elif defined(__aarch64__) && defined(__APPLE__)
    best = ARMV8;
#endif
    return best;
}

/* Which source this was compiled from: the first 8 bytes of its SHA-256. See native.py. */
uint64_t tfrecreg_source(void)
{
    return TFRECREG_SOURCE;
}

static crc_function function(int32_t engine)
{
    if (engine == BEST || engine > best)
        engine = best;
#if defined(__x86_64__)
    if (engine == SSE42)
        return crc_sse42;
#elif defined(__aarch64__)
    if (engine == ARMV8)
        return crc_armv8;
#endif
    return crc_tables;
}

/* Walk over the records in memory[at:size], `at` being no greater than `size`. No byte outside of it
 * is read.
 *
 * engine: BEST, or a lesser one to compare with.
 * base: byte of the stream where the memory starts; added to the offsets.
 * capacity: how many records there is room for. One that does not fit any more ends the walk.
 * offsets, starts, lengths: of each record: its byte of the stream, where its payload starts in
 * the memory, and the bytes of that.
 */
void tfrecreg_walk(int32_t engine, const uint8_t *memory, uint64_t size, uint64_t at, int64_t base,
                   uint64_t capacity, int64_t *offsets, int64_t *starts, int64_t *lengths,
                   struct report *report)
{
    const crc_function crc = function(engine);
    struct report found = {0};
    for (;;) {
        if (size - at < HEADER_BYTES) {
            found.stop = SHORT;
            break;
        }
        const uint8_t *header = memory + at;
        const uint64_t length = load64(header);
        if (mask(~crc(~0u, header, 8)) != load32(header + 8)) {
            found.stop = LENGTH;
            break;
        }
        found.length = length;
        if (length > MAX_LENGTH) {
            found.stop = HUGE_LENGTH;
            break;
        }
        if (size - at - HEADER_BYTES < length + FOOTER_BYTES) {
            found.stop = SHORT_RECORD;
            break;
        }
        if (found.records == capacity) {
            found.stop = FULL;
            break;
        }
        const uint8_t *payload = header + HEADER_BYTES;
        found.crc = mask(~crc(~0u, payload, length));
        found.stored = load32(payload + length);
        if (found.crc != found.stored) {
            found.stop = DATA;
            break;
        }
        offsets[found.records] = base + (int64_t)at;
        starts[found.records] = (int64_t)(at + HEADER_BYTES);
        lengths[found.records] = (int64_t)length;
        found.records++;
        found.payload_bytes += length;
        at += HEADER_BYTES + length + FOOTER_BYTES;
    }
    found.end = at;
    *report = found;
}
