/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stamps of a device, whose clock the test makes: ticks of 12.8 ns from anywhere,
 * microseconds since the epoch, one that steps or runs unevenly. They are used when
 * they are understood, between the polls that enclose them, and else counted.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <pcap/pcap.h>
#include <rte_version.h>
#include <stdlib.h>
#include <unistd.h>

#define TICKS_AT_T0 123456789012ull

/* The device's clock: ticks = at_t0 + (now - GB_T0) * rate. */
static struct {
	double ticks_per_ns;
	int64_t stepped;
	int status;
} device;

static uint64_t
ticks_at(uint64_t t_ns)
{
	return (uint64_t)((int64_t)(TICKS_AT_T0 +
				    (uint64_t)((double)(t_ns - GB_T0) * device.ticks_per_ns)) +
			  device.stepped);
}

static int
read_device(uint16_t port, uint64_t *value)
{
	(void)port;
	*value = ticks_at(gb_time.now_ns);
	return device.status;
}

static int
read_us(uint16_t port, uint64_t *value)
{
	(void)port;
	*value = gb_time.now_ns / 1000;
	return 0;
}

static int field;
static uint64_t flag;

static const struct bs_stamp_source ticks = {read_device, 0, "the test's clock"};
static const struct bs_stamp_source epoch_us = {read_us, 1000, "the epoch in us"};

/* A dataplane whose wire port stamps. */
static struct gb *
open_with(const struct bs_stamp_source *source, unsigned lcores)
{
	struct gb *gb = gb_open(&(struct gb_setup){.lcores = lcores});

	memset(&device, 0, sizeof(device));
	device.ticks_per_ns = 1 / 12.8;
	assert_int_equal(rte_mbuf_dyn_rx_timestamp_register(&field, &flag), 0);
	assert_int_equal(gb->dataplane->lcores[0]->ingress[0].port - gb->dataplane->ports, GB_WIRE);
	gb->dataplane->lcores[0]->ingress[0].stamp = bs_stamp_create(0, source);
	assert_non_null(gb->dataplane->lcores[0]->ingress[0].stamp);
	gb->dataplane->ports[GB_WIRE].stamps = *source;
	gb_connect(gb);
	return gb;
}

static const struct bs_stamp *
stamp_of(const struct gb *gb)
{
	return gb->dataplane->lcores[0]->ingress[0].stamp;
}

static void
run_for(const struct gb *gb, uint64_t ns)
{
	gb_run(gb, gb_time.now_ns + ns, 500 * GB_US);
}

static uint64_t
frames(const struct gb *gb, enum bs_frame_counter counter)
{
	return gb_snapshot(gb)->frame[counter];
}

/*
 * An RPC of which the request is stamped `value` (flagged: has a stamp) and found by a poll 80 us
 * after one that found nothing; its record.
 */
