#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 58 layers wrote /deep, each hiding what the one before the last left.
last=$(cat /deep/last) && [ "$last" = 57 ] || { echo "deep: /deep/last holds '$last', should hold 57" >&2; exit 1; }
found=$(ls /deep | sort | tr '\n' ' ')
[ "$found" = "56 57 last " ] || { echo "deep: /deep has '$found', should have '56 57 last '" >&2; exit 1; }
echo "deep: as the image says"
