/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what an operator must know about the node: warnings at start, status of the unit
 *
 * `systemctl status nodens-cri` shows the step of the start, then a summary ("ready: 12 pods, 30
 * containers; user namespaces yes; network 10-pods.conflist"), which follows changes. */
#pragma once

#include "cri/core/parts.h"

struct cri_report;

[[nodiscard]] struct cri_report *cri_report_new(const struct cri_parts *parts);
void cri_report_free(struct cri_report *report);

/* Logs files of the node that are missing or invalid, and features that did not pass the
 * self-test, each with the consequence and the remedy. */
void cri_report_warn(const struct cri_parts *parts);

/* Logs the summary and notifies systemd. */
void cri_report_ready(struct cri_report *report, uint64_t start_us);

/* After a request: notifies systemd if the summary may have changed, at most once per second. */
void cri_report_touch(struct cri_report *report);
