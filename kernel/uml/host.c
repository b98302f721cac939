// SPDX-License-Identifier: GPL-2.0-only
/*
 * What User Mode Linux asks of its host, answered alike on every host.
 *
 * UML is a program, and the C library stands between it and the host. Loaded
 * with LD_PRELOAD, this library answers three of its calls; the kernel stays
 * unmodified.
 *
 * getrandom(): UML fills its entropy pool from it. Where the kernel rolls dice
 * (hash seeds, the first hints of its tag maps, ASLR), two runs of one
 * experiment would differ. The numbers come from a generator that starts at
 * $ISOBLK_SEED, a number; without that variable they come from the host as
 * ever. The kernel also mixes the wall clock in: runs repeat only with
 * time-travel-start= on the command line. The generator is splitmix64
 * (splitmix.h): enough to seed the kernel's own ChaCha20. Not for secrets.
 *
 * ptrace(PTRACE_SETREGSET, NT_X86_XSTATE): with it UML gives a user process its
 * floating-point and vector registers. The host takes its whole XSAVE area or
 * nothing (EFAULT), and the area's size is the processor's: 832 bytes with AVX,
 * 2,440 or 2,696 with AVX-512, 11,008 with AMX. UML 6.12 keeps 2,696 bytes, so
 * where the area is larger no process of the guest could run. What UML gives is
 * passed on with zeros behind it. For every component that lies there zeros are
 * the initial state (Intel SDM, volume 1, 13.6), whether or not its bit in the
 * header is set. The host's present contents would be wrong: UML runs several
 * tasks in one host process, and a task would get the registers of another.
 * Nothing is lost, for a task of the guest cannot come to use AMX: it would
 * have to ask the kernel for it, and UML's has no such call.
 *
 * sbrk(): UML takes the end of its heap for the end of itself, and makes up for
 * a gap between both with more memory. With address randomisation the gap is
 * another in each run. A container may not switch that off; there UML is
 * started by way of the dynamic loader, as the argument of which a program has
 * its heap far away from its image. The end that UML then gets is that of a
 * heap which begins where the image ends, as the host has it without
 * randomisation.
 *
 * UML calls from one thread only, so the state has no lock.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "splitmix.h"

/* Six times the largest XSAVE area there is. */
#define AREA_MAX 65536

#define GOLDEN 0x9e3779b97f4a7c15

static uint64_t state;
static enum { UNKNOWN, SEEDED, HOST } mode;

/* Area that the host is given for a shorter one; its size, 0 until known. */
static unsigned char area[AREA_MAX];
static size_t area_size;

/* Distance from the end of the image to the heap that UML is not to see. */
static intptr_t heap_gap;

/* The C library's own sbrk(), which no header declares. */
void *__sbrk(intptr_t increment);

uint64_t isoblk_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

uint64_t isoblk_next(uint64_t *from)
{
	return isoblk_mix(*from += GOLDEN);
}

ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	unsigned char *out = buf;
	uint64_t word = 0;
	size_t i;

	if (mode == UNKNOWN) {
		const char *seed = getenv("ISOBLK_SEED");

		mode = seed ? SEEDED : HOST;
		if (seed)
			state = strtoull(seed, NULL, 0);
	}
	if (mode == HOST)
		return syscall(SYS_getrandom, buf, len, flags);

	for (i = 0; i < len; i++) {
		if (i % sizeof(word) == 0)
			word = isoblk_next(&state);
		out[i] = (unsigned char)word;
		word >>= 8;
	}
	return (ssize_t)len;
}

/* Set the registers of a stopped process, however much of them is given. */
static long set_xstate(pid_t pid, void *type, struct iovec *given)
{
	struct iovec whole = { .iov_base = area, .iov_len = sizeof(area) };

	/* The same for every process, as long as the host is up. */
	if (!area_size &&
	    syscall(SYS_ptrace, PTRACE_GETREGSET, pid, type, &whole) == 0)
		area_size = whole.iov_len;
	if (given->iov_len >= area_size)
		return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, type, given);

	memcpy(area, given->iov_base, given->iov_len);
	memset(area + given->iov_len, 0, area_size - given->iov_len);
	whole.iov_len = area_size;
	return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, type, &whole);
}

long ptrace(enum __ptrace_request request, ...)
{
	void *addr, *data;
	va_list rest;
	pid_t pid;
	long word;

	va_start(rest, request);
	pid = va_arg(rest, pid_t);
	addr = va_arg(rest, void *);
	data = va_arg(rest, void *);
	va_end(rest);

	switch (request) {
	case PTRACE_SETREGSET:
		/* Callers pass an int: the upper half may hold anything. */
		if ((uint32_t)(uintptr_t)addr == NT_X86_XSTATE && data)
			return set_xstate(pid, addr, data);
		break;
	case PTRACE_PEEKTEXT:
	case PTRACE_PEEKDATA:
	case PTRACE_PEEKUSER:
		/* The call stores the word, the C library returns it. */
		if (syscall(SYS_ptrace, request, pid, addr, &word) < 0)
			return -1;
		errno = 0;
		return word;
	default:
		break;
	}
	return syscall(SYS_ptrace, request, pid, addr, data);
}

/* Find the end of the program's image. Of all objects it comes first. */
static int image_end(struct dl_phdr_info *object, size_t size, void *end)
{
	uintptr_t *last = end, page = (uintptr_t)getpagesize();
	int i;

	(void)size;
	for (i = 0; i < object->dlpi_phnum; i++) {
		uintptr_t next = object->dlpi_addr +
				 object->dlpi_phdr[i].p_vaddr +
				 object->dlpi_phdr[i].p_memsz;

		if (object->dlpi_phdr[i].p_type == PT_LOAD && next > *last)
			*last = next;
	}
	*last = (*last + page - 1) & ~(page - 1);
	return 1;
}

/* Find the heap, before anybody has used it. */
__attribute__((constructor)) static void find_heap(void)
{
	uintptr_t end = 0;

	/* The host has loaded a dynamic loader, and so also the program. */
	if (getauxval(AT_BASE))
		return;
	dl_iterate_phdr(image_end, &end);
	heap_gap = (intptr_t)((uintptr_t)__sbrk(0) - end);
}

void *sbrk(intptr_t increment)
{
	void *end = __sbrk(increment);

	return end == (void *)-1 ? end : (char *)end - heap_gap;
}
