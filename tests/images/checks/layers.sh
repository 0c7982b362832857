#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the tree of the image `layers`: what own.py's three layers say about /data.
bad=0
complain() { echo "layers: $*" >&2; bad=1; }
holds() { [ "$(cat "$1" 2>/dev/null)" = "$2" ] || complain "$1 should hold '$2'"; }
gone() { [ ! -e "$1" ] && [ ! -L "$1" ] || complain "$1 should not be there"; }

holds /data/gone-file top
holds /data/replaced middle
[ "$(stat -c %a /data/replaced)" = 600 ] || complain "/data/replaced should have mode 600"
gone /data/kept/file
[ -d /data/kept ] || complain "/data/kept should be a directory"
[ "$(readlink /data/symlink)" = kept/file ] || complain "/data/symlink should point to kept/file"

# an opaque directory shows only what its own layer and those above have
gone /data/opaque/old
gone /data/opaque/below
holds /data/opaque/new middle

# a directory that was removed and made again is empty but for the new
gone /data/gone-dir/deep
holds /data/gone-dir/new top

# a file for a directory and the other way round
holds /data/becomes-file middle
[ "$(stat -c %F:%a /data/becomes-dir)" = directory:750 ] || complain "/data/becomes-dir should be a directory of mode 750"
holds /data/becomes-dir/inside middle

holds /data/hardlink linked
[ "$(stat -c %i /data/hardlink)" = "$(stat -c %i /data/linked)" ] || complain "/data/hardlink and /data/linked should be one file"
[ "$(ls /data | grep -c '^long-name-.*-end$')" = 1 ] || complain "the file with the long name is missing"
holds "/data/ünïcode" top

# the marks of the format are no files
marks=$(find /data -name '.wh.*')
[ -z "$marks" ] || complain "whiteout marks are visible: $marks"

[ $bad = 0 ] && echo "layers: as the image says"
exit $bad
