/* From record to record through a stretch of a TFRecord stream, both checksums of each checked;
 * one record of a file; behind damage, the records that are sound; which records are canonical
 * Examples, and their digests; and the values of records of one layout.
 *
 * The compiled twin of frame_scan.py: the same findings, without a cost of Python a record.
 * Plain C that knows nothing of Python, loaded by scanner.py, so that one library serves all its
 * versions and runs without the lock of the interpreter.
 *
 * CRC32C is computed by whatever the processor has: SSE 4.2 with carry-less multiplication, ARMv8's
 * CRC instructions, or tables (slicing by 8) where it has neither.
 */

#if defined(__linux__)
#define _GNU_SOURCE          /* for preadv, */
#define _FILE_OFFSET_BITS 64 /* with large offsets on machines of 32 bits, too */
#endif

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

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

/* The same order as in scanner.py. */
enum stop { FULL, SHORT, SHORT_RECORD, LENGTH, HUGE_LENGTH, DATA };
enum engine { BEST = -1, TABLES, SSE42, ARMV8 };

/* What a walk found; the same fields as in scanner.py. */
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

/* ---- checksums of any stretch, by those of what is before it ---- */

/* powers[0][k]: x^(8 * 2^k) modulo the polynomial, bits reversed; powers[1]: their inverses. */
static uint32_t powers[2][48];

