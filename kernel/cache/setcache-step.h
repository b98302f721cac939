/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bio of dm-setcache that needs more than one, for those parts that are at
 * work on it: -job, -fill, -write, -step.
 */
#ifndef SETCACHE_STEP_H
#define SETCACHE_STEP_H

#include "setcache-plan.h"

struct cgroup_subsys_state;

/* What a block of a job is. */
enum sc_kind {
	SC_KIND_HIT,		/* in its slot, written or read there */
	SC_KIND_NEW,		/* in a fresh slot; of a read: by our pages */
	SC_KIND_RMW,		/* in a fresh slot, and only a part is given */
	SC_KIND_ORIGIN,		/* on the origin */
	SC_KIND_AWAY,		/* in a slot, dirty, and to be on the origin */
};

/* A block of a job. */
struct sc_piece {
	u16 slot;	/* its slot, or SC_NIL */
	u8 kind;	/* enum sc_kind */
};

/*
 * A job. One step at a time is at work on it, and needs no lock; what the ends
 * of its bios set is looked at by the next step.
 */
struct sc_job {
	struct setcache *sc;		/* the cache; constant */
	struct sc_op op;		/* announcement, which was the bio's */

	/* The bio, and what it was; not to be touched after its end. */
	struct sc_io *io;		/* the bio's own data */
	struct bio *bio;		/* the bio, NULL when it has ended */
	struct bvec_iter iter;		/* where it lies; these: constant */
	blk_opf_t opf;			/* its operation and flags */
	unsigned short ioprio;		/* its priority */
	enum rw_hint write_hint;	/* its hint */
	bool through;			/* it is a write to both devices */
	bool away;			/* some blocks go to the origin */
	bool dirty;			/* some blocks were, and stay, dirty */

	/* The step that is at work. */
	atomic_t pending;		/* bios, and one while they are sent */
	blk_status_t ssd_error;		/* error of any; set in interrupts */
	blk_status_t origin_error;	/* error of any; set in interrupts */
	void (*next)(struct sc_job *job);	/* the step that follows */
	struct work_struct work;	/* calls that */
	struct sc_waiter waiter;	/* wait for a commit */

	/* The fill that a read leaves. */
	struct cgroup_subsys_state *css;	/* who is charged, or NULL */
	struct list_head fill;	/* place in the cache's list; by its lock */

	/* Pages of our own. */
	struct {
		struct page **pages;	/* the pages; some may be missing */
		u32 nr;			/* how many there is room for */
		u32 base;		/* first block that has pages */
	} ours;

	u32 count;			/* number of blocks; constant */
	struct sc_piece pieces[];	/* the blocks */
};

/* May sleep. */
void sc_job_work(struct work_struct *work);
void sc_job_free(struct sc_job *job);
void sc_job_around(struct sc_job *job, blk_status_t error);
void sc_job_retry(struct sc_job *job);
void sc_job_end(struct sc_job *job, blk_status_t error);
/* Any context. */
void sc_job_put(struct sc_job *job);
void sc_job_user(struct sc_job *job, u32 i, u32 end, bool ssd);
void sc_job_ours(struct sc_job *job, u32 i, u32 end, bool ssd, blk_opf_t opf);
/* Any context. */
bool sc_job_has(const struct sc_job *job, enum sc_kind kind);
u32 sc_job_run(const struct sc_job *job, u32 i, bool slots);
void sc_job_give_back(struct sc_job *job, enum sc_kind kind);
bool sc_job_pages(struct sc_job *job, enum sc_kind kind);
void sc_job_copy(struct sc_job *job, enum sc_kind kind, bool to_ours);

#endif /* SETCACHE_STEP_H */
