/* The exported network on a bare Cortex-M: no operating system, no C library, no heap.
 *
 * It feeds the sequences of fed.h, says every output as the eight hexadecimal digits of its bits,
 * then how many ticks of the timer the steps took and how many bytes of stack were written to. */
#include <stdint.h>
#include "net.h"
#include "fed.h"

#define STACK 8192
#define SYSTICK ((volatile uint32_t *)0xE000E010)  /* control, reload, now */
#define TICKS 0xFFFFFFu

static uint32_t stack[STACK / 4] __attribute__((aligned(8)));
static net_state state;
static float y[NET_OUTPUTS];

void start(void);
static void work(void);

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    (const void *)(stack + STACK / 4), (const void *)start,
};

/* What the compiler may call on its own. */
void *memcpy(void *to, const void *from, unsigned size)
{
    for (char *t = to, *const end = t + size; t < end; t++)
        *t = *(const char *)from, from = (const char *)from + 1;
    return to;
}

void *memset(void *to, int value, unsigned size)
{
    for (volatile char *t = to, *const end = t + size; t < end; t++) *t = (char)value;
    return to;
}

static int host(int what, const void *about)
{
    register int r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = about;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void say(uint32_t bits)
{
    char text[10];
    for (int digit = 0; digit < 8; digit++)
        text[digit] = "0123456789abcdef"[bits >> (28 - 4 * digit) & 15];
    text[8] = '\n';
    text[9] = 0;
    host(0x04, text);
}

/* Never inlined, so that all of their stack lies under their caller's. */
static void __attribute__((noinline)) advance(const float *u)
{
    net_step(&state, u);
}

static void __attribute__((noinline)) answer(void)
{
    net_output(&state, y);
}

static uint32_t fed_through(int speak)
{
    uint32_t ticks = 0;
    const float *u = fed;
    for (int n = 0; n < SEQUENCES; n++) {
        net_reset(&state);
        for (int step = 0; step < lengths[n]; step++, u += NET_INPUTS) {
            const uint32_t before = SYSTICK[2];
            advance(u);
            answer();
            ticks += (before - SYSTICK[2]) & TICKS;
            for (int k = 0; speak && k < NET_OUTPUTS; k++) {
                union { float value; uint32_t bits; } both = { y[k] };
                say(both.bits);
            }
        }
    }
    return ticks;
}

/* Paints what lies under the stack pointer, works, and finds what was painted over. */
static uint32_t stack_written(void)
{
    volatile uint32_t *const lowest = stack;
    uint32_t here, n = 0;
    __asm__ volatile("mov %0, sp" : "=r"(here));
    const uint32_t words = (here - (uint32_t)stack) / 4;
    for (uint32_t k = 0; k < words; k++) lowest[k] = 0xA5A5A5A5u;
    advance(fed);
    answer();
    while (n < words && lowest[n] == 0xA5A5A5A5u) n++;
    return (words - n) * 4;
}

void start(void)
{
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88 |= 0xF << 20;  /* the floating-point unit may be used */
    __asm__ volatile("dsb\n isb");
#endif
    work();
    host(0x18, (const void *)0x20026);
    for (;;) {}
}

static void __attribute__((noinline)) work(void)
{
    SYSTICK[1] = TICKS;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5;
    fed_through(1);
    say(fed_through(0));
    say(stack_written());
}
