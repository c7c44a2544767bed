/* mxc.h: runs artifacts (NAME.mxc, which `mxc compile -o NAME.mxc` writes) from C and C++, without Python.
 *
 * One file of a program defines MXC_IMPLEMENTATION before it includes this one; the others only include it:
 *
 *     #define MXC_IMPLEMENTATION
 *     #include "mxc.h"
 *
 * It needs Linux on x86-64, the C library and threads (cc -pthread; -ldl where the C library is older than glibc 2.34).
 *
 *     mxc_error error;
 *     mxc_model *model = mxc_load("net.mxc", &error);
 *     mxc_session *session = model ? mxc_open(model, 0, 1, &error) : NULL;
 *     if (session == NULL) { fprintf(stderr, "%s\n", error.message); exit(1); }
 *     memcpy(mxc_input_data(session, 0), image, mxc_input(model, 0, 0)->nbytes);
 *     if (mxc_run(session, &error) != MXC_OK) { ... }
 *     const float *scores = (const float *)mxc_output_data(session, 0);
 *
 * An artifact is a program: its code runs in this process, with all of its rights. The checksums in it tell damage, not
 * intent. Load only what you trust. While a file is in use it must not be changed in place; to replace it, write
 * another and rename it.
 *
 * docs/c-loader.md of mxc says more. Licence: Apache-2.0.
 */
#if defined(MXC_IMPLEMENTATION) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* for syscall and mmap; it has to stand before the first header of the system */
#endif

#ifndef MXC_H
#define MXC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mxc_status {
    MXC_OK = 0,
    MXC_UNREADABLE,    /* there is no such file, or it cannot be read */
    MXC_DAMAGED,       /* it is no artifact, is cut off, or damaged anywhere */
    MXC_OTHER_VERSION, /* its format is that of another version of mxc */
    MXC_OTHER_CPU,     /* it was compiled for a CPU or a system that this is not */
    MXC_UNSUPPORTED,   /* it needs Python, or has no code or no parameters that can be used */
    MXC_ARGUMENT,      /* there is no such plan */
    MXC_NO_MEMORY,
    MXC_FAILED         /* a function of the model's own raised an error */
} mxc_status;

/* What went wrong, in words: the file, what was expected and what there is. */
typedef struct mxc_error {
    mxc_status status;
    char message[1024];
} mxc_error;

typedef struct mxc_model mxc_model;     /* an artifact, mapped and checked; any number of threads may use it at once */
typedef struct mxc_session mxc_session; /* memory for runs of one plan; one thread at a time may use it */

/* An input or output of a plan. dtype: "float32", "float16", "bfloat16", "float64", "uint8", "int8", "int32", "int64"
 * or "bool", in C order. optional: whether it may be left as it is, which is all 0: labels, which inference hardly ever reads. */
typedef struct mxc_array {
    const char *name, *dtype;
    int ndim;
    const int64_t *shape;
    size_t nbytes;
    int optional;
} mxc_array;

/* The model in an artifact, or NULL. `error`, here and below, is filled in when something is wrong; it may be NULL. */
mxc_model *mxc_load(const char *path, mxc_error *error);

/* Free a model. All of its sessions must be closed before. NULL is taken. */
void mxc_free(mxc_model *model);

/* How many plans for inference there are, one for each set of input shapes, and how many inputs and outputs. */
int mxc_num_plans(const mxc_model *model);
int mxc_num_inputs(const mxc_model *model);
int mxc_num_outputs(const mxc_model *model);

/* An input or output in a plan; NULL where there is none of that number. They live as long as the model. */
const mxc_array *mxc_input(const mxc_model *model, int plan, int number);
const mxc_array *mxc_output(const mxc_model *model, int plan, int number);

/* The first plan in which the input of this name has this shape; -1: there is none. */
int mxc_find_plan(const mxc_model *model, const char *input, int ndim, const int64_t *shape);

/* Start the random numbers of a model's runs anew. Without it they are those of a new process of mxc. */
void mxc_seed(mxc_model *model, int64_t seed);

/* Memory for runs of a plan, or NULL. threads: how many compute, the caller's among them. Results are the same to the
 * last bit for any number. Sessions share the parameters; each has inputs, outputs and threads of its own. */
mxc_session *mxc_open(mxc_model *model, int plan, int threads, mxc_error *error);

/* Free a session and end its threads. NULL is taken. */
void mxc_close(mxc_session *session);

/* Where an input is to be written, and where an output is after a run; NULL where there is none of that number. Inputs
 * keep their values from run to run. */
void *mxc_input_data(mxc_session *session, int number);
const void *mxc_output_data(const mxc_session *session, int number);

/* Compute the outputs from the inputs. MXC_OK, or MXC_FAILED where a function of the model's own raised an error. */
mxc_status mxc_run(mxc_session *session, mxc_error *error);

#ifdef __cplusplus
}
#endif
#endif /* MXC_H */

#if defined(MXC_IMPLEMENTATION) && !defined(MXC_IMPLEMENTED)
#define MXC_IMPLEMENTED

#if !defined(__linux__) || !defined(__x86_64__)
#error "mxc.h runs artifacts on Linux on x86-64 only"
#endif

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What mxc has in runtime/artifact_file.py, runtime/step_table.py and compiler/targets/cpu/runner_ir.py. */
#define MXC__VERSION 3
#define MXC__HEAD_BYTES 64
#define MXC__PAGE 4096
#define MXC__CHUNK (16 << 20)
#define MXC__TABLE_HEAD 4
#define MXC__ROW 4
#define MXC__TAKES 1024
#define MXC__BRANCH 0
#define MXC__ADVANCE 1
#define MXC__RESET 2
#define MXC__POOL_BYTES 448
#define MXC__QUIT 320
#define MXC__WORD 192
#define MXC__SYSCALL 384
#define MXC__FUTEX 392
#define MXC__YIELD 400
#define MXC__SPINS 408
#define MXC__SPIN_ROUNDS 20000
#define MXC__OFFSETS_PER_RUN 65536
#define MXC__FAULT_SHIFT 32

#define MXC__ALIGNMENT 64
#define MXC__SMALL 4096    /* bytes: larger pieces of memory are blocks of their own */
#define MXC__BLOCK 65536
#define MXC__NESTED 64     /* so deep JSON may be */
#define MXC__LOOPS 16      /* so deep loops may lie in each other */
#define MXC__MOST_THREADS 1024
#define MXC__MOST_BYTES ((int64_t)1 << 46)

/* -- memory and errors: a mistake anywhere jumps back to the function that the program called, which frees all */

typedef struct mxc__pool { /* what is allocated together and freed together */
    void *blocks;          /* each begins with the address of the next */
    char *next;            /* what is free of a block of small pieces, and its length */
    size_t left;
} mxc__pool;

typedef struct mxc__context {
    jmp_buf back;
    mxc_error *error;
    const char *path;
    mxc__pool *pool;
} mxc__context;

static void mxc__fail(mxc__context *context, mxc_status status, const char *format, ...) {
    if (context->error != NULL) {
        char *text = context->error->message;
        size_t size = sizeof context->error->message, used;
        va_list arguments;
        context->error->status = status;
        snprintf(text, size, "%s: ", context->path);
        used = strlen(text);
        va_start(arguments, format);
        vsnprintf(text + used, size - used, format, arguments);
        va_end(arguments);
    }
    longjmp(context->back, 1);
}

static void mxc__expect(mxc__context *context, int fine, const char *what) {
    if (!fine) mxc__fail(context, MXC_DAMAGED, "its content is not of the form that mxc writes (%s)", what);
}

/* Zeros, at a multiple of 64 bytes where they are many, else of 16. */
static void *mxc__new(mxc__context *context, int64_t count, size_t size) {
    mxc__pool *pool = context->pool;
    size_t bytes, whole;
    void *block = NULL;
    if (count < 0 || (size_t)count > (size_t)MXC__MOST_BYTES / size)
        mxc__fail(context, MXC_NO_MEMORY, "there is no memory for %lld times %zu bytes", (long long)count, size);
    bytes = ((size_t)count * size + 15) / 16 * 16;
    if (bytes > pool->left) {
        whole = bytes > MXC__SMALL ? bytes : MXC__BLOCK;
        if (posix_memalign(&block, MXC__ALIGNMENT, whole + MXC__ALIGNMENT) != 0)
            mxc__fail(context, MXC_NO_MEMORY, "there is no memory for %zu bytes", whole);
        memset(block, 0, whole + MXC__ALIGNMENT);
        *(void **)block = pool->blocks;
        pool->blocks = block;
        if (bytes > MXC__SMALL) return (char *)block + MXC__ALIGNMENT;
        pool->next = (char *)block + MXC__ALIGNMENT;
        pool->left = whole;
    }
    pool->next += bytes;
    pool->left -= bytes;
    return pool->next - bytes;
}

static void mxc__release(mxc__pool *pool) {
    while (pool->blocks != NULL) {
        void *block = pool->blocks;
        pool->blocks = *(void **)block;
        free(block);
    }
    pool->next = NULL;
    pool->left = 0;
}

/* Room for one more in an array that grows. */
static void *mxc__grown(mxc__context *context, void *items, int64_t count, int64_t *room, size_t size) {
    void *larger;
    if (count < *room) return items;
    larger = mxc__new(context, *room = *room < 16 ? 16 : 2 * *room, size);
    if (count > 0) memcpy(larger, items, (size_t)count * size);
    return larger;
}

/* -- JSON, and what is read out of it */

typedef enum { MXC__NULL, MXC__TRUE, MXC__FALSE, MXC__INTEGER, MXC__REAL, MXC__TEXT, MXC__LIST, MXC__OBJECT } mxc__kind;

typedef struct mxc__json {
    mxc__kind kind;
    int64_t number;                /* of an integer; of a list or object how many there are in it */
    const char *text, *key;        /* key: in the object that it is in */
    struct mxc__json *first, *next; /* next: in the list or object that it is in */
} mxc__json;

typedef struct mxc__reader {
    mxc__context *context;
    const char *at, *end;
} mxc__reader;

static char mxc__peek(mxc__reader *reader) {
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) != NULL && *reader->at != 0) reader->at++;
    return reader->at < reader->end ? *reader->at : 0;
}

