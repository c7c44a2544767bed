/* Runs kernels of aarch64 for tests/aarch64.py, under an emulator.

   Requests on the standard input, all numbers of 64 bits:
   'L', a path, a symbol (each: its length, its bytes): load a shared object; answer the address of the symbol, or 0.
   'R', address, arrays; for each array its bytes' number, how far behind a multiple of 64 it lies, its bytes;
        scratch bytes; pointers, and which array each points to; values, and they; portions, and each one's two bounds.
        Call the kernel for each portion; answer the arrays' bytes, the scratch memory, and whether nothing was written
        beside the arrays (1) or something was (0). */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, BESIDE = 256, GUARD = 0xA5 };

typedef void (*kernel)(void **args, int64_t first, int64_t last, void *scratch);

static void get(void *to, size_t bytes) {
    if (bytes && fread(to, 1, bytes, stdin) != bytes) exit(1);
}

static int64_t number(void) {
    int64_t n;
    get(&n, sizeof n);
    return n;
}

static char *text(void) {
    int64_t length = number();
    char *found = calloc(1, length + 1);
    get(found, length);
    return found;
}

static void *allocated(size_t bytes) {
    void *memory;
    if (posix_memalign(&memory, ALIGNMENT, bytes + 2 * BESIDE + ALIGNMENT)) exit(1);
    return memory;
}

static void load(void) {
    char *path = text(), *symbol = text();
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int64_t address = object ? (int64_t)dlsym(object, symbol) : 0;
    if (!address) fprintf(stderr, "%s\n", dlerror());
    fwrite(&address, sizeof address, 1, stdout);
    free(path);
    free(symbol);
}

static void run(void) {
    kernel code = (kernel)number();
    int64_t count = number();
    uint8_t **memory = calloc(count + 1, sizeof *memory), **arrays = calloc(count + 1, sizeof *arrays);
    int64_t *sizes = calloc(count + 1, sizeof *sizes);
    for (int64_t i = 0; i < count; i++) {
        sizes[i] = number();
        int64_t shift = number();
        memory[i] = allocated(sizes[i]);
        memset(memory[i], GUARD, sizes[i] + 2 * BESIDE + ALIGNMENT);
        arrays[i] = memory[i] + BESIDE + shift;
        get(arrays[i], sizes[i]);
    }
    int64_t scratch_bytes = number();
    uint8_t *scratch = allocated(scratch_bytes);
    memset(scratch, GUARD, scratch_bytes);
    int64_t pointers = number();
    void **args = calloc(pointers + 1, sizeof *args);
    for (int64_t i = 0; i < pointers; i++) args[i] = arrays[number()];
    int64_t values = number();
    args = realloc(args, (pointers + values + 1) * sizeof *args);
    get(args + pointers, values * sizeof *args);
    int64_t portions = number();
    for (int64_t i = 0; i < portions; i++) {
        int64_t first = number(), last = number();
        code(args, first, last, scratch);
    }
    int64_t untouched = 1;
    for (int64_t i = 0; i < count; i++) {
        uint8_t *end = arrays[i] + sizes[i];
        for (uint8_t *p = memory[i]; p < arrays[i]; p++) untouched &= *p == GUARD;
        for (uint8_t *p = end; p < end + BESIDE; p++) untouched &= *p == GUARD;
        fwrite(arrays[i], 1, sizes[i], stdout);
        free(memory[i]);
    }
    fwrite(scratch, 1, scratch_bytes, stdout);
    fwrite(&untouched, sizeof untouched, 1, stdout);
    free(memory);
    free(arrays);
    free(sizes);
    free(scratch);
    free(args);
}

int main(void) {
    for (int request; (request = getchar()) != EOF; fflush(stdout)) {
        if (request == 'L') load();
        else if (request == 'R') run();
        else return 1;
    }
    return 0;
}
