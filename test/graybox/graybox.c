/* SPDX-License-Identifier: BSD-3-Clause */
/* See graybox.h. */
#include "graybox.h"

#include <errno.h>
#include <ftw.h>
#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_malloc.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bs_clock.h"
#include "gb_records.h"

#define EXIT_SKIPPED 77
#define CONFIG_TEXT 131072
#define ROOM_PLENTY 8192u
#define IN_ROOM 16384u

struct gb_time gb_time;

static char runtime_dir[] = "/tmp/graybox.XXXXXX";
static struct gb *open_gb;
static unsigned opened;			 /* so far: ring and device names are not used twice */
static uint64_t injected[2], drained[2]; /* of the dataplane that is open */

/* --- time ----------------------------------------------------------------------- */

static uint64_t
read_clock(void)
{
	uint64_t now_ns;

	if (gb_time.on_read != NULL)
		gb_time.on_read(gb_time.context);
	now_ns = gb_time.now_ns;
	gb_time.now_ns += gb_time.step_ns;
	return now_ns;
}

static uint64_t
read_run_delay(void)
{
	return gb_time.run_delay_ns;
}

static uint16_t
tx_takes_time(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count, void *context)
{
	(void)port, (void)queue, (void)mbufs, (void)context;
	gb_time.now_ns += gb_time.tx_ns * count;
	return count;
}

/* --- EAL ------------------------------------------------------------------------ */

static int
remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)info, (void)type, (void)walk;
	return remove(path);
}

