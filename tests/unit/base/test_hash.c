/* The hash sees every bit, the order and the length, and never changes between releases: plans are compared
 * by it. */
#include "testing.h"

#include "base/hash.h"

static uint64_t hash_of(const uint64_t *words, int count)
{
    uint64_t hash = HASH_START;
    for (int i = 0; i < count; i++)
        hash = hash_add(hash, words[i]);
    return hash_finish(hash);
}

static void every_bit_counts(void **state)
{
    (void)state;
    const uint64_t zero[3] = {0, 0, 0};
    for (int word = 0; word < 3; word++)
        for (int bit = 0; bit < 64; bit++) {
            uint64_t words[3] = {0, 0, 0};
            words[word] = UINT64_C(1) << bit;
            assert_true(hash_of(words, 3) != hash_of(zero, 3));
        }
}

static void order_and_length_count(void **state)
{
    (void)state;
    const uint64_t forward[2] = {1, 2}, backward[2] = {2, 1}, zero[2] = {0, 0};
    assert_true(hash_of(forward, 2) != hash_of(backward, 2));
    assert_true(hash_of(zero, 1) != hash_of(zero, 2));
}

static void known_values_stay(void **state)
{
    (void)state;
    const uint64_t words[3] = {1, UINT64_MAX, 42};
    assert_true(hash_of(words, 0) == UINT64_C(0xf52a15e9a9b5e89b));
    assert_true(hash_of(words, 3) == UINT64_C(0x886ca29ab00c06ac));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(order_and_length_count),
        cmocka_unit_test(known_values_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
