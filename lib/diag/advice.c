/* SPDX-License-Identifier: BSD-3-Clause */
/* What to do next about a cause in a buffer, in one line. */
#include "bs_diag.h"

#include "origin.h"

struct advice {
	uint16_t buffer;
	uint8_t cause;
	const char *text;
};

#define ADVICE(buffer, cause, text)                                                                \
	{                                                                                          \
		BS_BUFFER_##buffer, BS_CAUSE_##cause, text                                         \
	}

static const struct advice inferred[] = {
	ADVICE(SERVICE, HANG,
		"the service did not run or answered nobody: look for stops, pauses of a garbage "
		"collector, lock-ups, CPU limits of its cgroup"),
	ADVICE(SERVICE, COMPUTE,
		"the service worked on this request: profile the operation, or give it less to do"),
	ADVICE(SERVICE, CONGESTION,
		"requests queued inside the service behind another: split the slow operation off, "
		"or "
		"serve requests side by side"),
	ADVICE(SERVICE, CONTENTION,
		"an earlier request of the same connection was in the way: spread slow requests "
		"over "
		"other connections"),
	ADVICE(CLIENT_APP, HANG,
		"the client stopped in the middle of its request: look at the client's threads"),
	ADVICE(CLIENT_SOCKET_RX, PAUSE,
		"the client does not read fast enough: look at its receiving thread and SO_RCVBUF"),
	ADVICE(SERVER_SOCKET_RX, PAUSE,
		"the service does not read fast enough: look at its receiving thread and "
		"SO_RCVBUF"),
	ADVICE(SERVER_SOCKET_RX, HANG,
		"no thread of the service read the request, and none was at work: look at what "
		"its reading threads wait for (locks, disk, other services)"),
	ADVICE(SERVER_SOCKET_RX, CONTENTION,
		"the service worked at something else and read no request: look at its background "
		"work, or give reading a thread of its own"),
	ADVICE(SERVER_SOCKET_TX, CONGESTION,
		"the service had answered, its socket held the answer: look at the path and the "
		"window toward the client, and for lost segments"),
	ADVICE(CLIENT_SOCKET_TX, ACK_WAIT,
		"Nagle's algorithm waited for a delayed ACK: set TCP_NODELAY in the client"),
	ADVICE(SERVER_SOCKET_TX, ACK_WAIT,
		"Nagle's algorithm waited for a delayed ACK: set TCP_NODELAY in the service"),
	ADVICE(SERVER_ACCEPT, CONGESTION,
		"the service had not accepted the connection: look at its accepting thread, its "
		"limit of connections, its backlog"),
	ADVICE(MEMPOOL, DROP,
		"no packet buffer was free: enlarge eal.memory, or find who holds the buffers"),
	ADVICE(HANDOVER, DROP,
		"the lcore that owns the flow did not keep up: spread the load over more lcores"),
};

static const char *const by_cause[BS_CAUSE_COUNT] = {
	[BS_CAUSE_DROP] = "packets were lost there: look at its drop counters and its load",
	[BS_CAUSE_PAUSE] = "the next buffer took nothing: look at what it leads to",
	[BS_CAUSE_CONGESTION] = "more came than it drains: look at the culprits' traffic",
	[BS_CAUSE_CONTENTION] = "others were served first: look at classes and the schedule",
	[BS_CAUSE_DISORDER] = "packets overtook each other: look for paths of unequal length",
	[BS_CAUSE_HANG] = "nobody drained it: look at the thread that should have",
	[BS_CAUSE_COMPUTE] = "time went into work: profile it",
	[BS_CAUSE_TRANSFER] =
		"the message took long to send: look at its size and the sender's rate",
	[BS_CAUSE_ACK_WAIT] = "the sender waited for an ACK: set TCP_NODELAY",
	[BS_CAUSE_CWND] = "the congestion window was small: keep connections open, look for losses",
	[BS_CAUSE_UNOBSERVED] = "not seen from here: capture closer to both ends",
};

