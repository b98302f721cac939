// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is shown and taken in sysfs and debugfs.
 */
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "isoblk/epoch.h"
#include "isoblk/isoblk.h"
#include "isoblk/run.h"

/* The largest that are taken: more has no effect. */
#define HOLD_US_MAX		10000000
#define IDLE_US_MAX		1000000

static ssize_t window_show(struct elevator_queue *e, char *page)
{
	struct iso_disk *d = e->elevator_data;
	s64 us = READ_ONCE(d->tunables.window);

	if (us > 0)
		return sysfs_emit(page, "%lld\n", us);
	return sysfs_emit(page, us ? "off\n" : "auto\n");
}

static ssize_t window_store(struct elevator_queue *e, const char *page, size_t count)
{
	struct iso_disk *d = e->elevator_data;
	unsigned int us;
	s64 window;
	int ret;

	if (sysfs_streq(page, "auto")) {
		window = 0;
	} else if (sysfs_streq(page, "off")) {
		window = -1;
	} else {
		ret = kstrtouint(page, 10, &us);
		if (ret)
			return ret;
		if (!us || us > S32_MAX / 2)
			return -ERANGE;
		window = us;
	}
	spin_lock_irq(&d->disk.lock);
	WRITE_ONCE(d->tunables.window, window);
	iso_restart(d);
	spin_unlock_irq(&d->disk.lock);
	return count;
}

static ssize_t cost_model_show(struct elevator_queue *e, char *page)
{
	struct iso_disk *d = e->elevator_data;
	int len;

	spin_lock_irq(&d->disk.lock);
	len = cost_print(&d->cost, page, PAGE_SIZE - 1);
	spin_unlock_irq(&d->disk.lock);
	page[len++] = '\n';
	page[len] = '\0';
	return len;
}

static int iso_parse_model(struct cost_model *m, const struct iso_disk *d, const char *page)
{
	char *text;
	int ret;

	if (sysfs_streq(page, "auto")) {
		cost_set_auto(m, d->kind);
		return 0;
	}
	if (sysfs_streq(page, "bytes")) {
		cost_set_bytes(m);
		return 0;
	}
	/* A change of elevators holds our caller's lock while the queue is frozen. */
	text = kstrdup(page, GFP_NOIO);
	if (!text)
		return -ENOMEM;
	ret = cost_parse(m, text);
	kfree(text);
	return ret;
}

static ssize_t cost_model_store(struct elevator_queue *e, const char *page, size_t count)
{
	struct iso_disk *d = e->elevator_data;
	struct cost_model m;
	int ret = iso_parse_model(&m, d, page);

	if (ret)
		return ret;
	spin_lock_irq(&d->disk.lock);
	d->cost = m;
	/* Costs were something else before. */
	iso_restart(d);
	spin_unlock_irq(&d->disk.lock);
	return count;
}

ISOBLK_UINT(iso_disk, hold_us, tunables.hold_us, 1, HOLD_US_MAX)
ISOBLK_UINT(iso_disk, idle_us, tunables.idle_us, 0, IDLE_US_MAX)
ISOBLK_UINT(iso_disk, max_loss, tunables.max_loss, 0, FLOOR_LOSS_ONE)
ISOBLK_UINT(iso_disk, merge_kb, tunables.merge_kb, 4, S32_MAX >> 10)

struct elv_fs_entry iso_attrs[] = {
	__ATTR(window, 0644, window_show, window_store),
	__ATTR(gate, 0644, isoblk_gate_show, isoblk_gate_store),
	__ATTR(cost_model, 0644, cost_model_show, cost_model_store),
	__ATTR(hold_us, 0644, hold_us_show, hold_us_store),
	__ATTR(idle_us, 0644, idle_us_show, idle_us_store),
	__ATTR(max_loss, 0644, max_loss_show, max_loss_store),
	__ATTR(merge_kb, 0644, merge_kb_show, merge_kb_store),
	__ATTR_NULL
};

