/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32C (Castagnoli; RFC 3720, section 12.1 and B.4): what processors have an
 * instruction for, so that summing costs less than copying.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *data, size_t bytes);

/* The same without the instruction, for other processors and for tests. */
uint32_t crc32c_portable(const void *data, size_t bytes);