/* The product of two polynomials of less than 32 bits, bits reversed. */
static uint32_t times(uint32_t a, uint32_t b)
{
    uint32_t sum = 0;
    for (uint32_t bit = 0x80000000u; bit; bit >>= 1) {
        if (a & bit)
            sum ^= b;
        b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return sum;
}

static void make_powers(void)
{
    powers[0][0] = 1u << 23;
    powers[1][0] = 1u << 31;
    for (int bit = 0; bit < 8; bit++) {
        const uint32_t one = powers[1][0];
        powers[1][0] = one >> 31 ? (one ^ POLYNOMIAL) << 1 | 1 : one << 1;
    }
    for (int k = 1; k < 48; k++)
        for (int way = 0; way < 2; way++)
            powers[way][k] = times(powers[way][k - 1], powers[way][k - 1]);
}

/* What multiplies a register that `count` bytes of zeros go through, or went through if negative. */
static uint32_t power(int64_t count)
{
    uint32_t product = 1u << 31;
    const uint32_t *factors = powers[count < 0];
    for (uint64_t left = (uint64_t)(count < 0 ? -count : count); left; left >>= 1, factors++)
        if (left & 1)
            product = times(product, *factors);
    return product;
}

/* ---- what is called from outside ---- */

static int32_t best = TABLES;
static void make_schedule(void);

/* Make the tables and see what the processor can do. To be called once, before anything else. */
int32_t tfrecreg_prepare(void)
{
    make_tables();
    make_powers();
    make_schedule();
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

/* Which source this was compiled from: the first 8 bytes of its SHA-256. See scanner.py. */
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

/* Read the payload of the record at byte `at` of a file into memory[:length], in one call of the
 * system and without another copy. Returns whether all of it was read, and is sound.
 */
int32_t tfrecreg_record(int32_t file, uint64_t at, uint64_t length, uint8_t *memory)
{
    uint8_t header[HEADER_BYTES], footer[FOOTER_BYTES];
    const struct iovec parts[] = {
        {header, HEADER_BYTES}, {memory, (size_t)length}, {footer, FOOTER_BYTES}};
    const ssize_t size = (ssize_t)(HEADER_BYTES + length + FOOTER_BYTES);
    const crc_function crc = function(BEST);
    return preadv(file, parts, 3, (off_t)at) == size && load64(header) == length
           && mask(~crc(~0u, header, 8)) == load32(header + 8)
           && mask(~crc(~0u, memory, length)) == load32(footer);
}

/* ---- sound records behind damage: see frame_scan.py ---- */

#define STARTS 29 /* where the payload of a damaged record may start: at 12, and near it */
#define KEPT 31 /* bytes of a block that the next one starts with: a header, and what may be a record
                 * with a payload of a header before it */
#define PENDING (1u << 20)

/* A record whose header holds, and whose data are on their way. */
struct pending {
    int64_t end;   /* of its payload */
    int64_t start; /* of its header */
    uint32_t mine; /* what of the register at its end it is not to answer for */
};

struct span {
    int64_t start, end;
};

struct finder {
    crc_function crc;
    int64_t stop;           /* no record ends behind it, */
    int64_t before;         /* and none starts from here on */
    int64_t at;             /* where the register stands, */
    int64_t place;          /* and which place is tried next for a header */
    int64_t origin;         /* where a damaged record starts, */
    int64_t gap;            /* up to where the register of the gap test stands, */
    uint32_t state, gapped; /* and both registers */
    uint32_t starts[STARTS]; /* what each contributes to the register at the origin + STARTS */
    int32_t tests;          /* whether the gap is tested */
    int64_t found;          /* the place where it passed last, */
    int64_t payload;        /* and where the payload starts then */
    uint64_t cached, factor;
    size_t pending_count, pending_room, span_count, span_room;
    struct pending *pending; /* a heap: the nearest end first */
    struct span *spans;      /* outermost and apart, in order */
};

static int compare_ends(const void *a, const void *b)
{
    const int64_t one = ((const struct pending *)a)->end, two = ((const struct pending *)b)->end;
    return one < two ? -1 : one > two;
}

static void sift_down(struct pending *heap, size_t count, size_t at)
{
    const struct pending moved = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && heap[child + 1].end < heap[child].end)
            child++;
        if (heap[child].end >= moved.end)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static int push(struct finder *finder, struct pending added)
{
    if (finder->pending_count == finder->pending_room) {
        if (finder->pending_room == PENDING) {
            /* Too many: those that end last are given up. A sorted array is a heap. */
            qsort(finder->pending, PENDING, sizeof added, compare_ends);
            finder->pending_count = PENDING / 2;
        } else {
            const size_t room = finder->pending_room ? 2 * finder->pending_room : 64;
            struct pending *more = realloc(finder->pending, room * sizeof added);
            if (!more)
                return 0;
            finder->pending = more;
            finder->pending_room = room;
        }
    }
    struct pending *heap = finder->pending;
    size_t at = finder->pending_count++;
    while (at && heap[(at - 1) / 2].end > added.end) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = added;
    return 1;
}

/* A sound record. Those inside of it are none, and neither is it where one before reaches into it. */
static int add_span(struct finder *finder, int64_t start, int64_t end)
{
    while (finder->span_count && finder->spans[finder->span_count - 1].start >= start)
        finder->span_count--;
    if (finder->span_count && finder->spans[finder->span_count - 1].end > start)
        return 1;
    if (finder->span_count == finder->span_room) {
        const size_t room = finder->span_room ? 2 * finder->span_room : 64;
        struct span *more = realloc(finder->spans, room * sizeof *more);
        if (!more)
            return 0;
        finder->spans = more;
        finder->span_room = room;
    }
    finder->spans[finder->span_count++] = (struct span){start, end};
    return 1;
}

static void move_to(struct finder *finder, const uint8_t *memory, int64_t base, int64_t to)
{
    if (to <= finder->at)
        return;
    finder->state = finder->crc(finder->state, memory + (finder->at - base),
                                (size_t)(to - finder->at));
    finder->at = to;
}

/* Look at the data of all records that end up to here. */
static int settle(struct finder *finder, const uint8_t *memory, int64_t base, int64_t to)
{
    struct pending *heap = finder->pending;
    while (finder->pending_count && heap[0].end <= to) {
        const struct pending next = heap[0];
        heap[0] = heap[--finder->pending_count];
        if (finder->pending_count)
            sift_down(heap, finder->pending_count, 0);
        move_to(finder, memory, base, next.end);
        if (mask(~(finder->state ^ next.mine)) == load32(memory + (next.end - base)) &&
            !add_span(finder, next.start, next.end + FOOTER_BYTES))
            return 0;
        heap = finder->pending;
    }
    return 1;
}

static void move_gap(struct finder *finder, const uint8_t *memory, int64_t base, int64_t to)
{
    /* Whatever the payload may start at is passed on the way. */
    while (finder->gap < to) {
        const int64_t behind = finder->gap - finder->origin;
        const int64_t next = behind < STARTS ? finder->gap + 1 : to;
        if (behind < STARTS)
            finder->starts[behind] = times(finder->gapped ^ ~0u, power(STARTS - behind));
        finder->gapped = finder->crc(finder->gapped, memory + (finder->gap - base),
                                     (size_t)(next - finder->gap));
        finder->gap = next;
    }
}

/* Whether everything from the origin to this place is one record, whatever its header is. */
static int test_gap(struct finder *finder, const uint8_t *memory, int64_t base, int64_t place)
{
    const int64_t end = place - FOOTER_BYTES, size = end - finder->origin;
    if (size < 0)
        return 0;
    move_gap(finder, memory, base, end);
    if (size < STARTS)
        finder->starts[size] = times(finder->gapped ^ ~0u, power(STARTS - size));
    const uint32_t rotated = load32(memory + (end - base)) - MASK_DELTA;
    const uint32_t wanted = finder->gapped ^ ~(rotated >> 17 | rotated << 15);
    const uint32_t key = times(wanted, power(STARTS - size));
    for (int64_t number = 0; number < STARTS; number++) {
        /* 12 first, then the others. */
        const int64_t behind = !number ? (int64_t)HEADER_BYTES : number <= 12 ? number - 1 : number;
        if (behind > size || (number && behind == size))
            continue;
        /* A length and its checksum are as good as a payload of 8 bytes and its own. */
        const int64_t start = finder->origin + behind;
        if (start == end - 8) {
            const uint64_t length = load64(memory + (start - base));
            if (number || length <= (uint64_t)(finder->stop - place))
                continue;
        }
        if (finder->starts[behind] == key) {
            finder->found = place;
            finder->payload = start;
            return 1;
        }
    }
    return 0;
}

/* The first place in memory[at:count] where a header may be whose checksum holds; `count` if none. */
static size_t next_header(const uint8_t *memory, size_t at, size_t count, uint64_t *length)
{
    while (at < count) {
        /* The upper half of a length is zero. */
        const uint8_t *header = memory + at;
        if (header[7]) {
            at += 4;
        } else if (load32(header + 4)) {
            at++;
        } else {
            const uint64_t word = load64(header);
            /* Zeros are none, at this place and the seven behind it. */
            if (!word && at + 8 < count && !load64(header + 8) && !load32(header + 15)) {
                at += 8;
                continue;
            }
            if (mask(~table_word(~0u, word)) == load32(header + 8) && word <= MAX_LENGTH) {
                *length = word;
                return at;
            }
            at++;
        }
    }
    return count;
}

/* How many places of memory[:size] begin 12 bytes that are a header which holds. */
uint64_t tfrecreg_headers(const uint8_t *memory, uint64_t size)
{
    const size_t count = size < HEADER_BYTES ? 0 : size - HEADER_BYTES + 1;
    uint64_t found = 0, length = 0;
    for (size_t at = 0; (at = next_header(memory, at, count, &length)) < count; at++)
        found++;
    return found;
}

struct finder *tfrecreg_finder(int32_t engine, int64_t at, int64_t place, int64_t before,
                               int64_t stop, int32_t gap)
{
    struct finder *finder = calloc(1, sizeof *finder);
    if (!finder)
        return NULL;
    finder->crc = function(engine);
    finder->at = finder->origin = finder->gap = at;
    finder->place = place;
    finder->before = before;
    finder->stop = stop;
    finder->tests = gap;
    finder->found = finder->payload = -1;
    finder->factor = 1u << 31;
    return finder;
}

void tfrecreg_finder_free(struct finder *finder)
{
    free(finder->pending);
    free(finder->spans);
    free(finder);
}

/* Look through a block that starts 31 bytes before the end of the one before.
 *
 * Returns 1 where the gap test passes: the same block is to be fed again; 0 at the end of the
 * block; -1 where there is no memory. */
int32_t tfrecreg_finder_feed(struct finder *finder, const uint8_t *memory, uint64_t size,
                             int64_t base, int32_t last)
{
    const int64_t limit = base + (int64_t)size;
    /* A header at the very end may be that of a record which is cut. */
    const uint64_t least = last ? HEADER_BYTES : HEADER_BYTES + FOOTER_BYTES;
    const size_t count = size < least ? 0 : size - least + 1;
    for (;;) {
        uint64_t length = 0;
        size_t place = count;
        if (finder->place < finder->before && finder->place - base < (int64_t)count)
            place = next_header(memory, (size_t)(finder->place - base), count, &length);
        if (place >= count || base + (int64_t)place >= finder->before)
            break;
        const int64_t header = base + (int64_t)place, start = header + HEADER_BYTES;
        const int64_t end = start + (int64_t)length;
        if (!settle(finder, memory, base, header - FOOTER_BYTES))
            return -1;
        if (finder->tests && finder->found != header &&
            test_gap(finder, memory, base, header)) {
            finder->place = header;
            return 1;
        }
        finder->place = header + 1;
        if (end + FOOTER_BYTES > finder->stop)
            continue;
        if (!settle(finder, memory, base, start))
            return -1;
        move_to(finder, memory, base, start);
        if (finder->cached != length || length == 0) {
            finder->cached = length;
            finder->factor = power((int64_t)length);
        }
        const uint32_t mine = times(finder->state ^ ~0u, (uint32_t)finder->factor);
        if (!push(finder, (struct pending){end, header, mine}))
            return -1;
    }
    if (size < FOOTER_BYTES)
        return 0;
    if (!settle(finder, memory, base, limit - FOOTER_BYTES))
        return -1;
    if (finder->tests && last && finder->found != limit &&
        test_gap(finder, memory, base, limit))
        return 1;
    if (!last && size > KEPT) {
        const int64_t next = limit - HEADER_BYTES - FOOTER_BYTES + 1;
        move_to(finder, memory, base, next);
        if (finder->place < next)
            finder->place = next;
        if (finder->tests)
            move_gap(finder, memory, base, next - FOOTER_BYTES);
    }
    return 0;
}

/* What it found so far: how many sound records, where they are, how many more are on their way, and
 * the place and the start of the payload where the gap test passed last. */
uint64_t tfrecreg_finder_spans(const struct finder *finder, const struct span **spans,
                               uint64_t *pending, int64_t *found, int64_t *payload)
{
    *spans = finder->spans;
    *pending = finder->pending_count;
    *found = finder->found;
    *payload = finder->payload;
    return finder->span_count;
}

/* ---- where gzip members may begin: see gzip_access.py ---- */

#define MEMBER_HEADER 10u
#define MEMBER_REACH (1u << 20) /* a header of more bytes is none */
#define FHCRC 2u
#define FEXTRA 4u
#define FNAME 8u
#define FCOMMENT 16u
#define RESERVED 0xe0u

static const uint8_t MAGIC[3] = {0x1f, 0x8b, 8};

/* Whether deflate data may begin here: false only where their first block cannot be decoded. */
static int may_deflate(const uint8_t *memory, size_t size, size_t at)
{
    static const uint8_t least[3] = {5, 1, 10};
    if (at >= size)
        return 1;
    const unsigned kind = memory[at] >> 1 & 3u;
    if (kind == 3)
        return 0;
    if (size - at < least[kind] || kind == 1)
        return 1;
    const uint8_t *block = memory + at;
    if (kind == 0)
        return (block[1] ^ block[3]) == 0xff && (block[2] ^ block[4]) == 0xff;
    /* The code of code lengths has to be complete. */
    uint64_t bits = load64(block) >> 3;
    const unsigned literals = bits & 31u, distances = bits >> 5 & 31u;
    const unsigned count = 4 + (unsigned)(bits >> 10 & 15u);
    if (literals > 29 || distances > 29)
        return 0;
    bits = bits >> 14 | (uint64_t)block[8] << 47 | (uint64_t)block[9] << 55;
    unsigned sum = 0;
    for (unsigned number = 0; number < count; number++, bits >>= 3)
        sum += bits & 7u ? 128u >> (bits & 7u) : 0;
    return sum == 128;
}

/* Where in memory[at:stop] members may begin: every place but those where none does for certain.
 *
 * size: how much of the file is there to look at: MEMBER_REACH behind `stop`, or all of it.
 * capacity: how many places there is room for; if they take it up, there may be more.
 *
 * Returns their number. */
uint64_t tfrecreg_members(const uint8_t *memory, uint64_t size, uint64_t at, uint64_t stop,
                          uint64_t capacity, int64_t *places)
{
    uint64_t found = 0;
    size_t zero = 0; /* the first zero behind the last fixed header that a name follows */
    for (; found < capacity && at < stop; at++) {
        const uint8_t *head = memchr(memory + at, MAGIC[0], (size_t)(stop - at));
        if (!head)
            break;
        at = (uint64_t)(head - memory);
        if (size - at < MEMBER_HEADER)
            break;
        const unsigned flags = head[3];
        if (memcmp(head, MAGIC, sizeof MAGIC) || flags & RESERVED)
            continue;
        const size_t begin = (size_t)at + MEMBER_HEADER;
        const int texts = !!(flags & FNAME) + !!(flags & FCOMMENT);
        size_t end = begin + (flags & FHCRC ? 2 : 0);
        int sure = texts < 2;
        if (flags & FEXTRA) {
            sure = !texts && size - begin >= 2;
            end += 2 + (sure ? memory[begin] + 256u * memory[begin + 1] : 0);
        } else if (texts) {
            if (begin < size && zero < begin) {
                const uint8_t *next = memchr(memory + begin, 0, size - begin);
                zero = next ? (size_t)(next - memory) : size;
            }
            if (begin == size || zero == size || zero - (size_t)at >= MEMBER_REACH)
                continue;
            end += zero + 1 - begin;
        }
        /* The flags may be damaged, and the data begin right behind them. */
        if (sure && !may_deflate(memory, size, end) && !may_deflate(memory, size, begin))
            continue;
        places[found++] = (int64_t)at;
    }
    return found;
}

/* ---- canonical Examples ----
 *
 * The compiled twin of decode_fast in tfrecreg/core/example/decode.py: which payloads are Examples in
 * canonical form, whose digest is that of their bytes. */

/* A message: what is left of it. */
struct message {
    const uint8_t *at;
    const uint8_t *end;
};

/* Go over a field with this tag; `content` is what it holds. Its length is minimal, of five bytes
 * at most. */
static int open_field(struct message *outer, uint8_t tag, struct message *content)
{
    if (outer->at == outer->end || *outer->at++ != tag)
        return 0;
    uint64_t size = 0;
    for (unsigned shift = 0; shift <= 28; shift += 7) {
        if (outer->at == outer->end)
            return 0;
        const uint8_t byte = *outer->at++;
        size |= (uint64_t)(byte & 127u) << shift;
        if (byte > 127)
            continue;
        if (shift && !byte)
            return 0;
        if ((uint64_t)(outer->end - outer->at) < size)
            return 0;
        content->at = outer->at;
        content->end = outer->at += size;
        return 1;
    }
    return 0;
}

static int is_utf8(const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        const uint8_t first = *at++;
        if (first < 0x80)
            continue;
        const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        if (first < 0xc2 || first > 0xf4 || end - at < more)
            return 0;
        /* Neither longer than needed, nor half of a pair of UTF-16, nor beyond U+10FFFF. */
        const uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        const uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (*at < least || *at > most)
            return 0;
        for (int number = 1; number < more; number++)
            if ((at[number] & 0xc0u) != 0x80)
                return 0;
        at += more;
    }
    return 1;
}

/* Whether packed integers are whole and minimal. */
static int are_minimal(struct message packed)
{
    unsigned size = 0; /* of the current one, so far */
    for (; packed.at < packed.end; packed.at++) {
        size++;
        if (*packed.at > 127) {
            if (size == 10)
                return 0;
            continue;
        }
        if ((size > 1 && !*packed.at) || (size == 10 && *packed.at > 1))
            return 0;
        size = 0;
    }
    return size == 0;
}

static int is_canonical_feature(struct message feature)
{
    if (feature.at == feature.end)
        return 1;
    const uint8_t tag = *feature.at;
    struct message list, packed;
    if ((tag != 0x0a && tag != 0x12 && tag != 0x1a) || !open_field(&feature, tag, &list) ||
        feature.at != feature.end)
        return 0;
    if (tag == 0x0a) {
        while (list.at < list.end)
            if (!open_field(&list, 0x0a, &packed))
                return 0;
        return 1;
    }
    if (list.at == list.end)
        return 1;
    if (!open_field(&list, 0x0a, &packed) || list.at != list.end || packed.at == packed.end)
        return 0;
    return tag == 0x12 ? (packed.end - packed.at) % 4 == 0 : are_minimal(packed);
}

static int is_canonical(struct message example)
{
    if (example.at == example.end)
        return 1;
    struct message features, entry, key, value, previous = {NULL, NULL};
    if (!open_field(&example, 0x0a, &features) || example.at != example.end ||
        features.at == features.end)
        return 0;
    while (features.at < features.end) {
        if (!open_field(&features, 0x0a, &entry) || !open_field(&entry, 0x0a, &key) ||
            !open_field(&entry, 0x12, &value) || entry.at != entry.end ||
            !is_utf8(key.at, key.end) || !is_canonical_feature(value))
            return 0;
        if (previous.at) {
            const size_t size = (size_t)(key.end - key.at);
            const size_t before = (size_t)(previous.end - previous.at);
            const int order = memcmp(previous.at, key.at, size < before ? size : before);
            if (order > 0 || (order == 0 && size <= before))
                return 0;
        }
        previous = key;
    }
    return 1;
}

/* For each payload, at starts[n] of memory and of lengths[n] bytes: whether it is canonical. */
void tfrecreg_canonical(const uint8_t *memory, const int64_t *starts, const int64_t *lengths,
                        uint64_t count, uint8_t *flags)
{
    for (uint64_t n = 0; n < count; n++) {
        const struct message example = {memory + starts[n], memory + starts[n] + lengths[n]};
        flags[n] = (uint8_t)is_canonical(example);
    }
}

/* ---- the values of payloads of one layout: the compiled twin of read_columns in
 * tfrecreg/core/example/columns.py ---- */

/* A feature of a layout; the same fields as in columns.py. */
struct slot {
    int64_t head;   /* where the bytes of its key, with tags, end behind those of the slot before, */
    int64_t kind;   /* which tag its list has, */
    int64_t values; /* and how many numbers are in it, if they are floats */
};

#define FLOAT_TAG 0x12
#define INT64_TAG 0x1a

/* Go over a field with this tag that ends the message, or is a map entry. Other than open_field, it
 * takes lengths that are longer than needed, of five bytes at most. */
static int open_any(struct message *outer, uint8_t tag, struct message *content)
{
    const uint8_t *at = outer->at, *end = outer->end;
    if (at == end || *at++ != tag)
        return 0;
    uint64_t size = 0;
    for (unsigned shift = 0; shift <= 28; shift += 7) {
        if (at == end)
            return 0;
        const uint8_t byte = *at++;
        size |= (uint64_t)(byte & 127u) << shift;
        if (byte > 127)
            continue;
        if ((uint64_t)(end - at) < size)
            return 0;
        content->at = at;
        content->end = outer->at = at + size;
        return 1;
    }
    return 0;
}

/* The one integer that is all of the packed ones; 0 if it is not. */
static int read_one(struct message packed, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift <= 63; shift += 7) {
        if (packed.at == packed.end)
            return 0;
        const uint8_t byte = *packed.at++;
        if (shift == 63 && byte > 1)
            return 0;
        *value |= (uint64_t)(byte & 127u) << shift;
        if (byte < 128)
            return packed.at == packed.end;
    }
    return 0;
}

