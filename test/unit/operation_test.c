/* SPDX-License-Identifier: BSD-3-Clause */
#include "framer_replay.h"

static void
check(const char *label, const char *want)
{
	char out[BS_FRAME_LABEL_BYTES + 1] = {0};
	uint32_t hash = 0, again = 0;
	size_t len = bs_operation_template(label, strlen(label), out, &hash);

	assert_string_equal(out, want);
	assert_int_equal(len, strlen(want));
	assert_int_not_equal(hash, 0);
	/* What is the same operation has the same hash. */
	bs_operation_template(want, strlen(want), out, &again);
	assert_int_equal(hash, again);
}

static void
test_run_of_digits_becomes_one_star(void **state)
{
	(void)state;
	check("GET /users/17", "GET /users/*");
	check("GET /users/1234567890/posts/8", "GET /users/*/posts/*");
	check("GET /api/v2/x", "GET /api/v*/x");
	check("A host17.example.com", "A host*.example.com");
	check("LRANGE", "LRANGE");
	check("", "");
}

static void
test_hex_of_eight_with_a_digit_becomes_a_star(void **state)
{
	(void)state;
	check("GET /blob/deadbeef1", "GET /blob/*");
	check("GET /blob/DEADBEE1", "GET /blob/*");
	check("GET /blob/deadbe1", "GET /blob/deadbe*");       /* seven */
	check("GET /blob/deadbeef", "GET /blob/deadbeef");     /* no digit: may be a word */
	check("GET /blob/xdeadbeef1", "GET /blob/xdeadbeef*"); /* x is no hex digit */
}

static void
test_uuid_becomes_a_star(void **state)
{
	(void)state;
	check("GET /o/550e8400-e29b-41d4-a716-446655440000", "GET /o/*");
	check("GET /o/550E8400-E29B-41D4-A716-446655440000/x", "GET /o/*/x");
	check("GET /o/abcdefab-abcd-abcd-abcd-abcdefabcdef", "GET /o/*"); /* without a digit */
	/* One too long, and one dash amiss: no UUIDs, judged word by word. */
	check("GET /o/abcdefab-abcd-abcd-abcd-abcdefabcdefa",
		"GET /o/abcdefab-abcd-abcd-abcd-abcdefabcdefa");
	check("GET /o/abcdefa-babcd-abcd-abcd-abcdefabcdef",
		"GET /o/abcdefa-babcd-abcd-abcd-abcdefabcdef");
}

static void
test_query_is_cut(void **state)
{
	(void)state;
	check("GET /find?q=secret", "GET /find");
	check("?", "");
}

static void
test_result_is_bounded_by_the_label(void **state)
{
	char label[200], out[BS_FRAME_LABEL_BYTES];
	uint32_t hash;

	(void)state;
	memset(label, 'g', sizeof(label));
	assert_int_equal(
		bs_operation_template(label, sizeof(label), out, &hash), BS_FRAME_LABEL_BYTES);
	for (size_t i = 0; i < sizeof(label); i++)
		label[i] = i % 2 ? '/' : '7';
	assert_int_equal(
		bs_operation_template(label, sizeof(label), out, &hash), BS_FRAME_LABEL_BYTES);
}

static void
test_different_operations_differ_in_hash(void **state)
{
	char out[BS_FRAME_LABEL_BYTES];
	uint32_t get, set, none;

	(void)state;
	bs_operation_template("GET", 3, out, &get);
	bs_operation_template("SET", 3, out, &set);
	bs_operation_template("", 0, out, &none);
	assert_int_not_equal(get, set);
	assert_int_not_equal(none, get);
	/* FNV-1a of nothing is its offset basis. */
	assert_int_equal(none, 2166136261u);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run_of_digits_becomes_one_star),
		cmocka_unit_test(test_hex_of_eight_with_a_digit_becomes_a_star),
		cmocka_unit_test(test_uuid_becomes_a_star),
		cmocka_unit_test(test_query_is_cut),
		cmocka_unit_test(test_result_is_bounded_by_the_label),
		cmocka_unit_test(test_different_operations_differ_in_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
