#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks modes, owners and the file capability of the image `ids`. A pod's user namespace must show the same.
bad=0
complain() { echo "ids: $*" >&2; bad=1; }
is() { found=$(stat -c %a:%u:%g "$1" 2>&1); [ "$found" = "$2" ] || complain "$1 is $found, should be $2"; }

is /ids/setuid 4755:0:0
is /ids/setgid 2755:0:1000
is /ids/sticky 1777:0:0
is /ids/setgid-dir 2775:1000:1000
is /ids/owned-1000 640:1000:1001
is /ids/owned-65535 600:65535:65535
is /bin/busybox 755:0:0

# cap_net_raw is bit 13: a program that is not root has it only from the file, if the bounding set and no_new_privs allow it
bounding=$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)
if [ $(( 0x$bounding >> 13 & 1 )) = 1 ] && grep -q '^NoNewPrivs:[[:space:]]*0' /proc/self/status && [ "$(id -u)" = 0 ]; then
	effective=$(su user -c '/ids/capable/busybox grep ^CapEff: /proc/self/status' | sed 's/^CapEff:[[:space:]]*//')
	[ $(( 0x${effective:-0} >> 13 & 1 )) = 1 ] || complain "/ids/capable/busybox does not give cap_net_raw (CapEff: ${effective:-nothing})"
else
	echo "ids: not checked here: the file capability (needs root, cap_net_raw in the bounding set and no no_new_privs)"
fi

[ $bad = 0 ] && echo "ids: as the image says"
exit $bad
