/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - how a volume is bridged, and what its filesystem can do */
#pragma once

#include <stdint.h>

/* Which superblock the pod sees. */
enum bridge_mode {
        BRIDGE_MODE_USERNS, /* one that belongs to the pod's user namespace */
        BRIDGE_MODE_IDMAP,  /* one of the host, whose mount the runtime idmaps (Linux 6.12) */
};

/* With which credentials the filesystem is asked. */
enum bridge_as {
        BRIDGE_AS_ROOT,
        BRIDGE_AS_CALLER, /* the process that asks: for servers that squash root */
        BRIDGE_AS_OWNER,  /* the owner of the file or directory */
};

struct bridge_settings {
        enum bridge_mode mode;
        enum bridge_as as;
        /* All files belong to this owner, and a change of owner is ignored: for storage without
         * owners. */
        bool force_owner;
        uint32_t owner_uid, owner_gid;
        /* The pod's IDs: `ids` of them, from 0 on; 0 is `first_id` on the host. */
        uint32_t first_id, ids;
        bool passthrough;
        uint32_t attribute_ms, entry_ms; /* how long the kernel may cache */
};

/* Found out once, from the filesystem itself. */
struct bridge_facts {
        bool handles; /* files can be opened by their handle */
        /* A file in use that is removed keeps a hidden name (.nfsXXXX): let go of it first. And an
         * open by name asks the server which file has the name now (close-to-open). */
        bool nfs;
        bool fuse; /* has a cache of attributes of its own */
        bool acl;
        /* Removes set-user-ID bits at writes by our capabilities, not by the caller's. */
        bool remote;
        unsigned stack_depth; /* for passthrough */
};
