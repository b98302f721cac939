// SPDX-License-Identifier: GPL-2.0-only
/*
 * Check that the kernel's structures are those that the modules were built with.
 *
 * Headers packages lack the private headers of block/, so the modules are built with those of a
 * nearby kernel's source. A stable release may change them: 6.12.115 made struct blkg_policy_data
 * longer, with which struct isoblk_group begins. Symbol versions do not show that, as they come
 * from the kernel's own build, and modules with another layout corrupt memory.
 *
 * So loading begins with a look at the kernel's BTF (Documentation/bpf/btf.rst), which sysfs has.
 * Compared are sizes, and offsets of the members that our code or inline functions of those
 * headers use; not types of functions. A kernel without BTF is accepted with a message in the log,
 * BTF of an unknown format without one. BTF that cannot be read is an error. The module mounts
 * sysfs for itself: an initramfs, which loads the root disk's elevator, may not have /sys.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <uapi/linux/btf.h>

#include "share/group.h"
#include "share/layout.h"

/* Path in sysfs. */
#define BTF_FILE	"kernel/btf/vmlinux"

/* Ten times the BTF of distributions' kernels. */
#define BTF_SIZE_MAX	SZ_64M

#define SIZE(of)	{ #of, NULL, sizeof(struct of) }
#define AT(of, member)	{ #of, #member, offsetof(struct of, member) }

/* The size of a structure, followed by its members. */
static const struct isoblk_layout built_with[] = {
	SIZE(elevator_type),
	AT(elevator_type, ops),
	AT(elevator_type, icq_size),
	AT(elevator_type, icq_align),
	AT(elevator_type, elevator_attrs),
	AT(elevator_type, elevator_name),
	AT(elevator_type, elevator_owner),

	SIZE(elevator_mq_ops),
	AT(elevator_mq_ops, init_sched),
	AT(elevator_mq_ops, exit_sched),
	AT(elevator_mq_ops, init_hctx),
	AT(elevator_mq_ops, exit_hctx),
	AT(elevator_mq_ops, depth_updated),
	AT(elevator_mq_ops, allow_merge),
	AT(elevator_mq_ops, bio_merge),
	AT(elevator_mq_ops, request_merge),
	AT(elevator_mq_ops, request_merged),
	AT(elevator_mq_ops, requests_merged),
	AT(elevator_mq_ops, limit_depth),
	AT(elevator_mq_ops, prepare_request),
	AT(elevator_mq_ops, finish_request),
	AT(elevator_mq_ops, insert_requests),
	AT(elevator_mq_ops, dispatch_request),
	AT(elevator_mq_ops, has_work),
	AT(elevator_mq_ops, completed_request),
	AT(elevator_mq_ops, requeue_request),
	AT(elevator_mq_ops, former_request),
	AT(elevator_mq_ops, next_request),
	AT(elevator_mq_ops, init_icq),
	AT(elevator_mq_ops, exit_icq),

	SIZE(elevator_queue),
	AT(elevator_queue, type),
	AT(elevator_queue, elevator_data),
	AT(elevator_queue, kobj),
	AT(elevator_queue, flags),

	SIZE(elv_fs_entry),
	AT(elv_fs_entry, show),
	AT(elv_fs_entry, store),

	SIZE(blk_mq_debugfs_attr),
	AT(blk_mq_debugfs_attr, show),
	AT(blk_mq_debugfs_attr, write),
	AT(blk_mq_debugfs_attr, seq_ops),

	SIZE(blk_mq_alloc_data),
	AT(blk_mq_alloc_data, q),
	AT(blk_mq_alloc_data, flags),
	AT(blk_mq_alloc_data, shallow_depth),
	AT(blk_mq_alloc_data, cmd_flags),

	SIZE(blk_mq_ctx),
	AT(blk_mq_ctx, cpu),
	AT(blk_mq_ctx, index_hw),
	AT(blk_mq_ctx, hctxs),

	SIZE(blkcg),
	AT(blkcg, css),
	AT(blkcg, lock),
	AT(blkcg, blkg_tree),
	AT(blkcg, blkg_hint),
	AT(blkcg, blkg_list),
	AT(blkcg, cpd),

	SIZE(blkcg_gq),
	AT(blkcg_gq, q),
	AT(blkcg_gq, blkcg_node),
	AT(blkcg_gq, blkcg),
	AT(blkcg_gq, parent),
	AT(blkcg_gq, refcnt),
	AT(blkcg_gq, online),
	AT(blkcg_gq, pd),
	AT(blkcg_gq, use_delay),
	AT(blkcg_gq, delay_nsec),

	SIZE(blkg_policy_data),
	AT(blkg_policy_data, blkg),
	AT(blkg_policy_data, plid),

	SIZE(blkcg_policy_data),
	AT(blkcg_policy_data, blkcg),
	AT(blkcg_policy_data, plid),

	SIZE(blkcg_policy),
	AT(blkcg_policy, plid),
	AT(blkcg_policy, dfl_cftypes),
	AT(blkcg_policy, legacy_cftypes),
	AT(blkcg_policy, cpd_alloc_fn),
	AT(blkcg_policy, cpd_free_fn),
	AT(blkcg_policy, pd_alloc_fn),
	AT(blkcg_policy, pd_init_fn),
	AT(blkcg_policy, pd_online_fn),
	AT(blkcg_policy, pd_offline_fn),
	AT(blkcg_policy, pd_free_fn),
	AT(blkcg_policy, pd_stat_fn),

	SIZE(blkg_conf_ctx),
	AT(blkg_conf_ctx, body),
	AT(blkg_conf_ctx, blkg),
};

