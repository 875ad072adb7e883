/* SPDX-License-Identifier: BSD-3-Clause */
/* The texts of bs_vocab.h, from the same lists as the numbers. */
#include "bs_vocab.h"

#include <assert.h>
#include <stddef.h>

static_assert((unsigned)BS_BUFFER_INFERRED_COUNT <= BS_BUFFER_FIRST_OWN,
	"inferred buffers have run into bufscoped's own");
static_assert(
	(unsigned)BS_DETAIL_COUNT <= BS_DETAIL_FIRST_REASON, "details have run into the reasons");

#define TEXT(name, text) text,
#define KEY(name, key, help) key,

static const char *const cause_texts[] = {BS_CAUSES(TEXT)};
static const char *const quality_texts[] = {BS_QUALITIES(TEXT)};
static const char *const buffer_texts[] = {BS_INFERRED_BUFFERS(TEXT)};
static const char *const detail_texts[] = {BS_DETAILS(TEXT)};
static const char *const reason_keys[] = {BS_REASONS(KEY)};
static const char *const outcome_texts[] = {BS_OUTCOMES(TEXT)};
static const char *const kind_texts[] = {BS_KINDS(TEXT)};
static const char *const culprit_texts[] = {BS_CULPRITS(TEXT)};

#define LOOKUP(list, number) ((number) < sizeof(list) / sizeof((list)[0]) ? (list)[number] : "?")

const char *
bs_cause_text(unsigned cause)
{
	return LOOKUP(cause_texts, cause);
}

const char *
bs_quality_text(unsigned quality)
{
	return LOOKUP(quality_texts, quality);
}

const char *
bs_inferred_buffer_text(unsigned buffer)
{
	return LOOKUP(buffer_texts, buffer);
}

const char *
bs_detail_text(unsigned detail)
{
	if (detail >= BS_DETAIL_FIRST_REASON)
		return bs_reason_key(detail - BS_DETAIL_FIRST_REASON);
	return LOOKUP(detail_texts, detail);
}

const char *
bs_reason_key(unsigned reason)
{
	return LOOKUP(reason_keys, reason);
}

const char *
bs_outcome_text(unsigned outcome)
{
	return LOOKUP(outcome_texts, outcome);
}

const char *
bs_kind_text(unsigned kind)
{
	return LOOKUP(kind_texts, kind);
}

const char *
bs_culprit_text(unsigned culprit)
{
	return LOOKUP(culprit_texts, culprit);
}
