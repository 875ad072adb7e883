/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See report.h. Runs of bufscoped follow each other; each is finished when the
 * next begins, since numbers and RPC-IDs mean something in one run only.
 */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bs_clock.h"

#define PROGRESS_BLOCKS 64u

/* --- runs ------------------------------------------------------------------------------ */

static int
by_id_and_age(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->rpc->id != y->rpc->id)
		return x->rpc->id < y->rpc->id ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* One of each RPC: as it was decided last, else as it was told last. */
static void
merge_groups(struct report *report)
{
	struct groups *groups = &report->findings.groups;
	size_t kept = report->first_group;

	for (size_t i = kept; i < groups->count; i++)
		groups->list[i].number = i;
	if (groups->count > kept)
		qsort(&groups->list[kept], groups->count - kept, sizeof(groups->list[0]),
			by_id_and_age);
	for (size_t i = kept; i < groups->count; i++) {
		struct group *next = &groups->list[i];
		struct group *last = kept > report->first_group ? &groups->list[kept - 1] : NULL;

		if (last == NULL || last->rpc->id != next->rpc->id)
			groups->list[kept++] = *next;
		else if (next->decided || !last->decided)
			*last = *next;
	}
	groups->count = kept;
}

/* As decided live, or else as it looks now: with a root cause, but not anomalous. */
static int
judge(struct report *report, struct group *group)
{
	uint64_t slo = slo_of(&report->settings->slos,
		bs_names_service(&report->run->names, group->rpc->service));
	struct bs_rpc_view view = group_view(group);
	uint64_t latency;
	int ret = 0;

	if (!group->decided) {
		bs_diag_judge(report->diag, &view, &group->verdict);
		group->verdict.anomalous_by = 0;
		group->verdict.incident_id = 0;
		if (view.rpc != group->rpc)
			ret = groups_replace(&report->findings.groups, group, view.rpc,
				sizeof(*view.rpc) +
					view.rpc->segment_count * sizeof(*view.segments) +
					view.rpc->event_count * sizeof(*view.events));
	}
	if (slo != 0 && bs_rpc_latency_ns(group->rpc, &latency) && latency > slo)
		group->verdict.anomalous_by |= BS_BY_SLO;
	report->findings.anomalies += group->verdict.anomalous_by != 0;
	return ret;
}

static int
finish_run(struct report *report)
{
	struct groups *groups = &report->findings.groups;
	int ret = 0;

	if (report->run == NULL)
		return 0;
	slo_apply(&report->settings->slos, report->diag, &report->run->names, report->named);
	merge_groups(report);
	for (size_t i = report->first_group; i < groups->count && ret == 0; i++) {
		ret = findings_account(report->run, groups->list[i].rpc);
		if (ret == 0)
			ret = judge(report, &groups->list[i]);
	}
	bs_diag_destroy(report->diag);
	report->diag = NULL;
	report->run = NULL;
	return ret;
}

static int
begin_run(struct report *report, const struct bs_rec_hello *hello)
{
	const struct bs_diag_config config = {.offline = true};
	int ret = finish_run(report);

	if (ret != 0)
		return ret;
	report->ignored = report->counters.runs == REPORT_RUNS;
	memset(&report->hello, 0, sizeof(report->hello));
	if (hello != NULL)
		report->hello = *hello;
	if (report->ignored)
		return 0;
	report->run = findings_begin_run(&report->findings);
	report->diag = bs_diag_create(&config);
	if (report->run == NULL || report->diag == NULL)
		return -ENOMEM;
	report->counters.runs++;
	report->first_group = report->findings.groups.count;
	memset(report->named, 0, sizeof(report->named));
	return 0;
}

static int
take_hello(struct report *report, const struct bs_rec_hello *hello)
{
	int ret = 0;

	if (hello->node != report->hello.node || hello->t_start != report->hello.t_start ||
		hello->pid != report->hello.pid || report->hello.magic == 0)
		ret = begin_run(report, hello);
	if (ret == 0 && report->diag != NULL)
		bs_diag_detect(report->diag, hello->detect_ns);
	return ret;
}

/* --- records ------------------------------------------------------------------------------ */

static bool
is_inside(const struct report *report, uint64_t t_begin, uint64_t t_end)
{
	return (report->settings->since == 0 || t_end >= report->settings->since) &&
	       (report->settings->until == 0 || t_begin <= report->settings->until);
}

