/* SPDX-License-Identifier: BSD-3-Clause */
/* One RPC's verdict from what is known: normal values, services, episodes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_diag.h"
#include "decision.h"
#include "interval.h"
#include "normal.h"
#include "origin.h"
#include "service.h"
#include "terms.h"

#define JUDGE_CULPRITS 8u

/* A verdict and what its incident wants to know. */
struct judgement {
	struct bs_rec_verdict verdict;
	struct bs_rpc_view
		rpc; /* as decided; lives as long as judge.decided is not written again */
	struct bs_blame origin;
	uint16_t origin_detail;
	struct interval span; /* of the origin's doing, as far as this RPC shows it */
	uint64_t latency_ns;
	uint16_t service;
	uint16_t lcore; /* of an origin that is a hang of ours; else ORIGIN_LCORE_NONE */
	uint8_t culprit_count;
	uint8_t culprit_kind[JUDGE_CULPRITS];
	struct bs_culprit_share culprits[JUDGE_CULPRITS];
};

struct judge {
	const struct bs_diag_config *config;
	struct normal *normal;
	const struct services *services;
	const struct episodes *episodes;
	struct decided *decided; /* room for the RPC as decided */
	uint64_t slo_ns;	 /* of this RPC; 0 = none */
	uint64_t now;
};

/*
 * rpc->service is below DIAG_SERVICES; scope is that of the RPC. *terms: of the
 * RPC as decided.
 */
void judge_rpc(const struct judge *judge, const struct bs_rpc_view *rpc, struct normal_scope scope,
	struct terms *terms, struct judgement *judgement);
