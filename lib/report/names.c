/* SPDX-License-Identifier: BSD-3-Clause */
#include "bs_names.h"

#include <stdio.h>
#include <string.h>

#include "bs_report.h"

void
bs_names_init(struct bs_names *names)
{
	for (unsigned i = 0; i < BS_BUFFER_MAX; i++)
		if (i < BS_BUFFER_INFERRED_COUNT)
			snprintf(
				names->buffers[i], BS_NAME_BYTES, "%s", bs_inferred_buffer_text(i));
		else
			snprintf(names->buffers[i], BS_NAME_BYTES, "buffer#%u", i);
	for (unsigned i = 0; i < BS_MAX_SERVICES; i++)
		snprintf(names->services[i], BS_NAME_BYTES, "service#%u", i);
	snprintf(names->services[BS_MAX_SERVICES], BS_NAME_BYTES, "other");
	for (unsigned i = 0; i < BS_MAX_PROTOCOLS; i++)
		snprintf(names->protocols[i], BS_NAME_BYTES, "protocol#%u", i);
}

void
bs_names_learn(struct bs_names *names, const struct bs_rec_name *record)
{
	size_t bytes = strnlen(record->name, sizeof(record->name));
	char *slot = NULL;

	if (record->kind == BS_NAME_BUFFER && record->number >= BS_BUFFER_FIRST_OWN &&
		record->number < BS_BUFFER_MAX)
		slot = names->buffers[record->number];
	else if (record->kind == BS_NAME_SERVICE && record->number <= BS_MAX_SERVICES)
		slot = names->services[record->number];
	else if (record->kind == BS_NAME_PROTOCOL && record->number < BS_MAX_PROTOCOLS)
		slot = names->protocols[record->number];
	if (slot != NULL && bytes > 0)
		bs_report_escape(record->name, bytes, slot, BS_NAME_BYTES);
}

const char *
bs_names_buffer(const struct bs_names *names, unsigned number)
{
	return number < BS_BUFFER_MAX ? names->buffers[number] : "?";
}

const char *
bs_names_service(const struct bs_names *names, unsigned number)
{
	return number <= BS_MAX_SERVICES ? names->services[number] : "?";
}

const char *
bs_names_protocol(const struct bs_names *names, unsigned number)
{
	return number < BS_MAX_PROTOCOLS ? names->protocols[number] : "?";
}
