/* SPDX-License-Identifier: BSD-3-Clause */
#include "answers.h"

/* One writer. */
static void
count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* A verdict and the RPC behind it, whose bytes go to *extra. */
static void
take_verdict(struct bs_answers *answers, const struct bs_plausible *here,
	const struct bs_rec_verdict *verdict, size_t bytes_left, size_t *extra)
{
	struct bs_rpc_view view;

	if (bs_rpc_view(verdict + 1, bytes_left - sizeof(*verdict), &view, extra) != 0) {
		*extra = 0;
		count(&answers->bad);
	} else if (!bs_plausible_verdict(here, verdict, &view)) {
		count(&answers->rejected);
	} else {
		bs_store_verdict(answers->store, verdict, &view);
	}
}

static void
take_record(struct bs_answers *answers, const struct bs_plausible *here,
	const struct bs_record *record, size_t bytes_left, size_t *extra)
{
	const void *any = record;
	const struct bs_rec_threshold *threshold = any;

	switch (record->type) {
	case BS_REC_THRESHOLD:
		if (bs_plausible_threshold(here, threshold))
			answers->threshold(
				answers->context, threshold->service, threshold->latency_ns);
		else
			count(&answers->rejected);
		break;
	case BS_REC_JOURNAL:
		answers->journal = *(const struct bs_rec_journal *)any;
		break;
	case BS_REC_INCIDENT:
		if (bs_plausible_incident(here, any))
			bs_store_incident(answers->store, any);
		else
			count(&answers->rejected);
		break;
	case BS_REC_VERDICT:
		take_verdict(answers, here, any, bytes_left, extra);
		break;
	default:
		count(&answers->bad);
	}
}

/* bs_rpc_view reads the records of a verdict's group unchecked. */
static bool
is_valid(const void *batch, size_t bytes)
{
	size_t offset = 0;
	int error;

	while (offset < bytes) {
		if (bs_record_next(batch, bytes, &offset, &error) == NULL)
			return false;
	}
	return true;
}

void
bs_answers_take(struct bs_answers *answers, const struct bs_plausible *here, const void *batch,
	size_t bytes)
{
	const struct bs_record *record;
	size_t offset = 0;
	int error;

	if (!is_valid(batch, bytes)) {
		count(&answers->bad);
		return;
	}
	while ((record = bs_record_next(batch, bytes, &offset, &error)) != NULL) {
		const size_t at = (size_t)((const uint8_t *)record - (const uint8_t *)batch);
		size_t extra = 0;

		take_record(answers, here, record, bytes - at, &extra);
		offset += extra;
	}
}
