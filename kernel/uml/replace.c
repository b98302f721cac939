// SPDX-License-Identifier: GPL-2.0-only
/*
 * The clocks and the random numbers of User Mode Linux in virtual time. Loaded
 * with LD_PRELOAD together with host.c; the file of the kernel stays unmodified.
 *
 * The kernel's functions are found in the symbol table of the running program,
 * and begin, before the kernel does, with a jump to the functions here. A kernel
 * in which one of them is missing does not run: its figures would not be what
 * they are taken for.
 *
 * sched_clock(): UML has none of its own, and the general one counts ticks, of
 * 10 ms with HZ=100. Between two ticks a task uses the processor for nothing.
 * The task that woke first then keeps the processor, and with it every tag that
 * is freed. Here sched_clock() is the virtual time, in ns.
 *
 * timer_read(), which is read for CLOCK_MONOTONIC and the others: each reading
 * outside interrupts moves UML's time by 256 ns, so that a program that polls
 * the clock comes to an end. In the kernel that would be a price on schedulers
 * that look at the clock, paid by all tasks, as there is one time. Here only
 * programs pay. What the kernel reads for itself is free, up to READINGS_FREE
 * readings of one time.
 *
 * d_walk(): shrink_dcache_parent() walks until dentries are gone that another
 * task is about to free. That task gets the processor when the time of the first
 * is up, and no time passes. Here a walk takes time after WALKS_FREE at one time.
 *
 * get_random_u32() and its kin: the kernel and programs draw from one stream of
 * random numbers. A mount or a cat draws as well, and gives all later draws other
 * numbers; with BFQ the results depend on which bit of its tag map is drawn. Here
 * each call site has a stream of its own, that of the seed and the site's address.
 * A site in the kernel's image has the same address in each run. A module is
 * loaded anywhere, at a page: of its sites the offset in the page counts. Two
 * sites of modules with equal offsets share a stream.
 *
 * Nothing is replaced in a kernel that runs in real time, and without
 * $ISOBLK_SEED no random numbers.
 *
 * UML calls from one thread only, so the streams have no lock.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "splitmix.h"

/* Of the kernel's command line: then no signal comes in between. */
#define IN_VIRTUAL_TIME	"time-travel=inf-cpu"

/* The program that is a kernel, as the build names it. */
#define KERNEL_NAME	"linux"
#define PAGE		4096UL

/* More than there are call sites in a kernel and its modules. A power of 2. */
#define SITES_MAX	4096

/* Of one time, by the kernel: a loop that waits for more goes on after that. */
#define READINGS_FREE	1000

/* Walks at one time, and how long a walk takes after them: ten make a tick. */
#define WALKS_FREE	1000
#define WALK_NS		1000000

/* What UML divides its time by for a reading. */
#define TIMER_MULTIPLIER	256

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* mov $address, %rax; jmp *%rax */
#define JUMP_BYTES	12

/* One call site: where its call returns to, and the state of its stream. */
struct site {
	uint64_t at;
	uint64_t state;
};

static struct site sites[SITES_MAX];
static uint64_t seed;

/* A part of the kernel's image. */
struct range {
	uintptr_t begin, end;
};

static struct range kernel;

/* The functions that read a clock for programs, and where they are. */
static const char *const for_programs[] = {
	"ktime_get_ts64", "ktime_get_real_ts64", "ktime_get_raw_ts64",
};

static struct range readers[ARRAY_SIZE(for_programs)];

/* In the kernel. */
static const uint64_t *virtual_time;
static void (*ndelay)(unsigned long ns);

/* A function of the kernel that its replacement calls. */
struct wrapped {
	unsigned char *at;	/* where it is */
	unsigned char own[JUMP_BYTES]; /* what it begins with in the kernel */
	unsigned char jump[JUMP_BYTES]; /* and here */
};

static struct wrapped timer_read, d_walk;

/* How often something was done at one time, the last one. */
struct repeats {
	uint64_t at_ns;
	uint64_t count;
};

__attribute__((noreturn, format(printf, 1, 2)))
static void die(const char *format, ...)
{
	va_list rest;

	va_start(rest, format);
	fputs("isoblk: replace: ", stderr);
	vfprintf(stderr, format, rest);
	fputc('\n', stderr);
	va_end(rest);
	_exit(1);
}