static const char *const own_by_cause[BS_CAUSE_COUNT] = {
	[BS_CAUSE_DROP] = "our queue was full: raise app_queue.size or the rate it drains at, or "
			  "slow the culprits",
	[BS_CAUSE_PAUSE] = "the port below took nothing: look at its rate limit and its link",
	[BS_CAUSE_CONGESTION] = "more came than our queue drains: raise the port's rate or spread "
				"the culprits' traffic",
	[BS_CAUSE_CONTENTION] =
		"other classes or queues of this lcore went first: look at classes, "
		"schedule and eal.lcores",
};

static const char *const own_hang[BS_DETAIL_COUNT] = {
	[BS_DETAIL_NONE] = "our lcore did not poll: see bufscope counters, lcores",
	[BS_DETAIL_STALLED] = "our lcore was held up: look for faults, page faults, interrupts",
	[BS_DETAIL_PREEMPTED] = "the scheduler took our lcore's CPU: give it one of its own",
	[BS_DETAIL_SLEEP] = "our lcore slept because it was idle: shorten its idle sleep",
	[BS_DETAIL_UNRECLAIMED] =
		"the driver took no packet and gave none back, although link and lcore were up: "
		"restart the port; look at the peer's ring, if it is a virtual one",
	[BS_DETAIL_UNFILLED] =
		"the driver gave us no packet, although some waited: it has no mbufs in its ring, "
		"or was not woken: restart the port, raise eal.memory",
};

/* What a device of ours dropped. */
static const char *const device_drop[] = {
	[BS_REASON_RX_MISSED] = "the port's receive ring was full: the lcore that polls it did not "
				"keep up: give it a CPU of its own, spread the flows over more",
	[BS_REASON_RX_NO_MBUF] = "no packet buffer was free: enlarge eal.memory, or find who holds "
				 "the buffers",
	[BS_REASON_RX_ERROR] = "the device received it damaged: look at cable, transceiver, MTU",
};

static const char *const service_hang[BS_DETAIL_COUNT] = {
	[BS_DETAIL_STOPPED] = "the service was stopped: look for SIGSTOP, debuggers, a frozen "
			      "cgroup, snapshots of its container",
	[BS_DETAIL_STARVED] =
		"the service was ready to run and got no CPU: look at who else runs on its CPUs, "
		"its priority, its cpuset",
	[BS_DETAIL_THROTTLED] =
		"the CPU quota of the service's cgroup was used up: raise cpu.max (Kubernetes: "
		"limits.cpu) or make it use less",
};

const char *
bs_diag_advice(const struct bs_blame *blame, unsigned detail)
{
	if (blame->cause >= BS_CAUSE_COUNT)
		return "nothing is known about this cause";
	if (blame->buffer == BS_BUFFER_SERVICE && blame->cause == BS_CAUSE_HANG &&
		detail < BS_DETAIL_COUNT && service_hang[detail])
		return service_hang[detail];
	for (unsigned i = 0; i < sizeof(inferred) / sizeof(inferred[0]); i++)
		if (inferred[i].buffer == blame->buffer && inferred[i].cause == blame->cause)
			return inferred[i].text;
	if (!origin_own_buffer(blame->buffer))
		return by_cause[blame->cause];
	if (blame->cause == BS_CAUSE_DROP && detail >= BS_DETAIL_FIRST_REASON &&
		detail - BS_DETAIL_FIRST_REASON < sizeof(device_drop) / sizeof(device_drop[0]))
		return device_drop[detail - BS_DETAIL_FIRST_REASON];
	if (blame->cause == BS_CAUSE_HANG)
		return detail < BS_DETAIL_COUNT && own_hang[detail] ? own_hang[detail]
								    : own_hang[BS_DETAIL_NONE];
	return own_by_cause[blame->cause] ? own_by_cause[blame->cause] : by_cause[blame->cause];
}
