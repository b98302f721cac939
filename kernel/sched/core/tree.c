// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups that wait on a hardware queue, in the order of their times.
 */
#include "core/tree.h"
#include "core/vtime.h"

/**
 * iso_tree_add() - a group waits
 * @hq: its lock is held
 * @gq: not in the tree
 */
void iso_tree_add(struct iso_hq *hq, struct iso_gq *gq)
{
	struct rb_node **link = &hq->tree.rb_root.rb_node, *parent = NULL;
	struct iso_gq *other;
	bool first = true;

	gq->key = atomic64_read(&gq->group->vtime);
	while (*link) {
		parent = *link;
		other = rb_entry(parent, struct iso_gq, node);
		if (vtime_before(gq->key, other->key)) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			first = false;
		}
	}
	rb_link_node(&gq->node, parent, link);
	rb_insert_color_cached(&gq->node, &hq->tree, first);
}

/**
 * iso_tree_renew() - put a group where it belongs by its time
 * @hq: its lock is held
 * @gq: in the tree
 */
void iso_tree_renew(struct iso_hq *hq, struct iso_gq *gq)
{
	rb_erase_cached(&gq->node, &hq->tree);
	iso_tree_add(hq, gq);
}

/**
 * iso_reorder() - the order is another, for times were set back
 * @d: disk; who is next is asked afterwards
 */
void iso_reorder(struct iso_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		/* Pairs with iso_choose(): times are read after. */
		smp_store_release(&d->hq[i].stale, true);
}

/**
 * iso_reorder_now() - put all groups where they belong
 * @hq: its lock is held
 */
void iso_reorder_now(struct iso_hq *hq)
{
	struct rb_root all = hq->tree.rb_root;
	struct rb_node *node;

	hq->tree = RB_ROOT_CACHED;
	hq->turn = NULL;
	while ((node = rb_first(&all))) {
		rb_erase(node, &all);
		iso_tree_add(hq, rb_entry(node, struct iso_gq, node));
	}
}

/**
 * iso_tree_first() - the group that is furthest behind
 * @d: disk
 * @hq: its lock is held
 *
 * A time grows where the group sends from another hardware queue: its place here is then
 * too early, and is mended when it comes first. Seldom a time is set back (a larger share,
 * a refund): the place is then too late, and is mended when others would wait for the
 * group.
 *
 * Return: NULL if none waits.
 */
struct iso_gq *iso_tree_first(const struct iso_disk *d, struct iso_hq *hq)
{
	struct rb_node *node;
	struct iso_gq *gq;

	while ((node = rb_first_cached(&hq->tree))) {
		gq = rb_entry(node, struct iso_gq, node);
		if (gq->key == atomic64_read(&gq->group->vtime))
			return gq;
		iso_tree_renew(hq, gq);
	}
	return NULL;
}

/**
 * iso_take() - take the first request of a group out of all lists
 * @hq: its lock is held
 * @gq: has one; is to be added to the tree again, if it has more
 */
struct request *iso_take(struct iso_hq *hq, struct iso_gq *gq)
{
	struct request *rq = iso_first_of(gq);

	list_del_init(&rq->queuelist);
	list_del_init(&gq->fresh_node);
	rb_erase_cached(&gq->node, &hq->tree);
	gq->end = blk_rq_pos(rq) + blk_rq_sectors(rq);
	WRITE_ONCE(gq->nr, gq->nr - 1);
	if (!gq->nr && hq->turn == gq)
		hq->turn = NULL;
	return rq;
}
