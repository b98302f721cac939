// SPDX-License-Identifier: GPL-2.0-only
/*
 * What isoblk shows and takes in sysfs and debugfs.
 */
#include <linux/module.h>
#include <linux/seq_file.h>

#include "core/charge.h"
#include "core/group.h"
#include "core/hold.h"
#include "core/run.h"
#include "core/show.h"
#include "core/size.h"
#include "core/tree.h"

ssize_t isoblk_window_show(struct elevator_queue *e, char *page)
{
	struct iso_disk *d = e->elevator_data;
	s64 mode = READ_ONCE(d->tunables.window);

	if (mode > 0)
		return sysfs_emit(page, "%lld\n", mode / 2);
	return sysfs_emit(page, mode ? "off\n" : "auto\n");
}
EXPORT_SYMBOL_GPL(isoblk_window_show);

ssize_t isoblk_window_store(struct elevator_queue *e, const char *page,
			    size_t count)
{
	struct iso_disk *d = e->elevator_data;
	unsigned int kb;
	s64 mode;
	int ret;

	if (sysfs_streq(page, "auto")) {
		mode = 0;
	} else if (sysfs_streq(page, "off")) {
		mode = -1;
	} else {
		ret = kstrtouint(page, 10, &kb);
		if (ret)
			return ret;
		if (!kb || kb > S32_MAX / 2)
			return -ERANGE;
		mode = 2LL * kb;
	}
	spin_lock_irq(&d->disk.lock);
	WRITE_ONCE(d->tunables.window, mode);
	if (d->room.size)
		iso_measure_restart(d);
	spin_unlock_irq(&d->disk.lock);
	return count;
}
EXPORT_SYMBOL_GPL(isoblk_window_store);

static const char *const account_names[] = {
	[ISO_BYTES] = "bytes",
	[ISO_IOS] = "ios",
	[ISO_TIME] = "time",
};

ssize_t isoblk_account_show(struct elevator_queue *e, char *page)
{
	struct iso_disk *d = e->elevator_data;

	return sysfs_emit(page, "%s\n", account_names[READ_ONCE(d->tariff.account)]);
}
EXPORT_SYMBOL_GPL(isoblk_account_show);

ssize_t isoblk_account_store(struct elevator_queue *e, const char *page,
			     size_t count)
{
	struct iso_disk *d = e->elevator_data;
	int account = sysfs_match_string(account_names, page);

	if (account < 0)
		return account;
	if (READ_ONCE(d->tariff.account) != account)
		isoblk_change_account(d, account);
	return count;
}
EXPORT_SYMBOL_GPL(isoblk_account_store);

#ifdef CONFIG_BLK_DEBUG_FS
int isoblk_debugfs_window(void *data, struct seq_file *m)
{
	struct iso_disk *d = isoblk_show_begin(data, isoblk_debugfs_window);
	unsigned int i, inflight = 0, waiting = 0;

	if (!d)
		return 0;
	spin_lock_irq(&d->disk.lock);
	for (i = 0; i < d->disk.nr_hqs; i++) {
		inflight += atomic_read(&d->hq[i].in_device);
		waiting += READ_ONCE(d->hq[i].nr);
	}
	seq_printf(m, "inflight %u used %lld size %llu trial %d waiting %u blocked %d rate %llu mean %llu busy_with %llu unit %u late_ns %llu squeezed %llu pace %llu\n",
		   inflight, iso_room_used(&d->room), d->room.size,
		   d->window.phase == WINDOW_TRY, waiting,
		   atomic_read(&d->nr_blocked), d->device.rate,
		   d->device.mean_work,
		   d->device.busy_with / ISO_BUSY_ONE, d->tariff.unit,
		   READ_ONCE(d->late.ns), d->squeeze.window,
		   d->squeeze.pace);
	spin_unlock_irq(&d->disk.lock);
	isoblk_show_end(data);
	return 0;
}
EXPORT_SYMBOL_GPL(isoblk_debugfs_window);

/* How often the tick found the disk stuck; and whether it then does something. */
int isoblk_debugfs_rescue(void *data, struct seq_file *m)
{
	struct iso_disk *d = isoblk_show_begin(data, isoblk_debugfs_rescue);

	if (!d)
		return 0;
	seq_printf(m, "rescued %lu %s\n", READ_ONCE(d->rescue.nr),
		   READ_ONCE(d->rescue.off) ? "off" : "on");
	isoblk_show_end(data);
	return 0;
}
EXPORT_SYMBOL_GPL(isoblk_debugfs_rescue);

/* For tests: switched off, a disk that is stuck stays so, and a load on it hangs. */
ssize_t isoblk_debugfs_set_rescue(void *data, const char __user *text,
				  size_t count, loff_t *pos)
{
	struct iso_disk *d;
	bool on;
	int ret = kstrtobool_from_user(text, count, &on);

	if (ret)
		return ret;
	d = isoblk_show_begin(data, isoblk_debugfs_rescue);
	if (!d)
		return -ENODEV;
	WRITE_ONCE(d->rescue.off, !on);
	isoblk_show_end(data);
	return count;
}
EXPORT_SYMBOL_GPL(isoblk_debugfs_set_rescue);

/* A price as work of a request of no sectors, and of each sector. */
int isoblk_debugfs_prices(void *data, struct seq_file *m)
{
	static const char *const names[PRICE_KINDS] = { "read", "write", "discard" };
	struct iso_disk *d = isoblk_show_begin(data, isoblk_debugfs_prices);
	unsigned int i;

	if (!d)
		return 0;
	spin_lock_irq(&d->disk.lock);
	for (i = 0; i < PRICE_KINDS; i++)
		seq_printf(m, "%s request %u sector %u of %u\n", names[i],
			   d->tariff.of[i].request, d->tariff.of[i].sector,
			   d->tariff.unit << PRICE_SHIFT);
	spin_unlock_irq(&d->disk.lock);
	isoblk_show_end(data);
	return 0;
}
EXPORT_SYMBOL_GPL(isoblk_debugfs_prices);

static void show_group(struct seq_file *m, struct iso_disk *d,
		       struct iso_group *g)
{
	s64 ahead = atomic64_read(&g->vtime) - READ_ONCE(d->clock.vnow);
	u64 has = atomic64_read(&g->has);

	isoblk_show_group(m, g->group);
	seq_printf(m, " ahead %lld waiting %u in_device %u at_gate %u think_ns %llu gain %u held_for %d\n",
		   ahead >> VTIME_SHIFT, iso_waits(has), iso_in_device(has),
		   isoblk_group_at_gate(g->group), READ_ONCE(g->think_ns),
		   g->hold.gain, g->held_for);
}

int isoblk_debugfs_groups(void *data, struct seq_file *m)
{
	struct iso_disk *d = isoblk_show_begin(data, isoblk_debugfs_groups);
	struct iso_group *g;

	if (!d)
		return 0;
	spin_lock_irq(&d->disk.lock);
	list_for_each_entry(g, &d->members.list, node)
		show_group(m, d, g);
	spin_unlock_irq(&d->disk.lock);
	isoblk_show_end(data);
	return 0;
}
EXPORT_SYMBOL_GPL(isoblk_debugfs_groups);
#endif
