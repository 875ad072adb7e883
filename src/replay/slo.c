/* SPDX-License-Identifier: BSD-3-Clause */
#include "slo.h"

#include <errno.h>
#include <string.h>

#include "bs_clock.h"

int
slo_take(struct slos *slos, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	const char *equals = strrchr(text, '=');
	const char *duration = equals != NULL ? equals + 1 : text;
	unsigned n = slos->count;

	if (n == SLO_COUNT) {
		snprintf(error, BS_OPTION_ERROR_BYTES, "at most %u of them", SLO_COUNT);
		return -EINVAL;
	}
	if (equals == text || bs_duration_parse(duration, &slos->list[n].slo_ns) != 0 ||
		slos->list[n].slo_ns == 0) {
		snprintf(error, BS_OPTION_ERROR_BYTES,
			"\"%s\" is not [SERVICE=]DURATION, as 5ms or kv=1.5s", text);
		return -EINVAL;
	}
	slos->list[n].service = text;
	slos->list[n].length = equals != NULL ? (size_t)(equals - text) : 0;
	slos->list[n].found = equals == NULL;
	slos->count++;
	return 0;
}

void
slo_apply(struct slos *slos, struct bs_diag *diag, const struct bs_names *names,
	const bool named[BS_MAX_SERVICES + 1])
{
	for (unsigned i = 0; i < slos->count; i++)
		for (unsigned s = 0; slos->list[i].length == 0 && s <= BS_MAX_SERVICES; s++)
			bs_diag_slo(diag, s, NULL, slos->list[i].slo_ns);
	for (unsigned i = 0; i < slos->count; i++)
		for (unsigned s = 0; slos->list[i].length > 0 && s <= BS_MAX_SERVICES; s++) {
			const char *known = bs_names_service(names, s);

			if (!named[s] || strlen(known) != slos->list[i].length ||
				memcmp(known, slos->list[i].service, slos->list[i].length) != 0)
				continue;
			bs_diag_slo(diag, s, NULL, slos->list[i].slo_ns);
			slos->list[i].found = true;
			break;
		}
}

uint64_t
slo_of(const struct slos *slos, const char *service)
{
	uint64_t all = 0, own = 0;

	for (unsigned i = 0; i < slos->count; i++)
		if (slos->list[i].length == 0)
			all = slos->list[i].slo_ns;
		else if (strlen(service) == slos->list[i].length &&
			 memcmp(service, slos->list[i].service, slos->list[i].length) == 0)
			own = slos->list[i].slo_ns;
	return own != 0 ? own : all;
}

const char *
slo_not_found(const struct slos *slos, int *length)
{
	for (unsigned i = 0; i < slos->count; i++)
		if (!slos->list[i].found) {
			*length = (int)slos->list[i].length;
			return slos->list[i].service;
		}
	return NULL;
}