#ifdef CONFIG_BLK_DEBUG_FS
static int iso_show_window(void *data, struct seq_file *m)
{
	struct iso_disk *d = isoblk_show_begin(data, iso_show_window);
	unsigned int i, in_flight = 0, waiting = 0;

	if (!d)
		return 0;
	spin_lock_irq(&d->disk.lock);
	for (i = 0; i < d->disk.nr_hqs; i++) {
		in_flight += atomic_read(&d->hq[i].in_flight);
		waiting += READ_ONCE(d->hq[i].nr);
	}
	seq_printf(m, "inflight %u used %lld size %llu trial %d waiting %u blocked %d rate %llu mean %llu\n",
		   in_flight, iso_room_used(&d->room), d->room.size,
		   d->window.phase == WINDOW_TRIAL, waiting,
		   atomic_read(&d->nr_blocked), d->device.rate,
		   d->device.mean_cost);
	spin_unlock_irq(&d->disk.lock);
	isoblk_show_end(data);
	return 0;
}

static int iso_show_floor(void *data, struct seq_file *m)
{
	struct iso_disk *d = isoblk_show_begin(data, iso_show_floor);

	if (!d)
		return 0;
	spin_lock_irq(&d->disk.lock);
	seq_printf(m, "floor %lld trial %d pause %u left %u\n",
		   d->floor.size == FLOOR_OPEN ? -1 : (s64)d->floor.size,
		   d->floor.phase == FLOOR_TRIAL, d->floor.pause, d->floor.left);
	spin_unlock_irq(&d->disk.lock);
	isoblk_show_end(data);
	return 0;
}

/* How often the tick found the disk stuck; and whether it then does something. */
static int iso_show_rescue(void *data, struct seq_file *m)
{
	struct iso_disk *d = isoblk_show_begin(data, iso_show_rescue);

	if (!d)
		return 0;
	seq_printf(m, "rescued %lu %s\n", READ_ONCE(d->rescue.nr),
		   READ_ONCE(d->rescue.off) ? "off" : "on");
	isoblk_show_end(data);
	return 0;
}

/* For tests: switched off, a disk that is stuck stays so, and a load on it hangs. */
static ssize_t iso_set_rescue(void *data, const char __user *text, size_t count, loff_t *pos)
{
	struct iso_disk *d;
	bool on;
	int ret = kstrtobool_from_user(text, count, &on);

	if (ret)
		return ret;
	d = isoblk_show_begin(data, iso_show_rescue);
	if (!d)
		return -ENODEV;
	WRITE_ONCE(d->rescue.off, !on);
	isoblk_show_end(data);
	return count;
}

static void iso_show_group(struct seq_file *m, struct iso_disk *d, struct iso_group *g)
{
	s64 ahead = atomic64_read(&g->vtime) - READ_ONCE(d->clock.vnow);
	u64 has = atomic64_read(&g->has);

	isoblk_show_group(m, g->group);
	seq_printf(m, " ahead %lld waiting %u in_flight %u at_gate %u think_ns %llu\n",
		   ahead, iso_waits(has), iso_in_flight(has),
		   isoblk_group_nr_waiting(g->group), READ_ONCE(g->think_ns));
}

static int iso_show_groups(void *data, struct seq_file *m)
{
	struct iso_disk *d = isoblk_show_begin(data, iso_show_groups);
	struct iso_group *g;

	if (!d)
		return 0;
	spin_lock_irq(&d->disk.lock);
	list_for_each_entry(g, &d->members.list, node)
		iso_show_group(m, d, g);
	spin_unlock_irq(&d->disk.lock);
	isoblk_show_end(data);
	return 0;
}

const struct blk_mq_debugfs_attr iso_debugfs[] = {
	{ "window", 0400, iso_show_window },
	{ "floor", 0400, iso_show_floor },
	{ "groups", 0400, iso_show_groups },
	{ "rescue", 0600, iso_show_rescue, iso_set_rescue },
	{ "gate", 0400, isoblk_debugfs_gate },
	{ },
};
#endif
