// SPDX-License-Identifier: GPL-2.0-only
/*
 * A host whose XSAVE area has the size of one with AMX, for a machine that has none. Linked with
 * --wrap=syscall to kernel/uml/host.c, it stands between that library and the machine: it shows
 * UML a larger area than there is, and refuses PTRACE_SETREGSET with less, as such a host does.
 *
 * With -DWITHOUT_CURE it is a library by itself: UML on that host as if there were no host.c.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define WIDE 11008

#ifdef WITHOUT_CURE
#define __wrap_syscall wide_syscall
#define __real_syscall syscall
#else
long __real_syscall(long number, ...);
#endif

long __wrap_syscall(long number, ...);

/* What is there: at most what is asked for. */
static long get(long pid, struct iovec *with)
{
	struct iovec real = *with;

	memset(with->iov_base, 0, with->iov_len < WIDE ? with->iov_len : WIDE);
	if (__real_syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &real))
		return -1;
	if (with->iov_len > WIDE)
		with->iov_len = WIDE;
	return 0;
}

/* The machine looks at as much of it as it has registers. */
static long set(long pid, struct iovec *with)
{
	struct iovec real = *with;

	if (with->iov_len < WIDE) {
		errno = EFAULT;
		return -1;
	}
	with->iov_len = WIDE;
	return __real_syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &real);
}

long __wrap_syscall(long number, ...)
{
	long argument[4];
	va_list rest;
	int i;

	va_start(rest, number);
	for (i = 0; i < 4; i++)
		argument[i] = va_arg(rest, long);
	va_end(rest);

	if (number == SYS_ptrace && (unsigned int)argument[2] == NT_X86_XSTATE) {
		if (argument[0] == PTRACE_GETREGSET)
			return get(argument[1], (struct iovec *)argument[3]);
		if (argument[0] == PTRACE_SETREGSET)
			return set(argument[1], (struct iovec *)argument[3]);
	}
	return __real_syscall(number, argument[0], argument[1], argument[2], argument[3]);
}

#ifdef WITHOUT_CURE
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

	if (request != PTRACE_PEEKTEXT && request != PTRACE_PEEKDATA &&
	    request != PTRACE_PEEKUSER)
		return wide_syscall(SYS_ptrace, request, pid, addr, data);
	if (syscall(SYS_ptrace, request, pid, addr, &word) < 0)
		return -1;
	errno = 0;
	return word;
}
#endif
