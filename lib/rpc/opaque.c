/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What nobody understands or may read (TLS, unknown protocols). There are no
 * messages to find: the tracker pairs the turns of the two directions itself.
 */
#include "bs_framer.h"

static size_t
opaque_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	(void)framer;
	(void)conn;
	(void)from_server;
	(void)data;
	(void)frame;
	return bytes;
}

static int
opaque_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	(void)framer;
	(void)from_server;
	(void)data;
	(void)bytes;
	return 0; /* never the better guess: it is what is left */
}

const struct bs_framer_ops bs_framer_opaque = {
	.name = "opaque",
	.pairing = BS_PAIR_BY_TURN,
	.feed = opaque_feed,
	.probe = opaque_probe,
};
