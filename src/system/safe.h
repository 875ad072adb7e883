/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that somebody else must not be able to have written, swapped or planted. */
#pragma once

#include <stdbool.h>

#define BS_SAFE_ERROR_BYTES 512u

/*
 * Can nobody but root and the caller change what fd is open on? With sticky_ok a
 * directory that others can write passes if it is sticky: what root and the
 * caller keep there nobody else can replace. path is for the error alone. 0, or
 * -EPERM with one line in error that says what is wrong and the command that
 * mends it, or what fstat said.
 */
int bs_safe_check(int fd, const char *path, bool sticky_ok, char error[BS_SAFE_ERROR_BYTES]);

/*
 * A descriptor to read a regular file that passes bs_safe_check, in a directory
 * that does or is sticky; the path's last part is no symbolic link. Never waits for a FIFO's
 * other end. -errno with one line in error: -ELOOP (a link), -EINVAL (no regular
 * file), -EPERM, or what open said.
 */
int bs_safe_open(const char *path, char error[BS_SAFE_ERROR_BYTES]);
