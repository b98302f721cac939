// SPDX-License-Identifier: GPL-2.0-only
/*
 * The processors of User Mode Linux as threads of its host, on stacks as it
 * takes them to be. Loaded with LD_PRELOAD; the kernel stays unmodified.
 *
 * UML takes down who called whom by looking at each word from the top of the
 * stack to the next multiple of THREAD_SIZE, where its own stacks end. A
 * processor other than the first begins on the stack that the C library has
 * made for its thread, which ends anywhere, with the guard page of another
 * behind it. A debug kernel looks (KASAN, whenever memory is freed), and dies
 * there. So threads get stacks that end at a multiple of all that THREAD_SIZE
 * may be.
 *
 * They are never given back: a processor of the guest lives as long as the
 * guest.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* A multiple of any THREAD_SIZE: 4 pages, or what KERNEL_STACK_ORDER says. */
#define STACK_ALIGN	0x100000UL
#define STACK_BYTES	0x100000UL

typedef int (*create_t)(pthread_t *, const pthread_attr_t *,
			void *(*)(void *), void *);

static int create_on(void *stack, create_t create, pthread_t *thread,
		     void *(*start)(void *), void *arg)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return err;
	err = pthread_attr_setstack(&attr, stack, STACK_BYTES);
	if (!err)
		err = create(thread, &attr, start, arg);
	pthread_attr_destroy(&attr);
	return err;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*start)(void *), void *arg)
{
	create_t create = (create_t)dlsym(RTLD_NEXT, "pthread_create");
	void *stack;
	int err = EAGAIN;

	if (!create)
		return err;
	/* A caller that says which stack it wants gets that. */
	if (attr)
		return create(thread, attr, start, arg);
	err = posix_memalign(&stack, STACK_ALIGN, STACK_BYTES);
	if (err)
		return err;
	err = create_on(stack, create, thread, start, arg);
	if (err)
		free(stack);
	return err;
}
