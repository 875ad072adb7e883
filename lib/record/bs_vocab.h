/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words BufScope speaks in: buffers, causes, events, outcomes, reasons.
 * Each list yields the enum and its text together, so that neither can lack
 * the other. The numbers travel in records; append, never renumber.
 * Meanings: doc/internals.md.
 */
#pragma once

#include <stdint.h>

/* Why time passed in a buffer. The first six are also the event types. */
#define BS_CAUSES(X)                                                                               \
	X(DROP, "drop")                                                                            \
	X(PAUSE, "pause")                                                                          \
	X(CONGESTION, "congestion")                                                                \
	X(CONTENTION, "contention")                                                                \
	X(DISORDER, "disorder")                                                                    \
	X(HANG, "hang")                                                                            \
	X(COMPUTE, "compute")                                                                      \
	X(TRANSFER, "transfer")                                                                    \
	X(ACK_WAIT, "ack_wait")                                                                    \
	X(CWND, "cwnd")                                                                            \
	X(UNOBSERVED, "unobserved")

/* How sure a number is. */
#define BS_QUALITIES(X)                                                                            \
	X(EXACT, "exact")                                                                          \
	X(ESTIMATED, "estimated")                                                                  \
	X(BOUND, "bound")

/*
 * Buffers that are inferred from what passes, not ours. "before" and "after"
 * mean before and after the point of capture, in the direction of travel.
 */
#define BS_INFERRED_BUFFERS(X)                                                                     \
	X(NONE, "none")                                                                            \
	X(CLIENT_APP, "client.app")                                                                \
	X(CLIENT_SOCKET_TX, "client.socket.tx")                                                    \
	X(CLIENT_SOCKET_RX, "client.socket.rx")                                                    \
	X(NET_REQUEST_BEFORE, "net.request.before")                                                \
	X(NET_REQUEST_AFTER, "net.request.after")                                                  \
	X(SERVER_ACCEPT, "server.accept")                                                          \
	X(SERVER_SOCKET_RX, "server.socket.rx")                                                    \
	X(SERVER_SOCKET_TX, "server.socket.tx")                                                    \
	X(SERVICE, "service")                                                                      \
	X(NET_RESPONSE_BEFORE, "net.response.before")                                              \
	X(NET_RESPONSE_AFTER, "net.response.after")                                                \
	X(NET_REQUEST, "net.request")                                                              \
	X(NET_RESPONSE, "net.response")                                                            \
	X(MEMPOOL, "mempool")                                                                      \
	X(HANDOVER, "handover")

/* Buffer numbers from here on are bufscoped's own, named by NAME records. */
#define BS_BUFFER_FIRST_OWN 32u
#define BS_BUFFER_MAX 1024u

/* What kind of hang, and what was the drop: the word in `detail`. Drops add bs_reason below. */
#define BS_DETAILS(X)                                                                              \
	X(NONE, "")                                                                                \
	X(STALLED, "stalled")                                                                      \
	X(PREEMPTED, "preempted")                                                                  \
	X(SLEEP, "sleep")                                                                          \
	X(STOPPED, "stopped")                                                                      \
	X(STARVED, "starved")                                                                      \
	X(THROTTLED, "throttled")                                                                  \
	X(UNREAD, "unread")                                                                        \
	X(UNRECLAIMED, "unreclaimed")                                                              \
	X(UNFILLED, "unfilled")

/* A detail of a drop is BS_DETAIL_FIRST_REASON + enum bs_reason. */
#define BS_DETAIL_FIRST_REASON 16u

/*
 * Where packets end that do not leave: exactly one of these counts each packet
 * that came in and did not go out. Text: telemetry key, help.
 */
