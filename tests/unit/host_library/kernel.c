// SPDX-License-Identifier: GPL-2.0-only
/*
 * A host's kernel as kernel/uml/host.c sees it, with an XSAVE area of any size. Linked with
 * --wrap=syscall, it gets each call that the library would make of the real one.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Set by the test. */
size_t host_area;
int host_refuses;
/* What PTRACE_SETREGSET took at last, and the calls so far. */
unsigned char host_took[1 << 17];
size_t host_took_bytes;
int host_gets, host_sets;
/* Of any other request. */
long host_saw[4];

long __wrap_syscall(long number, ...);

static long fail(int error)
{
	errno = error;
	return -1;
}

static long regset(long request, struct iovec *with)
{
	size_t bytes = with->iov_len < host_area ? with->iov_len : host_area;

	if (host_refuses)
		return fail(host_refuses);
	if (with->iov_len % 8)
		return fail(EINVAL);
	if (request == PTRACE_GETREGSET) {
		host_gets++;
		/* The registers of whoever ran last. */
		memset(with->iov_base, 0xaa, bytes);
	} else {
		host_sets++;
		if (bytes != host_area)
			return fail(EFAULT);
		memcpy(host_took, with->iov_base, bytes);
		host_took_bytes = bytes;
	}
	with->iov_len = bytes;
	return 0;
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

	if (number == SYS_getrandom) {
		memset((void *)argument[0], 0x55, (size_t)argument[1]);
		return argument[1];
	}
	if (number != SYS_ptrace)
		return fail(ENOSYS);
	if ((argument[0] == PTRACE_GETREGSET || argument[0] == PTRACE_SETREGSET) &&
	    (unsigned int)argument[2] == NT_X86_XSTATE && argument[3])
		return regset(argument[0], (struct iovec *)argument[3]);
	memcpy(host_saw, argument, sizeof(host_saw));
	if (host_refuses)
		return fail(host_refuses);
	if (argument[0] == PTRACE_PEEKUSER) {
		/* A word that looks like a failure. */
		*(long *)argument[3] = -1;
		return 0;
	}
	return 0;
}
