/* SPDX-License-Identifier: BSD-3-Clause */
/* A configuration: read or refused with one line; what was read can be reloaded by itself. */
#include "config.h"
#include "fuzz.h"

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	static struct bs_config config;
	char error[BS_CONFIG_ERROR_BYTES] = "";
	char *text = malloc(bytes + 1);

	if (text == NULL)
		abort();
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	if (bs_config_parse("f", text, &config, error) != 0) {
		FUZZ_CHECK(error[0] != '\0' && strchr(error, '\n') == NULL);
		FUZZ_CHECK(strlen(error) < sizeof(error));
	} else {
		FUZZ_CHECK(config.port_count <= BS_CONFIG_PORTS);
		FUZZ_CHECK(config.service_count <= BS_MAX_SERVICES);
		FUZZ_CHECK(bs_config_reloadable(&config, &config, error) == 0);
	}
	free(text);
}
