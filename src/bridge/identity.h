/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - with which credentials a thread asks the volume's filesystem
 *
 * The pod's kernel has checked permissions before a request gets here. The IDs decide who owns a
 * new file, and what a server that squashes root makes of us. Threads change only their filesystem
 * IDs and groups; capabilities stay (SECBIT_NO_SETUID_FIXUP). */
#pragma once

#include "bridge/thread.h"

/* For work on an existing file or directory. */
void bridge_identity_for(struct bridge_thread *thread, const struct fuse_in_header *head, const struct bridge_node *node);

/* With BRIDGE_AS_OWNER, after a refusal to the directory's owner: continues as the owner of the
 * entry. Returns false where there is nothing to try. The directory's owner may be root, which the
 * server squashes, and others may remove only their own files where the sticky bit is set. */
[[nodiscard]] bool bridge_identity_retry(struct bridge_thread *thread, const struct bridge_node *parent, const char *name,
                                         int error);

/* For what is created: it belongs to the caller. */
void bridge_identity_creator(struct bridge_thread *thread, const struct bridge_request *request);

void bridge_identity_root(struct bridge_thread *thread);

/* For files that are passed through: the kernel reads and writes them with the credentials of the
 * registration, for all processes that open the file. */
void bridge_identity_owner(struct bridge_thread *thread, uint32_t uid, uint32_t gid);

/* Without CAP_FSETID the filesystem removes set-ID bits and file capabilities at writes, as
 * FUSE_HANDLE_KILLPRIV_V2 promises. Only chmod needs it, for bits that the pod's kernel allowed. */
void bridge_identity_keep_setid(bool keep);
