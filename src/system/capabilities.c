/* SPDX-License-Identifier: BSD-3-Clause */
/* See capabilities.h, and capabilities(7) for the sets. */
#include "capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
get(struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capget, &header, data) == 0 ? 0 : -errno;
}

uint64_t
bs_capabilities_permitted(void)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (get(data) != 0)
		return 0;
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

int
bs_capabilities_bound(uint64_t keep)
{
	/* The first number that the kernel does not know gives EINVAL. */
	for (unsigned i = 0; i < 64; i++) {
		if ((keep & BS_CAPABILITY(i)) != 0 || prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 0)
			continue;
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL || errno == EPERM)
			break;
		return -errno;
	}
	/* Kernels before 4.3 have no ambient set. */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL)
		return -errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : -errno;
}

int
bs_capabilities_keep(uint64_t keep)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint64_t kept = keep & bs_capabilities_permitted();

	data[0].permitted = data[0].effective = (uint32_t)kept;
	data[1].permitted = data[1].effective = (uint32_t)(kept >> 32);
	data[0].inheritable = data[1].inheritable = 0;
	return syscall(SYS_capset, &header, data) == 0 ? 0 : -errno;
}