/* The values of one payload, each `step` numbers behind the one before; 0 if it has another layout. */
static int read_row(struct message example, const uint8_t *memory, const uint8_t *heads,
                    const struct slot *slots, uint64_t count, int64_t *values, uint64_t step)
{
    struct message features, entry, value, list, packed;
    if (!open_any(&example, 0x0a, &features) || example.at != example.end)
        return 0;
    for (uint64_t n = 0, from = 0; n < count; from = (uint64_t)slots[n++].head, values += 3 * step) {
        const size_t size = (size_t)((uint64_t)slots[n].head - from);
        const uint8_t tag = (uint8_t)slots[n].kind;
        if (!open_any(&features, 0x0a, &entry) || (size_t)(entry.end - entry.at) < size ||
            memcmp(entry.at, heads + from, size))
            return 0;
        entry.at += size - 1; /* the last byte is the tag of the value */
        if (!open_any(&entry, 0x12, &value) || entry.at != entry.end ||
            !open_any(&value, tag, &list) || value.at != value.end ||
            !open_any(&list, 0x0a, &packed) || list.at != list.end)
            return 0;
        uint64_t number = (uint64_t)(packed.at - memory);
        if (tag == FLOAT_TAG && packed.end - packed.at != 4 * slots[n].values)
            return 0;
        if (tag == INT64_TAG && !read_one(packed, &number))
            return 0;
        values[0] = packed.at - memory;
        values[step] = packed.end - memory;
        memcpy(values + 2 * step, &number, sizeof number);
    }
    return features.at == features.end;
}