static int
keep(struct report *report, const struct bs_journal_item *item)
{
	const struct bs_rec_rpc *rpc = item->rpc.rpc;
	bool decided = item->record->type == BS_REC_VERDICT;
	const uint8_t *group = (const void *)item->record;
	size_t bytes = item->bytes;

	if (!is_inside(report, rpc->t_end, rpc->t_end)) {
		report->counters.outside += !decided;
		return 0;
	}
	if (decided) {
		group += sizeof(struct bs_rec_verdict);
		bytes -= sizeof(struct bs_rec_verdict);
	}
	if (groups_add(&report->findings.groups, report->run, group, bytes) == NULL)
		return -ENOMEM;
	report->named[rpc->service] = true;
	if (decided) {
		struct group *last =
			&report->findings.groups.list[report->findings.groups.count - 1];

		memcpy(&last->verdict, item->record, sizeof(last->verdict));
		last->decided = true;
	}
	return 0;
}

/* An RPC with nothing to tell but how long it took. */
static int
account_brief(struct report *report, const struct bs_rec_brief *brief)
{
	struct findings_service *service;
	uint64_t latency = (uint64_t)brief->request_ns + brief->in_ns + brief->service_ns +
			   brief->response_ns + brief->out_ns;
	uint64_t slo;

	if (!is_inside(report, brief->t_end, brief->t_end)) {
		report->counters.outside++;
		return 0;
	}
	service = findings_service(report->run, brief->service, brief->protocol);
	if (service == NULL)
		return -ENOMEM;
	report->named[brief->service] = true;
	service->outcomes[brief->outcome]++;
	if (brief->outcome != BS_OUTCOME_ANSWERED)
		return 0;
	bs_histo_add(&service->latency, latency);
	bs_histo_add(&service->service, brief->service_ns);
	if (report->settings->slos.count > 0) {
		slo = slo_of(&report->settings->slos,
			bs_names_service(&report->run->names, brief->service));
		report->counters.brief_over_slo += slo != 0 && latency > slo;
	}
	return 0;
}

static void
count_loss(struct report *report, const struct bs_rec_loss *loss)
{
	report->counters.ring_full += loss->ring_full;
	report->counters.over_budget += loss->over_budget;
	report->counters.socket_full += loss->socket_full;
	report->counters.no_memory += loss->no_memory;
}

/* What normal values are made of. A record that the diagnosis refuses says nothing. */
static int
learn(struct report *report, const struct bs_journal_item *item)
{
	return bs_diag_feed(report->diag, item->record, item->bytes) == -ENOMEM ? -ENOMEM : 0;
}

static int
take_item(struct report *report, const struct bs_journal_item *item)
{
	const void *record = item->record;
	const struct bs_rec_name *name = record;
	const struct bs_rec_incident *incident = record;
	int ret = 0;

	if (item->record->type == BS_REC_HELLO)
		return take_hello(report, record);
	if (report->run == NULL && !report->ignored)
		ret = begin_run(report, NULL);
	if (report->ignored)
		report->counters.other_runs++;
	if (ret != 0 || report->ignored)
		return ret;
	switch (item->record->type) {
	case BS_REC_NAME:
		bs_names_learn(&report->run->names, name);
		if (name->kind == BS_NAME_SERVICE)
			report->named[name->number] = true;
		return 0;
	case BS_REC_VERDICT:
		return keep(report, item);
	case BS_REC_INCIDENT:
		return is_inside(report, incident->t_begin,
			       incident->t_end != 0 ? incident->t_end : UINT64_MAX)
			       ? findings_incident(&report->findings, incident)
			       : 0;
	case BS_REC_RPC:
		ret = keep(report, item);
		break;
	case BS_REC_BRIEF:
		ret = account_brief(report, record);
		break;
	case BS_REC_LOSS:
		count_loss(report, record);
		return 0;
	case BS_REC_THRESHOLD:
	case BS_REC_JOURNAL:
		return 0;
	default:
		break;
	}
	return ret != 0 ? ret : learn(report, item);
}

/* --- blocks and files ------------------------------------------------------------------------ */

static void
damaged(struct report *report, struct input *input, uint64_t offset, uint64_t bytes,
	const char *what)
{
	input_damaged(input, offset, bytes, what);
	report->counters.damages++;
	report->counters.skipped_bytes += bytes;
	if (report->settings->damage != NULL)
		report->settings->damage(
			report->settings->damage_context, input, offset, bytes, what);
}

/* False if another file had the block. Counts those that no file has. */
static bool
is_new(struct report *report, const struct bs_journal_block *block)
{
	if (block->journal != report->journal) {
		report->journal = block->journal;
		report->next_sequence = block->sequence;
	}
	if (block->sequence < report->next_sequence)
		return false;
	report->counters.missing_blocks += block->sequence - report->next_sequence;
	report->next_sequence = block->sequence + 1;
	return true;
}

