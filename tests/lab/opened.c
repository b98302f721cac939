// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records which host files a guest reads. Linked with kernel/uml/host.c into the library that a
 * test's guest preloads (tests/lab/kept.py).
 *
 * The guest's hostfs opens a host file by open64() and reads a symbolic link by readlink(). Each
 * path goes as one NUL-terminated entry to the file `opened` beside the guest's directory: a
 * path that begins with "l" is a link, with "f" a file. Paths of the guest's own directory and of
 * /proc, /dev and /sys are not recorded: the first is part of the key, the others are no inputs.
 *
 * UML calls from one thread only, so the file descriptor has no lock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SUFFIX ".opened"

static int record = -1;

static int open_record(void)
{
	char path[PATH_MAX + sizeof(SUFFIX)];

	if (!getcwd(path, PATH_MAX))
		return -1;
	strcat(path, SUFFIX);
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			    0644);
}

static void note(char kind, const char *path)
{
	static const char *const others[] = { "/proc/", "/dev/", "/sys/" };
	struct iovec entry[] = {
		{ &kind, 1 }, { (void *)path, strlen(path) + 1 },
	};
	const char *from = path + strspn(path, "/");
	unsigned int i;

	if (path[0] != '/')
		return;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(from - 1, others[i], strlen(others[i])))
			return;
	if (record < 0)
		record = open_record();
	/* Without a record the run is not kept: tests/lab/kept.py finds no file. */
	if (record >= 0 && syscall(SYS_writev, record, entry, 2) < 0)
		_exit(125);
}

int open64(const char *path, int flags, ...)
{
	mode_t mode = 0;
	int fd;

	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {
		va_list rest;

		va_start(rest, flags);
		mode = va_arg(rest, mode_t);
		va_end(rest);
	}
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (fd >= 0 && (flags & O_ACCMODE) == O_RDONLY)
		note('f', path);
	return fd;
}

ssize_t readlink(const char *path, char *buf, size_t size)
{
	ssize_t length = syscall(SYS_readlink, path, buf, size);

	if (length >= 0)
		note('l', path);
	return length;
}
