/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c - writes PolicyReport objects to the cluster, and removes empty ones
 *
 * Server-side apply: an object that another program has created keeps the fields of this program.
 * Only reports with our label are removed. */
#include <string.h>

#include "cli/audit/audit.h"
#include "net/api-client.h"
#include "net/api-objects.h"

enum {
        PATH_BYTES = 4096,
};

#define API "/apis/wgpolicyk8s.io/v1alpha2"
#define SELECTOR "app.kubernetes.io%%2Fmanaged-by%%3Dnodens-audit" /* in a format */

struct publishing {
        struct cli_audit *audit;
        struct nd_map written; /* namespaces */
        struct nd_error *error;
};

static void add_path(struct nd_text *path, const char *namespace) {
        nd_text_add(path, API);
        if (*namespace) {
                nd_text_add(path, "/namespaces/");
                nd_api_escape(path, namespace);
        }
        nd_text_addf(path, "/%spolicyreports/nodens-audit", *namespace ? "" : "cluster");
}

static void apply(const char *namespace, const char *json, void *userdata) {
        struct publishing *p = userdata;
        nd_autotext struct nd_text path = ND_TEXT(PATH_BYTES);
        nd_autojson yyjson_doc *doc = nullptr;

        if (p->error)
                return;
        (void) nd_map_put(&p->written, namespace, p);
        add_path(&path, namespace);
        nd_text_add(&path, "?fieldManager=nodens-audit&force=true");
        p->error = cli_audit_source_ask(p->audit->source, "PATCH", nd_text_get(&path), "application/apply-patch+yaml", json,
                                        nullptr, &doc);
}

static struct nd_error *remove_one(struct publishing *p, const char *namespace) {
        nd_autotext struct nd_text path = ND_TEXT(PATH_BYTES);
        nd_autojson yyjson_doc *doc = nullptr;

        add_path(&path, namespace);
        return cli_audit_source_ask(p->audit->source, "DELETE", nd_text_get(&path), nullptr, nullptr, nullptr, &doc);
}

/* One page: there is one report per namespace, and what is left is removed by the next run. */
static struct nd_error *remove_old(struct publishing *p, const char *list) {
        nd_autofree char *path = nd_format(API "/%s?limit=5000&labelSelector=" SELECTOR, list);
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_arr_iter items;

        nd_try(cli_audit_source_ask(p->audit->source, nullptr, path, nullptr, nullptr, nullptr, &doc));
        items = yyjson_arr_iter_with(yyjson_obj_get(yyjson_doc_get_root(doc), "items"));
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&items));)
                if (nd_streq(nd_api_name(item), "nodens-audit") && !nd_map_has(&p->written, nd_api_namespace(item)))
                        nd_try(remove_one(p, nd_api_namespace(item)));
        return nullptr;
}

struct nd_error *cli_audit_publish(struct cli_audit *audit) {
        struct publishing p = {.audit = audit};
        struct nd_error *error;

        error = cli_audit_policy_reports(audit, apply, &p);
        if (error)
                nd_error_free(p.error);
        else
                error = p.error;
        /* after an incomplete audit a missing result means nothing */
        if (!error && !cli_audit_is_incomplete(audit)) {
                error = remove_old(&p, "policyreports");
                if (!error)
                        error = remove_old(&p, "clusterpolicyreports");
        }
        nd_map_done(&p.written);
        return error;
}