static int
take_block(struct report *report, struct input *input, const struct bs_journal_found *found)
{
	const struct bs_journal_block *block = found->block;
	bool repeats = (block->flags & BS_JOURNAL_REPEATS) != 0;
	struct bs_journal_item item;
	size_t offset = 0;
	int ret, failed = 0;

	if (!repeats && !is_new(report, block)) {
		input->repeated++;
		report->counters.repeated_blocks++;
		return 0;
	}
	input->blocks++;
	report->counters.blocks++;
	if (!repeats)
		report->counters.unwritten_records += block->lost;
	if (block->t_first != 0 && (input->t_first == 0 || block->t_first < input->t_first))
		input->t_first = block->t_first;
	if (block->t_last > input->t_last)
		input->t_last = block->t_last;
	while (failed == 0 &&
		(ret = bs_journal_item_next(found->records, block->bytes, &offset, &item)) == 1) {
		input->records++;
		report->counters.records++;
		failed = take_item(report, &item);
	}
	if (failed == 0 && ret != 0)
		damaged(report, input, found->offset + sizeof(*block) + offset,
			block->bytes - offset, "no valid record, in a block whose CRC is right");
	return failed;
}

static void
refused(struct report *report, struct input *input, enum bs_journal_header header)
{
	damaged(report, input, 0, input->file_bytes,
		header == BS_JOURNAL_HEADER_ORDER
			? "written in the other byte order: read it on a host like the writer's"
			: "of another version of the format: read it with the bufscope that wrote "
			  "it");
}

static void
show_progress(struct report *report, unsigned index, uint64_t offset)
{
	uint64_t done = offset, total = 0;

	if (report->settings->progress == NULL)
		return;
	for (unsigned i = 0; i < report->inputs.count; i++) {
		done += i < index ? report->inputs.list[i].file_bytes : 0;
		total += report->inputs.list[i].file_bytes;
	}
	report->settings->progress(
		report->settings->progress_context, report->inputs.list[index].path, done, total);
}

static int
read_file(struct report *report, unsigned index, struct bs_journal_reader *reader)
{
	struct input *input = &report->inputs.list[index];
	struct bs_journal_found found;
	uint64_t offset = 0;
	int ret = 0, error;

	bs_journal_reader_restart(reader);
	while (ret == 0) {
		switch (input_next(input, reader, &offset, &found, &error)) {
		case BS_JOURNAL_FILE:
			input->has_file = true;
			input->file = *found.file;
			break;
		case BS_JOURNAL_BLOCK:
			if (report->counters.blocks % PROGRESS_BLOCKS == 0)
				show_progress(report, index, offset);
			ret = take_block(report, input, &found);
			break;
		case BS_JOURNAL_DAMAGE:
			damaged(report, input, found.offset, found.bytes,
				!input->has_file && found.bytes == input->file_bytes
					? "not a journal"
					: bs_journal_damage_text(found.damage));
			break;
		case BS_JOURNAL_REFUSED:
			refused(report, input, found.header);
			break;
		default:
			if (error != 0)
				damaged(report, input, offset, input->file_bytes - offset,
					strerror(error));
			return ret;
		}
	}
	return ret;
}

int
report_read(struct report *report, struct bs_journal_reader *reader, char error[REPORT_ERROR_BYTES])
{
	int ret = 0;

	for (unsigned i = 0; i < report->inputs.count && ret == 0; i++)
		ret = read_file(report, i, reader);
	if (ret == 0)
		ret = finish_run(report);
	if (ret == 0)
		ret = findings_total(&report->findings);
	if (ret != 0)
		snprintf(error, REPORT_ERROR_BYTES,
			"out of memory: give fewer files, or less of their time (--last)");
	return ret;
}

uint64_t
report_newest(struct report *report, struct bs_journal_reader *reader)
{
	uint64_t newest = 0;

	for (unsigned i = 0; i < report->inputs.count; i++) {
		struct bs_journal_found found;
		enum bs_journal_step step;
		uint64_t offset = 0;
		int error;

		bs_journal_reader_restart(reader);
		do {
			step = input_next(&report->inputs.list[i], reader, &offset, &found, &error);
			if (step == BS_JOURNAL_BLOCK && found.block->t_last > newest)
				newest = found.block->t_last;
		} while (step != BS_JOURNAL_END && step != BS_JOURNAL_REFUSED);
	}
	return newest;
}

void
report_fini(struct report *report)
{
	if (report->diag != NULL)
		bs_diag_destroy(report->diag);
	findings_free(&report->findings);
	inputs_close(&report->inputs);
}