/* The rows of the payloads that have a layout, and their values: for each slot, where its value
 * starts, where it ends, and its integer, each in a row of `count` numbers. Returns how many. */
uint64_t tfrecreg_columns(const uint8_t *memory, const int64_t *starts, const int64_t *lengths,
                          uint64_t count, const uint8_t *heads, const struct slot *slots,
                          uint64_t slot_count, int64_t *rows, int64_t *values)
{
    uint64_t found = 0;
    for (uint64_t n = 0; n < count; n++) {
        const struct message example = {memory + starts[n], memory + starts[n] + lengths[n]};
        if (read_row(example, memory, heads, slots, slot_count, values + found, count))
            rows[found++] = (int64_t)n;
    }
    return found;
}

/* ---- digests of small records: BLAKE3 of one chunk each, several at once ----
 *
 * The package blake3 computes the blocks of one chunk one after the other, because each needs the
 * one before. Those of other records do not, so each lane of a vector has a record of its own. */

#define LANES 8
#define CHUNK_BYTES 1024
#define BLOCK_BYTES 64
#define ROUNDS 7
#define CHUNK_START 1u
#define CHUNK_END 2u
#define ROOT 8u
#define DIGEST_WORDS 4

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));

/* A word of each lane. */
union words {
    lanes all;
    uint32_t of[LANES];
};

