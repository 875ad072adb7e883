/* SPDX-License-Identifier: BSD-3-Clause */
#include "findings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_AGAIN 4096u /* incidents back that one may be told again */

struct findings_run *
findings_begin_run(struct findings *findings)
{
	struct findings_run *run = calloc(1, sizeof(*run));

	if (run == NULL)
		return NULL;
	bs_names_init(&run->names);
	if (findings->last_run != NULL)
		findings->last_run->next = run;
	else
		findings->runs = run;
	findings->last_run = run;
	return run;
}

struct findings_service *
findings_service(struct findings_run *run, unsigned number, unsigned protocol)
{
	struct findings_service **slot = &run->services[number];

	if (*slot == NULL)
		*slot = calloc(1, sizeof(**slot));
	if (*slot != NULL)
		(*slot)->protocol = (uint8_t)protocol;
	return *slot;
}

int
findings_account(struct findings_run *run, const struct bs_rec_rpc *rpc)
{
	struct findings_service *service = findings_service(run, rpc->service, rpc->protocol);
	uint64_t latency;

	if (service == NULL)
		return -ENOMEM;
	service->outcomes[rpc->outcome]++;
	if (!bs_rpc_latency_ns(rpc, &latency))
		return 0;
	bs_histo_add(&service->latency, latency);
	if (rpc->t_request_departure != 0 && rpc->t_response_first >= rpc->t_request_departure)
		bs_histo_add(&service->service, rpc->t_response_first - rpc->t_request_departure);
	return 0;
}

/* The diagnosis tells an incident again whenever it has changed, but none that is long over. */
int
findings_incident(struct findings *findings, const struct bs_rec_incident *incident)
{
	const struct findings_run *run = findings->last_run;
	size_t end =
		findings->incident_count > TOLD_AGAIN ? findings->incident_count - TOLD_AGAIN : 0;

	for (size_t i = findings->incident_count; i-- > end && findings->incidents[i].run == run;)
		if (findings->incidents[i].record.id == incident->id) {
			findings->incidents[i].record = *incident;
			return 0;
		}
	if (findings->incident_count == findings->incident_room) {
		size_t room = findings->incident_room > 0 ? 2 * findings->incident_room : 64;
		void *grown =
			reallocarray(findings->incidents, room, sizeof(findings->incidents[0]));

		if (grown == NULL)
			return -ENOMEM;
		findings->incidents = grown;
		findings->incident_room = room;
	}
	findings->incidents[findings->incident_count++] =
		(struct findings_incident){*incident, run};
	return 0;
}

static struct findings_total *
total_named(struct findings *findings, const char *name)
{
	for (size_t i = 0; i < findings->total_count; i++)
		if (strcmp(findings->totals[i].name, name) == 0)
			return &findings->totals[i];
	return NULL;
}

static void
add_service(struct findings_service *to, const struct findings_service *from)
{
	for (unsigned i = 0; i < BS_OUTCOME_COUNT; i++)
		to->outcomes[i] += from->outcomes[i];
	bs_histo_merge(&to->latency, &from->latency);
	bs_histo_merge(&to->service, &from->service);
}

int
findings_total(struct findings *findings)
{
	for (struct findings_run *run = findings->runs; run != NULL; run = run->next)
		for (unsigned i = 0; i < FINDINGS_SERVICES; i++) {
			const char *name = bs_names_service(&run->names, i);
			struct findings_service *service = run->services[i];
			struct findings_total *total;
			void *grown;

			if (service == NULL)
				continue;
			total = total_named(findings, name);
			if (total != NULL) {
				add_service(total->service, service);
				continue;
			}
			grown = reallocarray(findings->totals, findings->total_count + 1,
				sizeof(findings->totals[0]));
			if (grown == NULL)
				return -ENOMEM;
			findings->totals = grown;
			findings->totals[findings->total_count++] = (struct findings_total){
				name, bs_names_protocol(&run->names, service->protocol), service};
		}
	return 0;
}

void
findings_free(struct findings *findings)
{
	while (findings->runs != NULL) {
		struct findings_run *run = findings->runs;

		findings->runs = run->next;
		for (unsigned i = 0; i < FINDINGS_SERVICES; i++)
			free(run->services[i]);
		free(run);
	}
	free(findings->incidents);
	free(findings->totals);
	groups_free(&findings->groups);
	memset(findings, 0, sizeof(*findings));
}
