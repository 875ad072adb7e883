/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a trap and not a kill: the call is not made either way, but with a trap
 * the process itself can still say which it was, and nobody else could. What
 * could go wrong in the handler ends the process, too: it runs once, and a
 * forbidden call in it meets SIGSYS with its default action.
 */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIBC_SIGNAL 32u /* the first that the kernel calls real-time, and libc keeps: signal(7) */

/* Each with what it is for. */
static const int allowed[] = {
	SCMP_SYS(poll), /* the loop */
	SCMP_SYS(ppoll),
	SCMP_SYS(read),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(write), /* stderr, the journal's files */
	SCMP_SYS(writev),
	SCMP_SYS(pread64),
	SCMP_SYS(pwrite64),
	SCMP_SYS(ftruncate),
	SCMP_SYS(fdatasync),
	SCMP_SYS(fsync),
	SCMP_SYS(lseek),
	SCMP_SYS(fstat),
	SCMP_SYS(close),
	SCMP_SYS(brk), /* memory, never executable: see below */
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(getrandom), /* malloc's */
	SCMP_SYS(futex),     /* threads */
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(gettid),
	SCMP_SYS(getpid),
	SCMP_SYS(sched_yield),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

static void
on_forbidden(int number, siginfo_t *info, void *context)
{
	char text[] = "bufscope-analyzer: forbidden system call           \n";
	unsigned at = sizeof(text) - 2, value = (unsigned)info->si_syscall;

	(void)context;
	do {
		text[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	/* SA_RESETHAND: now it kills */
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

static int
handle_forbidden(void)
{
	struct sigaction action = {
		.sa_sigaction = on_forbidden,
		.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER,
	};

	sigemptyset(&action.sa_mask);
	return sigaction(SIGSYS, &action, NULL) == 0 ? 0 : -errno;
}

/* Calls of which only some uses are allowed. */
static int
add_conditional(scmp_filter_ctx filter)
{
	int ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
		SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	if (ret == 0)
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
			SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (ret == 0) /* fstat() of newer libcs */
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
			SCMP_A3(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH));
	if (ret == 0) /* to itself: abort(), and the end of on_forbidden */
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
			SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	if (ret == 0) /* a thread, no process */
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	if (ret == 0)
		ret = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (ret == 0) /* of the two signals that glibc's threads use among themselves */
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(rt_sigaction), 1,
			SCMP_A0(SCMP_CMP_EQ, LIBC_SIGNAL));
	if (ret == 0)
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(rt_sigaction), 1,
			SCMP_A0(SCMP_CMP_EQ, LIBC_SIGNAL + 1));
	return ret;
}

int
bs_filter_load(void)
{
	scmp_filter_ctx filter;
	int ret = handle_forbidden();

	if (ret != 0)
		return ret;
	filter = seccomp_init(SCMP_ACT_TRAP);
	if (filter == NULL)
		return -ENOMEM;
	ret = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	for (unsigned i = 0; ret == 0 && i < sizeof(allowed) / sizeof(allowed[0]); i++)
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (ret == 0)
		ret = add_conditional(filter);
	if (ret == 0)
		ret = seccomp_load(filter);
	seccomp_release(filter);
	return ret;
}
