/* SPDX-License-Identifier: BSD-3-Clause */
/* What calls a target: libFuzzer, or in a normal build this main, for each file of a directory. */
#include "fuzz.h"

#ifdef BS_FUZZ

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_one(data, bytes);
	return 0;
}

#else

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static int
run_file(const char *directory, const char *name)
{
	char path[512];
	struct stat st;
	uint8_t *data; /* not a byte longer than the file, so that reading on is found */
	size_t bytes;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "rb");
	if (file == NULL || fstat(fileno(file), &st) != 0) {
		perror(path);
		return 1;
	}
	data = malloc((size_t)st.st_size);
	bytes = data == NULL ? 0 : fread(data, 1, (size_t)st.st_size, file);
	fclose(file);
	printf("%s, %zu bytes\n", path, bytes);
	fuzz_one(data, bytes);
	free(data);
	return 0;
}

int
main(int argc, char **argv)
{
	const struct dirent *entry;
	DIR *directory;
	int failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	fuzz_one((const uint8_t *)"", 0);
	directory = opendir(argv[1]);
	if (directory == NULL && errno == ENOENT)
		return 0; /* nothing was ever found */
	if (directory == NULL) {
		perror(argv[1]);
		return 1;
	}
	while ((entry = readdir(directory)) != NULL) {
		if (entry->d_name[0] != '.')
			failed |= run_file(argv[1], entry->d_name);
	}
	closedir(directory);
	return failed;
}

#endif
