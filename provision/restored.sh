# Fails, and says why, where something of a run is left. Arguments: krig's directories.
left=
for dir; do
	[ ! -e "$dir" ] || left="$left $dir"
	while read -r _ at _; do
		case $at in "$dir" | "$dir"/*) left="$left mount:$at" ;; esac
	done </proc/mounts
done
[ -z "$left" ] || { echo "still there:$left" >&2; exit 1; }
