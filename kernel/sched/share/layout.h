/* SPDX-License-Identifier: GPL-2.0-only */
/* Check that the kernel's structures are those that the modules were built with. */
#ifndef ISOBLK_LAYOUT_H
#define ISOBLK_LAYOUT_H

#include <linux/types.h>

/**
 * struct isoblk_layout - size of a structure, or offset of a member
 * @of: name of the structure
 * @member: name of the member; NULL for the size
 * @value: offset or size in bytes
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
