/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a flow's packets may be tagged; see bs_tagging.h. */
#include "bs_tagging.h"

#define RESENT_LIMIT 2u

static bool
before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static uint32_t
later(uint32_t a, uint32_t b)
{
	return before(a, b) ? b : a;
}

bool
bs_tagging_syn_out(struct bs_tagging *tagging, bool negotiated)
{
	bool first = tagging->syn_sent == 0;

	if (tagging->syn_sent < UINT8_MAX)
		tagging->syn_sent++;
	if (!negotiated || tagging->refused)
		return false;
	if (first)
		tagging->we_announced = 1;
	return first;
}

bool
bs_tagging_syn_in(struct bs_tagging *tagging, bool announced, bool answer)
{
	if (announced)
		tagging->peer_announced = 1;
	if (!answer || announced || !tagging->we_announced || tagging->syn_sent < 2 || tagging->refused)
		return false;
	tagging->refused = 1;
	return true;
}

void
bs_tagging_tagged(struct bs_tagging *tagging, uint32_t begin, uint32_t end)
{
	if (!tagging->has_tagged) {
		tagging->has_tagged = 1;
		tagging->tagged_begin = begin;
		tagging->resent_end = begin;
	}
	tagging->tagged_end = end;
}

bool
bs_tagging_resent(struct bs_tagging *tagging, uint32_t begin, uint32_t end)
{
	if (!tagging->has_tagged || tagging->refused || !before(begin, tagging->tagged_end)
		|| !before(tagging->tagged_begin, end) || !before(tagging->resent_end, end))
		return false;
	tagging->resent_end = later(tagging->resent_end, end);
	if (++tagging->resent_tagged < RESENT_LIMIT)
		return false;
	tagging->refused = 1;
	return true;
}

void
bs_tagging_too_big(struct bs_tagging *tagging)
{
	if (tagging->has_tagged)
		tagging->resent_end = later(tagging->resent_end, tagging->tagged_end);
}

void
bs_tagging_acked(struct bs_tagging *tagging, uint32_t ack)
{
	if (!tagging->has_tagged || !before(tagging->tagged_begin, ack))
		return;
	if (before(later(tagging->tagged_begin, tagging->resent_end),
		    before(ack, tagging->tagged_end) ? ack : tagging->tagged_end))
		tagging->resent_tagged = 0; /* bytes sent once, with a shim, have arrived */
	if (!before(ack, tagging->tagged_end)) {
		tagging->has_tagged = 0;
		return;
	}
	tagging->tagged_begin = ack;
	tagging->resent_end = later(tagging->resent_end, ack);
}
