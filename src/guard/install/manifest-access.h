/* SPDX-License-Identifier: Apache-2.0 */
/* manifest-access.h - parts of the manifest about who reaches the guard */
#pragma once

#include "guard/install/install-manifest.h"

void guard_manifest_write_admission(const struct guard_install_settings *settings, struct nd_text *text);
void guard_manifest_write_kubeconfig(const struct guard_install_settings *settings, struct nd_text *text);
void guard_manifest_write_network(const struct guard_install_settings *settings, struct nd_text *text);