static const struct bs_rec_rpc *
ask(struct gb *gb, struct gb_flow *flow, uint64_t value, bool flagged)
{
	static uint32_t id;
	struct rte_mbuf *mbuf;
	struct frame frame;

	gb_turn(gb);
	gb_message(&frame, flow, GB_CLIENT, ++id, 100);
	mbuf = gb_mbuf(gb, frame.bytes, frame.n);
	*RTE_MBUF_DYNFIELD(mbuf, field, rte_mbuf_timestamp_t *) = value;
	if (flagged)
		mbuf->ol_flags |= flag;
	gb_inject_mbuf(gb, GB_WIRE, mbuf);
	gb_time.now_ns += 80 * GB_US;
	gb_turn(gb);
	gb_turn(gb);
	gb_turn(gb);
	gb_time.now_ns += 80 * GB_US;
	gb_message(&frame, flow, GB_SERVER, id, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_turn(gb);
	gb_ack(&frame, flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_turn(gb);
	gb_drain(gb, GB_LOCAL);
	gb_drain(gb, GB_WIRE);
	gb_forget(gb);
	gb_collect(gb, 2);
	return gb_rpc(gb, 0).rpc;
}

static void
assert_near(uint64_t a, uint64_t b, uint64_t ns)
{
	if (a > b + ns || b > a + ns)
		fail_msg("%llu and %llu are more than %llu ns apart", (unsigned long long)a,
			(unsigned long long)b, (unsigned long long)ns);
}

/* --- used ------------------------------------------------------------------------------- */

static void
ticks_of_any_rate_are_learned_and_say_when_a_packet_came(void **state)
{
	struct gb *gb = open_with(&ticks, 1);
	struct gb_flow flow = gb_flow(40000, 6379);
	const struct bs_rec_rpc *rpc;
	char text[BS_STAMP_TEXT_BYTES];
	uint64_t t;

	(void)state;
	gb_handshake(gb, &flow);
	t = gb_time.now_ns + 20 * GB_US;
	rpc = ask(gb, &flow, ticks_at(t), true); /* nothing is known of its clock yet */
	assert_int_equal(rpc->t_request_first, t + 20 * GB_US);
	assert_int_equal(frames(gb, BS_FRAME_STAMPED), 0);
	bs_stamp_text(&ticks, stamp_of(gb), text);
	assert_non_null(strstr(text, "not yet"));
	run_for(gb, 250 * GB_MS);
	t = gb_time.now_ns + 20 * GB_US;
	rpc = ask(gb, &flow, ticks_at(t), true);
	assert_near(rpc->t_request_first, t, 13); /* a tick */
	assert_int_equal(frames(gb, BS_FRAME_STAMPED), 1);
	assert_int_equal(gb_rpc(gb, 0).segments[0].quality, BS_QUALITY_ESTIMATED);
	assert_true(stamp_of(gb)->uncertainty_ns >= 12 && stamp_of(gb)->uncertainty_ns < 40);
	assert_non_null(
		strstr(gb_snapshot(gb)->ports[GB_WIRE].rx_stamps, "used: the test's clock"));
	assert_string_equal(
		gb_snapshot(gb)->ports[GB_LOCAL].rx_stamps, "none: the driver gives none");
	/* for hours */
	for (unsigned i = 0; i < 200; i++) {
		gb_time.now_ns += 30 * GB_S;
		run_for(gb, 2 * GB_MS);
	}
	t = gb_time.now_ns + 20 * GB_US;
	assert_near(ask(gb, &flow, ticks_at(t), true)->t_request_first, t, 40);
	assert_int_equal(stamp_of(gb)->refusals, 0);
	gb_close(gb);
}

static void
microseconds_since_the_epoch_are_uncertain_by_one(void **state)
{
	struct gb *gb = open_with(&epoch_us, 1);
	struct gb_flow flow = gb_flow(40000, 6379);
	uint64_t t;

	(void)state;
	gb_handshake(gb, &flow);
	run_for(gb, 2500 * GB_MS);
	t = gb_time.now_ns + 20 * GB_US;
	assert_near(ask(gb, &flow, t / 1000, true)->t_request_first, t, 2000);
	assert_true(stamp_of(gb)->uncertainty_ns >= 1000);
	assert_int_equal(stamp_of(gb)->refusals, 0);
	gb_close(gb);
}

static void
a_stamp_goes_with_the_packet_to_its_flows_owner(void **state)
{
	struct gb *gb = open_with(&ticks, 4);
	uint64_t handed_over = 0;

	(void)state;
	run_for(gb, 250 * GB_MS);
	for (uint16_t i = 0; i < 8; i++) {
		struct gb_flow flow = gb_flow((uint16_t)(40000 + i), 6379);
		const struct bs_rec_rpc *rpc;
		uint64_t t;

		gb_handshake(gb, &flow);
		t = gb_time.now_ns + 20 * GB_US;
		rpc = ask(gb, &flow, ticks_at(t), true);
		assert_near(rpc->t_request_first, t, 13);
		handed_over += rpc->head.source != 0;
	}
	assert_int_equal(frames(gb, BS_FRAME_STAMPED), 8);
	assert_true(handed_over > 0);
	gb_close(gb);
}

/* --- not used ----------------------------------------------------------------------------- */

static void
no_flag_or_no_value_is_no_stamp(void **state)
{
	struct gb *gb = open_with(&ticks, 1);
	struct gb_flow flow = gb_flow(40000, 6379);
	uint64_t t;

	(void)state;
	gb_handshake(gb, &flow);
	run_for(gb, 250 * GB_MS);
	t = gb_time.now_ns + 40 * GB_US; /* the middle of what is known */
	assert_int_equal(ask(gb, &flow, ticks_at(t - 20 * GB_US), false)->t_request_first, t);
	t = gb_time.now_ns + 40 * GB_US;
	assert_int_equal(ask(gb, &flow, 0, true)->t_request_first, t);
	assert_int_equal(frames(gb, BS_FRAME_STAMPED), 0);
	assert_int_equal(frames(gb, BS_FRAME_STAMP_REJECTED), 0);
	gb_close(gb);
}

static void
a_stamp_from_outside_of_the_poll_gap_is_rejected(void **state)
{
	struct gb *gb = open_with(&ticks, 1);
	struct gb_flow flow = gb_flow(40000, 6379);
	/* from the poll that found nothing on; the gap is 80 us */
	static const int64_t wrong_us[] = {-1, 81, -1000000, 1000000, 3600 * 1000000ll};
	unsigned rejected = 0;

	(void)state;
	gb_handshake(gb, &flow);
	run_for(gb, 250 * GB_MS);
	for (unsigned i = 0; i < RTE_DIM(wrong_us); i++) {
		const uint64_t t = gb_time.now_ns, off = (uint64_t)(wrong_us[i] * 1000);
		const uint64_t value =
			TICKS_AT_T0 + (uint64_t)((double)(int64_t)(t - GB_T0 + off) / 12.8);

		assert_int_equal(ask(gb, &flow, value, true)->t_request_first, t + 40 * GB_US);
		assert_int_equal(frames(gb, BS_FRAME_STAMP_REJECTED), ++rejected);
	}
	/* anything at all */
	for (uint64_t value = 1; value != 0; value *= 2) {
		const uint64_t t = gb_time.now_ns;

		assert_int_equal(ask(gb, &flow, value, true)->t_request_first, t + 40 * GB_US);
		assert_int_equal(frames(gb, BS_FRAME_STAMP_REJECTED), ++rejected);
	}
	assert_int_equal(frames(gb, BS_FRAME_STAMPED), 0);
	gb_close(gb);
}

static void
a_clock_that_steps_is_refused_and_learned_again(void **state)
{
	struct gb *gb = open_with(&ticks, 1);
	struct gb_flow flow = gb_flow(40000, 6379);
	uint64_t t;

	(void)state;
	gb_handshake(gb, &flow);
	run_for(gb, 3 * GB_S);
	device.stepped = 10000000; /* 128 ms */
	for (unsigned i = 0; i < 1050 && stamp_of(gb)->refusals == 0; i++)
		run_for(gb, GB_MS);
	assert_int_equal(stamp_of(gb)->refusals, 1);
	assert_int_equal(stamp_of(gb)->state, BS_STAMP_LEARNING);
	assert_non_null(strstr(gb_snapshot(gb)->ports[GB_WIRE].rx_stamps, "refused"));
	t = gb_time.now_ns;
	assert_int_equal(
		ask(gb, &flow, ticks_at(t + 20 * GB_US), true)->t_request_first, t + 40 * GB_US);
	assert_int_equal(frames(gb, BS_FRAME_STAMPED), 0);
	run_for(gb, 300 * GB_MS);
	t = gb_time.now_ns + 20 * GB_US;
	assert_near(ask(gb, &flow, ticks_at(t), true)->t_request_first, t, 20);
	device.stepped = -10000000; /* back, too */
	run_for(gb, 1050 * GB_MS);
	assert_int_equal(stamp_of(gb)->refusals, 2);
	gb_close(gb);
}

static void
a_clock_is_refused_beyond_a_tenth_of_a_percent(void **state)
{
	static const struct {
		double rate; /* of what it was */
		bool refused;
	} cases[] = {{1.0009, false}, {0.9991, false}, {1.0012, true}, {0.9988, true}};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		struct gb *gb = open_with(&ticks, 1);
		uint64_t before;

		run_for(gb, 3 * GB_S);
		before = ticks_at(gb_time.now_ns);
		device.ticks_per_ns *= cases[i].rate;
		device.stepped = (int64_t)(before - ticks_at(gb_time.now_ns)); /* from here on */
		run_for(gb, 2100 * GB_MS); /* a whole interval at the new rate */
		assert_int_equal(stamp_of(gb)->refusals > 0, cases[i].refused);
		gb_close(gb);
	}
}

static void
a_clock_that_cannot_be_read_or_only_slowly_is_not_used(void **state)
{
	struct gb *gb = open_with(&ticks, 1);

	(void)state;
	device.status = -EIO;
	run_for(gb, GB_S);
	assert_int_equal(stamp_of(gb)->state, BS_STAMP_LEARNING);
	device.status = 0;
	gb_time.step_ns = 50 * GB_US; /* what reading our own takes */
	run_for(gb, GB_S);
	assert_int_equal(stamp_of(gb)->state, BS_STAMP_LEARNING);
	gb_time.step_ns = 0;
	run_for(gb, GB_S);
	assert_int_equal(stamp_of(gb)->state, BS_STAMP_GOOD);
	gb_close(gb);
}

/* --- drivers ------------------------------------------------------------------------------- */

static void
the_source_goes_by_driver_and_version(void **state)
{
	struct gb *gb = gb_open(NULL);
	const uint16_t port = gb->port[GB_WIRE]; /* net_ring: no clock to read */
	const bool old = RTE_VERSION < RTE_VERSION_NUM(24, 11, 0, 0);

	(void)state;
	assert_null(bs_stamp_source(port, "net_ring", false).read);
	assert_string_equal(
		bs_stamp_source(port, "net_ring", false).text, "none: the driver gives none");
	/* ice offers stamps and no clock */
	assert_null(bs_stamp_source(port, "net_ice", true).read);
	assert_non_null(strstr(bs_stamp_source(port, "net_ice", true).text, "cannot be read"));
	assert_int_equal(bs_stamp_source(port, "net_pcap", false).grain_ns, 1000);
	assert_string_equal(bs_stamp_source(port, "net_pcap", false).text, "CLOCK_REALTIME in us");
	assert_true((bs_stamp_source(port, "net_af_packet", false).read == NULL) == old);
	gb_close(gb);
}

/* A capture of one frame, of some other day. */
static void
write_capture(const char *path, const struct frame *frame)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *dump = pcap_dump_open(pcap, path);
	const struct pcap_pkthdr header = {
		.ts = {.tv_sec = 1600000000}, .caplen = frame->n, .len = frame->n};

	assert_non_null(dump);
	pcap_dump((u_char *)dump, &header, frame->bytes);
	pcap_dump_close(dump);
	pcap_close(pcap);
}

