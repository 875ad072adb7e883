/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Diagnosis: from records to verdicts. Learns what is normal, says which RPCs
 * are anomalous and by what, which buffer and cause made each slow and how sure
 * that is, leads symptoms back to origins, and gathers victims into incidents.
 * Live it decides as records come; replay feeds all, then decides with the
 * normal values of the whole capture. Same code. Time comes with the records.
 *
 * One thread per bs_diag. Memory is bounded by the config.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_record.h"

struct bs_diag;

/* Out: each is called from within feed, advance or judge. Any may be NULL. */
struct bs_diag_output {
	/*
	 * An RPC that is anomalous (or, in judge(), any), its segments and events as
	 * decided. The view lives until the call returns.
	 */
	void (*verdict)(
		void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc);
	/*
	 * A new or changed incident; its last call has open = 0. One with a single
	 * victim is told only if its origin is a buffer of ours, or a pause.
	 */
	void (*incident)(void *context, const struct bs_rec_incident *incident);
	/* RPCs of this service of at least latency_ns are wanted in full. */
	void (*threshold)(void *context, const struct bs_rec_threshold *threshold);
	void *context;
};

struct bs_diag_config {
	uint64_t detect_ns[6]; /* see bs_diag_detect */
	double outlier_mads;   /* k of median + k MAD of log latency; 0: default 6 */
	uint64_t settle_ns; /* how long a verdict waits for evidence of others; 0: default 100 ms */
	bool offline;	    /* feed() only learns; judge() decides */
	struct bs_diag_output output;
};

/* NULL with errno ENOMEM. */
struct bs_diag *bs_diag_create(const struct bs_diag_config *config);
void bs_diag_destroy(struct bs_diag *diag);

/* Shortest stretches that are evidence, by bs_cause; DROP: 0. For what is fed and judged from now
 * on. */
void bs_diag_detect(struct bs_diag *diag, const uint64_t detect_ns[6]);

/*
 * SLO of a service (match NULL or empty), or of its operations whose label begins
 * with `match`; 0: none. One given again replaces the earlier. 0 or -ENOSPC.
 */
int bs_diag_slo(struct bs_diag *diag, unsigned service, const char *match, uint64_t slo_ns);

/* Forgets all SLOs. */
void bs_diag_slo_clear(struct bs_diag *diag);

/*
 * Takes the next record of a stream, an RPC with its whole group (bytes: all of
 * it). Records passed bs_record_next or are our own. 0, or -EBADMSG for a group
 * that is not whole or not valid.
 */
int bs_diag_feed(struct bs_diag *diag, const struct bs_record *record, size_t bytes);

/* Live: time has come to t_ns: settles what has waited long enough, closes quiet incidents. */
void bs_diag_advance(struct bs_diag *diag, uint64_t t_ns);

/*
 * Offline, after all were fed: the verdict of one RPC (a view that bs_rpc_view
 * made), anomalous or not, into *verdict. Once an RPC: it counts as a victim.
 *
 * Where a silence of the service was decided to be more than its computing, the
 * time in (service, compute) that lies in it becomes (service, hang), or
 * congestion, in segments and events, and the verdict's excess is what they then
 * show (design section 2.5). *rpc then is a whole group in the diagnosis' own
 * memory, which lives until the next call; else it stays as it was.
 */
void bs_diag_judge(struct bs_diag *diag, struct bs_rpc_view *rpc, struct bs_rec_verdict *verdict);

/* Offline, after the last judge(): closes the incidents (calls output.incident). */
void bs_diag_finish(struct bs_diag *diag);

/* Normal values of a service, for people. */
struct bs_diag_service {
	uint64_t rpcs;
	uint64_t p50_ns, p99_ns;
	uint64_t service_p50_ns;
	bool concurrent; /* seen to answer a later RPC of another connection before an earlier one
			  */
	bool warm;
	uint64_t anomalous;
};
/* false if nothing is known of it. */
bool bs_diag_service(const struct bs_diag *diag, unsigned service, struct bs_diag_service *out);

/* What was not taken as it came, since create. */
struct bs_diag_counters {
	uint64_t rejected;	/* services, buffers or times that cannot be */
	uint64_t overflows;	/* samples without room for their own normal value */
	uint64_t settled_early; /* RPCs judged before settle_ns, for want of room */
};
void bs_diag_counters(const struct bs_diag *diag, struct bs_diag_counters *out);

/* One line of advice for a cause in a buffer ("what to do next"). Never NULL. */
const char *bs_diag_advice(const struct bs_blame *blame, unsigned detail);
