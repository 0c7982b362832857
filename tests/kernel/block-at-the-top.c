/* SPDX-License-Identifier: Apache-2.0 */
/* The block of IDs that ends at 2^32 cannot be mapped.
 *
 * What the kernel does: a line of uid_map whose first ID plus count reaches 2^32 wraps in 32 bits
 * and is refused (EINVAL); the ID 4294967295 is not a valid ID, it means "none". The block below is
 * accepted.
 *
 * Why nodens needs it: the kubelet's default range ends at 2^32, and once in 65,535 allocations it
 * picks that last block; the pod then cannot start. nodens never hands it out. */
#include "evidence.h"

static int try_block(uint32_t first, uint32_t count) {
        struct nd_userns_map map = {.inside = 0, .outside = first, .count = count};
        struct nd_userns_plan plan = {.uids = &map, .uid_count = 1, .gids = &map, .gid_count = 1};
        nd_autoclose int fd = -EBADF;
        nd_autoerror struct nd_error *error = nd_userns_make(&plan, &fd);

        saw("map 0.. to %u.., %u IDs: %s", first, count, error ? nd_error_text(error) : "made");
        return nd_error_errno(error);
}

int main(void) {
        const uint32_t top = UINT32_MAX - BLOCK + 1;

        need_root();
        expect(try_block(top - BLOCK, BLOCK) == 0, "the last block but one is accepted");
        expect(try_block(top, BLOCK) == EINVAL, "the block that ends at 2^32 is refused");
        expect(try_block(top, BLOCK - 1) == 0, "without its last ID it would be accepted, but a pod needs all of them");
        return EXIT_SUCCESS;
}
