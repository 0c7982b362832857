#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 4 layers of 16 files of 1 MiB.
size=$(du -sk /bulk | cut -f1) count=$(ls /bulk | wc -l)
[ "$count" = 64 ] && [ "$size" -ge 65536 ] || { echo "bulk: $count files, $size KiB; should be 64 files, 65536 KiB" >&2; exit 1; }
echo "bulk: as the image says"