static int mxc__take(mxc__reader *reader, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0) return 0;
    reader->at += length;
    return 1;
}

static unsigned mxc__four_digits(mxc__reader *reader) {
    unsigned value = 0;
    int i;
    for (i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", *found;
        char sign = reader->at < reader->end ? *reader->at++ : 0;
        if (sign >= 'A' && sign <= 'F') sign = (char)(sign - 'A' + 'a');
        found = sign != 0 ? strchr(digits, sign) : NULL;
        mxc__expect(reader->context, found != NULL, "a text");
        value = value * 16 + (unsigned)(found - digits);
    }
    return value;
}

static const char *mxc__read_text(mxc__reader *reader) {
    const char *start = ++reader->at, *end = start, *escapes = "\"\\/bfnrt", *meanings = "\"\\/\b\f\n\r\t", *found;
    char *text, *to;
    while (end < reader->end && *end != '"') end += *end == '\\' ? 2 : 1;
    mxc__expect(reader->context, end < reader->end, "a text without an end");
    to = text = (char *)mxc__new(reader->context, end - start + 1, 1); /* what is escaped is longer as it is there */
    while (reader->at < end) {
        unsigned code;
        if (*reader->at != '\\') {
            mxc__expect(reader->context, *reader->at != 0, "a text");
            *to++ = *reader->at++;
            continue;
        }
        reader->at++;
        if ((found = strchr(escapes, *reader->at)) != NULL && *reader->at != 0) {
            *to++ = meanings[found - escapes];
            reader->at++;
            continue;
        }
        mxc__expect(reader->context, *reader->at++ == 'u', "a text");
        code = mxc__four_digits(reader);
        if (code >= 0xd800 && code < 0xdc00 && mxc__take(reader, "\\u"))
            code = 0x10000 + ((code - 0xd800) << 10) + (mxc__four_digits(reader) & 0x3ff);
        mxc__expect(reader->context, code != 0, "a text");
        if (code < 0x80) {
            *to++ = (char)code;
        } else if (code < 0x800) {
            *to++ = (char)(0xc0 | code >> 6);
        } else if (code < 0x10000) {
            *to++ = (char)(0xe0 | code >> 12), *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        } else {
            *to++ = (char)(0xf0 | code >> 18), *to++ = (char)(0x80 | (code >> 12 & 0x3f));
            *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        }
        if (code >= 0x80) *to++ = (char)(0x80 | (code & 0x3f));
    }
    mxc__expect(reader->context, reader->at == end, "a text");
    reader->at++;
    return text;
}

static mxc__json *mxc__read_value(mxc__reader *reader, int depth);

static void mxc__read_inner(mxc__reader *reader, mxc__json *value, int depth) {
    char close = value->kind == MXC__LIST ? ']' : '}';
    mxc__json **last = &value->first;
    reader->at++;
    mxc__expect(reader->context, depth < MXC__NESTED, "JSON that is too deep");
    while (mxc__peek(reader) != close) {
        const char *key = NULL;
        if (value->number++ > 0) mxc__expect(reader->context, mxc__take(reader, ","), "JSON");
        if (value->kind == MXC__OBJECT) {
            mxc__expect(reader->context, mxc__peek(reader) == '"', "JSON");
            key = mxc__read_text(reader);
            mxc__expect(reader->context, mxc__peek(reader) == ':', "JSON");
            reader->at++;
        }
        *last = mxc__read_value(reader, depth + 1);
        (*last)->key = key;
        last = &(*last)->next;
    }
    reader->at++;
}

static mxc__json *mxc__read_value(mxc__reader *reader, int depth) {
    mxc__json *value = (mxc__json *)mxc__new(reader->context, 1, sizeof(mxc__json));
    char sign = mxc__peek(reader);
    if (sign == '{' || sign == '[') {
        value->kind = sign == '{' ? MXC__OBJECT : MXC__LIST;
        mxc__read_inner(reader, value, depth);
    } else if (sign == '"') {
        value->kind = MXC__TEXT;
        value->text = mxc__read_text(reader);
    } else if (mxc__take(reader, "null")) {
        value->kind = MXC__NULL;
    } else if (mxc__take(reader, "true")) {
        value->kind = MXC__TRUE;
    } else if (mxc__take(reader, "false")) {
        value->kind = MXC__FALSE;
    } else {
        int negative = mxc__take(reader, "-"), digits = 0;
        value->kind = MXC__INTEGER;
        while (reader->at < reader->end && *reader->at != 0 && strchr("0123456789+-.eE", *reader->at) != NULL) {
            char next = *reader->at++;
            digits++;
            if (next < '0' || next > '9' || value->number < (INT64_MIN + 9) / 10) value->kind = MXC__REAL;
            else value->number = value->number * 10 - (next - '0'); /* negative, of which there is one more */
        }
        mxc__expect(reader->context, digits > 0, "JSON");
        if (!negative && value->number == INT64_MIN) value->kind = MXC__REAL;
        else if (!negative) value->number = -value->number;
    }
    return value;
}

/* The value of a text that is filled up with spaces or zeros. */
static mxc__json *mxc__parse(mxc__context *context, const char *text, size_t length) {
    mxc__reader reader;
    mxc__json *value;
    reader.context = context;
    reader.at = text;
    reader.end = text + length;
    value = mxc__read_value(&reader, 0);
    mxc__expect(context, mxc__peek(&reader) == 0, "more than one JSON value");
    return value;
}

static mxc__json *mxc__optional(const mxc__json *object, const char *key) {
    mxc__json *each = object->kind == MXC__OBJECT ? object->first : NULL;
    while (each != NULL && strcmp(each->key, key) != 0) each = each->next;
    return each;
}

static mxc__json *mxc__member(mxc__context *context, const mxc__json *object, const char *key, mxc__kind kind) {
    mxc__json *found = mxc__optional(object, key);
    mxc__expect(context, found != NULL && found->kind == kind, key);
    return found;
}

static const char *mxc__text_of(mxc__context *context, const mxc__json *object, const char *key) {
    return mxc__member(context, object, key, MXC__TEXT)->text;
}

static int64_t mxc__number_of(mxc__context *context, const mxc__json *object, const char *key) {
    return mxc__member(context, object, key, MXC__INTEGER)->number;
}

/* A number of at least 0 and at most `most`. */
static int64_t mxc__size_of(mxc__context *context, const mxc__json *object, const char *key, int64_t most) {
    int64_t number = mxc__number_of(context, object, key);
    mxc__expect(context, number >= 0 && number <= most, key);
    return number;
}

/* The numbers of a list. */
static int64_t *mxc__numbers(mxc__context *context, const mxc__json *list, const char *what) {
    const mxc__json *each;
    int64_t *numbers, count = 0;
    mxc__expect(context, list != NULL && list->kind == MXC__LIST, what);
    numbers = (int64_t *)mxc__new(context, list->number, sizeof(int64_t));
    for (each = list->first; each != NULL; each = each->next) {
        mxc__expect(context, each->kind == MXC__INTEGER, what);
        numbers[count++] = each->number;
    }
    return numbers;
}

static const char *mxc__copied(mxc__context *context, const char *text) {
    size_t length = strlen(text) + 1;
    return (const char *)memcpy(mxc__new(context, (int64_t)length, 1), text, length);
}

/* -- digests */

typedef struct mxc__sha {
    uint32_t state[8];
    uint64_t length;
    unsigned char block[64];
} mxc__sha;

