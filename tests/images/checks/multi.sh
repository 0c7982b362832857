#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs only where the runtime took the right one of the index's images.
read -r architecture </architecture
case "$architecture:$(uname -m)" in
amd64:x86_64) echo "multi: as the image says" ;;
*) echo "multi: image for $architecture on $(uname -m)" >&2; exit 1 ;;
esac
