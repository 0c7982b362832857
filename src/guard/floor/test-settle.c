/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/floor/settle.h"

#include <unit/expect.h>
#include <unit/guard-world.h>

#define FLOOR(spec, status, more)                                                                                                  \
        "{\"kind\":\"NodeVersionFloor\",\"metadata\":{\"name\":\"cluster\",\"generation\":2,\"resourceVersion\":\"7\"},\"spec\":{" \
        "\"minimumKubeletVersion\":\"" spec "\",\"poolLabel\":\"pool\"},\"status\":{\"minimumKubeletVersion\":\"" status           \
        "\"" more "}}"

static void put_node(struct guard_world *world, const char *name, const char *version, const char *pool, bool ready) {
        nd_autofree char *json = nd_format(
                "{\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\",\"labels\":{\"pool\":\"%s\"}},\"status\":{\"nodeInfo\":{\"kubeletVersion\":"
                "\"%s\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
                name, pool, version, ready ? "True" : "Unknown");

        guard_world_tell(world, json);
}

static char *obstacle(const struct guard_world *world) {
        nd_autoarena struct nd_arena arena = {};
        const char *text = guard_settle_obstacle(&world->store, &guard_store_floor(&world->store)->floor, &arena);

        return nd_strdup(text ? text : "");
}

static void a_raised_floor_waits_for_nodes_below_it([[maybe_unused]] void **state) {
        struct guard_world world;

        guard_world_make(&world);
        guard_world_tell(&world, FLOOR("1.34.0", "1.30.0", ""));
        expect_text(obstacle(&world), "");
        put_node(&world, "b", "v1.33.0", "", true);
        put_node(&world, "a", "", "", true);
        put_node(&world, "c", "v1.36.0", "", true);
        expect_text(obstacle(&world), "2 nodes are below it, among them a (no version)");
        put_node(&world, "a", "v1.34.0", "", true);
        put_node(&world, "b", "v1.34.0", "", true);
        expect_text(obstacle(&world), "");
        guard_world_done(&world);
}

static void every_pool_must_report([[maybe_unused]] void **state) {
        struct guard_world world;

        guard_world_make(&world);
        guard_world_tell(&world, FLOOR("1.30.0", "1.34.0", ""));
        put_node(&world, "a", "v1.33.0", "east", true);
        put_node(&world, "b", "v1.36.0", "west", false);
        expect_text(obstacle(&world), "no Ready node of pool 'west' has reported a version that meets it");
        put_node(&world, "c", "v1.29.0", "west", true);
        expect_text(obstacle(&world), "no Ready node of pool 'west' has reported a version that meets it");
        put_node(&world, "d", "v1.31.0", "west", true);
        expect_text(obstacle(&world), "");
        guard_world_done(&world);
}

static void the_patch_makes_the_status_settled([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 16), waiting = ND_TEXT(1 << 16);
        nd_autoarena struct nd_arena arena = {};
        struct guard_world world;
        const struct nd_floor *floor;

        guard_world_make(&world);
        guard_world_tell(&world, FLOOR("1.30.0", "", ""));
        floor = &guard_store_floor(&world.store)->floor;
        assert_false(guard_settle_is_done(floor, nullptr));
        guard_settle_patch(floor, nullptr, &arena, &text);
        assert_non_null(strstr(nd_text_get(&text), "\"resourceVersion\": \"7\""));
        assert_non_null(strstr(nd_text_get(&text), "\"minimumKubeletVersion\": \"1.30.0\", \"observedGeneration\": 2, "
                                                   "\"effectiveMinimumKubeletVersion\": \"1.30.0\""));
        assert_non_null(strstr(nd_text_get(&text),
                               "\"name\": \"WideIDs\", \"requiredMinimumVersion\": \"1.30.0\", \"enabled\": true"));
        guard_settle_patch(floor, "someone", &arena, &waiting);
        assert_null(strstr(nd_text_get(&waiting), "observedGeneration"));
        assert_non_null(strstr(nd_text_get(&waiting), "\"enabled\": false"));
        assert_null(strstr(nd_text_get(&waiting), "\"enabled\": true"));
        guard_world_tell(
                &world,
                FLOOR("1.30.0", "", ",\"conditions\":[{\"type\":\"Settled\",\"status\":\"False\",\"message\":\"someone\"}]"));
        floor = &guard_store_floor(&world.store)->floor;
        assert_true(guard_settle_is_done(floor, "someone"));
        assert_false(guard_settle_is_done(floor, "another"));
        guard_world_done(&world);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_raised_floor_waits_for_nodes_below_it),
                cmocka_unit_test(every_pool_must_report),
                cmocka_unit_test(the_patch_makes_the_status_settled),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
