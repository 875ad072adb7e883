/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of ONC RPC programs and of what they are asked for. Numbers are masked
 * in operations: what has no name here is one operation with its like.
 */
#include <string.h>

#include "sunrpc.h"

/* RFC 1094 section 2.2. */
static const char *const nfs2[] = {"NULL", "GETATTR", "SETATTR", "ROOT", "LOOKUP", "READLINK",
	"READ", "WRITECACHE", "WRITE", "CREATE", "REMOVE", "RENAME", "LINK", "SYMLINK", "MKDIR",
	"RMDIR", "READDIR", "STATFS"};
/* RFC 1813 section 3. */
static const char *const nfs3[] = {"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK",
	"READ", "WRITE", "CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK",
	"READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "PATHCONF", "COMMIT"};
/* RFC 7530 section 15. */
static const char *const nfs4[] = {"NULL", "COMPOUND"};
/* RFC 7530 section 16, RFC 8881 section 18, RFC 7862 section 15, RFC 8276 section 8.4. */
static const char *const nfs4_operations[] = {NULL, NULL, NULL, "ACCESS", "CLOSE", "COMMIT",
	"CREATE", "DELEGPURGE", "DELEGRETURN", "GETATTR", "GETFH", "LINK", "LOCK", "LOCKT", "LOCKU",
	"LOOKUP", "LOOKUPP", "NVERIFY", "OPEN", "OPENATTR", "OPEN_CONFIRM", "OPEN_DOWNGRADE",
	"PUTFH", "PUTPUBFH", "PUTROOTFH", "READ", "READDIR", "READLINK", "REMOVE", "RENAME",
	"RENEW", "RESTOREFH", "SAVEFH", "SECINFO", "SETATTR", "SETCLIENTID", "SETCLIENTID_CONFIRM",
	"VERIFY", "WRITE", "RELEASE_LOCKOWNER", "BACKCHANNEL_CTL", "BIND_CONN_TO_SESSION",
	"EXCHANGE_ID", "CREATE_SESSION", "DESTROY_SESSION", "FREE_STATEID", "GET_DIR_DELEGATION",
	"GETDEVICEINFO", "GETDEVICELIST", "LAYOUTCOMMIT", "LAYOUTGET", "LAYOUTRETURN",
	"SECINFO_NO_NAME", "SEQUENCE", "SET_SSV", "TEST_STATEID", "WANT_DELEGATION",
	"DESTROY_CLIENTID", "RECLAIM_COMPLETE", "ALLOCATE", "COPY", "COPY_NOTIFY", "DEALLOCATE",
	"IO_ADVISE", "LAYOUTERROR", "LAYOUTSTATS", "OFFLOAD_CANCEL", "OFFLOAD_STATUS", "READ_PLUS",
	"SEEK", "WRITE_SAME", "CLONE", "GETXATTR", "SETXATTR", "LISTXATTRS", "REMOVEXATTR"};
/* RFC 1833 sections 3.2 and 2.2.1. */
static const char *const portmap[] = {"NULL", "SET", "UNSET", "GETPORT", "DUMP", "CALLIT"};
static const char *const rpcbind[] = {"NULL", "SET", "UNSET", "GETADDR", "DUMP", "BCAST", "GETTIME",
	"UADDR2TADDR", "TADDR2UADDR", "GETVERSADDR", "INDIRECT", "GETADDRLIST", "GETSTAT"};
/* RFC 1813 appendix I; appendix II; the XNFS specification of NSM. */
static const char *const mount[] = {"NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"};
static const char *const nlm[] = {"NULL", "TEST", "LOCK", "CANCEL", "UNLOCK", "GRANTED", "TEST_MSG",
	"LOCK_MSG", "CANCEL_MSG", "UNLOCK_MSG", "GRANTED_MSG", "TEST_RES", "LOCK_RES", "CANCEL_RES",
	"UNLOCK_RES", "GRANTED_RES", NULL, NULL, NULL, NULL, "SHARE", "UNSHARE", "NM_LOCK",
	"FREE_ALL"};
static const char *const nsm[] = {
	"NULL", "STAT", "MON", "UNMON", "UNMON_ALL", "SIMU_CRASH", "NOTIFY"};
static const char *const nfs_acl[] = {"NULL", "GETACL", "SETACL", "GETATTR", "ACCESS"};

#define NAMES(array) array, sizeof(array) / sizeof((array)[0])

static const struct {
	uint32_t program, version; /* 0: any */
	char name[8];
	const char *const *procedures;
	size_t count;
} programs[] = {
	{PROGRAM_NFS, NFS4, "NFS", NAMES(nfs4)},
	{PROGRAM_NFS, 3, "NFS", NAMES(nfs3)},
	{PROGRAM_NFS, 2, "NFS", NAMES(nfs2)},
	{100000, 2, "PORTMAP", NAMES(portmap)},
	{100000, 3, "RPCBIND", NAMES(rpcbind)},
	{100000, 4, "RPCBIND", NAMES(rpcbind)},
	{100005, 0, "MOUNT", NAMES(mount)},
	{100021, 0, "NLM", NAMES(nlm)},
	{100024, 0, "NSM", NAMES(nsm)},
	{100227, 0, "NFSACL", NAMES(nfs_acl)},
};

struct text {
	char *label;
	uint8_t len;
};

/* All labels fit: three numbers and the longest names. */
static void
add_text(struct text *text, const char *what)
{
	size_t n = strlen(what);

	memcpy(text->label + text->len, what, n);
	text->len = (uint8_t)(text->len + n);
}

static void
add_number(struct text *text, uint32_t number)
{
	char digits[11] = "";
	size_t at = sizeof(digits) - 1;

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	add_text(text, digits + at);
}

uint8_t
bs_sunrpc_label(uint32_t program, uint32_t version, uint32_t procedure, uint32_t operation,
	char label[BS_FRAME_LABEL_BYTES])
{
	const size_t operations = sizeof(nfs4_operations) / sizeof(nfs4_operations[0]);
	const char *procedure_name = NULL;
	struct text text = {.label = label};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]) && text.len == 0; i++) {
		if (programs[i].program != program ||
			(programs[i].version != 0 && programs[i].version != version))
			continue;
		add_text(&text, programs[i].name);
		if (procedure < programs[i].count)
			procedure_name = programs[i].procedures[procedure];
	}
	if (operation != NFS4_OPERATION_NONE && operation < operations)
		procedure_name = nfs4_operations[operation];
	if (text.len == 0) {
		add_text(&text, "program ");
		add_number(&text, program);
		add_text(&text, " version ");
	}
	add_number(&text, version);
	add_text(&text, procedure_name != NULL ? " " : " procedure ");
	if (procedure_name != NULL)
		add_text(&text, procedure_name);
	else
		add_number(&text, procedure);
	return text.len;
}