#define BS_REASONS(X)                                                                              \
	X(RX_MISSED, "rx_missed", "the NIC's receive ring was full (imissed)")                     \
	X(RX_NO_MBUF, "rx_nombuf", "no mbuf left in the pool to receive into (rx_nombuf)")         \
	X(RX_ERROR, "rx_errors", "the NIC reported a receive error (ierrors)")                     \
	X(RUNT, "runt", "shorter than an Ethernet header")                                         \
	X(BAD_CHAIN, "bad_chain", "packet length and segment lengths disagree")                    \
	X(HANDOVER_FULL, "handover_full", "the ring to the owner lcore was full")                  \
	X(APP_QUEUE_FULL, "app_queue_full", "the application queue was full")                      \
	X(TX_REFUSED, "tx_refused", "the port did not take the packet before it was stopped")      \
	X(TX_PREPARE, "tx_prepare_failed", "the driver refused the packet's offload request")      \
	X(SHUTDOWN, "shutdown", "still queued when bufscoped stopped")                             \
	X(FAULT, "fault_injected", "dropped by a debug fault")                                     \
	X(VLAN_LOST, "vlan_not_restored", "no room for the VLAN tag that the port took out")       \
	X(TX_TOO_LONG, "tx_too_long", "longer than the MTU, or than the driver can send")

/* How an RPC ended. */
#define BS_OUTCOMES(X)                                                                             \
	X(ANSWERED, "answered")                                                                    \
	X(UNANSWERED, "unanswered")                                                                \
	X(ONEWAY, "oneway")                                                                        \
	X(ORPHAN_RESPONSE, "orphan_response")                                                      \
	X(PUSHED, "pushed")                                                                        \
	X(CANCELLED, "cancelled")                                                                  \
	X(RESET, "reset")                                                                          \
	X(CUT, "cut")                                                                              \
	X(IN_PROGRESS, "in_progress")

#define BS_KINDS(X)                                                                                \
	X(UNARY, "unary")                                                                          \
	X(CLIENT_STREAM, "client_stream")                                                          \
	X(SERVER_STREAM, "server_stream")                                                          \
	X(BIDI, "bidi")                                                                            \
	X(LONG_POLL, "long_poll")                                                                  \
	X(PUSH, "push")

/* Who is to blame inside a buffer. */
#define BS_CULPRITS(X)                                                                             \
	X(NONE, "none")                                                                            \
	X(RPC, "rpc")                                                                              \
	X(SERVICE, "service")                                                                      \
	X(FLOW, "flow")                                                                            \
	X(LCORE, "lcore")                                                                          \
	X(BUFFER, "buffer")

#define BS_X_CAUSE(name, text) BS_CAUSE_##name,
#define BS_X_QUALITY(name, text) BS_QUALITY_##name,
#define BS_X_BUFFER(name, text) BS_BUFFER_##name,
#define BS_X_DETAIL(name, text) BS_DETAIL_##name,
#define BS_X_REASON(name, key, help) BS_REASON_##name,
#define BS_X_OUTCOME(name, text) BS_OUTCOME_##name,
#define BS_X_KIND(name, text) BS_KIND_##name,
#define BS_X_CULPRIT(name, text) BS_CULPRIT_##name,

enum bs_cause { BS_CAUSES(BS_X_CAUSE) BS_CAUSE_COUNT };
enum bs_quality { BS_QUALITIES(BS_X_QUALITY) BS_QUALITY_COUNT };
enum bs_buffer { BS_INFERRED_BUFFERS(BS_X_BUFFER) BS_BUFFER_INFERRED_COUNT };
enum bs_detail { BS_DETAILS(BS_X_DETAIL) BS_DETAIL_COUNT };
enum bs_reason { BS_REASONS(BS_X_REASON) BS_REASON_COUNT };
enum bs_outcome { BS_OUTCOMES(BS_X_OUTCOME) BS_OUTCOME_COUNT };
enum bs_kind { BS_KINDS(BS_X_KIND) BS_KIND_COUNT };
enum bs_culprit { BS_CULPRITS(BS_X_CULPRIT) BS_CULPRIT_COUNT };

/* The word for a number; "?" for a number outside the list. Never NULL. Any thread. */
const char *bs_cause_text(unsigned cause);
const char *bs_quality_text(unsigned quality);
const char *bs_inferred_buffer_text(unsigned buffer);
const char *bs_detail_text(unsigned detail); /* also drop reasons; "" for none */
const char *bs_reason_key(unsigned reason);
const char *bs_outcome_text(unsigned outcome);
const char *bs_kind_text(unsigned kind);
const char *bs_culprit_text(unsigned culprit);
