/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/process.h"

#include <signal.h>
#include <unit/expect.h>

static struct cri_container_request request_of(void) {
        return (struct cri_container_request) {.working_directory = (char *) ""};
}

static struct nd_oci_config image_of(void) {
        struct nd_oci_config image = {.working_directory = (char *) "", .stop_signal = (char *) ""};

        nd_strings_add(&image.entrypoint, "entry");
        nd_strings_add(&image.command, "cmd");
        return image;
}

static void image_done(struct nd_oci_config *image) {
        nd_strings_done(&image->entrypoint);
        nd_strings_done(&image->command);
        nd_strings_done(&image->environment);
}

static char *join(const struct nd_strings *strings) {
        nd_autotext struct nd_text text = ND_TEXT(4096);

        nd_vector_each (string, strings) {
                nd_text_addf(&text, "%s%s", text.length > 0 ? " " : "", *string);
        }
        return nd_strdup(nd_text_get(&text));
}

static void expect_arguments(struct cri_container_request *request, struct nd_oci_config *image, const char *expected) {
        nd_cleanup(nd_spec_process_done) struct nd_spec_process process = {};

        expect_ok(cri_process_describe(request, image, "host", &process));
        expect_text(join(&process.arguments), expected);
}

/* The table of Kubernetes' documentation, row by row. */
static void command_and_arguments_replace_the_images_as_in_kubernetes([[maybe_unused]] void **state) {
        nd_cleanup(image_done) struct nd_oci_config image = image_of();
        struct cri_container_request request = request_of();

        expect_arguments(&request, &image, "entry cmd");
        nd_strings_add(&request.arguments, "args");
        expect_arguments(&request, &image, "entry args");
        nd_strings_add(&request.command, "command");
        expect_arguments(&request, &image, "command args");
        nd_strings_done(&request.arguments);
        expect_arguments(&request, &image, "command");
        nd_strings_done(&request.command);
}

static void a_container_without_a_command_is_an_error([[maybe_unused]] void **state) {
        struct nd_oci_config image = {.working_directory = (char *) "", .stop_signal = (char *) ""};
        nd_cleanup(nd_spec_process_done) struct nd_spec_process process = {};
        struct cri_container_request request = request_of();

        expect_error(cri_process_describe(&request, &image, "h", &process), ND_INVALID, "no command");
}

static char *environment_of(const struct cri_container_request *request, const struct nd_oci_config *image) {
        nd_cleanup(nd_spec_process_done) struct nd_spec_process process = {};

        expect_ok(cri_process_describe(request, image, "pod-1", &process));
        return join(&process.environment);
}

static void variables_of_the_pod_override_the_images([[maybe_unused]] void **state) {
        nd_cleanup(image_done) struct nd_oci_config image = image_of();
        struct cri_container_request request = request_of();

        expect_text(environment_of(&request, &image),
                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOSTNAME=pod-1");
        nd_strings_add(&image.environment, "PATH=/image");
        nd_strings_add(&image.environment, "A=image=with=more");
        nd_strings_add(&image.environment, "HOSTNAME=image");
        request.tty = true;
        nd_vector_push(&request.environment, ((struct cri_pair) {(char *) "B", (char *) "x=y\nz"}));
        nd_vector_push(&request.environment, ((struct cri_pair) {(char *) "A", (char *) ""}));
        nd_vector_push(&request.environment, ((struct cri_pair) {(char *) "B", (char *) "again"}));
        expect_text(environment_of(&request, &image), "PATH=/image A= HOSTNAME=pod-1 TERM=xterm B=again");
        nd_vector_done(&request.environment);
}

static void the_directory_is_absolute([[maybe_unused]] void **state) {
        static const struct {
                const char *pod, *image, *expected;
        } cases[] = {{"", "", "/"}, {"", "/srv", "/srv"}, {"", "app", "/app"}, {"/pod", "/srv", "/pod"}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(image_done) struct nd_oci_config image = image_of();
                nd_cleanup(nd_spec_process_done) struct nd_spec_process process = {};
                struct cri_container_request request = {.working_directory = (char *) cases[i].pod};

                image.working_directory = (char *) cases[i].image;
                expect_ok(cri_process_describe(&request, &image, "h", &process));
                assert_string_equal(process.directory, cases[i].expected);
        }
}

static void stop_signals_are_parsed_by_name_and_number([[maybe_unused]] void **state) {
        static const struct {
                const char *text;
                int signal;
        } cases[] = {{"", SIGTERM},      {"SIGQUIT", SIGQUIT},  {"quit", SIGQUIT},    {"3", 3},         {"SIGRTMIN", 34},
                     {"RTMIN+3", 37},    {"SIGRTMAX-1", 63},    {"RTMAX+1", SIGTERM}, {"0", SIGTERM},   {"65", SIGTERM},
                     {"SIGNO", SIGTERM}, {"RTMIN+99", SIGTERM}, {"-9", SIGTERM},      {"USR1", SIGUSR1}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                struct nd_oci_config image = {.stop_signal = (char *) cases[i].text};
                struct cri_container_request request = request_of();

                assert_int_equal(cri_process_stop_signal(&request, &image), cases[i].signal);
                request.stop_signal = SIGINT;
                assert_int_equal(cri_process_stop_signal(&request, &image), SIGINT);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(command_and_arguments_replace_the_images_as_in_kubernetes),
                cmocka_unit_test(a_container_without_a_command_is_an_error),
                cmocka_unit_test(variables_of_the_pod_override_the_images),
                cmocka_unit_test(the_directory_is_absolute),
                cmocka_unit_test(stop_signals_are_parsed_by_name_and_number),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
