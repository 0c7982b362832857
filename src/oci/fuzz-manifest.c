/* SPDX-License-Identifier: Apache-2.0 */
/* A media type up to the first line feed, then a document. An accepted one is within the limits,
 * and selecting from it is safe. */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "oci/artifact.h"
#include "oci/manifest.h"

/* Every layer of an artifact is a file below the root, or an archive with a known diff id. */
static void names_safe_files(const struct nd_manifest *manifest) {
        fuzz_require(*manifest->artifact_type && strlen(manifest->artifact_type) <= ND_MEDIA_TYPE);
        fuzz_require(manifest->media == ND_MEDIA_MANIFEST);
        nd_vector_each (entry, &manifest->entries) {
                fuzz_require(entry->diff_id.kind == ND_HASH_SHA256);
                fuzz_require(entry->file || entry->media == ND_MEDIA_LAYER);
                if (!entry->file)
                        continue;
                fuzz_require(*entry->file && *entry->file != '/' && strlen(entry->file) <= ND_ARTIFACT_PATH);
                fuzz_require(!strstr(entry->file, "//") && !strstr(entry->file, "/../") && !nd_has_prefix(entry->file, "../"));
                fuzz_require(!nd_streq(entry->file, "..") && !nd_streq(entry->file, "."));
        }
}

static void keeps_to_the_bounds(const struct nd_manifest *manifest) {
        static const char *const architectures[] = {"amd64", "arm64", "arm", "s390x"};
        bool index = manifest->media == ND_MEDIA_INDEX;

        fuzz_require(index || manifest->media == ND_MEDIA_MANIFEST);
        fuzz_require(manifest->entries.count <= (index ? ND_MANIFEST_DESCRIPTORS : ND_MANIFEST_LAYERS));
        fuzz_require(index || nd_digest_is_set(&manifest->config.digest));
        nd_vector_each (entry, &manifest->entries) {
                fuzz_require(nd_digest_is_set(&entry->digest));
                fuzz_require(entry->size <= ND_DESCRIPTOR_SIZE);
                fuzz_require(entry->media_type && strlen(entry->media_type) <= ND_MEDIA_TYPE);
                fuzz_require(index || manifest->artifact_type || entry->media == ND_MEDIA_LAYER);
                fuzz_require(manifest->artifact_type || (!entry->file && !nd_digest_is_set(&entry->diff_id)));
        }
        if (manifest->artifact_type)
                names_safe_files(manifest);
        for (size_t i = 0; i < nd_count_of(architectures); i++) {
                nd_autoerror struct nd_error *error = nullptr;
                const struct nd_oci_descriptor *entry = nullptr;
                struct nd_platform wanted;

                (void) nd_platform_make("linux", architectures[i], "", &wanted);
                error = nd_manifest_select(manifest, &wanted, &entry);
                fuzz_require(error ||
                             (entry >= manifest->entries.items && entry < manifest->entries.items + manifest->entries.count));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(nd_manifest_done) struct nd_manifest manifest = {};
        const uint8_t *end = size > 0 ? memchr(data, '\n', size) : nullptr;
        nd_autofree char *media_type = nullptr;
        nd_autoerror struct nd_error *error = nullptr;
        size_t skipped = 0;

        if (end) {
                media_type = fuzz_text(data, (size_t) (end - data));
                skipped = (size_t) (end - data) + 1;
        }
        error = nd_manifest_parse((const char *) data + skipped, size - skipped, media_type, &manifest);
        if (!error)
                keeps_to_the_bounds(&manifest);
        return 0;
}
