#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks owners above 65535: as they are where the user namespace maps them, the overflow ID where it does not.
bad=0
mapped() { awk -v id="$1" '$1 <= id && id < $1 + $3 { found = 1 } END { exit !found }' /proc/self/uid_map; }
for id in 70000 100000 2000000000; do
	if mapped $id; then want=$id; else want=$(cat /proc/sys/kernel/overflowuid); fi
	found=$(stat -c %u:%g /ids/owned-$id 2>&1)
	[ "$found" = "$want:$want" ] || { echo "high-ids: /ids/owned-$id is $found, should be $want:$want" >&2; bad=1; }
done
[ $bad = 0 ] && echo "high-ids: as the image says"
exit $bad
