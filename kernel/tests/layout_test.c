// SPDX-License-Identifier: GPL-2.0-only
/*
 * The layout check finds structures in the kernel's type data and compares them. It reads no data
 * beyond their end, whatever their content.
 */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <uapi/linux/btf.h>

#include "part_of_test.h"

#include "../sched/share/layout.c"

#define FLAGGED			BIT(31)
#define INFO(kind, many)	((BTF_KIND_##kind << 24) | (many))

/* Offsets into the names below. */
enum { NAME_INT = 1, NAME_PAIR = 5, NAME_LEFT = 10, NAME_RIGHT = 15 };
static const char layout_test_names[] = "\0int\0pair\0left\0right";

/* struct pair { int left, right; }; types before it have data after their struct btf_type. */
struct types {
	struct btf_header head;
	struct {
		struct btf_type type;
		u32 encoding;
	} number;
	struct btf_type pointer;
	struct {
		struct btf_type type;
		struct btf_param of[2];
	} function;
	struct {
		struct btf_type type;
		struct btf_member of[2];
	} pair;
	char names[sizeof(layout_test_names)];
};

static const struct types layout_test_types = {
	.head = {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(struct btf_header),
		.type_len = offsetof(struct types, names) -
			    sizeof(struct btf_header),
		.str_off = offsetof(struct types, names) -
			   sizeof(struct btf_header),
		.str_len = sizeof(layout_test_names),
	},
	.number.type = { NAME_INT, INFO(INT, 0), { 4 } },
	.pointer = { 0, INFO(PTR, 0), { 1 } },
	.function.type = { 0, INFO(FUNC_PROTO, 2), { 1 } },
	.pair.type = { NAME_PAIR, INFO(STRUCT, 2), { 8 } },
	.pair.of = { { NAME_LEFT, 1, 0 }, { NAME_RIGHT, 1, 32 } },
	.names = "\0int\0pair\0left\0right",
};

static const struct isoblk_layout layout_test_pair[] = {
	{ "other", NULL, 1 },
	{ "other", "left", 1 },
	{ "pair", NULL, 8 },
	{ "pair", "left", 0 },
	{ "pair", "right", 4 },
	{ "last", NULL, 1 },
};

static const char *layout_test_compare(const struct types *types)
{
	return isoblk_layout_differs(types, sizeof(*types), layout_test_pair,
				     ARRAY_SIZE(layout_test_pair));
}

static void layout_equal_structures_do_not_differ(struct kunit *test)
{
	struct types flagged = layout_test_types;

	KUNIT_EXPECT_NULL(test, layout_test_compare(&layout_test_types));
	/* In a structure with bit fields the upper bits of an offset are a width. */
	flagged.pair.type.info |= FLAGGED;
	flagged.pair.of[1].offset |= 32 << 24;
	KUNIT_EXPECT_NULL(test, layout_test_compare(&flagged));
}

static void layout_another_size_offset_or_name_differs(struct kunit *test)
{
	struct types longer = layout_test_types, moved = layout_test_types,
		     without = layout_test_types, odd = layout_test_types;

	longer.pair.type.size = 16;
	KUNIT_EXPECT_STREQ(test, layout_test_compare(&longer), "pair");
	moved.pair.of[0].offset = 32;
	moved.pair.of[1].offset = 0;
	KUNIT_EXPECT_STREQ(test, layout_test_compare(&moved), "pair");
	without.pair.of[1].name_off = NAME_INT;
	KUNIT_EXPECT_STREQ(test, layout_test_compare(&without), "pair");
	/* An offset in bits that is not a whole byte. */
	odd.pair.of[1].offset = 33;
	KUNIT_EXPECT_STREQ(test, layout_test_compare(&odd), "pair");
}

static void layout_unknown_data_do_not_differ(struct kunit *test)
{
	struct types wrong[] = { layout_test_types, layout_test_types, layout_test_types,
				 layout_test_types, layout_test_types, layout_test_types };
	unsigned int i;

	wrong[0].head.magic = swab16(BTF_MAGIC);
	wrong[1].head.version = BTF_VERSION + 1;
	wrong[2].head.type_off = 2;
	wrong[3].names[sizeof(layout_test_names) - 1] = 'x';
	/* Types before the structure. */
	wrong[4].pointer.info = INFO(MAX, 0) + (1 << 24);
	wrong[5].function.type.info = INFO(FUNC_PROTO, 0xffff);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		wrong[i].pair.type.size = 16;
		KUNIT_EXPECT_NULL_MSG(test, layout_test_compare(&wrong[i]), "%u", i);
	}
}

/* KASAN reports a read beyond the end. */
static void layout_truncated_data_are_not_read_beyond_the_end(struct kunit *test)
{
	struct types *cut;
	size_t len;

	for (len = 0; len < sizeof(layout_test_types); len++) {
		cut = kunit_kmalloc(test, max(len, 1), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, cut);
		memcpy(cut, &layout_test_types, len);
		KUNIT_EXPECT_NULL(test, isoblk_layout_differs(cut, len, layout_test_pair,
							      ARRAY_SIZE(layout_test_pair)));
		kunit_kfree(test, cut);
	}
}

/* Any value in any word leads to no read outside the data. */
static void layout_no_value_leads_outside_the_data(struct kunit *test)
{
	static const u32 values[] = { 0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, ~0U };
	unsigned int word, i;
	u32 *copy;

	copy = kunit_kmalloc(test, sizeof(layout_test_types), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	for (word = 0; word < sizeof(layout_test_types) / sizeof(*copy); word++) {
		for (i = 0; i < ARRAY_SIZE(values); i++) {
			memcpy(copy, &layout_test_types, sizeof(layout_test_types));
			copy[word] = values[i];
			isoblk_layout_differs(copy, sizeof(layout_test_types), layout_test_pair,
					      ARRAY_SIZE(layout_test_pair));
		}
	}
}

static struct kunit_case layout_cases[] = {
	KUNIT_CASE(layout_equal_structures_do_not_differ),
	KUNIT_CASE(layout_another_size_offset_or_name_differs),
	KUNIT_CASE(layout_unknown_data_do_not_differ),
	KUNIT_CASE(layout_truncated_data_are_not_read_beyond_the_end),
	KUNIT_CASE(layout_no_value_leads_outside_the_data),
	{}
};

static struct kunit_suite layout_suite = {
	.name = "layout_test",
	.test_cases = layout_cases,
};

kunit_test_suite(layout_suite);

MODULE_DESCRIPTION("Tests of how structures are compared with the kernel's");
MODULE_LICENSE("GPL");
