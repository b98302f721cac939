/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job of dm-setcache, for the parts that execute it: -job, -fill, -write,
 * -step.
 */
#ifndef SETCACHE_STEP_H
#define SETCACHE_STEP_H

#include "setcache-plan.h"

struct cgroup_subsys_state;

/* Where the data of a job's block are, and where they go. */
enum sc_kind {
	SC_KIND_HIT,		/* in its slot, read or written there */
	SC_KIND_NEW,		/* in a new slot; a read uses our own pages */
	SC_KIND_RMW,		/* in a new slot, written in part */
	SC_KIND_ORIGIN,		/* on the origin */
	SC_KIND_DIVERTED,	/* dirty in a slot, and to be written to the origin */
};

/* A block of a job. */
struct sc_piece {
	u16 slot;	/* its slot, or SC_NIL */
	u8 kind;	/* enum sc_kind */
};

/*
 * A job. Its steps run one at a time and need no lock. The ends of its bios set
 * errors, which the next step reads.
 */
struct sc_job {
	struct setcache *sc;		/* the cache; constant */
	struct sc_op op;		/* announcement, taken over from the bio */

	/* The bio, and its parameters; not to be used after its end. */
	struct sc_io *io;		/* the bio's own data */
	struct bio *bio;		/* the bio; NULL when it has ended */
	struct bvec_iter iter;		/* its sectors; constant from here on */
	blk_opf_t opf;			/* the bio's operation and flags */
	unsigned short ioprio;		/* the bio's I/O priority */
	enum rw_hint write_hint;	/* the bio's write hint */
	bool write_through;		/* it is a write to both devices */
	bool has_diverted;		/* some blocks go to the origin */
	bool keeps_dirty;		/* some blocks were dirty, and stay so */

	/* The current step. */
	atomic_t pending;		/* bios, plus 1 while bios are sent */
	blk_status_t ssd_error;		/* error of a bio; set in interrupts */
	blk_status_t origin_error;	/* error of a bio; set in interrupts */
	void (*next_step)(struct sc_job *job);	/* the step that follows */
	struct work_struct work;	/* calls next() */
	struct sc_waiter waiter;	/* wait for a commit */

	/* The fill of a read. */
	struct cgroup_subsys_state *css;	/* cgroup to charge, or NULL */
	struct list_head fill;	/* entry in fills.list; under its lock */

	/* The cache's own pages. */
	struct {
		struct page **pages;	/* the pages; some may be NULL */
		u32 nr;			/* size of the array, in pages */
		u32 first_block;	/* first block that has pages */
	} own;

	u32 nr_blocks;			/* number of blocks; constant */
	struct sc_piece pieces[];	/* the blocks */
};

/* May sleep. */
void sc_job_work(struct work_struct *work);
void sc_job_free(struct sc_job *job);
void sc_job_end_or_retry(struct sc_job *job, blk_status_t error);
void sc_job_retry(struct sc_job *job);
void sc_job_end(struct sc_job *job, blk_status_t error);
/* Any context. */
void sc_job_put(struct sc_job *job);
void sc_job_send_user(struct sc_job *job, u32 i, u32 end, bool ssd);
void sc_job_send_own(struct sc_job *job, u32 i, u32 end, bool ssd,
		     blk_opf_t opf);
/* Any context. */
bool sc_job_has_kind(const struct sc_job *job, enum sc_kind kind);
u32 sc_job_run_end(const struct sc_job *job, u32 i, bool slots);
void sc_job_free_slots(struct sc_job *job, enum sc_kind kind);
bool sc_job_alloc_pages(struct sc_job *job, enum sc_kind kind);
void sc_job_copy_pages(struct sc_job *job, enum sc_kind kind, bool to_ours);

#endif /* SETCACHE_STEP_H */
