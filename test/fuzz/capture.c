/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture file: read to its end or refused with a reason, each packet parsed. */
#include <sys/mman.h>
#include <unistd.h>

#include "bs_capture.h"
#include "fuzz.h"

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	char path[32], error[BS_CAPTURE_ERROR_BYTES] = "";
	struct bs_capture *capture;
	struct bs_packet packet;
	struct bs_capture_info info;
	uint64_t packets = 0;
	int fd = memfd_create("fuzz", MFD_CLOEXEC), ret;

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	capture = bs_capture_open(path, error);
	if (capture == NULL) {
		FUZZ_CHECK(error[0] != '\0' && strchr(error, '\n') == NULL);
	} else {
		while ((ret = bs_capture_next(capture, &packet)) > 0) {
			packets++;
			FUZZ_CHECK(packet.number == packets);
			FUZZ_CHECK(packet.payload_cap == 0 ||
				   packet.payload + packet.payload_cap <= packet.caplen);
		}
		FUZZ_CHECK(ret == 0 || bs_capture_error(capture)[0] != '\0');
		bs_capture_info(capture, &info);
		FUZZ_CHECK(info.packets == packets);
		bs_capture_close(capture);
	}
	close(fd);
}