static void
stamps_of_a_file_are_not_taken_for_arrivals(void **state)
{
	char path[] = "/tmp/graybox-stamp-XXXXXX", text[128];
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame;
	struct gb *gb;

	(void)state;
	assert_true(close(mkstemp(path)) == 0);
	gb_message(&frame, &flow, GB_CLIENT, 1, 100);
	write_capture(path, &frame);
	snprintf(text, sizeof(text), "net_pcap_gb,rx_pcap=%s", path);
	gb = gb_open(&(struct gb_setup){.wire_device = text});
	assert_non_null(stamp_of(gb));
	assert_string_equal(stamp_of(gb)->source.text, "CLOCK_REALTIME in us");
	/* as if it were calibrated */
	gb->dataplane->lcores[0]->ingress[0].stamp->source = epoch_us;
	gb_time.now_ns += GB_MS;
	for (unsigned i = 0; i < 300; i++) {
		gb_time.now_ns += GB_MS;
		bs_stamp_check(gb->dataplane->lcores[0]->ingress[0].stamp, gb_time.now_ns);
	}
	assert_int_equal(stamp_of(gb)->state, BS_STAMP_GOOD);
	gb_turn(gb);
	assert_int_equal(frames(gb, BS_FRAME_STAMP_REJECTED), 1);
	assert_int_equal(frames(gb, BS_FRAME_STAMPED), 0);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 1);
	unlink(path);
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(ticks_of_any_rate_are_learned_and_say_when_a_packet_came),
		GB_TEST(microseconds_since_the_epoch_are_uncertain_by_one),
		GB_TEST(a_stamp_goes_with_the_packet_to_its_flows_owner),
		GB_TEST(no_flag_or_no_value_is_no_stamp),
		GB_TEST(a_stamp_from_outside_of_the_poll_gap_is_rejected),
		GB_TEST(a_clock_that_steps_is_refused_and_learned_again),
		GB_TEST(a_clock_is_refused_beyond_a_tenth_of_a_percent),
		GB_TEST(a_clock_that_cannot_be_read_or_only_slowly_is_not_used),
		GB_TEST(the_source_goes_by_driver_and_version),
		GB_TEST(stamps_of_a_file_are_not_taken_for_arrivals),
	};

	return cmocka_run_group_tests_name(
		"graybox_stamp", tests, gb_group_setup, gb_group_teardown);
}
