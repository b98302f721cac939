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
 *
 * A processor interrupts another by a signal, and blocks the signal whenever it
 * disables interrupts: two system calls of the host around each critical section,
 * half of what a debug kernel does. Here a processor that blocks the signal only says
 * so (@masked), and is given it all the same. It then queues the signal for
 * itself again and blocks it in earnest (@blocked), until interrupts are
 * enabled. So a signal is handled when, and only when, it would be without this
 * library; and a processor that sleeps on a signalfd, with interrupts disabled,
 * finds it there.
 *
 * The end of a handler makes the mask of signals what it was at its beginning.
 * So it does with @masked: a timer's may come where the kernel has blocked the
 * signal and not yet said that interrupts are disabled, and enable them.
 * @blocked may be set where the host blocks nothing, which costs a call, and
 * never the other way round.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

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

typedef int (*sigaction_t)(int, const struct sigaction *, struct sigaction *);
typedef void (*handler_t)(int, siginfo_t *, void *);

/* Of a processor; its own thread alone reads and writes them, in handlers as well. */
static __thread atomic_int masked;	/* UML has disabled interrupts */
static __thread atomic_int blocked;	/* the host may block the signal */

/* UML's own, by signal; set before the first one comes. */
static handler_t handlers[_NSIG];

/* What is done before it and after it is so for a handler of this thread, too. */
static void set_flag(atomic_int *flag, int value)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(flag, value, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static int is_set(atomic_int *flag)
{
	return atomic_load_explicit(flag, memory_order_relaxed);
}

/* Handle the signal of another processor once interrupts are enabled. */
static void postpone(int sig, siginfo_t *info, ucontext_t *interrupted)
{
	set_flag(&blocked, 1);
	sigaddset(&interrupted->uc_sigmask, sig);
	/* The place in the queue that it had is free, unless another has taken it. */
	while (pthread_sigqueue(pthread_self(), sig, info->si_value))
		;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	int was_masked = is_set(&masked);

	if (sig == SIGRTMIN) {
		if (was_masked) {
			postpone(sig, info, interrupted);
			return;
		}
		/* UML asks for all signals to be blocked here. */
		set_flag(&blocked, 1);
	}
	handlers[sig](sig, info, context);
	set_flag(&masked, was_masked);
	set_flag(&blocked, sigismember(&interrupted->uc_sigmask, SIGRTMIN));
}

int sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	sigaction_t real = (sigaction_t)dlsym(RTLD_NEXT, "sigaction");
	struct sigaction own;
	handler_t before;
	int ret;

	if (!real || sig <= 0 || sig >= _NSIG) {
		errno = EINVAL;
		return -1;
	}
	before = handlers[sig];
	if (new && new->sa_flags & SA_SIGINFO) {
		handlers[sig] = new->sa_sigaction;
		own = *new;
		own.sa_sigaction = on_signal;
		new = &own;
	}
	ret = real(sig, new, old);
	if (!ret && old && old->sa_sigaction == on_signal)
		old->sa_sigaction = before;
	return ret;
}

static int has_ipi_alone(const sigset_t *set)
{
	unsigned long ipi = 1UL << (SIGRTMIN - 1), all;

	memcpy(&all, set, sizeof(all));
	return all == ipi;
}

/* What a call that is passed on makes the host block. */
static void note(int how, const sigset_t *set)
{
	if (how == SIG_SETMASK)
		set_flag(&blocked, sigismember(set, SIGRTMIN));
	else if (sigismember(set, SIGRTMIN))
		set_flag(&blocked, how == SIG_BLOCK);
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int err;

	if (set && !old && how != SIG_SETMASK && has_ipi_alone(set)) {
		set_flag(&masked, how == SIG_BLOCK);
		if (how == SIG_BLOCK || !is_set(&blocked))
			return 0;
	}
	/* Before the call: signals that it lets in may block again. */
	if (set)
		note(how, set);
	err = pthread_sigmask(how, set, old);
	if (!err)
		return 0;
	errno = err;
	return -1;
}