/* The kernel's BTF: @types bytes of types at @type, @names bytes of strings at @name. */
struct btf {
	const void *type;
	u32 types;
	const char *name;
	u32 names;
};

/* Parse the header of @data. False: unknown format. */
static bool btf_open(struct btf *btf, const void *data, size_t len)
{
	const struct btf_header *head = data;
	size_t rest;

	if (len < sizeof(*head) || head->magic != BTF_MAGIC ||
	    head->version != BTF_VERSION || head->hdr_len > len)
		return false;
	rest = len - head->hdr_len;
	if (head->type_off > rest || head->type_len > rest - head->type_off ||
	    head->str_off > rest || head->str_len > rest - head->str_off ||
	    !IS_ALIGNED(head->hdr_len + head->type_off, sizeof(u32)))
		return false;
	btf->type = data + head->hdr_len + head->type_off;
	btf->types = head->type_len;
	btf->name = data + head->hdr_len + head->str_off;
	btf->names = head->str_len;
	/* The last string is terminated. */
	return btf->names && !btf->name[btf->names - 1];
}

static const char *btf_name(const struct btf *btf, u32 at)
{
	return at < btf->names ? btf->name + at : "";
}

/* Length of a type in bytes; 0: unknown kind. */
static size_t btf_length(const struct btf_type *type)
{
	size_t many = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return sizeof(*type);
	case BTF_KIND_INT:
		return sizeof(*type) + sizeof(u32);
	case BTF_KIND_VAR:
		return sizeof(*type) + sizeof(struct btf_var);
	case BTF_KIND_DECL_TAG:
		return sizeof(*type) + sizeof(struct btf_decl_tag);
	case BTF_KIND_ARRAY:
		return sizeof(*type) + sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return sizeof(*type) + many * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return sizeof(*type) + many * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return sizeof(*type) + many * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return sizeof(*type) + many * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return sizeof(*type) + many * sizeof(struct btf_var_secinfo);
	}
	return 0;
}

static bool member_fits(const struct btf *btf, const struct btf_type *type,
			const struct isoblk_layout *want)
{
	const struct btf_member *member = (const void *)(type + 1);
	u32 i;

	for (i = 0; i < BTF_INFO_VLEN(type->info); i++, member++) {
		u32 bits = BTF_INFO_KFLAG(type->info) ?
			   BTF_MEMBER_BIT_OFFSET(member->offset) : member->offset;

		if (!strcmp(btf_name(btf, member->name_off), want->member))
			return bits == want->value * BITS_PER_BYTE;
	}
	return false;
}

