/* SPDX-License-Identifier: BSD-3-Clause */
/* Is this a build whose sanitizer maps terabytes, reads /proc and makes threads of its own? */
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
	__has_feature(memory_sanitizer)
#define BS_SANITIZED 1
#endif
#endif
#ifndef BS_SANITIZED
#define BS_SANITIZED 0
#endif
