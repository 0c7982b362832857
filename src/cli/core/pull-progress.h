/* SPDX-License-Identifier: Apache-2.0 */
/* pull-progress.h - follows a Pull or Import call and prints its progress and the image IDs */
#pragma once

#include <protobuf-c/protobuf-c.h>

/* Returns the command's exit status. command is the prefix of error messages. quiet: print IDs
 * only. */
int cli_pull_progress_follow(const char *command, const char *socket, const char *path, const ProtobufCMessage *request,
                             bool quiet);