static void
remove_runtime_dir(void)
{
	nftw(runtime_dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

int
gb_group_setup(void **state)
{
	char prefix[64];
	char *args[] = {(char *)(uintptr_t) "graybox", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "256", (char *)(uintptr_t) "--no-pci",
		(char *)(uintptr_t) "--no-telemetry",
		(char *)(uintptr_t) "--log-level=lib.eal:error", prefix};

	(void)state;
	if (mkdtemp(runtime_dir) == NULL || setenv("RUNTIME_DIRECTORY", runtime_dir, 1) != 0)
		return -1;
	snprintf(prefix, sizeof(prefix), "--file-prefix=graybox%d", (int)getpid());
	if (rte_eal_init((int)RTE_DIM(args), args) < 0) {
		fprintf(stderr, "skipped: EAL does not start here\n");
		remove_runtime_dir();
		exit(EXIT_SKIPPED);
	}
	return 0;
}

int
gb_group_teardown(void **state)
{
	(void)state;
	rte_eal_cleanup();
	remove_runtime_dir();
	return 0;
}

/* --- configuration ------------------------------------------------------------------ */

static const char *
or_else(const char *text, const char *otherwise)
{
	return text == NULL ? otherwise : text;
}

static void
device_name(char name[RTE_ETH_NAME_MAX_LEN], unsigned port)
{
	snprintf(name, RTE_ETH_NAME_MAX_LEN, "net_ring_gb%u.%u", opened, port);
}

int
gb_configure(const struct gb_setup *setup, struct bs_config *config, char *error)
{
	static char text[CONFIG_TEXT];
	char device[2][RTE_ETH_NAME_MAX_LEN];

	device_name(device[GB_WIRE], GB_WIRE);
	device_name(device[GB_LOCAL], GB_LOCAL);
	snprintf(text, sizeof(text),
		"{\"eal\": {\"lcores\": \"0-%u\", \"memory\": \"%s\"},\n"
		"\"ports\": {\"wire\": {\"device\": [\"%s\"]%s}, \"local\": {\"device\": "
		"[\"%s\"]%s}},\n"
		"\"paths\": [{\"wire\": \"wire\", \"service\": \"local\"}],\n"
		"\"framing\": [{\"name\": \"unit\", \"header\": 8, \"length\": {\"at\": 0, "
		"\"bytes\": 4},"
		" \"id\": {\"at\": 4, \"bytes\": 4}}],\n"
		"\"services\": [%s],\n"
		"\"shim\": {%s},\n"
		"\"analyzer\": {\"mode\": \"%s\"}%s}",
		setup->lcores == 0 ? 0 : setup->lcores - 1, or_else(setup->memory, "32M"),
		or_else(setup->wire_device, device[GB_WIRE]), or_else(setup->wire, ""),
		device[GB_LOCAL], or_else(setup->local, ""),
		or_else(setup->services,
			"{\"name\": \"kv\", \"address\": \"10.0.0.2\", \"port\": 6379,"
			" \"protocol\": \"unit\"}"),
		or_else(setup->shim, "\"tag\": \"off\""), or_else(setup->analyzer, "off"),
		or_else(setup->more, ""));
	return bs_config_parse("graybox", text, config, error);
}

/* --- open and close ------------------------------------------------------------------ */

static void
open_port(struct gb *gb, const struct gb_setup *setup, unsigned port)
{
	const unsigned room = setup->room[port] == 0 ? ROOM_PLENTY : setup->room[port];
	char name[RTE_RING_NAMESIZE], device[RTE_ETH_NAME_MAX_LEN];

	snprintf(name, sizeof(name), "gbi%u.%u", opened, port);
	gb->in[port] = rte_ring_create(name, IN_ROOM, SOCKET_ID_ANY, RING_F_EXACT_SZ);
	snprintf(name, sizeof(name), "gbo%u.%u", opened, port);
	gb->out[port] = rte_ring_create(name, room, SOCKET_ID_ANY, RING_F_EXACT_SZ);
	assert_non_null(gb->in[port]);
	assert_non_null(gb->out[port]);
	snprintf(name, sizeof(name), "gb%u.%u", opened, port);
	assert_true(rte_eth_from_rings(name, &gb->in[port], 1, &gb->out[port], 1, 0) >= 0);
	device_name(device, port);
	assert_int_equal(rte_eth_dev_get_port_by_name(device, &gb->port[port]), 0);
}

/* All but the dataplane. */
static struct gb *
open_around(const struct gb_setup *setup)
{
	char error[BS_CONFIG_ERROR_BYTES];
	struct gb *gb = calloc(1, sizeof(*gb));

	assert_non_null(gb);
	assert_null(open_gb);
	open_gb = gb;
	gb->analyzer = -1;
	memset(&gb_time, 0, sizeof(gb_time));
	memset(injected, 0, sizeof(injected));
	memset(drained, 0, sizeof(drained));
	gb_time.now_ns = GB_T0;
	bs_clock_now_ns = read_clock;
	opened++;
	open_port(gb, setup, GB_WIRE);
	open_port(gb, setup, GB_LOCAL);
	if (gb_configure(setup, &gb->config, error) != 0)
		fail_msg("%s", error);
	return gb;
}

static void
open_dataplane(struct gb *gb, const struct gb_setup *setup, char error[BS_DATAPLANE_ERROR_BYTES])
{
	unsigned lcore_ids[BS_CONFIG_LCORES];

	for (unsigned i = 0; i < BS_CONFIG_LCORES; i++)
		lcore_ids[i] = i;
	gb->dataplane = bs_dataplane_create(&gb->config, lcore_ids,
		setup->lcores == 0 ? 1 : setup->lcores, SOCKET_ID_ANY, error);
	if (gb->dataplane == NULL)
		return;
	gb->dataplane->run_delay_ns = read_run_delay;
	gb->pool_free = rte_mempool_avail_count(gb->dataplane->pool);
	for (unsigned i = 0; i < 2; i++)
		gb->delay[i] =
			rte_eth_add_tx_callback(gb->dataplane->ports[i].id, 0, tx_takes_time, NULL);
}

struct gb *
gb_open(const struct gb_setup *setup)
{
	static const struct gb_setup defaults;
	char error[BS_DATAPLANE_ERROR_BYTES];
	struct gb *gb;

	if (setup == NULL)
		setup = &defaults;
	gb = open_around(setup);
	open_dataplane(gb, setup, error);
	if (gb->dataplane == NULL)
		fail_msg("%s", error);
	return gb;
}

static void
free_ring(struct rte_ring *ring)
{
	void *mbuf;

	if (ring == NULL)
		return;
	while (rte_ring_dequeue(ring, &mbuf) == 0)
		rte_pktmbuf_free(mbuf);
	rte_ring_free(ring);
}

/* Everything goes, whatever state it is in. */
static void
take_down(struct gb *gb)
{
	char device[RTE_ETH_NAME_MAX_LEN];

	for (unsigned i = 0; i < 2 && gb->dataplane != NULL; i++) {
		gb_drain(gb, i);
		if (gb->delay[i] != NULL)
			rte_eth_remove_tx_callback(gb->dataplane->ports[i].id, 0, gb->delay[i]);
	}
	bs_dataplane_destroy(gb->dataplane);
	for (unsigned i = 0; i < 2; i++) {
		device_name(device, i);
		rte_vdev_uninit(device);
		rte_free((void *)(uintptr_t)gb->delay[i]);
		free_ring(gb->in[i]);
		free_ring(gb->out[i]);
	}
	if (gb->analyzer >= 0)
		close(gb->analyzer);
	gb_forget(gb);
	free(gb);
	open_gb = NULL;
}

const char *
gb_open_error(const struct gb_setup *setup)
{
	static char error[BS_DATAPLANE_ERROR_BYTES];
	struct gb *gb = open_around(setup);
	bool made;

	open_dataplane(gb, setup, error);
	made = gb->dataplane != NULL;
	take_down(gb);
	return made ? NULL : error;
}

int
gb_clean(void **state)
{
	(void)state;
	if (open_gb != NULL)
		take_down(open_gb);
	return 0;
}

static void
must(const char *wrong)
{
	if (wrong != NULL)
		fail_msg("%s", wrong);
}

void
gb_close(struct gb *gb)
{
	must(gb_check_packets(gb));
	for (unsigned i = 0; i < 2; i++)
		assert_true(rte_ring_empty(gb->in[i]));
	bs_dataplane_finish(gb->dataplane, gb_time.now_ns);
	must(gb_check_packets(gb));
	assert_int_equal(gb_snapshot(gb)->queued, 0);
	for (unsigned i = 0; i < 2; i++)
		gb_drain(gb, i);
	must(gb_check_pool(gb));
	take_down(gb);
}

/* --- accounts ---------------------------------------------------------------------- */

/* Sums of what ended with us, by its own arithmetic. */
static uint64_t
ended_of(const uint64_t reasons[BS_REASON_COUNT])
{
	uint64_t ended = 0;

	for (unsigned i = BS_REASON_RX_ERROR + 1; i < BS_REASON_COUNT; i++)
		ended += reasons[i];
	return ended;
}

/* What a port says that it took and gave, against what the rings of the harness say. */
static bool
port_as_counted_here(const struct gb *gb, const struct bs_snapshot *snapshot, unsigned port)
{
	if (strcmp(snapshot->ports[port].driver, "net_ring") != 0)
		return true;
	return snapshot->ports[port].taken == injected[port] - rte_ring_count(gb->in[port]) &&
	       snapshot->ports[port].given == drained[port] + rte_ring_count(gb->out[port]);
}

const char *
gb_check_packets(const struct gb *gb)
{
	static char text[200];
	const struct bs_snapshot *snapshot = gb_snapshot(gb);
	uint64_t in = 0, out = 0;

	for (unsigned i = 0; i < snapshot->port_count; i++) {
		const struct bs_snapshot_port *port = &snapshot->ports[i];
		const uint64_t forwarded = snapshot->ports[!i].given,
			       ended = ended_of(port->reasons);

		in += port->taken;
		out += port->given;
		if (port->taken == forwarded + ended + port->queued && port->ended == ended &&
			port->unaccounted == 0 && port_as_counted_here(gb, snapshot, i))
			continue;
		snprintf(text, sizeof(text),
			"port %u: taken %llu, forwarded %llu, ended %llu, queued %llu; the rings "
			"say "
			"%llu came and %llu left",
			i, (unsigned long long)port->taken, (unsigned long long)forwarded,
			(unsigned long long)ended, (unsigned long long)port->queued,
			(unsigned long long)injected[i], (unsigned long long)drained[i]);
		return text;
	}
	if (snapshot->rx_packets == in && snapshot->tx_packets == out &&
		in == out + ended_of(snapshot->reasons) + snapshot->queued &&
		snapshot->unaccounted == 0)
		return NULL;
	snprintf(text, sizeof(text), "in all %llu taken, %llu given, %llu ended, %llu queued",
		(unsigned long long)snapshot->rx_packets, (unsigned long long)snapshot->tx_packets,
		(unsigned long long)ended_of(snapshot->reasons),
		(unsigned long long)snapshot->queued);
	return text;
}

const char *
gb_check_pool(const struct gb *gb)
{
	static char text[80];
	const unsigned now = rte_mempool_avail_count(gb->dataplane->pool);

	if (now == gb->pool_free)
		return NULL;
	snprintf(text, sizeof(text), "%u mbufs are free, before the first packet %u were", now,
		gb->pool_free);
	return text;
}

const struct bs_snapshot *
gb_snapshot(const struct gb *gb)
{
	static struct bs_snapshot snapshot;

	bs_dataplane_snapshot(gb->dataplane, &snapshot);
	return &snapshot;
}

uint64_t
gb_reason(const struct gb *gb, enum bs_reason reason)
{
	return gb_snapshot(gb)->reasons[reason];
}

uint64_t
gb_tag(const struct gb *gb, enum bs_tag_counter counter)
{
	return gb_snapshot(gb)->tag[counter];
}

uint16_t
gb_buffer(const struct gb *gb, const char *name)
{
	for (unsigned i = 0; i < gb->dataplane->buffer_count; i++) {
		if (strcmp(gb->dataplane->buffers[i].name, name) == 0)
			return (uint16_t)(BS_BUFFER_FIRST_OWN + i);
	}
	fail_msg("no buffer %s", name);
	return 0;
}

/* --- packets ------------------------------------------------------------------------ */

struct rte_mbuf *
gb_mbuf(const struct gb *gb, const void *bytes, size_t n)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(gb->dataplane->pool);
	char *data;

	assert_non_null(mbuf);
	data = rte_pktmbuf_append(mbuf, (uint16_t)n);
	assert_non_null(data);
	memcpy(data, bytes, n);
	return mbuf;
}

struct rte_mbuf *
gb_chain(const struct gb *gb, const void *bytes, size_t n, size_t piece)
{
	const uint8_t *at = bytes;
	struct rte_mbuf *head = gb_mbuf(gb, at, RTE_MIN(n, piece));

	for (size_t done = RTE_MIN(n, piece); done < n; done += piece)
		assert_int_equal(
			rte_pktmbuf_chain(head, gb_mbuf(gb, at + done, RTE_MIN(n - done, piece))),
			0);
	return head;
}

void
gb_inject_mbuf(const struct gb *gb, unsigned port, struct rte_mbuf *mbuf)
{
	assert_int_equal(rte_ring_enqueue(gb->in[port], mbuf), 0);
	injected[port]++;
}

void
gb_inject(const struct gb *gb, unsigned port, const struct frame *frame)
{
	gb_inject_mbuf(gb, port, gb_mbuf(gb, frame->bytes, frame->n));
}

struct rte_mbuf *
gb_take_mbuf(const struct gb *gb, unsigned port)
{
	void *mbuf;

	if (rte_ring_dequeue(gb->out[port], &mbuf) != 0)
		return NULL;
	drained[port]++;
	return mbuf;
}

bool
gb_take(const struct gb *gb, unsigned port, struct frame *frame)
{
	struct rte_mbuf *mbuf = gb_take_mbuf(gb, port);

	if (mbuf == NULL)
		return false;
	memset(frame, 0, sizeof(*frame));
	frame->n = mbuf->pkt_len;
	assert_true(frame->n <= sizeof(frame->bytes));
	if (frame->n > 0 && rte_pktmbuf_read(mbuf, 0, frame->n, frame->bytes) != frame->bytes)
		memcpy(frame->bytes, rte_pktmbuf_mtod(mbuf, const uint8_t *), frame->n);
	rte_pktmbuf_free(mbuf);
	return true;
}

unsigned
gb_drain(const struct gb *gb, unsigned port)
{
	struct rte_mbuf *mbuf;
	unsigned n = 0;

	for (; (mbuf = gb_take_mbuf(gb, port)) != NULL; n++)
		rte_pktmbuf_free(mbuf);
	return n;
}

/* --- turns --------------------------------------------------------------------------- */

void
gb_turn(const struct gb *gb)
{
	for (unsigned i = 0; i < gb->dataplane->lcore_count; i++)
		bs_lcore_turn(gb->dataplane->lcores[i]);
}

void
gb_run(const struct gb *gb, uint64_t t_ns, uint64_t step_ns)
{
	while (gb_time.now_ns < t_ns) {
		gb_time.now_ns = RTE_MIN(gb_time.now_ns + step_ns, t_ns);
		gb_turn(gb);
	}
}

void
gb_pass(const struct gb *gb, unsigned port, const struct frame *frame)
{
	gb_turn(gb);
	gb_inject(gb, port, frame);
	gb_turn(gb);
}
