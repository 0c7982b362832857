/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/place.h"

void nd_place_format(const struct nd_place *place, struct nd_text *text) {
        if (!place)
                return;
        nd_place_format(place->up, text);
        if (place->name)
                nd_text_addf(text, "%s%s", text->length > 0 ? "." : "", place->name);
        else
                nd_text_addf(text, "[%zu]", place->index);
}
