/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests that include the code of a whole module. The module is not registered, and its symbols
 * are not exported.
 */
#ifndef ISOBLK_PART_OF_TEST_H
#define ISOBLK_PART_OF_TEST_H

#include <linux/export.h>
#include <linux/module.h>

#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol) struct symbol##_is_not_exported

/* Reference the init and exit functions without calling them. */
#undef module_init
#define module_init(fn)							\
static inline initcall_t fn##_left_out(void) { return fn; }
#undef module_exit
#define module_exit(fn)							\
static inline exitcall_t fn##_left_out(void) { return fn; }

#endif /* ISOBLK_PART_OF_TEST_H */
