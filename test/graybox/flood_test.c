/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Floods through the whole dataplane, beside a few connections that do RPCs:
 * every packet leaves as it came and is accounted, the tables stay as large as they
 * are, and the RPCs are told as if there were no flood.
 */
#include "gb_frames.h"
#include "gb_records.h"

#define LIVE 20u
#define TABLE 1024u
#define BURST 32u
#define FLOOD_ADDRESS 0x0b000000u
#define SERVICE_NS (40 * GB_MS)
#define GET "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
#define VALUE "$5\r\nvalue\r\n"

#define SERVICES                                                                                   \
	"{\"name\": \"kv\", \"address\": \"10.0.0.2\", \"port\": 6379, "                           \
	"\"protocol\": \"resp\"}"

static const struct gb_setup few_flows = {
	.services = SERVICES, .more = ", \"tables\": {\"flows\": 1024, \"rpcs\": 1024}"};
static const struct gb_setup few_rpcs = {
	.services = SERVICES, .more = ", \"tables\": {\"flows\": 16384, \"rpcs\": 1024}"};

struct crowd {
	struct gb *gb;
	struct gb_flow live[LIVE];
	unsigned strangers; /* flows of the flood so far */
	unsigned rounds;    /* RPCs of each live flow */
};

static struct crowd
crowd_open(const struct gb_setup *setup)
{
	struct crowd crowd = {.gb = gb_open(setup)};

	for (unsigned i = 0; i < LIVE; i++) {
		crowd.live[i] = gb_flow((uint16_t)(40000 + i), 6379);
		gb_handshake(crowd.gb, &crowd.live[i]);
	}
	gb_connect(crowd.gb);
	return crowd;
}

static uint64_t
tracked(const struct crowd *crowd, enum bs_track_counter counter)
{
	return gb_snapshot(crowd->gb)->track[counter];
}

/* A burst from the wire, each packet of another client. All of it leaves at once. */
static void
burst(struct crowd *crowd, const struct gb_tcp *tcp)
{
	for (unsigned i = 0; i < BURST; i++) {
		struct gb_flow flow = gb_flow((uint16_t)(1024 + crowd->strangers % 50000), 6379);
		struct frame frame;

		flow.address[GB_CLIENT] = FLOOD_ADDRESS + crowd->strangers++;
		gb_tcp(&frame, &flow, tcp);
		gb_inject(crowd->gb, GB_WIRE, &frame);
	}
	gb_turn(crowd->gb);
	assert_int_equal(gb_drain(crowd->gb, GB_LOCAL), BURST);
}

/* `bursts` of the flood in as much time as a live RPC takes. */
static void
flood(struct crowd *crowd, const struct gb_tcp *tcp, unsigned bursts)
{
	const uint64_t t_end = gb_time.now_ns + SERVICE_NS;

	for (unsigned i = 0; i < bursts; i++) {
		gb_time.now_ns += SERVICE_NS / (bursts + 1);
		burst(crowd, tcp);
	}
	gb_time.now_ns = t_end;
}

/* Every live flow asks, the flood comes, every live flow is answered. */
static void
round_of_rpcs(struct crowd *crowd, const struct gb_tcp *tcp, unsigned bursts)
{
	struct gb *gb = crowd->gb;
	struct frame frame;

	for (unsigned i = 0; i < LIVE; i++) {
		gb_data(&frame, &crowd->live[i], GB_CLIENT, GET, sizeof(GET) - 1);
		gb_pass(gb, GB_WIRE, &frame);
	}
	assert_int_equal(gb_drain(gb, GB_LOCAL), LIVE);
	flood(crowd, tcp, bursts);
	for (unsigned i = 0; i < LIVE; i++) {
		gb_data(&frame, &crowd->live[i], GB_SERVER, VALUE, sizeof(VALUE) - 1);
		gb_pass(gb, GB_LOCAL, &frame);
		gb_ack(&frame, &crowd->live[i], GB_CLIENT);
		gb_pass(gb, GB_WIRE, &frame);
	}
	assert_int_equal(gb_drain(gb, GB_LOCAL), LIVE);
	assert_int_equal(gb_drain(gb, GB_WIRE), LIVE);
	crowd->rounds++;
}

