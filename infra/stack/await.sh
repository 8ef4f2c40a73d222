# Says what a host is, a line a fact: its word, a tab, its values. Arguments: its
# internal address, then two for each data disk: its device, or "" where only
# its id is known, and its id.
set -u
PATH=$PATH:/usr/sbin:/sbin
tab=$(printf '\t')
echo "kernel$tab$(cat /proc/sys/kernel/random/boot_id)"
echo "machine$tab$(uname -m)"
echo "memory$tab$(awk '/^MemTotal:/ { printf "%.0f\n", $2 * 1024 }' /proc/meminfo)"
echo "link$tab$(ip -o addr show to "$1" 2>/dev/null | awk '{ sub(/@.*/, "", $2); print $2; exit }')"
shift
links=/dev/disk/by-id
while [ $# -gt 1 ]; do
	device=$1 id=$2
	shift 2
	if [ -z "$device" ]; then
		plain=$(echo "$id" | tr -d -) # as NVMe drives write a volume's id
		for link in "$links"/*"$id" "$links"/*"$plain"; do
			[ -b "$link" ] && device=$link && break
		done
	fi
	real=$(readlink -f "${device:-/}")
	size=0
	if [ -b "$real" ]; then
		size=$(($(cat "/sys/class/block/${real##*/}/size") * 512))
		for link in "$links"/*; do
			[ -z "$id" ] && [ "$(readlink -f "$link")" = "$real" ] && id=${link##*/}
		done
	fi
	echo "disk$tab$real$tab$size$tab$id"
done
