/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an analyzer says to bufscoped, from an analyzer that was taken over: into
 * the store if plausible, and out again as JSON and as telemetry.
 *
 * Input: one batch of records.
 */
#include "bs_report.h"
#include "fake_source.h"
#include "fuzz.h"
#include "plausible.h"
#include "telemetry_flat.h"

static void
keep(struct bs_store *store, const struct bs_plausible *here, const struct bs_record *record,
	size_t left, size_t *extra)
{
	struct bs_rpc_view view;
	const void *any = record;

	if (record->type == BS_REC_INCIDENT && bs_plausible_incident(here, any))
		bs_store_incident(store, any);
	if (record->type == BS_REC_THRESHOLD)
		bs_plausible_threshold(here, any);
	if (record->type != BS_REC_VERDICT)
		return;
	if (bs_rpc_view((const uint8_t *)record + sizeof(struct bs_rec_verdict),
		    left - sizeof(struct bs_rec_verdict), &view, extra) != 0)
		*extra = 0;
	else if (bs_plausible_verdict(here, any, &view))
		bs_store_verdict(store, any, &view);
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
	const struct bs_record *record;
	size_t offset = 0, checked = 0;
	uint8_t *copy = aligned_alloc(8, (bytes + 15) / 8 * 8);
	int error = 0;

	if (copy == NULL || fake == NULL)
		abort();
	memcpy(copy, data, bytes);
	while (bs_record_next(copy, bytes, &checked, &error) != NULL)
		continue;
	while (error == 0 && (record = bs_record_next(copy, bytes, &offset, &error)) != NULL) {
		size_t at = (size_t)((const uint8_t *)record - copy), extra = 0;

		keep(fake->source.store, &here, record, bytes - at, &extra);
		offset += extra;
	}
	show(fake);
	free(copy);
	fake_destroy(fake);
}