static void mxc__sha_block(uint32_t *state, const unsigned char *data) {
    static const uint32_t K[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
        0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
        0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
        0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
        0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
        0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
        0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    uint32_t w[64], s[8];
    int i;
#define MXC__TURN(x, n) ((x) >> (n) | (x) << (32 - (n)))
    for (i = 0; i < 16; i++, data += 4)
        w[i] = (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
    for (; i < 64; i++)
        w[i] = w[i - 16] + (MXC__TURN(w[i - 15], 7) ^ MXC__TURN(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7]
             + (MXC__TURN(w[i - 2], 17) ^ MXC__TURN(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (i = 0; i < 64; i++) {
        uint32_t one = s[7] + (MXC__TURN(s[4], 6) ^ MXC__TURN(s[4], 11) ^ MXC__TURN(s[4], 25))
                     + ((s[4] & s[5]) ^ (~s[4] & s[6])) + K[i] + w[i];
        uint32_t two = (MXC__TURN(s[0], 2) ^ MXC__TURN(s[0], 13) ^ MXC__TURN(s[0], 22))
                     + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
#undef MXC__TURN
    for (i = 0; i < 8; i++) state[i] += s[i];
}

static void mxc__sha_start(mxc__sha *sha) {
    static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(sha->state, START, sizeof START);
    sha->length = 0;
}

static void mxc__sha_add(mxc__sha *sha, const void *data, size_t size) {
    const unsigned char *from = (const unsigned char *)data;
    while (size > 0) {
        size_t used = sha->length % 64, part = 64 - used < size ? 64 - used : size;
        memcpy(sha->block + used, from, part);
        sha->length += part, from += part, size -= part;
        if (sha->length % 64 == 0) mxc__sha_block(sha->state, sha->block);
    }
}

static void mxc__sha_end(mxc__sha *sha, unsigned char digest[32]) {
    uint64_t bits = sha->length * 8;
    unsigned char length[8], first = 0x80, zero = 0;
    int i;
    mxc__sha_add(sha, &first, 1);
    while (sha->length % 64 != 56) mxc__sha_add(sha, &zero, 1);
    for (i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    mxc__sha_add(sha, length, 8);
    for (i = 0; i < 32; i++) digest[i] = (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* Whether the checksum of a section, a multiple of 4096 bytes, is this one (docs/artifact.md). */
static int mxc__sum_is(const char *data, size_t size, const char *expected) {
    mxc__sha whole, part;
    unsigned char digest[32];
    char text[65];
    size_t start, row, i;
    mxc__sha_start(&whole);
    for (start = 0; start < size; start += MXC__CHUNK) {
        size_t rows = (size - start < MXC__CHUNK ? size - start : MXC__CHUNK) / MXC__PAGE;
        uint64_t columns[512] = {0}, sums[MXC__CHUNK / MXC__PAGE];
        for (row = 0; row < rows; row++) {
            const uint64_t *words = (const uint64_t *)(const void *)(data + start + row * MXC__PAGE);
            uint64_t sum = 0;
            for (i = 0; i < 512; i++) columns[i] += words[i], sum += words[i];
            sums[row] = sum;
        }
        mxc__sha_start(&part);
        mxc__sha_add(&part, columns, sizeof columns);
        mxc__sha_add(&part, sums, rows * sizeof *sums);
        mxc__sha_end(&part, digest);
        mxc__sha_add(&whole, digest, sizeof digest);
    }
    mxc__sha_end(&whole, digest);
    for (i = 0; i < 32; i++) sprintf(text + 2 * i, "%02x", digest[i]);
    return strcmp(text, expected) == 0;
}

/* -- what a file holds */

typedef enum { MXC__ARGUMENT, MXC__AUX, MXC__OUTPUT, MXC__SEED, MXC__ARENA, MXC__PREPARED, MXC__STATUS, MXC__OUTSIDE,
               MXC__OTHER } mxc__place;

typedef struct mxc__buffer { /* see Buffer in compiler/plan.py */
    mxc__place place;
    int64_t nbytes, offset;
    int64_t number;          /* of an output, of an input (-1: of a parameter), or where in a step's buffers it lies */
    const char *name, *dtype;
    const mxc__json *shape;  /* while the plan is read */
    int is_written;
    char *shape_text;        /* of what a step that may raise reads */
} mxc__buffer;

typedef struct mxc__faults { /* what errors of a function of the model's own are told with */
    const char *node, *operation, *role;
    int64_t num_arrays, num_lines, *numbers;
    const char **arrays, **files, **lines;
} mxc__faults;

struct mxc__plan;

typedef struct mxc__step { /* see Step in compiler/plan.py; of a loop see Loop */
    void *code;
    int prepares;
    int64_t num_buffers, *buffers, num_values, *values, units;
    mxc__faults *faults;
    struct mxc__plan *loop;
    int64_t *moves, length, once, tests, flag, stops, num_counts, *counts;
} mxc__step;

typedef struct mxc__plan {
    int64_t num_buffers, num_steps, num_outputs, *outputs, arena, scratch, prepared, status;
    mxc__buffer *buffers;
    mxc__step *steps;
    mxc_array *inputs, *results; /* what programs see of it */
    int is_stored, draws, is_shared;
} mxc__plan;

struct mxc_model {
    mxc__pool pool;
    const char *path, *file, *values, *stored; /* values: parameters; stored: what prepare steps make of them */
    size_t size, values_size, stored_size, code_size;
    char *code;
    int num_inputs, num_outputs, num_plans;
    mxc__plan *plans;
    void (*run)(void *, void *), (*run_alone)(void *), (*work)(void *, uint64_t);
    pthread_mutex_t lock; /* of the two numbers below */
    int64_t seed, offset;
};

typedef struct mxc__file { /* while a file is read. json: of what is needed no longer than that */
    mxc_model *model;
    mxc__context *context;
    mxc__pool json;
    const mxc__json *manifest, *entry; /* entry: of a plan */
    const char *graph;
    size_t graph_size;
    const mxc__json *nodes; /* of the graph */
    const char *python;     /* what needs Python */
} mxc__file;

static const mxc__json *mxc__parsed(mxc__file *file, const char *text, size_t length) {
    mxc__pool *own = file->context->pool;
    const mxc__json *value;
    file->context->pool = &file->json;
    value = mxc__parse(file->context, text, length);
    file->context->pool = own;
    return value;
}

/* Refuse what a later version may have added, which may mean that a plan is to be run in another way. */
static void mxc__known(mxc__context *context, const mxc__json *object, const char *const *keys) {
    const mxc__json *each;
    mxc__expect(context, object->kind == MXC__OBJECT, "a plan");
    for (each = object->first; each != NULL; each = each->next) {
        int i = 0;
        while (keys[i] != NULL && strcmp(keys[i], each->key) != 0) i++;
        if (keys[i] == NULL)
            mxc__fail(context, MXC_OTHER_VERSION, "its plans have %s, which this version of mxc.h does not know: take "
                      "the mxc.h of the mxc that compiled it", each->key);
    }
}

static int64_t mxc__itemsize(mxc__context *context, const char *dtype) {
    static const char *const NAMES[] = {"float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool",
                                        "bfloat16"};
    static const int SIZES[] = {4, 8, 2, 1, 4, 1, 8, 1, 2};
    int i;
    for (i = 0; i < 9; i++)
        if (strcmp(dtype, NAMES[i]) == 0) return SIZES[i];
    mxc__fail(context, MXC_DAMAGED, "its content is not of the form that mxc writes (the dtype %s)", dtype);
    return 0;
}

/* The entry [dtype, shape] of the manifest, as programs see it. */
static mxc_array mxc__array_of(mxc__context *context, const char *name, const mxc__json *entry) {
    mxc_array array;
    int64_t nbytes, i;
    mxc__expect(context, entry->kind == MXC__LIST && entry->number >= 2 && entry->first->kind == MXC__TEXT, name);
    array.name = mxc__copied(context, name);
    array.dtype = mxc__copied(context, entry->first->text);
    array.shape = mxc__numbers(context, entry->first->next, name);
    array.ndim = (int)entry->first->next->number;
    array.optional = 0;
    nbytes = mxc__itemsize(context, array.dtype);
    for (i = 0; i < array.ndim; i++) {
        mxc__expect(context, array.shape[i] >= 0 && (array.shape[i] == 0 || nbytes <= MXC__MOST_BYTES / array.shape[i]),
                    name);
        nbytes *= array.shape[i];
    }
    array.nbytes = (size_t)nbytes;
    return array;
}

/* The position of a text in a list of the manifest; -1: it is not there. */
static int64_t mxc__position(const mxc__json *list, const char *text) {
    const mxc__json *each = list->first;
    int64_t position = 0;
    for (; each != NULL; each = each->next, position++)
        if (each->kind == MXC__TEXT && strcmp(each->text, text) == 0) return position;
    return -1;
}

/* Where a parameter is in the section of parameters; -1: the file has only what was prepared of it. */
static int64_t mxc__value_place(mxc__file *file, const mxc__json *entry, const mxc_array *array) {
    const size_t size = file->model->values_size;
    int64_t place;
    if (entry->number == 3 && entry->first->next->next->kind == MXC__NULL) return -1;
    mxc__expect(file->context, entry->number == 3 && entry->first->next->next->kind == MXC__INTEGER, "parameters");
    place = entry->first->next->next->number;
    mxc__expect(file->context, place >= 0 && array->nbytes <= size && (size_t)place <= size - array->nbytes,
                array->name);
    return place;
}

/* Where a plan's buffer of that name is: an input, or a parameter. */
static void mxc__find_argument(mxc__file *file, mxc__buffer *buffer) {
    mxc__context *context = file->context;
    const mxc__json *inputs = mxc__member(context, file->manifest, "inputs", MXC__LIST);
    const mxc__json *values = mxc__member(context, file->manifest, "parameters", MXC__OBJECT);
    const mxc__json *entry = mxc__optional(values, buffer->name);
    mxc_array array;
    if (entry != NULL) {
        array = mxc__array_of(context, buffer->name, entry);
        buffer->offset = mxc__value_place(file, entry, &array);
        mxc__expect(context, buffer->offset >= 0, buffer->name);
        buffer->number = -1;
    } else {
        entry = mxc__member(context, mxc__member(context, file->entry, "arrays", MXC__OBJECT), buffer->name, MXC__LIST);
        array = mxc__array_of(context, buffer->name, entry);
        buffer->number = mxc__position(inputs, buffer->name);
        if (buffer->number < 0) {
            buffer->number = mxc__position(mxc__member(context, file->manifest, "optional", MXC__LIST), buffer->name);
            if (buffer->number < 0)
                mxc__fail(context, MXC_UNSUPPORTED, "it was compiled without values of %s: compile the model with its "
                          "parameters", buffer->name);
            buffer->number += inputs->number;
        }
    }
    mxc__expect(context, (int64_t)array.nbytes == buffer->nbytes && strcmp(array.dtype, buffer->dtype) == 0,
                buffer->name);
}

/* Check where a buffer is that a step or an output uses. */
static void mxc__use(mxc__file *file, mxc__plan *plan, int64_t position, int writes) {
    mxc__context *context = file->context;
    mxc__buffer *buffer;
    const mxc_array *output;
    mxc__expect(context, position >= 0 && position < plan->num_buffers, "a buffer that there is not");
    buffer = &plan->buffers[position];
    buffer->is_written |= writes;
    switch (buffer->place) {
    case MXC__ARGUMENT: case MXC__AUX:
        mxc__expect(context, !writes, "a step that writes to a parameter");
        if (buffer->number == -2) mxc__find_argument(file, buffer);
        break;
    case MXC__OUTPUT:
        mxc__expect(context, buffer->number >= 0 && buffer->number < plan->num_outputs, "an output that there is not");
        output = &plan->results[buffer->number];
        mxc__expect(context, (int64_t)output->nbytes == buffer->nbytes, output->name);
        break;
    case MXC__SEED:
        mxc__expect(context, buffer->nbytes == 16 && !writes, "the seed");
        plan->draws = 1;
        break;
    default:
        mxc__expect(context, buffer->place != MXC__OTHER, "a buffer of an unknown kind");
    }
}

/* The address of a kernel's code. */
static void *mxc__code_of(mxc__file *file, const char *key) {
    mxc__context *context = file->context;
    const mxc__json *code = mxc__member(context, file->manifest, "code", MXC__OBJECT);
    const char *symbol = mxc__text_of(context, mxc__member(context, code, "symbols", MXC__OBJECT), key);
    int64_t place = mxc__number_of(context, mxc__member(context, code, "functions", MXC__OBJECT), symbol);
    mxc__expect(context, place >= 0 && (size_t)place < file->model->code_size, "a function outside of the code");
    return file->model->code + place;
}

/* The name of a node of the model's graph. */
static const char *mxc__node_name(mxc__file *file, int64_t number) {
    const mxc__json *node;
    if (file->nodes == NULL)
        file->nodes = mxc__member(file->context, mxc__parsed(file, file->graph, file->graph_size), "nodes", MXC__LIST);
    for (node = file->nodes->first; node != NULL && number > 0; number--) node = node->next;
    mxc__expect(file->context, node != NULL && number == 0, "origins");
    return mxc__text_of(file->context, node, "name");
}

/* Add a step to the list of what needs Python. */
static void mxc__note_python(mxc__file *file, const mxc__json *step) {
    const mxc__json *origins = mxc__member(file->context, step, "origins", MXC__LIST);
    const char *label = mxc__text_of(file->context, step, "label"), *name = "?", *before = file->python;
    char *own, *all;
    size_t size;
    if (origins->first != NULL && origins->first->kind == MXC__INTEGER)
        name = mxc__node_name(file, origins->first->number);
    size = strlen(label) + strlen(name) + 8;
    own = (char *)mxc__new(file->context, (int64_t)size, 1);
    snprintf(own, size, "'%s' (%s)", name, label);
    if (before != NULL && strstr(before, own) != NULL) return;
    size += before == NULL ? 0 : strlen(before) + 2;
    all = (char *)mxc__new(file->context, (int64_t)size, 1);
    snprintf(all, size, "%s%s%s", before == NULL ? "" : before, before == NULL ? "" : ", ", own);
    file->python = all;
}

/* Refuse a file with layers whose indices are checked as they run. */
static void mxc__refuse_checks(mxc__context *context) {
    mxc__fail(context, MXC_UNSUPPORTED, "it has layers that refuse indices, as take with mode='raise' and loops over such "
              "ones do, which this loader does not run");
}

static mxc__faults *mxc__read_faults(mxc__file *file, const mxc__json *raw, const mxc__json *origins) {
    mxc__context *context = file->context;
    mxc__faults *faults = (mxc__faults *)mxc__new(context, 1, sizeof *faults);
    const mxc__json *name, *role, *arrays, *lines, *each;
    int64_t i;
    mxc__expect(context, raw->kind == MXC__LIST && raw->number == 4, "faults");
    name = raw->first, role = name->next, arrays = role->next, lines = arrays->next;
    mxc__expect(context, name->kind == MXC__TEXT && role->kind == MXC__TEXT && arrays->kind == MXC__LIST
                && lines->kind == MXC__LIST && lines->number > 0, "faults");
    faults->operation = mxc__copied(context, name->text);
    faults->role = mxc__copied(context, role->text);
    faults->node = origins->first == NULL || origins->first->kind != MXC__INTEGER ? ""
        : mxc__copied(context, mxc__node_name(file, origins->first->number));
    faults->num_arrays = arrays->number;
    faults->arrays = (const char **)mxc__new(context, arrays->number, sizeof(char *));
    for (each = arrays->first, i = 0; each != NULL; each = each->next, i++) {
        mxc__expect(context, each->kind == MXC__TEXT, "faults");
        faults->arrays[i] = mxc__copied(context, each->text);
    }
    faults->num_lines = lines->number;
    faults->files = (const char **)mxc__new(context, lines->number, sizeof(char *));
    faults->lines = (const char **)mxc__new(context, lines->number, sizeof(char *));
    faults->numbers = (int64_t *)mxc__new(context, lines->number, sizeof(int64_t));
    for (each = lines->first, i = 0; each != NULL; each = each->next, i++) {
        mxc__expect(context, each->kind == MXC__LIST && each->number == 3 && each->first->kind == MXC__TEXT
                    && each->first->next->kind == MXC__INTEGER && each->first->next->next->kind == MXC__TEXT, "faults");
        faults->files[i] = mxc__copied(context, each->first->text);
        faults->numbers[i] = each->first->next->number;
        faults->lines[i] = mxc__copied(context, each->first->next->next->text);
    }
    return faults;
}

static void mxc__read_plan(mxc__file *file, const mxc__json *raw, mxc__plan *plan, int depth);

/* The loop of a step of `plan` keeps to the step's buffers. */
static void mxc__read_loop(mxc__file *file, const mxc__json *raw, mxc__step *step, mxc__plan *plan, int depth) {
    static const char *const KEYS[] = {"plan", "moves", "length", "once", "tests", "flag", "stops", "counts", "statuses", NULL};
    mxc__context *context = file->context;
    const mxc__json *moves, *counts, *each;
    mxc__plan *inner = (mxc__plan *)mxc__new(context, 1, sizeof *inner);
    int64_t i, *count;
    mxc__known(context, raw, KEYS);
    if (mxc__number_of(context, raw, "statuses") != 0) mxc__refuse_checks(context);
    mxc__expect(context, depth < MXC__LOOPS && step->num_buffers > 0, "a loop");
    mxc__read_plan(file, mxc__member(context, raw, "plan", MXC__OBJECT), inner, depth + 1);
    moves = mxc__member(context, raw, "moves", MXC__LIST);
    counts = mxc__member(context, raw, "counts", MXC__LIST);
    step->loop = inner;
    step->moves = mxc__numbers(context, moves, "moves");
    step->length = mxc__size_of(context, raw, "length", INT64_MAX);
    step->once = mxc__size_of(context, raw, "once", inner->num_steps);
    step->tests = mxc__size_of(context, raw, "tests", inner->num_steps - step->once);
    step->flag = mxc__number_of(context, raw, "flag");
    each = mxc__optional(raw, "stops");
    mxc__expect(context, each != NULL && (each->kind == MXC__TRUE || each->kind == MXC__FALSE), "stops");
    step->stops = each->kind == MXC__TRUE;
    mxc__expect(context, moves->number == inner->num_buffers && step->length > 0 && step->flag >= -1
                && step->flag < inner->num_buffers, "a loop");
    mxc__expect(context, step->flag < 0 || inner->buffers[step->flag].nbytes >= 4, "a loop's flag");
    for (i = 0; i < inner->num_buffers; i++) {
        const mxc__buffer *buffer = &inner->buffers[i];
        int64_t last = 0, room;
        mxc__expect(context, buffer->place == MXC__OUTSIDE || buffer->place == MXC__ARENA, "a buffer of a loop");
        if (buffer->place == MXC__ARENA) inner->buffers[i].number = step->num_buffers - 1;
        mxc__expect(context, buffer->number >= 0 && buffer->number < step->num_buffers, "a buffer of a loop");
        mxc__use(file, plan, step->buffers[buffer->number], buffer->is_written);
        room = plan->buffers[step->buffers[buffer->number]].nbytes - buffer->nbytes;
        if (step->length > 1) {
            int64_t most = MXC__MOST_BYTES / (step->length - 1);
            mxc__expect(context, step->moves[i] >= -most && step->moves[i] <= most, "moves");
            last = step->moves[i] * (step->length - 1);
        }
        mxc__expect(context, buffer->offset <= room && buffer->offset + last >= 0 && buffer->offset + last <= room,
                    "a loop that leaves its buffers");
    }
    step->num_counts = counts->number;
    step->counts = (int64_t *)mxc__new(context, 3 * counts->number, sizeof(int64_t));
    for (each = counts->first, count = step->counts; each != NULL; each = each->next, count += 3) {
        memcpy(count, mxc__numbers(context, each, "counts"), 3 * sizeof *count * (each->number == 3));
        mxc__expect(context, each->number == 3 && count[0] >= 0 && count[0] < inner->num_buffers && count[1] >= 0
                    && count[1] <= inner->buffers[count[0]].nbytes - 8, "counts");
    }
    for (i = 0; i < inner->num_steps; i++)
        mxc__expect(context, inner->steps[i].faults == NULL, "a loop that may raise");
}

static void mxc__read_buffer(mxc__file *file, const mxc__json *raw, mxc__buffer *buffer) {
    static const char *const KEYS[] = {"pool", "dtype", "shape", "nbytes", "name", "offset", "node", NULL};
    static const char *const PLACES[] = {"argument", "aux", "output", "seed", "arena", "prepared", "status", "outside",
                                         NULL};
    mxc__context *context = file->context;
    const char *pool;
    char *end = NULL;
    int place = 0;
    mxc__known(context, raw, KEYS);
    pool = mxc__text_of(context, raw, "pool");
    while (PLACES[place] != NULL && strcmp(PLACES[place], pool) != 0) place++;
    buffer->place = (mxc__place)place; /* of a training plan: MXC__OTHER */
    buffer->nbytes = mxc__size_of(context, raw, "nbytes", MXC__MOST_BYTES);
    buffer->offset = mxc__size_of(context, raw, "offset", MXC__MOST_BYTES);
    buffer->name = mxc__copied(context, mxc__text_of(context, raw, "name"));
    buffer->dtype = mxc__copied(context, mxc__text_of(context, raw, "dtype"));
    buffer->shape = mxc__member(context, raw, "shape", MXC__LIST);
    buffer->number = -2;
    if (buffer->place == MXC__OUTPUT || buffer->place == MXC__OUTSIDE) {
        buffer->number = strtol(buffer->name, &end, 10);
        mxc__expect(context, end != buffer->name && *end == 0 && buffer->number >= 0, "the name of a buffer");
    }
}

static void mxc__write_shape(mxc__file *file, mxc__buffer *buffer) {
    const mxc__json *each;
    size_t size = 24 * (size_t)buffer->shape->number + 8, used = 1;
    buffer->shape_text = (char *)mxc__new(file->context, (int64_t)size, 1);
    buffer->shape_text[0] = '(';
    for (each = buffer->shape->first; each != NULL; each = each->next)
        used += (size_t)snprintf(buffer->shape_text + used, size - used, "%lld%s", (long long)each->number,
                                 each->next != NULL ? ", " : buffer->shape->number == 1 ? "," : "");
    snprintf(buffer->shape_text + used, size - used, ")");
}

static void mxc__read_step(mxc__file *file, const mxc__json *raw, mxc__plan *plan, mxc__step *step, int depth) {
    static const char *const KEYS[] = {"phase", "kernel", "buffers", "values", "units", "reads", "writes", "label",
                                       "host", "flops", "calls", "faults", "loop", "origins", NULL};
    mxc__context *context = file->context;
    const mxc__json *buffers, *writes, *values, *calls, *each, *loop, *faults, *host;
    const char *phase;
    int64_t i;
    mxc__known(context, raw, KEYS);
    phase = mxc__text_of(context, raw, "phase");
    step->prepares = strcmp(phase, "prepare") == 0;
    mxc__expect(context, step->prepares || strcmp(phase, "forward") == 0, "a phase");
    if (step->prepares && plan->is_stored) return; /* the file has what it makes */
    host = mxc__optional(raw, "host");
    if (host != NULL && host->kind != MXC__NULL) {
        mxc__note_python(file, raw);
        return;
    }
    buffers = mxc__member(context, raw, "buffers", MXC__LIST), writes = mxc__member(context, raw, "writes", MXC__LIST);
    values = mxc__member(context, raw, "values", MXC__LIST), calls = mxc__member(context, raw, "calls", MXC__LIST);
    step->buffers = mxc__numbers(context, buffers, "buffers"), step->num_buffers = buffers->number;
    step->values = mxc__numbers(context, values, "values"), step->num_values = values->number;
    step->units = mxc__size_of(context, raw, "units", INT64_MAX / 2);
    for (i = 0; i < step->num_buffers; i++) mxc__use(file, plan, step->buffers[i], 0);
    for (each = writes->first; each != NULL; each = each->next) {
        mxc__expect(context, each->kind == MXC__INTEGER, "writes");
        mxc__use(file, plan, each->number, 1);
    }
    if (step->units > 1) plan->is_shared = 1;
    loop = mxc__optional(raw, "loop");
    if (loop != NULL && loop->kind != MXC__NULL) {
        mxc__read_loop(file, loop, step, plan, depth);
        if (step->loop->is_shared) plan->is_shared = 1;
        return;
    }
    step->code = mxc__code_of(file, mxc__text_of(context, raw, "kernel"));
    for (each = calls->first; each != NULL; each = each->next) {
        mxc__expect(context, each->kind == MXC__LIST && each->number == 2 && each->first->kind == MXC__INTEGER
                    && each->first->next->kind == MXC__TEXT && each->first->number >= 0
                    && each->first->number < step->num_values, "calls");
        step->values[each->first->number] = (int64_t)(intptr_t)mxc__code_of(file, each->first->next->text);
    }
    faults = mxc__optional(raw, "faults");
    if (faults != NULL && faults->kind != MXC__NULL) {
        const mxc__buffer *status;
        mxc__expect(context, step->num_buffers > 0, "faults");
        if (faults->kind == MXC__LIST && faults->number != 4) mxc__refuse_checks(context);
        status = &plan->buffers[step->buffers[step->num_buffers - 1]];
        mxc__expect(context, status->place == MXC__STATUS && status->nbytes == 8 && status->offset % 8 == 0, "faults");
        step->faults = mxc__read_faults(file, faults, mxc__member(context, raw, "origins", MXC__LIST));
        for (i = 0; i + 1 < step->num_buffers; i++) mxc__write_shape(file, &plan->buffers[step->buffers[i]]);
    }
}

static void mxc__read_plan(mxc__file *file, const mxc__json *raw, mxc__plan *plan, int depth) {
    static const char *const KEYS[] = {"buffers", "steps", "outputs", "arena_bytes", "scratch_bytes", "prepared_bytes",
                                       "live_bytes", "unplanned_bytes", "nodes", "graph", NULL};
    mxc__context *context = file->context;
    const mxc__json *buffers, *steps, *outputs, *each;
    int64_t i;
    mxc__known(context, raw, KEYS);
    buffers = mxc__member(context, raw, "buffers", MXC__LIST), steps = mxc__member(context, raw, "steps", MXC__LIST);
    outputs = mxc__member(context, raw, "outputs", MXC__LIST);
    plan->num_buffers = buffers->number, plan->num_steps = steps->number;
    plan->arena = mxc__size_of(context, raw, "arena_bytes", MXC__MOST_BYTES);
    plan->scratch = mxc__size_of(context, raw, "scratch_bytes", MXC__MOST_BYTES);
    plan->prepared = mxc__size_of(context, raw, "prepared_bytes", MXC__MOST_BYTES);
    plan->buffers = (mxc__buffer *)mxc__new(context, plan->num_buffers, sizeof(mxc__buffer));
    plan->steps = (mxc__step *)mxc__new(context, plan->num_steps, sizeof(mxc__step));
    for (each = buffers->first, i = 0; each != NULL; each = each->next, i++) {
        mxc__read_buffer(file, each, &plan->buffers[i]);
        if (plan->buffers[i].place == MXC__STATUS) plan->status += plan->buffers[i].nbytes;
        mxc__expect(context, plan->status <= MXC__MOST_BYTES, "a status");
    }
    for (i = 0; i < plan->num_buffers; i++) {
        const mxc__buffer *buffer = &plan->buffers[i];
        int64_t room = buffer->place == MXC__ARENA ? plan->arena : buffer->place == MXC__PREPARED ? plan->prepared
            : buffer->place == MXC__STATUS ? plan->status : 2 * MXC__MOST_BYTES;
        mxc__expect(context, depth > 0 || (buffer->nbytes <= room && buffer->offset <= room - buffer->nbytes),
                    "a buffer outside of its memory");
    }
    for (each = steps->first, i = 0; each != NULL; each = each->next, i++)
        mxc__read_step(file, each, plan, &plan->steps[i], depth);
    if (depth > 0) return;
    mxc__expect(context, outputs->number == plan->num_outputs, "outputs");
    plan->outputs = mxc__numbers(context, outputs, "outputs");
    for (i = 0; i < plan->num_outputs; i++) {
        mxc__place place;
        mxc__use(file, plan, plan->outputs[i], 0);
        place = plan->buffers[plan->outputs[i]].place;
        mxc__expect(context, place == MXC__OUTPUT || place == MXC__ARGUMENT || place == MXC__AUX, "an output");
        mxc__expect(context, plan->buffers[plan->outputs[i]].nbytes == (int64_t)plan->results[i].nbytes, "an output");
    }
}

/* The prepared buffers of a plan are in the file, where the manifest says. */
static void mxc__place_prepared(mxc__file *file, mxc__plan *plan, const mxc__json *places) {
    mxc__context *context = file->context;
    const mxc__json *each;
    int64_t i;
    for (i = 0; i < plan->num_buffers; i++)
        if (plan->buffers[i].place == MXC__PREPARED) plan->buffers[i].offset = -1;
    for (each = places->first; each != NULL; each = each->next) {
        char *end = NULL;
        i = strtol(each->key, &end, 10);
        mxc__expect(context, end != each->key && *end == 0 && i >= 0 && i < plan->num_buffers
                    && each->kind == MXC__INTEGER && each->number >= 0
                    && plan->buffers[i].nbytes <= (int64_t)file->model->stored_size
                    && each->number <= (int64_t)file->model->stored_size - plan->buffers[i].nbytes, "prepared");
        plan->buffers[i].offset = each->number;
    }
    for (i = 0; i < plan->num_steps; i++) {
        const mxc__step *step = &plan->steps[i];
        int64_t b;
        for (b = 0; b < step->num_buffers; b++)
            mxc__expect(context, plan->buffers[step->buffers[b]].place != MXC__PREPARED
                        || plan->buffers[step->buffers[b]].offset >= 0, "prepared");
    }
}

/* Read the plan of an entry of the manifest. */
static void mxc__read_entry(mxc__file *file, const mxc__json *entry, const char *text, size_t length,
                            mxc__plan *plan) {
    mxc_model *model = file->model;
    mxc__context *context = file->context;
    const mxc__json *lists[2], *arrays = mxc__member(context, entry, "arrays", MXC__OBJECT), *each, *names;
    const mxc__json *places = mxc__member(context, entry, "prepared", MXC__OBJECT);
    int kind, i = 0;
    file->entry = entry;
    lists[0] = mxc__member(context, file->manifest, "inputs", MXC__LIST);
    lists[1] = mxc__member(context, file->manifest, "optional", MXC__LIST);
    plan->inputs = (mxc_array *)mxc__new(context, model->num_inputs, sizeof(mxc_array));
    for (kind = 0; kind < 2; kind++)
        for (each = lists[kind]->first; each != NULL; each = each->next, i++) {
            mxc__expect(context, each->kind == MXC__TEXT, "inputs");
            plan->inputs[i] = mxc__array_of(context, each->text, mxc__member(context, arrays, each->text, MXC__LIST));
            plan->inputs[i].optional = kind;
        }
    names = mxc__member(context, file->manifest, "outputs", MXC__LIST);
    each = mxc__member(context, entry, "outputs", MXC__LIST);
    mxc__expect(context, each->number == names->number, "outputs");
    plan->num_outputs = model->num_outputs;
    plan->results = (mxc_array *)mxc__new(context, model->num_outputs, sizeof(mxc_array));
    for (each = each->first, names = names->first, i = 0; each != NULL; each = each->next, names = names->next, i++) {
        mxc__expect(context, names->kind == MXC__TEXT, "outputs");
        plan->results[i] = mxc__array_of(context, names->text, each);
    }
    plan->is_stored = places->number > 0;
    mxc__read_plan(file, mxc__parsed(file, text, length), plan, 0);
    if (plan->is_stored) mxc__place_prepared(file, plan, places);
}

/* The value of a line of a text of lines `NAME : VALUE`, without spaces around it; "" where there is none. */
static void mxc__line_of(const char *text, const char *name, char *value, size_t size) {
    const char *line = text, *end;
    value[0] = 0;
    for (; line != NULL && *line != '\n'; line = strchr(line, '\n') != NULL ? strchr(line, '\n') + 1 : NULL) {
        size_t length = strlen(name);
        if (strncmp(line, name, length) != 0) continue;
        for (line += length; *line == ' ' || *line == '\t'; line++) continue;
        if (*line != ':') continue;
        for (line++; *line == ' '; line++) continue;
        end = strchr(line, '\n') != NULL ? strchr(line, '\n') : line + strlen(line);
        snprintf(value, size, "%.*s", (int)(end - line), line);
        return;
    }
}

static int mxc__has_word(const char *words, const char *word, size_t length) {
    const char *at = words;
    while ((at = strstr(at, word)) != NULL) {
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0)) return 1;
        at += length;
    }
    return 0;
}

/* Whether the system lets this process use a feature that the CPU has. Linux wants to be asked for AMX, once for all
 * threads of a process, before code with tiles runs. */
static int mxc__may_use(const char *feature) {
    enum { request = 0x1023, tiles = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    return strncmp(feature, "amx", 3) != 0 || syscall(SYS_arch_prctl, request, tiles) == 0;
}

/* Refuse code for another system, or for a CPU that has what this one lacks. */
static void mxc__check_cpu(mxc__context *context, const mxc__json *manifest) {
    const mxc__json *parts = mxc__member(context, manifest, "parts", MXC__OBJECT);
    const char *system = mxc__text_of(context, parts, "system"), *machine = mxc__text_of(context, parts, "machine");
    const char *cpu = mxc__text_of(context, parts, "cpu"), *features = mxc__text_of(context, parts, "features");
    char text[16384], here[256], flags[8192], missing[512] = "", word[64];
    FILE *file = fopen("/proc/cpuinfo", "r");
    size_t length = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0, used = 0;
    text[length] = 0;
    if (file != NULL) fclose(file);
    if (strcmp(system, "linux") != 0 || strcmp(machine, "x86_64") != 0)
        mxc__fail(context, MXC_OTHER_CPU, "it was compiled for %s on %s, and this is Linux on x86-64", system, machine);
    mxc__line_of(text, "flags", flags, sizeof flags);
    while (*features != 0) {
        length = strcspn(features, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, features);
        if (length > 0 && length < sizeof word && !(mxc__has_word(flags, word, length) && mxc__may_use(word))
            && used + length + 2 < sizeof missing)
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s", used > 0 ? ", " : "", word);
        features += length + (features[length] == ' ');
    }
    if (used > 0)
        mxc__fail(context, MXC_OTHER_CPU, "it was compiled for a CPU with features that this one lacks%s: %s; compile "
                  "the model for a lower level, as with --target cpu:x86-64-v2",
                  strstr(missing, "amx_") != NULL ? ", or the system refuses" : "", missing);
    mxc__line_of(text, "vendor_id", here, sizeof here);
    used = strlen(here);
    mxc__line_of(text, "cpu family", word, sizeof word);
    used += (size_t)snprintf(here + used, sizeof here - used, " %s", word);
    mxc__line_of(text, "model", word, sizeof word);
    snprintf(here + used, sizeof here - used, " %s", word);
    if (strcmp(cpu, "any with these features") != 0 && strcmp(cpu, here) != 0)
        mxc__fail(context, MXC_OTHER_CPU, "it was compiled for the CPU %s, and this is %s; compile the model here, or "
                  "for all CPUs of a level, as with --target cpu:x86-64-v3", cpu, here);
}

/* Map the code, with the addresses of the C library's functions in it. */
static void mxc__load_code(mxc__file *file, const char *code, size_t size) {
    mxc_model *model = file->model;
    mxc__context *context = file->context;
    const mxc__json *entry = mxc__member(context, file->manifest, "code", MXC__OBJECT), *each;
    const char *form = mxc__text_of(context, entry, "form");
    void *libraries[2], *memory;
    libraries[0] = dlopen(NULL, RTLD_LAZY), libraries[1] = dlopen("libm.so.6", RTLD_LAZY);
    if (strcmp(form, "image") != 0)
        mxc__fail(context, MXC_UNSUPPORTED, "its code has the form %s, which this loader does not run: compile the "
                  "model with mxc on Linux on x86-64, for the CPU", form);
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) mxc__fail(context, MXC_NO_MEMORY, "there is no memory for its code: %s", strerror(errno));
    model->code = (char *)memory, model->code_size = size;
    memcpy(memory, code, size);
    for (each = mxc__member(context, entry, "imports", MXC__OBJECT)->first; each != NULL; each = each->next) {
        void *address = NULL;
        int i;
        mxc__expect(context, each->kind == MXC__INTEGER && each->number >= 0 && size >= 8
                    && (size_t)each->number <= size - 8, "imports");
        for (i = 0; i < 2 && address == NULL; i++)
            if (libraries[i] != NULL) address = dlsym(libraries[i], each->key);
        if (address == NULL)
            mxc__fail(context, MXC_UNSUPPORTED, "the C library has no function %s, which its code calls", each->key);
        memcpy(model->code + each->number, &address, sizeof address);
    }
    if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0)
        mxc__fail(context, MXC_UNSUPPORTED, "the system does not let its code become executable: %s", strerror(errno));
    memory = mxc__code_of(file, "mxc_run"), memcpy(&model->run, &memory, sizeof memory);
    memory = mxc__code_of(file, "mxc_run_serial"), memcpy(&model->run_alone, &memory, sizeof memory);
    memory = mxc__code_of(file, "mxc_worker"), memcpy(&model->work, &memory, sizeof memory);
}

static void mxc__map(mxc__context *context, mxc_model *model) {
    struct stat status;
    int handle = open(context->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    void *data = MAP_FAILED;
    if (handle < 0) mxc__fail(context, MXC_UNREADABLE, "it cannot be read: %s", strerror(errno));
    if (fstat(handle, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= MXC__HEAD_BYTES)
        data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, handle, 0);
    close(handle);
    if (!S_ISREG(status.st_mode)) mxc__fail(context, MXC_DAMAGED, "it is no artifact, and no regular file");
    if (status.st_size < MXC__HEAD_BYTES)
        mxc__fail(context, MXC_DAMAGED, "it is no artifact: it has only %lld bytes", (long long)status.st_size);
    if (data == MAP_FAILED) mxc__fail(context, MXC_UNREADABLE, "it cannot be mapped: %s", strerror(errno));
    model->file = (const char *)data, model->size = (size_t)status.st_size;
}

/* Check the head and the manifest; where the manifest ends. */
static size_t mxc__read_manifest(mxc__file *file) {
    const char *data = file->model->file;
    mxc__context *context = file->context;
    uint32_t version, length;
    uint64_t size;
    size_t end;
    unsigned char digest[32];
    mxc__sha sha;
    memcpy(&version, data + 8, 4), memcpy(&length, data + 12, 4), memcpy(&size, data + 16, 8);
    if (memcmp(data, "mxcmodl\x1a", 8) != 0)
        mxc__fail(context, MXC_DAMAGED, "it is no artifact of mxc: it does not begin with mxcmodl");
    if (version != MXC__VERSION)
        mxc__fail(context, MXC_OTHER_VERSION, "it has version %lu of the format of artifacts, this mxc.h reads version "
                  "%d: compile the model again, or take the mxc.h of the mxc that compiled it", (unsigned long)version,
                  MXC__VERSION);
    if (size != file->model->size)
        mxc__fail(context, MXC_DAMAGED, "it has %zu bytes, but should have %llu: it was cut off or is damaged",
                  file->model->size, (unsigned long long)size);
    end = MXC__HEAD_BYTES + (size_t)length;
    if (end <= file->model->size && end % MXC__PAGE == 0) {
        mxc__sha_start(&sha);
        mxc__sha_add(&sha, data, MXC__HEAD_BYTES - 32);
        mxc__sha_add(&sha, data + MXC__HEAD_BYTES, length);
        mxc__sha_end(&sha, digest);
    }
    if (end > file->model->size || end % MXC__PAGE != 0 || memcmp(digest, data + 32, 32) != 0)
        mxc__fail(context, MXC_DAMAGED, "its head or manifest is damaged: the checksum does not match");
    file->manifest = mxc__parsed(file, data + MXC__HEAD_BYTES, length);
    return end;
}

/* The length of a section, and where it begins. start: of the first one. */
static size_t mxc__section(mxc__file *file, size_t start, const char *name, const char **data) {
    const mxc__json *each = mxc__member(file->context, file->manifest, "sections", MXC__LIST)->first;
    for (; each != NULL; each = each->next) {
        if (strcmp(mxc__text_of(file->context, each, "name"), name) == 0) {
            *data = file->model->file + start;
            return (size_t)mxc__number_of(file->context, each, "length");
        }
        start += (size_t)mxc__number_of(file->context, each, "length");
    }
    mxc__expect(file->context, 0, name);
    return 0;
}

static void mxc__check_sections(mxc__file *file, size_t start) {
    mxc__context *context = file->context;
    const mxc__json *each = mxc__member(context, file->manifest, "sections", MXC__LIST)->first;
    for (; each != NULL; each = each->next) {
        const char *name = mxc__text_of(context, each, "name"), *sum = mxc__text_of(context, each, "checksum");
        int64_t length = mxc__size_of(context, each, "length", (int64_t)(file->model->size - start));
        mxc__expect(context, length % MXC__PAGE == 0, "the length of a section");
        if (!mxc__sum_is(file->model->file + start, (size_t)length, sum))
            mxc__fail(context, MXC_DAMAGED, "its section %s is damaged: its checksum is not the one that the manifest "
                      "has", name);
        start += (size_t)length;
    }
    mxc__expect(context, start == file->model->size, "its sections do not fill the file");
}

static void mxc__read(mxc__file *file) {
    mxc_model *model = file->model;
    mxc__context *context = file->context;
    const mxc__json *plans, *each;
    const char *data;
    size_t start, length;
    mxc__map(context, model);
    start = mxc__read_manifest(file);
    mxc__check_sections(file, start);
    mxc__check_cpu(context, file->manifest);
    file->graph_size = mxc__section(file, start, "graph", &file->graph);
    model->values_size = mxc__section(file, start, "parameters", &model->values);
    model->stored_size = mxc__section(file, start, "prepared", &model->stored);
    length = mxc__section(file, start, "code", &data);
    mxc__load_code(file, data, length);
    each = mxc__member(context, file->manifest, "parameters", MXC__OBJECT)->first;
    for (; each != NULL; each = each->next) {
        mxc_array array = mxc__array_of(context, each->key, each);
        mxc__value_place(file, each, &array);
    }
    model->num_outputs = (int)mxc__member(context, file->manifest, "outputs", MXC__LIST)->number;
    model->num_inputs = (int)(mxc__member(context, file->manifest, "inputs", MXC__LIST)->number
                              + mxc__member(context, file->manifest, "optional", MXC__LIST)->number);
    plans = mxc__member(context, file->manifest, "plans", MXC__LIST);
    model->plans = (mxc__plan *)mxc__new(context, plans->number, sizeof(mxc__plan));
    for (each = plans->first; each != NULL; each = each->next) {
        if (strcmp(mxc__text_of(context, each, "mode"), "inference") != 0) continue; /* a training step's */
        length = mxc__section(file, start, mxc__text_of(context, each, "section"), &data);
        mxc__read_entry(file, each, data, length, &model->plans[model->num_plans++]);
    }
    mxc__expect(context, model->num_plans > 0, "plans");
    if (file->python != NULL)
        mxc__fail(context, MXC_UNSUPPORTED, "it has operators that only Python runs: %s", file->python);
}

mxc_model *mxc_load(const char *path, mxc_error *error) {
    mxc__file file;
    mxc__context context;
    mxc__pool pool, *volatile first = &pool, *volatile json = &file.json; /* which must be known after a jump */
    mxc_model *volatile model = NULL;
    memset(&file, 0, sizeof file), memset(&context, 0, sizeof context), memset(&pool, 0, sizeof pool);
    if (error != NULL) error->status = MXC_OK, error->message[0] = 0;
    context.error = error, context.path = path, context.pool = &pool;
    if (setjmp(context.back) != 0) {
        mxc__release(json);
        if (model != NULL) mxc_free(model);
        else mxc__release(first);
        return NULL;
    }
    file.model = (mxc_model *)mxc__new(&context, 1, sizeof(mxc_model));
    model = file.model;
    model->pool = pool; /* which has the model itself */
    context.pool = &model->pool;
    file.context = &context;
    pthread_mutex_init(&model->lock, NULL);
    model->path = context.path = mxc__copied(&context, path);
    mxc__read(&file);
    mxc__release(&file.json);
    return model;
}

void mxc_free(mxc_model *model) {
    mxc__pool pool;
    if (model == NULL) return;
    pthread_mutex_destroy(&model->lock);
    if (model->code != NULL) munmap(model->code, model->code_size);
    if (model->file != NULL) munmap((void *)(uintptr_t)model->file, model->size);
    pool = model->pool;
    mxc__release(&pool);
}

int mxc_num_plans(const mxc_model *model) { return model->num_plans; }
int mxc_num_inputs(const mxc_model *model) { return model->num_inputs; }
int mxc_num_outputs(const mxc_model *model) { return model->num_outputs; }

const mxc_array *mxc_input(const mxc_model *model, int plan, int number) {
    if (plan < 0 || plan >= model->num_plans || number < 0 || number >= model->num_inputs) return NULL;
    return &model->plans[plan].inputs[number];
}

const mxc_array *mxc_output(const mxc_model *model, int plan, int number) {
    if (plan < 0 || plan >= model->num_plans || number < 0 || number >= model->num_outputs) return NULL;
    return &model->plans[plan].results[number];
}

int mxc_find_plan(const mxc_model *model, const char *input, int ndim, const int64_t *shape) {
    int plan, i;
    for (plan = 0; plan < model->num_plans; plan++)
        for (i = 0; i < model->num_inputs; i++) {
            const mxc_array *array = &model->plans[plan].inputs[i];
            if (strcmp(array->name, input) == 0 && array->ndim == ndim
                && (ndim == 0 || memcmp(array->shape, shape, (size_t)ndim * sizeof *shape) == 0)) return plan;
        }
    return -1;
}

void mxc_seed(mxc_model *model, int64_t seed) {
    pthread_mutex_lock(&model->lock);
    model->seed = seed, model->offset = 0;
    pthread_mutex_unlock(&model->lock);
}

/* -- tables of steps, as the runner's code reads them (runtime/step_table.py, runtime/table_rows.py) */

typedef struct mxc__table {
    mxc__context *context;
    mxc_session *session;
    int64_t *rows, num_rows, row_room;             /* function, first argument, units, - of each */
    int64_t *arguments, num_arguments, argument_room;
    int64_t *links, num_links, link_room;          /* arguments that are addresses of arguments, by their number */
    int64_t *moves, num_moves, move_room;          /* (loop, argument, by how much it moves on with every round) */
    int64_t num_loops;
} mxc__table;

typedef struct mxc__scope { /* the plan of a loop, in the plan around it */
    const struct mxc__scope *around;
    const mxc__plan *plan;
    const mxc__step *step;
    int64_t loop;
} mxc__scope;

struct mxc_session {
    mxc__pool pool;
    mxc_model *model;
    const mxc__plan *plan;
    char **inputs, **outputs, *arena, *prepared, *scratch;
    int64_t *status, seed[2];
    int64_t *table; /* of the steps of a run */
    char *team;     /* what threads share of the work: see runner_ir.py */
    pthread_t *workers;
    int num_workers, threads;
    size_t stride;
};

static void mxc__add_argument(mxc__table *table, int64_t word) {
    table->arguments = (int64_t *)mxc__grown(table->context, table->arguments, table->num_arguments,
                                             &table->argument_room, sizeof(int64_t));
    table->arguments[table->num_arguments++] = word;
}

/* An argument that is the address of another one. */
static void mxc__add_link(mxc__table *table, int64_t argument) {
    table->links = (int64_t *)mxc__grown(table->context, table->links, table->num_links, &table->link_room,
                                         sizeof(int64_t));
    table->links[table->num_links++] = table->num_arguments;
    mxc__add_argument(table, argument);
}

/* A row, whose arguments are added next. */
static void mxc__add_row(mxc__table *table, const void *code, int64_t units) {
    int64_t *row;
    table->rows = (int64_t *)mxc__grown(table->context, table->rows, table->num_rows, &table->row_room,
                                        MXC__ROW * sizeof(int64_t));
    row = table->rows + MXC__ROW * table->num_rows++;
    row[0] = (int64_t)(intptr_t)code, row[1] = table->num_arguments, row[2] = units;
    row[3] = units / MXC__TAKES + (units % MXC__TAKES != 0);
    if (row[3] < 1) row[3] = 1;
}

/* The address of a buffer in the first round of all loops. With `argument`, note by how much that moves on. */
static int64_t mxc__address(mxc__table *table, const mxc__scope *scope, int64_t position, int64_t argument) {
    mxc_session *session = table->session;
    const mxc__buffer *buffer = &scope->plan->buffers[position];
    const char *base;
    if (scope->around != NULL) {
        int64_t by = scope->step->moves[position];
        int64_t address = mxc__address(table, scope->around, scope->step->buffers[buffer->number], argument);
        if (by != 0 && argument >= 0) {
            int64_t *move;
            table->moves = (int64_t *)mxc__grown(table->context, table->moves, table->num_moves, &table->move_room,
                                                 3 * sizeof(int64_t));
            move = table->moves + 3 * table->num_moves++;
            move[0] = scope->loop, move[1] = argument, move[2] = by;
        }
        return address + buffer->offset;
    }
    switch (buffer->place) {
    case MXC__ARGUMENT: case MXC__AUX:
        base = buffer->number < 0 ? session->model->values + buffer->offset : session->inputs[buffer->number];
        break;
    case MXC__OUTPUT: base = session->outputs[buffer->number]; break;
    case MXC__SEED: base = (const char *)session->seed; break;
    case MXC__ARENA: base = session->arena + buffer->offset; break;
    case MXC__STATUS: base = (const char *)session->status + buffer->offset; break;
    default: base = session->prepared + buffer->offset;
    }
    return (int64_t)(intptr_t)base;
}

static void mxc__add_steps(mxc__table *table, const mxc__scope *scope, int64_t first, int64_t end, int prepares);

static void mxc__add_loop(mxc__table *table, const mxc__scope *around, const mxc__step *step) {
    mxc__scope scope;
    int64_t begun = step->once + step->tests, first, flag, turn = -1, start, count, i;
    scope.around = around, scope.plan = step->loop, scope.step = step, scope.loop = table->num_loops++;
    mxc__add_steps(table, &scope, 0, step->once, 0);
    first = table->num_rows;
    mxc__add_steps(table, &scope, step->once, begun, 0);
    if (step->flag >= 0) {
        flag = mxc__address(table, &scope, step->flag, -1);
        mxc__add_row(table, NULL, 1);
        mxc__add_argument(table, MXC__BRANCH);
        mxc__add_argument(table, flag);
        turn = table->num_arguments;
        mxc__add_argument(table, 0); /* is set below */
    }
    mxc__add_steps(table, &scope, begun, step->loop->num_steps, 0);
    if (turn >= 0) table->arguments[turn] = table->num_rows + (step->stops != 0);
    mxc__add_row(table, NULL, 1);
    start = table->num_arguments;
    mxc__add_argument(table, MXC__ADVANCE);
    mxc__add_argument(table, 0);
    mxc__add_argument(table, step->length);
    mxc__add_argument(table, first);
    mxc__add_argument(table, 0); /* is counted here */
    for (i = count = 0; i < table->num_moves; i++)
        if (table->moves[3 * i] == scope.loop) {
            mxc__add_link(table, table->moves[3 * i + 1]);
            mxc__add_argument(table, table->moves[3 * i + 2]);
            count++;
        }
    for (i = 0; i < step->num_counts; i++) {
        const int64_t *each = step->counts + 3 * i;
        mxc__add_argument(table, mxc__address(table, &scope, each[0], -1) + each[1]);
        mxc__add_argument(table, each[2]);
    }
    table->arguments[start + 4] = count + step->num_counts;
    mxc__add_row(table, NULL, 1);
    mxc__add_argument(table, MXC__RESET);
    mxc__add_link(table, start);
}

static void mxc__add_steps(mxc__table *table, const mxc__scope *scope, int64_t first, int64_t end, int prepares) {
    int64_t i, b;
    for (; first < end; first++) {
        const mxc__step *step = &scope->plan->steps[first];
        if (scope->around == NULL && step->prepares != prepares) continue;
        if (step->loop != NULL) {
            mxc__add_loop(table, scope, step);
        } else if (step->code != NULL) {
            mxc__add_row(table, step->code, step->units);
            for (b = 0; b < step->num_buffers; b++) /* of which loops note where the arguments are */
                mxc__add_argument(table, mxc__address(table, scope, step->buffers[b], table->num_arguments));
            for (i = 0; i < step->num_values; i++) mxc__add_argument(table, step->values[i]);
        }
    }
}

/* The table of the steps of a phase: words {rows*, rows, scratch, stride}, rows, arguments. */
static int64_t *mxc__table_of(mxc__context *context, mxc_session *session, int prepares) {
    mxc__table table;
    mxc__scope scope;
    int64_t *words, *arguments, i;
    memset(&table, 0, sizeof table), memset(&scope, 0, sizeof scope);
    table.context = context, table.session = session, scope.plan = session->plan;
    mxc__add_steps(&table, &scope, 0, session->plan->num_steps, prepares);
    words = (int64_t *)mxc__new(context, MXC__TABLE_HEAD + MXC__ROW * table.num_rows + table.num_arguments,
                                sizeof(int64_t));
    arguments = words + MXC__TABLE_HEAD + MXC__ROW * table.num_rows;
    words[0] = (int64_t)(intptr_t)(words + MXC__TABLE_HEAD), words[1] = table.num_rows;
    words[2] = (int64_t)(intptr_t)session->scratch, words[3] = (int64_t)session->stride;
    if (table.num_rows > 0)
        memcpy(words + MXC__TABLE_HEAD, table.rows, MXC__ROW * (size_t)table.num_rows * sizeof *words);
    if (table.num_arguments > 0) memcpy(arguments, table.arguments, (size_t)table.num_arguments * sizeof *words);
    for (i = 0; i < table.num_rows; i++) {
        int64_t *row = words + MXC__TABLE_HEAD + MXC__ROW * i;
        row[1] = (int64_t)(intptr_t)(arguments + row[1]);
    }
    for (i = 0; i < table.num_links; i++)
        arguments[table.links[i]] = (int64_t)(intptr_t)(arguments + arguments[table.links[i]]);
    return words;
}

/* -- sessions */

typedef struct mxc__worker {
    mxc_session *session;
    uint64_t number;
} mxc__worker;

static void *mxc__serve(void *argument) {
    const mxc__worker *worker = (const mxc__worker *)argument;
    worker->session->model->work(worker->session->team, worker->number);
    return NULL;
}

static void mxc__start(mxc__context *context, mxc_session *session) {
    long (*call)(long, ...) = syscall;
    int64_t numbers[3] = {SYS_futex, SYS_sched_yield, MXC__SPIN_ROUNDS};
    session->team = (char *)mxc__new(context, MXC__POOL_BYTES + MXC__SMALL, 1); /* a block of its own: aligned */
    memcpy(session->team + MXC__SYSCALL, &call, sizeof call);
    memcpy(session->team + MXC__FUTEX, &numbers[0], 8);
    memcpy(session->team + MXC__YIELD, &numbers[1], 8);
    memcpy(session->team + MXC__SPINS, &numbers[2], 8);
    session->workers = (pthread_t *)mxc__new(context, session->threads - 1, sizeof(pthread_t));
    while (session->num_workers < session->threads - 1) {
        mxc__worker *worker = (mxc__worker *)mxc__new(context, 1, sizeof *worker);
        worker->session = session, worker->number = (uint64_t)session->num_workers + 1;
        if (pthread_create(&session->workers[session->num_workers], NULL, mxc__serve, worker) != 0)
            mxc__fail(context, MXC_NO_MEMORY, "thread %d of %d cannot be started", session->num_workers + 2,
                      session->threads);
        session->num_workers++;
    }
}

/* Run a table, then say what a function of the model's own has raised, if any has. */
static mxc_status mxc__work(mxc_session *session, int64_t *table, mxc_error *error) {
    static const char *const KINDS[] = {
        "", "an index is out of bounds", "an operation failed: parts of arrays do not fit each other, or one has no "
        "elements", "AssertionError", "IndexError", "KeyError", "OverflowError", "ZeroDivisionError", "ArithmeticError",
        "RuntimeError", "TypeError", "ValueError", "NotImplementedError", "MemoryError", "Exception"};
    const mxc__plan *plan = session->plan;
    int64_t i, b;
    if (plan->status > 0) memset(session->status, 0, (size_t)plan->status);
    if (session->team != NULL) session->model->run(session->team, table);
    else session->model->run_alone(table);
    for (i = 0; plan->status > 0 && i < plan->num_steps; i++) {
        const mxc__faults *faults = plan->steps[i].faults;
        int64_t status, kind, line;
        size_t used, size = sizeof error->message;
        if (faults == NULL) continue;
        status = session->status[plan->buffers[plan->steps[i].buffers[plan->steps[i].num_buffers - 1]].offset / 8];
        if (status == 0) continue;
        if (error == NULL) return MXC_FAILED;
        kind = status >> MXC__FAULT_SHIFT, line = (status & 0xffffffff) - 1;
        if (kind < 0 || kind >= (int64_t)(sizeof KINDS / sizeof *KINDS)) kind = 2;
        if (line < 0 || line >= faults->num_lines) line = 0;
        used = (size_t)snprintf(error->message, size, "%s: node '%s': operator %s: its %s (%s, line %lld): %s%s",
                                session->model->path, faults->node, faults->operation, faults->role,
                                faults->files[line], (long long)faults->numbers[line],
                                kind > 2 ? "it raised " : "", KINDS[kind]);
        for (b = 0; kind == 1 && b < faults->num_arrays && b + 1 < plan->steps[i].num_buffers && used < size; b++)
            used += (size_t)snprintf(error->message + used, size - used, "%s%s has the shape %s", b == 0 ? " (" : ", ",
                                     faults->arrays[b], plan->buffers[plan->steps[i].buffers[b]].shape_text);
        if (used < size)
            snprintf(error->message + used, size - used, "%s\n    %s", kind == 1 ? ")" : "", faults->lines[line]);
        return error->status = MXC_FAILED;
    }
    if (error != NULL) error->status = MXC_OK, error->message[0] = 0;
    return MXC_OK;
}

static void mxc__prepare(mxc__context *context, mxc_session *session) {
    const mxc_model *model = session->model;
    const mxc__plan *plan = session->plan;
    mxc_error error, *wanted = context->error != NULL ? context->error : &error;
    int i;
    session->inputs = (char **)mxc__new(context, model->num_inputs, sizeof(char *));
    session->outputs = (char **)mxc__new(context, model->num_outputs, sizeof(char *));
    for (i = 0; i < model->num_inputs; i++)
        session->inputs[i] = (char *)mxc__new(context, (int64_t)plan->inputs[i].nbytes + MXC__SMALL, 1);
    for (i = 0; i < model->num_outputs; i++)
        session->outputs[i] = (char *)mxc__new(context, (int64_t)plan->results[i].nbytes + MXC__SMALL, 1);
    session->arena = (char *)mxc__new(context, plan->arena + MXC__SMALL, 1);
    session->status = (int64_t *)mxc__new(context, plan->status + MXC__SMALL, 1);
    session->stride = ((size_t)plan->scratch + MXC__ALIGNMENT - 1) / MXC__ALIGNMENT * MXC__ALIGNMENT;
    session->scratch = (char *)mxc__new(context, session->threads, session->stride + MXC__SMALL);
    if (session->threads > 1) mxc__start(context, session);
    if (plan->is_stored) {
        session->prepared = (char *)(uintptr_t)model->stored;
    } else {
        int64_t *table;
        session->prepared = (char *)mxc__new(context, plan->prepared + MXC__SMALL, 1);
        table = mxc__table_of(context, session, 1);
        if (table[1] > 0 && mxc__work(session, table, wanted) != MXC_OK) longjmp(context->back, 1);
    }
    session->table = mxc__table_of(context, session, 0);
}

mxc_session *mxc_open(mxc_model *model, int plan, int threads, mxc_error *error) {
    mxc__context context;
    mxc__pool pool, *volatile first = &pool;
    mxc_session *volatile session = NULL;
    memset(&context, 0, sizeof context), memset(&pool, 0, sizeof pool);
    if (error != NULL) error->status = MXC_OK, error->message[0] = 0;
    context.error = error, context.path = model->path, context.pool = &pool;
    if (setjmp(context.back) != 0) {
        if (session != NULL) mxc_close(session);
        else mxc__release(first);
        return NULL;
    }
    if (plan < 0 || plan >= model->num_plans)
        mxc__fail(&context, MXC_ARGUMENT, "there is no plan %d; there are %d", plan, model->num_plans);
    if (threads < 1 || threads > MXC__MOST_THREADS)
        mxc__fail(&context, MXC_ARGUMENT, "expected from 1 to %d threads, got %d", MXC__MOST_THREADS, threads);
    session = (mxc_session *)mxc__new(&context, 1, sizeof(mxc_session));
    session->pool = pool; /* which has the session itself */
    context.pool = &session->pool;
    session->model = model, session->plan = &model->plans[plan];
    session->threads = session->plan->is_shared ? threads : 1;
    mxc__prepare(&context, session);
    return session;
}

void mxc_close(mxc_session *session) {
    mxc__pool pool;
    int i;
    if (session == NULL) return;
    if (session->num_workers > 0) {
        int32_t *word = (int32_t *)(void *)(session->team + MXC__WORD);
        __atomic_store_n((int32_t *)(void *)(session->team + MXC__QUIT), 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, word, 129, INT32_MAX); /* wake all, of this process */
        for (i = 0; i < session->num_workers; i++) pthread_join(session->workers[i], NULL);
    }
    pool = session->pool;
    mxc__release(&pool);
}

void *mxc_input_data(mxc_session *session, int number) {
    return number < 0 || number >= session->model->num_inputs ? NULL : session->inputs[number];
}

const void *mxc_output_data(const mxc_session *session, int number) {
    const mxc__buffer *buffer;
    if (number < 0 || number >= session->model->num_outputs) return NULL;
    buffer = &session->plan->buffers[session->plan->outputs[number]];
    if (buffer->place == MXC__OUTPUT) return session->outputs[buffer->number];
    return buffer->number < 0 ? session->model->values + buffer->offset : session->inputs[buffer->number];
}

mxc_status mxc_run(mxc_session *session, mxc_error *error) {
    if (session->plan->draws) {
        mxc_model *model = session->model;
        pthread_mutex_lock(&model->lock);
        session->seed[0] = model->seed, session->seed[1] = model->offset;
        model->offset += MXC__OFFSETS_PER_RUN;
        pthread_mutex_unlock(&model->lock);
    }
    return mxc__work(session, session->table, error);
}

#ifdef __cplusplus
}
#endif
#endif /* MXC_IMPLEMENTATION */
