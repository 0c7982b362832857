/* SPDX-License-Identifier: Apache-2.0 */
/* artifact.h - files of OCI artifacts: their paths and their identity
 *
 * An artifact is a manifest without an image's config. Each of its layers is the content of one
 * file, whose path is an annotation: untrusted text that becomes a path, so it is checked here and
 * nowhere else. In the store a file is a layer with one file in it. Its diff id is a hash over the
 * blob's digest and the path, so a pull knows from the manifest alone which files the store has,
 * and a path cannot be changed without changing the chain. */
#pragma once

#include "base/strings.h"
#include "oci/digest.h"

enum {
        ND_ARTIFACT_PATH = 1023, /* maximum bytes of a path */
        ND_ARTIFACT_NAME = 255,  /* maximum bytes of a component */
        ND_ARTIFACT_DEPTH = 32,  /* maximum number of components */
};

/* A path must be relative, without empty, "." and ".." components, without control characters, and
 * without the names that mean a whiteout in a layer (".wh."). */
[[nodiscard]] struct nd_error *nd_artifact_path_check(const char *path);

/* Rejects two files with the same path, and a file that is also the directory of another. */
[[nodiscard]] struct nd_error *nd_artifact_paths_check(const struct nd_strings *paths);

/* The diff id of a file: the hash of a text that is shorter than a block of tar, so that no archive
 * has it. blob is the digest of the content. */
struct nd_digest nd_artifact_file_id(const struct nd_digest *blob, const char *path);