static bool is_in(const struct range *range, uintptr_t at)
{
	return at >= range->begin && at < range->end;
}

static struct site *find_site(uintptr_t at)
{
	uint64_t hash, i;

	/* No address of the image is below two pages, and 0 is no site. */
	if (!is_in(&kernel, at))
		at = PAGE + at % PAGE;
	hash = isoblk_mix(at);
	for (i = 0; i < SITES_MAX; i++) {
		struct site *site = &sites[(hash + i) % SITES_MAX];

		if (site->at == at)
			return site;
		if (!site->at) {
			site->at = at;
			site->state = isoblk_mix(seed ^ hash);
			return site;
		}
	}
	die("more than %d call sites draw random numbers", SITES_MAX);
}

/* The caller's stream. */
#define STREAM (&find_site((uintptr_t)__builtin_return_address(0))->state)

static uint64_t clock_ns(void)
{
	return *virtual_time;
}

/* Count what is done now. Return how often it was done at this time. */
static uint64_t count_now(struct repeats *repeats)
{
	if (*virtual_time != repeats->at_ns) {
		repeats->at_ns = *virtual_time;
		repeats->count = 0;
	}
	return ++repeats->count;
}

/* Call the kernel's own function, which is what it was meanwhile. */
static uint64_t call_own(const struct wrapped *wrapped, void *a, void *b, void *c)
{
	uint64_t (*own)(void *a, void *b, void *c) = (void *)wrapped->at;
	uint64_t ret;

	memcpy(wrapped->at, wrapped->own, JUMP_BYTES);
	ret = own(a, b, c);
	memcpy(wrapped->at, wrapped->jump, JUMP_BYTES);
	return ret;
}

/* Let time pass where walks do not end, and walk. */
static void walk_dentries(void *parent, void *data, void *enter)
{
	static struct repeats walks;

	if (count_now(&walks) > WALKS_FREE)
		ndelay(WALK_NS);
	call_own(&d_walk, parent, data, enter);
}

/* In place of timer_read(). */
static uint64_t read_timer(void *source)
{
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	static struct repeats readings;
	bool moves = false;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(readers); i++)
		moves |= is_in(&readers[i], caller);
	if (moves || count_now(&readings) > READINGS_FREE)
		return call_own(&timer_read, source, NULL, NULL);
	return *virtual_time / TIMER_MULTIPLIER;
}

static uint8_t random_u8(void)
{
	return (uint8_t)isoblk_next(STREAM);
}

static uint16_t random_u16(void)
{
	return (uint16_t)isoblk_next(STREAM);
}

static uint32_t random_u32(void)
{
	return (uint32_t)isoblk_next(STREAM);
}

static uint64_t random_u64(void)
{
	return isoblk_next(STREAM);
}

/* Like the kernel's: uniform below @ceil, and any number where that is 0. */
static uint32_t random_u32_below(uint32_t ceil)
{
	uint64_t *stream = STREAM;
	uint32_t drawn = (uint32_t)isoblk_next(stream);

	if (!ceil)
		return drawn;
	/* What is beyond the last whole multiple of @ceil is drawn again. */
	while (drawn >= UINT32_MAX - UINT32_MAX % ceil)
		drawn = (uint32_t)isoblk_next(stream);
	return drawn % ceil;
}

static void random_bytes(void *buf, size_t len)
{
	uint64_t *stream = STREAM;
	unsigned char *out = buf;

	while (len) {
		uint64_t word = isoblk_next(stream);
		size_t part = len < sizeof(word) ? len : sizeof(word);

		memcpy(out, &word, part);
		out += part;
		len -= part;
	}
}

struct replaced {
	const char *name;
	const void *by;
	bool is_random;
	struct wrapped *wrapped;	/* or NULL: the kernel's own is not called */
};

static const struct replaced replaced[] = {
	{ "sched_clock", clock_ns, false, NULL },
	{ "timer_read", read_timer, false, &timer_read },
	{ "d_walk", walk_dentries, false, &d_walk },
	{ "get_random_u8", random_u8, true, NULL },
	{ "get_random_u16", random_u16, true, NULL },
	{ "get_random_u32", random_u32, true, NULL },
	{ "get_random_u64", random_u64, true, NULL },
	{ "__get_random_u32_below", random_u32_below, true, NULL },
	/* The second is called by the first, or is its body. */
	{ "get_random_bytes", random_bytes, true, NULL },
	{ "_get_random_bytes", random_bytes, true, NULL },
};

