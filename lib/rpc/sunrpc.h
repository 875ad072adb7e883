/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the ONC RPC framer share: sunrpc.c finds messages and what
 * they ask for, sunrpc_names.c has the names of it.
 */
#pragma once

#include "bs_framer.h"

#define PROGRAM_NFS 100003u
#define NFS4 4u
#define NFS4_COMPOUND 1u
#define NFS4_OPERATION_NONE 0u /* not read */

/* Operations of a COMPOUND that only choose files or a session; RFC 7530, RFC 8881. */
#define NFS4_PUTFH 22u
#define NFS4_PUTPUBFH 23u
#define NFS4_PUTROOTFH 24u
#define NFS4_RESTOREFH 31u
#define NFS4_SAVEFH 32u
#define NFS4_SEQUENCE 53u

/*
 * The label of a call: program and version, procedure. Of a COMPOUND the
 * operation is the procedure, if it is not NFS4_OPERATION_NONE. Returns its length.
 */
uint8_t bs_sunrpc_label(uint32_t program, uint32_t version, uint32_t procedure, uint32_t operation,
	char label[BS_FRAME_LABEL_BYTES]);
