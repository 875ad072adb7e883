/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a flow's packets may be tagged; see bs_tagging.h. */
#include "bs_tagging.h"

#define RESENT_LIMIT 2u

static bool
is_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static uint32_t
later(uint32_t a, uint32_t b)
{
	return is_before(a, b) ? b : a;
}

static uint32_t
earlier(uint32_t a, uint32_t b)
{
	return is_before(a, b) ? a : b;
}

static bool
give_up(struct bs_tagging *tagging)
{
	tagging->refused = 1;
	return true;
}

bool
bs_tagging_syn_out(struct bs_tagging *tagging, bool negotiated)
{
	bool first = tagging->syn_sent == 0;

	if (tagging->syn_sent < UINT8_MAX)
		tagging->syn_sent++;
	if (!negotiated || tagging->refused || !first)
		return false;
	tagging->we_announced = 1;
	return true;
}

/* The other end has answered: if we sent more than one, was it the one without announcement? */
static bool
answered(struct bs_tagging *tagging, bool announced)
{
	bool first = !tagging->answered;

	tagging->answered = 1;
	if (!first || announced || !tagging->we_announced || tagging->syn_sent < 2 ||
		tagging->refused)
		return false;
	return give_up(tagging);
}

bool
bs_tagging_syn_in(struct bs_tagging *tagging, bool announced, bool answer)
{
	if (announced)
		tagging->peer_announced = 1;
	return answer && answered(tagging, announced);
}

void
bs_tagging_tagged(struct bs_tagging *tagging, uint32_t begin, uint32_t end)
{
	if (!tagging->has_tagged) {
		tagging->has_tagged = 1;
		tagging->passed = 0;
		tagging->tagged_begin = tagging->small_end = begin;
		tagging->resent_begin = tagging->resent_end = begin;
	}
	if (end - begin > tagging->full_bytes) {
		tagging->full_bytes = end - begin;
		tagging->small_end = begin;
	} else if (end - begin < tagging->full_bytes) {
		tagging->small_end = end;
	}
	tagging->tagged_end = end;
}

/* Adds a range, clipped to what is tagged, to the hull of those resent. False: it was within. */
static bool
hull_add(struct bs_tagging *tagging, uint32_t begin, uint32_t end)
{
	begin = later(begin, tagging->tagged_begin);
	end = earlier(end, tagging->tagged_end);
	if (tagging->resent_begin == tagging->resent_end) {
		tagging->resent_begin = begin;
		tagging->resent_end = end;
		return true;
	}
	if (!is_before(begin, tagging->resent_begin) && !is_before(tagging->resent_end, end))
		return false;
	tagging->resent_begin = earlier(begin, tagging->resent_begin);
	tagging->resent_end = later(end, tagging->resent_end);
	return true;
}

bool
bs_tagging_resent(struct bs_tagging *tagging, uint32_t begin, uint32_t end)
{
	if (!tagging->has_tagged || tagging->refused || !is_before(begin, tagging->tagged_end) ||
		!is_before(tagging->tagged_begin, end) || !hull_add(tagging, begin, end))
		return false;
	/* what was sent behind it, no smaller and with a tag, has come through */
	if (tagging->passed && !is_before(tagging->passed_end, end))
		return false;
	return ++tagging->resent_tagged >= RESENT_LIMIT && give_up(tagging);
}

void
bs_tagging_too_big(struct bs_tagging *tagging)
{
	if (tagging->has_tagged)
		hull_add(tagging, tagging->tagged_begin, tagging->tagged_end);
}

/* [begin, end) has arrived: were bytes of it sent only once, with a shim? */
static void
arrived(struct bs_tagging *tagging, uint32_t begin, uint32_t end)
{
	bool none_resent = tagging->resent_begin == tagging->resent_end;

	begin = later(begin, tagging->tagged_begin);
	end = earlier(end, tagging->tagged_end);
	if (!is_before(begin, end))
		return;
	if (none_resent || is_before(begin, tagging->resent_begin) ||
		is_before(tagging->resent_end, end))
		tagging->resent_tagged = 0;
}

void
bs_tagging_sacked(struct bs_tagging *tagging, uint32_t begin, uint32_t end)
{
	if (!tagging->has_tagged)
		return;
	arrived(tagging, begin, end);
	begin = later(later(begin, tagging->small_end), tagging->resent_end);
	end = earlier(end, tagging->tagged_end);
	if (!is_before(begin, end))
		return;
	tagging->passed_end = tagging->passed ? later(tagging->passed_end, end) : end;
	tagging->passed = 1;
}

bool
bs_tagging_acked(struct bs_tagging *tagging, uint32_t ack)
{
	bool refuses = answered(tagging, false);

	if (!tagging->has_tagged || !is_before(tagging->tagged_begin, ack))
		return refuses;
	arrived(tagging, tagging->tagged_begin, ack);
	if (!is_before(ack, tagging->tagged_end)) {
		tagging->has_tagged = 0;
		return refuses;
	}
	tagging->tagged_begin = ack;
	tagging->resent_begin = later(tagging->resent_begin, ack);
	tagging->resent_end = later(tagging->resent_end, ack);
	tagging->small_end = later(tagging->small_end, ack);
	tagging->passed &= is_before(ack, tagging->passed_end);
	return refuses;
}

/* --- UDP ---------------------------------------------------------------------- */

#define PEER_AGAIN_MIN 2u
#define PEER_AGAIN_SHARE 4u
#define PEER_WINDOW 64u /* datagrams after which older ones count half */

void
bs_tagging_peer_tags(struct bs_tagging *tagging)
{
	tagging->we_announced = tagging->peer_announced = 1;
}

bool
bs_tagging_asked(struct bs_tagging *tagging, uint32_t mark, uint64_t rpc_id, bool again)
{
	for (unsigned i = 0; i < BS_TAGGING_ASKED; i++)
		again |= tagging->asked[i] == mark;
	if (again) {
		tagging->again = (uint32_t)rpc_id;
		return true;
	}
	for (unsigned i = BS_TAGGING_ASKED - 1; i > 0; i--)
		tagging->asked[i] = tagging->asked[i - 1];
	tagging->asked[0] = mark;
	return false;
}

bool
bs_tagging_is_again(const struct bs_tagging *tagging, uint64_t rpc_id)
{
	return tagging->again != 0 && tagging->again == (uint32_t)rpc_id;
}

void
bs_tagging_peer_tagged(struct bs_tagging_peer *peer)
{
	peer->tagged++;
	if (peer->tagged >= PEER_WINDOW) {
		peer->tagged /= 2;
		peer->again /= 2;
	}
}

bool
bs_tagging_peer_again(struct bs_tagging_peer *peer)
{
	peer->again++;
	return peer->again >= PEER_AGAIN_MIN && peer->again * PEER_AGAIN_SHARE >= peer->tagged;
}