/* Compare a structure with its size at @want and the members that follow it, before @end. */
static bool struct_fits(const struct btf *btf, const struct btf_type *type,
			const struct isoblk_layout *want,
			const struct isoblk_layout *end)
{
	if (type->size != want->value)
		return false;
	for (want++; want < end && want->member; want++)
		if (!member_fits(btf, type, want))
			return false;
	return true;
}

/**
 * isoblk_layout_differs() - find a structure whose layout differs in the kernel
 * @data: the kernel's BTF
 * @len: length of @data
 * @want: for each structure its size, followed by its members
 * @nr: length of @want
 *
 * Return: the structure's name; NULL if none differs or the format of @data is unknown.
 */
const char *isoblk_layout_differs(const void *data, size_t len,
				  const struct isoblk_layout *want, size_t nr)
{
	const struct isoblk_layout *end = want + nr;
	struct btf btf;
	u32 at = 0;

	if (!btf_open(&btf, data, len))
		return NULL;
	while (btf.types - at >= sizeof(struct btf_type)) {
		const struct btf_type *type = btf.type + at;
		size_t length = btf_length(type);
		const struct isoblk_layout *one;

		if (!length || length > btf.types - at)
			return NULL;
		at += length;
		if (BTF_INFO_KIND(type->info) != BTF_KIND_STRUCT)
			continue;
		for (one = want; one < end; one++)
			if (!one->member &&
			    !strcmp(one->of, btf_name(&btf, type->name_off)) &&
			    !struct_fits(&btf, type, one, end))
				return one->of;
	}
	return NULL;
}

/* Read @len bytes of @file into a vmalloc()ed buffer; NULL: out of memory, or a short file. */
static void *read_whole(struct file *file, size_t len)
{
	void *data = vmalloc(len);
	loff_t pos = 0;
	ssize_t got = 1;

	if (!data)
		return NULL;
	/* sysfs reads may be short. */
	while (got > 0 && pos < len)
		got = kernel_read(file, data + pos, len - pos, &pos);
	if (got > 0)
		return data;
	vfree(data);
	return NULL;
}

static int check_file(struct file *file, const char **differs)
{
	loff_t len = i_size_read(file_inode(file));
	void *data;

	if (len <= 0 || len > BTF_SIZE_MAX)
		return -EFBIG;
	data = read_whole(file, len);
	if (!data)
		return -EIO;
	*differs = isoblk_layout_differs(data, len, built_with,
					 ARRAY_SIZE(built_with));
	vfree(data);
	return 0;
}

static int check_mount(struct vfsmount *sysfs, const char **differs)
{
	struct path root = { .mnt = sysfs, .dentry = sysfs->mnt_root };
	struct file *file = file_open_root(&root, BTF_FILE, O_RDONLY, 0);
	int ret;

	if (IS_ERR(file))
		return PTR_ERR(file);
	ret = check_file(file, differs);
	fput(file);
	return ret;
}

/**
 * isoblk_layout_check() - compare the kernel's structures with those of the build
 * @differs: set to the name of a structure that differs, or NULL
 *
 * Return: 0, -ENOENT if the kernel has no BTF, or another errno if it cannot be read.
 */
int isoblk_layout_check(const char **differs)
{
	struct file_system_type *type = get_fs_type("sysfs");
	struct vfsmount *sysfs;
	int ret;

	*differs = NULL;
	/* sysfs is built in: @type has no module reference to drop. */
	if (!type)
		return -ENOENT;
	sysfs = kern_mount(type);
	if (IS_ERR(sysfs))
		return PTR_ERR(sysfs);
	ret = check_mount(sysfs, differs);
	kern_unmount(sysfs);
	return ret;
}
