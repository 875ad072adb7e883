/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers of bufscoped as text for people. Each takes the result object of the
 * command of its name; what is missing is shown as "-".
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "bs_report.h"

typedef void screen_draw(FILE *out, const json_t *result, const struct bs_report_text *options);

screen_draw screen_anomalies;
screen_draw screen_chain; /* the way of requests and responses from buffer to buffer */
screen_draw screen_counters;
screen_draw screen_incidents;
screen_draw screen_lcores;
screen_draw screen_offload;
screen_draw screen_rpc;
screen_draw screen_services;
screen_draw screen_status;
screen_draw screen_top; /* of {"status", "services", "anomalies", "rx_per_s"} */
