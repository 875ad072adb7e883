/* SPDX-License-Identifier: BSD-3-Clause */
/* Flattened answers as rte_tel_data. */
#include "telemetry.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_telemetry.h>
#include <rte_version.h>

#include "telemetry_flat.h"

/* 22.11 has only _u64, 25.11 only _uint. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
#define ADD_DICT_UINT rte_tel_data_add_dict_uint
#else
#define ADD_DICT_UINT rte_tel_data_add_dict_u64
#endif

/* Callbacks of 22.11 get no context. The lock is held while a command is answered. */
static const struct bs_status_source *registered;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int fill_dict(struct rte_tel_data *data, const json_t *object);

static int
add_dict(struct rte_tel_data *data, const char *key, const json_t *object)
{
	struct rte_tel_data *member = rte_tel_data_alloc();
	int ret;

	if (member == NULL)
		return -ENOMEM;
	ret = fill_dict(member, object);
	if (ret == 0)
		ret = rte_tel_data_add_dict_container(data, key, member, 0);
	if (ret != 0)
		rte_tel_data_free(member);
	return ret;
}

static int
fill_dict(struct rte_tel_data *data, const json_t *object)
{
	const char *key;
	json_t *value;
	int ret = rte_tel_data_start_dict(data);

	json_object_foreach((json_t *)object, key, value)
	{
		json_int_t number = json_integer_value(value);

		if (ret != 0)
			break;
		if (json_is_object(value))
			ret = add_dict(data, key, value);
		else if (json_is_string(value))
			ret = rte_tel_data_add_dict_string(data, key, json_string_value(value));
		else if (number < 0)
			ret = rte_tel_data_add_dict_int(data, key, (int)number);
		else
			ret = ADD_DICT_UINT(data, key, (uint64_t)number);
	}
	return ret;
}

static const char *
list_of(const char *command)
{
	const struct bs_status_command *found = bs_status_commands;

	while (found->name != NULL && strcmp(found->name, command) != 0)
		found++;
	return found->list;
}

static int
ask(const char *command, const char *params, json_t **full, char error[BS_STATUS_ERROR_BYTES])
{
	int ret = -ESHUTDOWN;

	pthread_mutex_lock(&lock);
	if (registered != NULL)
		ret = bs_status_answer(registered, command, params, full, error);
	else
		snprintf(error, BS_STATUS_ERROR_BYTES, "bufscoped is stopping");
	pthread_mutex_unlock(&lock);
	return ret;
}

static int
answer(const char *command, const char *params, struct rte_tel_data *data)
{
	char error[BS_STATUS_ERROR_BYTES];
	json_t *full = NULL, *flat;
	int ret = ask(command, params, &full, error);

	if (ret != 0)
		full = json_pack("{s:s}", "error", error);
	flat = full == NULL ? NULL : bs_telemetry_flatten(full, ret == 0 ? list_of(command) : NULL);
	json_decref(full);
	ret = flat == NULL ? -ENOMEM : fill_dict(data, flat);
	json_decref(flat);
	return ret;
}

int
bs_telemetry_register(const struct bs_status_source *source)
{
	int ret = 0;

	if (registered != NULL)
		return -EALREADY;
	registered = source;
	for (const struct bs_status_command *c = bs_status_commands; c->name != NULL && ret == 0;
		c++) {
		if (strcmp(c->name, "/bufscope/fault") != 0 || source->config->faults)
			ret = rte_telemetry_register_cmd(c->name, answer, c->help);
	}
	return ret;
}

void
bs_telemetry_withdraw(void)
{
	pthread_mutex_lock(&lock);
	registered = NULL;
	pthread_mutex_unlock(&lock);
}
