/* SPDX-License-Identifier: BSD-3-Clause */
/* See troubles.h. */
#include "troubles.h"

uint64_t
bs_trouble_count(const struct bs_snapshot *snapshot, enum bs_trouble trouble)
{
	const uint64_t *track = snapshot->track;

	switch (trouble) {
	case BS_TROUBLE_HANDOVER:
		return snapshot->reasons[BS_REASON_HANDOVER_FULL];
	case BS_TROUBLE_UNTOLD:
		return snapshot->handover[BS_HANDOVER_DEPARTURES_LOST] +
		       snapshot->handover[BS_HANDOVER_DROPS_UNTOLD];
	case BS_TROUBLE_UNEVEN_TSC:
		return snapshot->clock.uneven;
	case BS_TROUBLE_BAD_RECORDS:
		return snapshot->analyzer_bad_records;
	case BS_TROUBLE_REJECTED:
		return snapshot->analyzer_rejected;
	case BS_TROUBLE_RING_FULL:
		return snapshot->loss.ring_full;
	case BS_TROUBLE_OVER_BUDGET:
		return snapshot->loss.over_budget;
	case BS_TROUBLE_NO_ANALYZER:
		return snapshot->loss.socket_full;
	case BS_TROUBLE_FLOWS:
		return track[BS_TRACK_FLOWS_REFUSED] + track[BS_TRACK_FLOWS_EVICTED_OPEN];
	case BS_TROUBLE_RPCS:
		return track[BS_TRACK_RPCS_REFUSED] + track[BS_TRACK_RPCS_EVICTED];
	case BS_TROUBLE_MARKS:
		return track[BS_TRACK_MARKS_LOST];
	case BS_TROUBLE_JOURNAL:
		return snapshot->journal.lost_records;
	case BS_TROUBLE_COUNT:
		break;
	}
	return 0;
}

void
bs_troubles_step(struct bs_troubles *troubles, const struct bs_snapshot *snapshot)
{
	for (unsigned i = 0; i < BS_TROUBLE_COUNT; i++) {
		const uint64_t count = bs_trouble_count(snapshot, i);

		/* another analyzer begins at 0 */
		if (count > troubles->counts[i])
			troubles->t_last[i] = snapshot->t_ns;
		troubles->counts[i] = count;
	}
}