/* What the analyzer was told of live flows; of strangers: RPCs put out, unanswered. */
static void
check_rpcs(struct crowd *crowd, uint64_t evicted)
{
	struct gb *gb = crowd->gb;
	unsigned live = 0, others = 0;
	const struct bs_rec_rpc *rpc;

	gb_collect(gb, 64);
	for (unsigned i = 0; (rpc = gb_record(gb, BS_REC_RPC, i)) != NULL; i++) {
		uint64_t latency_ns;

		if (rpc->ends.client[12] == FLOOD_ADDRESS >> 24) {
			assert_int_equal(rpc->outcome, BS_OUTCOME_IN_PROGRESS);
			others++;
			continue;
		}
		assert_int_equal(rpc->outcome, BS_OUTCOME_ANSWERED);
		assert_true(bs_rpc_latency_ns(rpc, &latency_ns));
		assert_int_equal(latency_ns, SERVICE_NS);
		assert_int_equal(rpc->request_bytes, sizeof(GET) - 1);
		assert_int_equal(rpc->response_bytes, sizeof(VALUE) - 1);
		live++;
	}
	assert_int_equal(live, LIVE * crowd->rounds);
	assert_int_equal(others, evicted);
	assert_int_equal(tracked(crowd, BS_TRACK_RECORDS_LOST), 0);
	assert_int_equal(tracked(crowd, BS_TRACK_ORPHANS), 0);
}

/* In = out + reasons, also while it goes on; at the end all went through, none for a reason. */
static void
crowd_close(struct crowd *crowd)
{
	const char *wrong = gb_check_packets(crowd->gb);

	if (wrong != NULL)
		fail_msg("%s", wrong);
	assert_int_equal(gb_snapshot(crowd->gb)->rx_packets, gb_snapshot(crowd->gb)->tx_packets);
	gb_close(crowd->gb);
}

static void
a_flood_of_syns_leaves_live_rpcs_as_they_are(void **state)
{
	const struct gb_tcp syn = {.from = GB_CLIENT, .flags = BS_TCP_SYN};
	struct crowd crowd = crowd_open(&few_flows);
	uint64_t flows;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		round_of_rpcs(&crowd, &syn, 100);
		assert_int_equal(bs_tracker_flows(crowd.gb->dataplane->lcores[0]->tracker), TABLE);
	}
	flows = LIVE + crowd.strangers;
	assert_int_equal(crowd.strangers, 64000);
	assert_int_equal(tracked(&crowd, BS_TRACK_FLOWS_CREATED), flows);
	assert_int_equal(tracked(&crowd, BS_TRACK_FLOWS_EVICTED), flows - TABLE);
	assert_int_equal(tracked(&crowd, BS_TRACK_FLOWS_EVICTED_OPEN), 0);
	assert_int_equal(tracked(&crowd, BS_TRACK_FLOWS_REFUSED), 0);
	check_rpcs(&crowd, 0);
	crowd_close(&crowd);
}

/*
 * As many as there are slots in 1.28 s, for six times as long: those that make room are
 * more than a second old, and none of a live flow.
 */
static void
requests_that_nobody_answers_leave_live_rpcs_as_they_are(void **state)
{
	const struct gb_tcp get = {.from = GB_CLIENT,
		.flags = BS_TCP_ACK | BS_TCP_PSH,
		.payload = GET,
		.payload_bytes = sizeof(GET) - 1};
	struct crowd crowd = crowd_open(&few_rpcs);
	uint64_t evicted;

	(void)state;
	for (unsigned i = 0; i < 6 * TABLE / BURST; i++) {
		round_of_rpcs(&crowd, &get, 1);
		gb_collect(crowd.gb, 1);
	}
	evicted = crowd.strangers - (TABLE - LIVE); /* live ones have left their slots */
	assert_int_equal(tracked(&crowd, BS_TRACK_RPCS_EVICTED), evicted);
	assert_int_equal(tracked(&crowd, BS_TRACK_RPCS_REFUSED), 0);
	assert_int_equal(tracked(&crowd, BS_TRACK_FLOWS_EVICTED), 0);
	assert_int_equal(tracked(&crowd, BS_TRACK_FLOWS_CREATED), LIVE + crowd.strangers);
	check_rpcs(&crowd, evicted);
	crowd_close(&crowd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(a_flood_of_syns_leaves_live_rpcs_as_they_are),
		GB_TEST(requests_that_nobody_answers_leave_live_rpcs_as_they_are),
	};

	return cmocka_run_group_tests(tests, gb_group_setup, gb_group_teardown);
}
