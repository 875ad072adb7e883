/* SPDX-License-Identifier: BSD-3-Clause */
#include "plausible.h"

static bool
service_ok(const struct bs_plausible *here, unsigned service)
{
	return service < here->service_count || service == BS_MAX_SERVICES;
}

static bool
buffer_ok(const struct bs_plausible *here, unsigned buffer)
{
	return buffer < BS_BUFFER_FIRST_OWN || buffer - BS_BUFFER_FIRST_OWN < here->buffer_count;
}

static bool
blames_ok(const struct bs_plausible *here, const struct bs_blame *blames, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (!buffer_ok(here, blames[i].buffer))
			return false;
	}
	return true;
}

static bool
has_been(const struct bs_plausible *here, uint64_t t)
{
	return t <= here->t_now || t - here->t_now <= BS_PLAUSIBLE_AHEAD_NS;
}

bool
bs_plausible_threshold(const struct bs_plausible *here, const struct bs_rec_threshold *threshold)
{
	return service_ok(here, threshold->service);
}

bool
bs_plausible_incident(const struct bs_plausible *here, const struct bs_rec_incident *incident)
{
	uint64_t victims = 0;

	if (!blames_ok(here, &incident->origin, 1) || !has_been(here, incident->t_begin) ||
		!has_been(here, incident->t_end))
		return false;
	for (unsigned i = 0; i < incident->service_count; i++) {
		if (!service_ok(here, incident->by_service[i].service))
			return false;
		victims += incident->by_service[i].victims;
	}
	return victims <= incident->victims;
}

static bool
group_ok(const struct bs_plausible *here, const struct bs_rpc_view *view)
{
	unsigned bad;

	for (unsigned i = 0; i < view->rpc->segment_count; i++) {
		if (!buffer_ok(here, view->segments[i].buffer))
			return false;
	}
	for (unsigned i = 0; i < view->rpc->event_count; i++) {
		const struct bs_rec_event *event = &view->events[i];

		if (!buffer_ok(here, event->buffer) || !buffer_ok(here, event->upstream) ||
			!has_been(here, event->t_begin) || !has_been(here, event->t_end))
			return false;
	}
	return bs_rpc_check_tiling(view, &bad) == 0;
}

bool
bs_plausible_verdict(const struct bs_plausible *here, const struct bs_rec_verdict *verdict,
	const struct bs_rpc_view *rpc)
{
	return rpc->rpc->id == verdict->rpc_id && service_ok(here, rpc->rpc->service) &&
	       rpc->rpc->t_end >= here->t_start && has_been(here, rpc->rpc->t_end) &&
	       verdict->excess_ns <= bs_rpc_extent_ns(rpc->rpc) &&
	       blames_ok(here, &verdict->root, verdict->has_root) &&
	       blames_ok(here, verdict->alternatives, verdict->alternative_count) &&
	       blames_ok(here, verdict->via, verdict->via_count) && group_ok(here, rpc);
}
