/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In what order a port's queues are served: by class, within a class (or with
 * `drr`, all of them) in turns worth a quantum; what is nobody's goes last.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <stdio.h>

#define ROOM 2048u

#define SERVICE(name, port, class)                                                                 \
	"{\"name\": \"" name "\", \"address\": \"10.0.0.2\", \"port\": " port                      \
	", \"protocol\": \"unit\", \"class\": {\"in\": " class "}}"

/* So many frames of a service's, or (port 0) nobody's, of that length, enter. */
static void
enter(const struct gb *gb, uint16_t port, unsigned n, unsigned bytes)
{
	static const uint8_t payload[2048];
	struct gb_flow flow = gb_flow(40000, port);
	struct frame frame;

	for (unsigned i = 0; i < n; i++) {
		if (port == 0)
			gb_arp(&frame);
		else
			gb_data(&frame, &flow, GB_CLIENT, payload, bytes - 54);
		gb_inject(gb, GB_WIRE, &frame);
		if (i % BS_BURST == BS_BURST - 1 || i == n - 1)
			gb_turn(gb);
	}
}

/* Nothing leaves toward the services: the ring is full, and one packet waits before it. */
static void
block(const struct gb *gb)
{
	enter(gb, 0, ROOM + 1, 42);
	assert_int_equal(rte_ring_count(gb->out[GB_LOCAL]), ROOM);
	assert_int_equal(gb_snapshot(gb)->queued, 1);
}

static void
unblock(const struct gb *gb)
{
	assert_int_equal(gb_drain(gb, GB_LOCAL), ROOM);
}

/* What has left, as "a32 b1": 'a' for port 1, 'b' for port 2, '-' for nobody's, in runs. */
static const char *
order(const struct gb *gb)
{
	static char text[1024];
	struct frame frame;
	unsigned run = 0;
	size_t at = 0;
	char last = '\0';

	text[0] = '\0';
	while (gb_take(gb, GB_LOCAL, &frame)) {
		const struct bs_packet packet = gb_parse(&frame);
		const char letter =
			packet.parse != BS_PARSE_OK
				? '-'
				: (char)('a' + packet.tuple.port[!packet.direction] - 1);

		if (letter != last && last != '\0') {
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%c%u ", last, run);
			run = 0;
		}
		last = letter;
		run++;
	}
	if (last != '\0')
		snprintf(text + at, sizeof(text) - at, "%c%u", last, run);
	return text;
}

static void
the_lowest_class_goes_first_and_nobodys_last(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.room = {[GB_LOCAL] = ROOM},
		.services = SERVICE("a", "1", "7") "," SERVICE("b", "2", "0") "," SERVICE(
			"c", "3", "3"),
	});

	(void)state;
	block(gb);
	enter(gb, 0, 40, 42);
	enter(gb, 1, 40, 100);
	enter(gb, 3, 40, 100);
	enter(gb, 2, 40, 100);
	unblock(gb);
	for (unsigned i = 0; i < 3; i++)
		gb_turn(gb);
	/* first the one that was in hand */
	assert_string_equal(order(gb), "-1 b40 c40 a40 -40");
	gb_close(gb);
}

static void
a_lower_class_that_comes_later_goes_first_at_the_next_burst(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.room = {[GB_LOCAL] = ROOM},
		.services = SERVICE("a", "1", "1") "," SERVICE("b", "2", "0"),
	});

	(void)state;
	block(gb);
	enter(gb, 1, 256, 100);
	unblock(gb);
	gb_turn(gb); /* the one in hand, and three bursts */
	enter(gb, 2, 1, 100);
	gb_turn(gb);
	gb_turn(gb);
	assert_string_equal(order(gb), "-1 a96 b1 a160");
	gb_close(gb);
}

/* Two services of one class, 32 packets each of 1000 bytes are more than a quantum: in turns. */
static void
services_of_one_class_take_turns(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.room = {[GB_LOCAL] = ROOM},
		.services = SERVICE("a", "1", "0") "," SERVICE("b", "2", "0"),
		.more = ", \"app_queue\": {\"quantum_bytes\": 32000}",
	});

	(void)state;
	block(gb);
	enter(gb, 1, 128, 1000);
	enter(gb, 2, 128, 1000);
	unblock(gb);
	for (unsigned i = 0; i < 4; i++)
		gb_turn(gb);
	assert_string_equal(order(gb), "-1 a32 b32 a32 b32 a32 b32 a32 b32");
	gb_close(gb);
}

