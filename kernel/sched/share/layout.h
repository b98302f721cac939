/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether this kernel has the structures that the modules were built with. */
#ifndef ISOBLK_LAYOUT_H
#define ISOBLK_LAYOUT_H

#include <linux/types.h>

/**
 * struct isoblk_layout - one thing that is known of a structure
 * @of: the structure's name
 * @member: of it; NULL: the structure itself
 * @value: where the member begins, or the structure's size, in bytes
 */
struct isoblk_layout {
	const char *of;
	const char *member;
	u32 value;
};

const char *isoblk_layout_differs(const void *data, size_t len,
				  const struct isoblk_layout *want, size_t nr);
int isoblk_layout_check(const char **differs);

#endif /* ISOBLK_LAYOUT_H */
