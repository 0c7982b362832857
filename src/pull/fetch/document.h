/* SPDX-License-Identifier: Apache-2.0 */
/* document.h - fetches one small document and waits for it */
#pragma once

#include "pull/fetch/fetcher.h"

/* Uses path, repository, accept, capability and deadline of the plan. A server whose document does
 * not have the expected digest (nullptr = not checked) is skipped. */
[[nodiscard]] struct nd_error *pull_document_fetch(struct pull_fetcher *fetcher, const struct pull_fetch_plan *plan,
                                                   const struct nd_digest *expected, size_t ceiling, char **ret_bytes,
                                                   size_t *ret_length, char **ret_content_type);