static void
a_turn_is_worth_a_quantum(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.room = {[GB_LOCAL] = ROOM},
		.services = SERVICE("a", "1", "0") "," SERVICE("b", "2", "0"),
		/* a byte more than two bursts, so three */
		.more = ", \"app_queue\": {\"quantum_bytes\": 64001}",
	});

	(void)state;
	block(gb);
	enter(gb, 1, 128, 1000);
	enter(gb, 2, 128, 1000);
	unblock(gb);
	for (unsigned i = 0; i < 4; i++)
		gb_turn(gb);
	assert_string_equal(order(gb), "-1 a96 b96 a32 b32");
	gb_close(gb);
}

/*
 * With drr classes do not count. A burst of b (1000 bytes) is worth ten of a (100 bytes): having
 * had nine quanta more than its own, b sits out nine rounds; in the tenth it is its turn.
 */
static void
turns_are_counted_in_bytes_not_in_packets(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.room = {[GB_LOCAL] = ROOM},
		.services = SERVICE("a", "1", "0") "," SERVICE("b", "2", "7"),
		.more = ", \"app_queue\": {\"schedule\": \"drr\", \"quantum_bytes\": 3200}",
	});

	(void)state;
	block(gb);
	enter(gb, 1, 352, 100);
	enter(gb, 2, 64, 1000);
	unblock(gb);
	for (unsigned i = 0; i < 4; i++)
		gb_turn(gb);
	assert_string_equal(order(gb), "-1 a32 b32 a288 b32 a32");
	gb_close(gb);
}

static void
with_drr_nobodys_has_the_last_turn_of_a_round(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.room = {[GB_LOCAL] = ROOM},
		.services = SERVICE("a", "1", "0") "," SERVICE("b", "2", "7"),
		.more = ", \"app_queue\": {\"schedule\": \"drr\", \"quantum_bytes\": 1344}",
	});

	(void)state;
	block(gb);
	enter(gb, 0, 64, 42);
	enter(gb, 2, 64, 60);
	enter(gb, 1, 64, 60);
	unblock(gb);
	for (unsigned i = 0; i < 3; i++)
		gb_turn(gb);
	/* what was in hand, and the rest of the quantum it was of; then a whole round */
	assert_string_equal(order(gb), "-33 a32 b32 -32 a32 b32");
	gb_close(gb);
}

/* A packet of a lower class at every turn does not take their turns from those behind it. */
static void
an_interruption_does_not_change_whose_turn_it_is(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.room = {[GB_LOCAL] = ROOM},
		.services = SERVICE("a", "1", "1") "," SERVICE("b", "2", "1") "," SERVICE(
			"c", "3", "0"),
		.more = ", \"app_queue\": {\"quantum_bytes\": 48000}",
	});

	(void)state;
	block(gb);
	enter(gb, 1, 320, 1000);
	enter(gb, 2, 320, 1000);
	unblock(gb);
	gb_turn(gb);
	for (unsigned i = 0; i < 4; i++)
		enter(gb, 3, 1, 60);
	/* four bursts a turn; a quantum is one and a half: two in one round, one in the next */
	assert_string_equal(
		order(gb), "-1 a64 b32 c1 b32 a32 b32 c1 a64 b32 c1 b32 a32 b32 c1 a64 b32");
	gb_close(gb);
}

static void
a_packet_is_sent_once_however_often_the_port_refuses(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.room = {[GB_LOCAL] = 5},
		.services = SERVICE("a", "1", "0"),
	});
	struct frame frame;
	unsigned sent = 0;
	uint32_t next = 0;

	(void)state;
	enter(gb, 1, 100, 100);
	for (unsigned turn = 0; turn < 40; turn++) {
		/* room for three at a time: bursts go out in pieces */
		for (unsigned i = 0; i < 3 && gb_take(gb, GB_LOCAL, &frame); i++, sent++) {
			const struct bs_packet packet = gb_parse(&frame);

			if (next != 0)
				assert_int_equal(packet.seq, next);
			next = packet.seq + packet.payload_len;
		}
		gb_turn(gb);
		assert_null(gb_check_packets(gb));
	}
	assert_int_equal(sent, 100);
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(the_lowest_class_goes_first_and_nobodys_last),
		GB_TEST(a_lower_class_that_comes_later_goes_first_at_the_next_burst),
		GB_TEST(services_of_one_class_take_turns),
		GB_TEST(a_turn_is_worth_a_quantum),
		GB_TEST(turns_are_counted_in_bytes_not_in_packets),
		GB_TEST(with_drr_nobodys_has_the_last_turn_of_a_round),
		GB_TEST(an_interruption_does_not_change_whose_turn_it_is),
		GB_TEST(a_packet_is_sent_once_however_often_the_port_refuses),
	};

	return cmocka_run_group_tests_name(
		"graybox_egress", tests, gb_group_setup, gb_group_teardown);
}
