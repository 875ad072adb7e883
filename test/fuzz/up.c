/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an analyzer that was taken over says to bufscoped: into the store if
 * plausible, and out again as JSON and as telemetry.
 *
 * Input: one batch of records.
 */
#include "answers.h"
#include "bs_report.h"
#include "fake_source.h"
#include "fuzz.h"
#include "telemetry_flat.h"

static void
threshold(void *context, unsigned service, uint64_t latency_ns)
{
	(void)context;
	(void)latency_ns;
	FUZZ_CHECK(service < 4 || service == BS_MAX_SERVICES);
}

static void
show(struct fake *fake)
{
	static const char *const commands[] = {"/bufscope/anomalies", "/bufscope/incidents"};
	char error[BS_STATUS_ERROR_BYTES];

	for (unsigned i = 0; i < 2; i++) {
		json_t *answer, *flat;
		char *text;

		FUZZ_CHECK(bs_status_answer(&fake->source, commands[i], "", &answer, error) == 0);
		text = json_dumps(answer, JSON_COMPACT);
		FUZZ_CHECK(text != NULL);
		free(text);
		flat = bs_telemetry_flatten(answer, i == 0 ? "anomalies" : "incidents");
		FUZZ_CHECK(flat != NULL);
		text = json_dumps(flat, JSON_COMPACT);
		FUZZ_CHECK(text != NULL && strlen(text) <= BS_TELEMETRY_BYTES);
		free(text);
		json_decref(flat);
		json_decref(answer);
	}
}

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	const struct bs_plausible here = {.service_count = 4,
		.buffer_count = 8,
		.t_start = 1600000000000000000ull,
		.t_now = 1800000000000000000ull};
	struct fake *fake = fake_create(false);
	struct bs_answers answers = {.threshold = threshold};
	uint8_t *copy = aligned_alloc(8, (bytes + 15) / 8 * 8);

	if (copy == NULL || fake == NULL)
		abort();
	memcpy(copy, data, bytes);
	answers.store = fake->source.store;
	bs_answers_take(&answers, &here, copy, bytes);
	show(fake);
	free(copy);
	fake_destroy(fake);
}