/* The running program's file, in memory. */
struct image {
	const unsigned char *bytes;
	size_t size;
	const Elf64_Sym *symbols;
	size_t count;
	const char *names;
};

static void read_image(struct image *image, const char *path)
{
	const Elf64_Ehdr *head;
	const Elf64_Shdr *sections;
	struct stat status;
	int i, fd;

	/* Not by open(), which may be another library's. */
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status))
		die("%s: %s", path, strerror(errno));
	image->size = (size_t)status.st_size;
	image->bytes = mmap(NULL, image->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image->bytes == MAP_FAILED)
		die("%s: %s", path, strerror(errno));
	close(fd);

	head = (const void *)image->bytes;
	sections = (const void *)(image->bytes + head->e_shoff);
	for (i = 0; i < head->e_shnum; i++) {
		const Elf64_Shdr *section = &sections[i];

		if (section->sh_type != SHT_SYMTAB)
			continue;
		image->symbols = (const void *)(image->bytes + section->sh_offset);
		image->count = section->sh_size / sizeof(Elf64_Sym);
		image->names = (const char *)image->bytes +
			       sections[section->sh_link].sh_offset;
	}
}

static const Elf64_Sym *find_symbol(const struct image *image, const char *name)
{
	size_t i;

	for (i = 0; i < image->count; i++)
		if (!strcmp(image->names + image->symbols[i].st_name, name))
			return &image->symbols[i];
	die("this kernel has no %s", name);
}

static void replace(const Elf64_Sym *symbol, const struct replaced *one)
{
	unsigned char jump[JUMP_BYTES] = { 0x48, 0xb8, [10] = 0xff, 0xe0 };
	uintptr_t first = symbol->st_value & ~(PAGE - 1);
	uintptr_t end = symbol->st_value + JUMP_BYTES;

	if (symbol->st_size < JUMP_BYTES)
		die("%s is too short to be replaced", one->name);
	memcpy(jump + 2, &one->by, sizeof(one->by));
	if (mprotect((void *)first, end - first,
		     PROT_READ | PROT_WRITE | PROT_EXEC))
		die("%s: %s", one->name, strerror(errno));
	if (one->wrapped) {
		one->wrapped->at = (void *)symbol->st_value;
		memcpy(one->wrapped->own, one->wrapped->at, JUMP_BYTES);
		memcpy(one->wrapped->jump, jump, JUMP_BYTES);
	}
	memcpy((void *)symbol->st_value, jump, JUMP_BYTES);
}

/* Started by way of the dynamic loader, the program is the loader's argument. */
static const char *program(char **argv)
{
	return getauxval(AT_BASE) ? (const char *)getauxval(AT_EXECFN) : argv[0];
}

/* What starts a kernel is loaded with this library as well. */
static bool is_kernel_in_virtual_time(const char *path, char **argv)
{
	const char *slash = strrchr(path, '/');

	if (strcmp(slash ? slash + 1 : path, KERNEL_NAME))
		return false;
	while (*argv && strcmp(*argv, IN_VIRTUAL_TIME))
		argv++;
	return *argv;
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	const char *path = program(argv), *text = getenv("ISOBLK_SEED");
	const Elf64_Sym *symbol;
	struct image image = { 0 };
	size_t i;

	(void)argc;
	if (!is_kernel_in_virtual_time(path, argv))
		return;
	if (text)
		seed = strtoull(text, NULL, 0);
	read_image(&image, path);
	virtual_time = (const uint64_t *)find_symbol(&image, "time_travel_time")->st_value;
	kernel.begin = find_symbol(&image, "_sinittext")->st_value;
	kernel.end = find_symbol(&image, "_end")->st_value;
	for (i = 0; i < ARRAY_SIZE(readers); i++) {
		symbol = find_symbol(&image, for_programs[i]);
		readers[i].begin = symbol->st_value;
		readers[i].end = symbol->st_value + symbol->st_size;
	}
	ndelay = (void *)find_symbol(&image, "time_travel_ndelay")->st_value;
	for (i = 0; i < ARRAY_SIZE(replaced); i++)
		if (text || !replaced[i].is_random)
			replace(find_symbol(&image, replaced[i].name), &replaced[i]);
	munmap((void *)image.bytes, image.size);
}
