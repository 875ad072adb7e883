/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens the files of the journal for the analyzer, which may open none itself.
 * bufscoped is root: others must not be able to make it write elsewhere.
 */
#pragma once

#define BS_JOURNAL_FILES_ERROR_BYTES 256u

/*
 * Opens "<path>.0" to "<path>.<count - 1>" for reading and writing, close on
 * exec, and makes those that are not there, mode 0600. 0; or -errno with one line
 * in error and nothing open: a directory on the way that others can change, a
 * file that is a link, not regular, not ours or not a journal (-ELOOP, -EPERM,
 * -EINVAL),
 * the journal of another bufscoped (-EBUSY, after waiting up to 3 s for one that
 * ends), or what the system said. path is absolute. Locked as long as one of the
 * descriptors, here or inherited, is open.
 */
int bs_journal_files_open(
	const char *path, unsigned count, int *fds, char error[BS_JOURNAL_FILES_ERROR_BYTES]);

void bs_journal_files_close(int *fds, unsigned count);
