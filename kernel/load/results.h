/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The results as text (results.c).
 */
#ifndef BLKLOAD_RESULTS_H
#define BLKLOAD_RESULTS_H

void blkload_results_init(void);
void blkload_results_exit(void);

#endif /* BLKLOAD_RESULTS_H */
