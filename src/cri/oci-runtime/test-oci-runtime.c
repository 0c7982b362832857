/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/stat.h>

#include <unit/scratch.h>

#include "base/clock.h"
#include "cri/core/config.h"
#include "cri/oci-runtime/oci-runtime.h"

struct fixture {
        char *root;
        sd_event *loop;
        struct cri_config config;
        bool called;
        struct nd_error *error;
};

static char runc[] = "runc";

/* Both engines are a script that fails. */
static int set_up(void **state) {
        struct fixture *f = nd_new(struct fixture);
        nd_autofree char *program = nullptr;

        f->root = scratch_make();
        program = nd_format("%s/engine", f->root);
        scratch_text(f->root, "engine", "#!/bin/sh\necho broken >&2\nexit 3\n");
        assert_int_equal(chmod(program, 0755), 0);
        assert_true(sd_event_new(&f->loop) >= 0);
        cri_config_init(&f->config);
        free(f->config.crun);
        f->config.crun = nd_strdup(program);
        nd_vector_push(&f->config.handlers,
                       ((struct cri_runtime_handler) {
                               .name = nd_strdup(runc), .kind = OCI_RUNTIME_RUNC, .program = nd_take_ptr(program)}));
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        cri_config_done(&f->config);
        (void) sd_event_unref(f->loop);
        scratch_remove(&f->root);
        free(f);
        return 0;
}

static void on_end(struct nd_error *error, void *userdata) {
        struct fixture *f = userdata;

        f->error = error;
        f->called = true;
}

static struct nd_error *result(struct fixture *f) {
        uint64_t end = nd_clock_us() + 30 * ND_SECOND_US;

        for (; !f->called; assert_true(nd_clock_us() < end))
                assert_true(sd_event_run(f->loop, ND_SECOND_US) >= 0);
        f->called = false;
        return nd_take_ptr(f->error);
}

static void an_error_names_the_engine_of_the_handler(void **state) {
        struct cri_oci_runtime_call *call;
        struct fixture *f = *state;

        expect_ok(cri_oci_runtime_start(f->loop, &f->config, "", "a", on_end, f, &call));
        expect_error(result(f), ND_INTERNAL, "start the container: crun ended with code 3: broken");
        expect_ok(cri_oci_runtime_start(f->loop, &f->config, runc, "a", on_end, f, &call));
        expect_error(result(f), ND_INTERNAL, "start the container: runc ended with code 3: broken");
        expect_ok(cri_oci_runtime_update(f->loop, &f->config, runc, "a", "{}", on_end, f, &call));
        expect_error(result(f), ND_INTERNAL, "update the container: runc ended with code 3: broken");
        expect_ok(cri_oci_runtime_delete(f->loop, &f->config, runc, "a", on_end, f, &call));
        expect_error(result(f), ND_INTERNAL, "delete the container: runc ended with code 3: broken");
}

static void an_unknown_handler_is_an_error(void **state) {
        struct cri_oci_runtime_call *call;
        struct fixture *f = *state;

        expect_error(cri_oci_runtime_start(f->loop, &f->config, "gone", "a", on_end, f, &call), ND_PRECONDITION,
                     "runtime handler 'gone' was removed from the configuration");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(an_error_names_the_engine_of_the_handler, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_unknown_handler_is_an_error, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
