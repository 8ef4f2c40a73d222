# Prints what log directories hold. Arguments: the directories.
for dir; do
	[ -d "$dir" ] || continue
	printf 'dir\t%s\n' "$dir"
	[ -r "$dir/meta.properties" ] && while IFS= read -r line; do
		printf 'meta\t%s\n' "$line"
	done <"$dir/meta.properties"
	for name in "$dir"/* "$dir"/.[!.]*; do
		[ -e "$name" ] && printf 'name\t%s\n' "${name##*/}"
	done
done
exit 0
