/* The three workloads of bench_jit.py by hand, for `gcc -O3 -march=native`. */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* W1: rows of 64 floats; the first n of each are added. */
void w1(float *ub, long rows, long turns, long n) {
    float *x = ub, *y = ub + rows * 64, *z = ub + 2 * rows * 64;
    for (long t = 0; t < turns; t++)
        for (long r = 0; r < rows; r++)
            for (long i = 0; i < (n < 64 ? n : 64); i++)
                z[r * 64 + i] = x[r * 64 + i] + y[r * 64 + i];
}

/* W2: softmax of each row of tiles of 64 x 128. */
void w2(const float *restrict x, float *restrict y, long tiles) {
    float e[128];
    for (long r = 0; r < tiles * 64; r++) {
        const float *in = x + r * 128;
        float most = -INFINITY, sum = 0;
        for (int i = 0; i < 128; i++) most = in[i] > most ? in[i] : most;
        for (int i = 0; i < 128; i++) e[i] = expf(in[i] - most);
        for (int i = 0; i < 128; i++) sum += e[i];
        for (int i = 0; i < 128; i++) y[r * 128 + i] = e[i] / sum;
    }
}

/* W3: n x n bf16 matrices, f32 sums, in blocks of 4 rows by 64 columns. */
typedef float v16 __attribute__((vector_size(64), aligned(4)));

static float wide(uint16_t b) {
    uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

void w3(const uint16_t *a, const uint16_t *b, float *c, float *scratch, long n) {
    float *left = scratch, *right = scratch + n * n;
    for (long i = 0; i < n * n; i++) left[i] = wide(a[i]);
    for (long i = 0; i < n * n; i++) right[i] = wide(b[i]);
    for (long j = 0; j < n; j += 64)
        for (long i = 0; i < n; i += 4) {
            v16 s[4][4] = {{{0}}};
            for (long k = 0; k < n; k++)
#pragma GCC unroll 4
                for (int r = 0; r < 4; r++)
#pragma GCC unroll 4
                    for (int w = 0; w < 4; w++)
                        s[r][w] += left[(i + r) * n + k] * *(v16 *)(right + k * n + j + 16 * w);
            for (int r = 0; r < 4; r++)
                for (int w = 0; w < 4; w++) *(v16 *)(c + (i + r) * n + j + 16 * w) = s[r][w];
        }
}
