/* SPDX-License-Identifier: Apache-2.0 */
/* pull-progress.h - follows a Pull or Import call of nodens-cri until its end, and prints its progress and the images' ids */
#pragma once

#include <protobuf-c/protobuf-c.h>

/* The exit code of the command, whose name begins error messages. quiet: print ids only. */
int cli_pull_progress_follow(const char *command, const char *socket, const char *path, const ProtobufCMessage *request,
                             bool quiet);