static const uint32_t first_state[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                        0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};

/* schedule[r][k]: which word of a block is the word k of round r. */
static uint8_t schedule[ROUNDS][16];

static void make_schedule(void)
{
    static const uint8_t moved[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
    for (unsigned word = 0; word < 16; word++)
        schedule[0][word] = (uint8_t)word;
    for (unsigned round = 1; round < ROUNDS; round++)
        for (unsigned word = 0; word < 16; word++)
            schedule[round][word] = schedule[round - 1][moved[word]];
}

#define TURN(x, right) ((x) >> (right) | (x) << (32 - (right)))
#define MIX(a, b, c, d, one, two)                                                                  \
    do {                                                                                           \
        a += b + block[words[one]].all;                                                            \
        d = TURN(d ^ a, 16);                                                                       \
        c += d;                                                                                    \
        b = TURN(b ^ c, 12);                                                                       \
        a += b + block[words[two]].all;                                                            \
        d = TURN(d ^ a, 8);                                                                        \
        c += d;                                                                                    \
        b = TURN(b ^ c, 7);                                                                        \
    } while (0)

/* The states after one more block of each lane; `sizes` and `flags` are those of the blocks. */
static inline __attribute__((always_inline)) void compress(union words *states,
                                                           const union words *block,
                                                           const union words *sizes,
                                                           const union words *flags)
{
    const lanes none = {0};
    lanes a0 = states[0].all, a1 = states[1].all, a2 = states[2].all, a3 = states[3].all;
    lanes b0 = states[4].all, b1 = states[5].all, b2 = states[6].all, b3 = states[7].all;
    lanes c0 = none + first_state[0], c1 = none + first_state[1];
    lanes c2 = none + first_state[2], c3 = none + first_state[3];
    lanes d0 = none, d1 = none, d2 = sizes->all, d3 = flags->all;
    for (unsigned round = 0; round < ROUNDS; round++) {
        const uint8_t *words = schedule[round];
        MIX(a0, b0, c0, d0, 0, 1);
        MIX(a1, b1, c1, d1, 2, 3);
        MIX(a2, b2, c2, d2, 4, 5);
        MIX(a3, b3, c3, d3, 6, 7);
        MIX(a0, b1, c2, d3, 8, 9);
        MIX(a1, b2, c3, d0, 10, 11);
        MIX(a2, b3, c0, d1, 12, 13);
        MIX(a3, b0, c1, d2, 14, 15);
    }
    states[0].all = a0 ^ c0, states[1].all = a1 ^ c1, states[2].all = a2 ^ c2;
    states[3].all = a3 ^ c3, states[4].all = b0 ^ d0, states[5].all = b1 ^ d1;
    states[6].all = b2 ^ d2, states[7].all = b3 ^ d3;
}

static inline __attribute__((always_inline)) void digest_all(const uint8_t *memory,
                                                             const int64_t *starts,
                                                             const int64_t *lengths, uint64_t count,
                                                             uint8_t *flags, uint8_t *digests)
{
    union words states[8], block[16], sizes, marks;
    struct message left[LANES];
    uint64_t record[LANES], next = 0;
    int busy[LANES] = {0};
    memset(block, 0, sizeof block);
    memset(&sizes, 0, sizeof sizes);
    memset(&marks, 0, sizeof marks);
    memset(states, 0, sizeof states);
    for (;;) {
        int any = 0;
        for (unsigned lane = 0; lane < LANES; lane++) {
            marks.of[lane] = 0;
            if (!busy[lane]) {
                while (next < count && (flags[next] != 1 || lengths[next] > CHUNK_BYTES))
                    next++;
                if (next == count)
                    continue;
                left[lane].at = memory + starts[next];
                left[lane].end = left[lane].at + lengths[next];
                record[lane] = next++;
                busy[lane] = 1;
                marks.of[lane] = CHUNK_START;
                for (unsigned word = 0; word < 8; word++)
                    states[word].of[lane] = first_state[word];
            }
            any = 1;
            const size_t rest = (size_t)(left[lane].end - left[lane].at);
            const size_t size = rest < BLOCK_BYTES ? rest : BLOCK_BYTES;
            uint8_t padded[BLOCK_BYTES] = {0};
            const uint8_t *from = left[lane].at;
            if (size < BLOCK_BYTES) {
                memcpy(padded, from, size);
                from = padded;
            }
            for (unsigned word = 0; word < 16; word++)
                block[word].of[lane] = load32(from + 4 * word);
            left[lane].at += size;
            sizes.of[lane] = (uint32_t)size;
            if (rest <= BLOCK_BYTES)
                marks.of[lane] |= CHUNK_END | ROOT;
        }
        if (!any)
            return;
        compress(states, block, &sizes, &marks);
        for (unsigned lane = 0; lane < LANES; lane++) {
            if (!(marks.of[lane] & ROOT))
                continue;
            for (unsigned word = 0; word < DIGEST_WORDS; word++) {
                const uint32_t state = LITTLE32(states[word].of[lane]);
                memcpy(digests + 4 * (DIGEST_WORDS * record[lane] + word), &state, sizeof state);
            }
            flags[record[lane]] = 2;
            busy[lane] = 0;
        }
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void digest_avx2(const uint8_t *memory,
                                                        const int64_t *starts,
                                                        const int64_t *lengths, uint64_t count,
                                                        uint8_t *flags, uint8_t *digests)
{
    digest_all(memory, starts, lengths, count, flags, digests);
}
#endif

/* The first 16 bytes of BLAKE3 of each payload whose flag is 1 and that is one chunk; its flag is 2
 * then, and those of the others remain.
 *
 * wide: whether to use vectors of more than 16 bytes where the processor has them. */
void tfrecreg_digests(int32_t wide, const uint8_t *memory, const int64_t *starts,
                      const int64_t *lengths, uint64_t count, uint8_t *flags, uint8_t *digests)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (wide && __builtin_cpu_supports("avx2")) {
        digest_avx2(memory, starts, lengths, count, flags, digests);
        return;
    }
#else
    (void)wide;
#endif
    digest_all(memory, starts, lengths, count, flags, digests);
}
