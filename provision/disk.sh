# Makes a file system on a device that holds nothing, and mounts it.
# Arguments: device, kind, label, mount point.
# Nothing is discarded: a disk that was allocated stays so. Nothing is left for
# a background thread to initialise, it would disturb measurements.
set -e
device=$1 kind=$2 label=$3 mount=$4
mkdir -p "$mount"
mountpoint -q "$mount" && exit 0
if [ "$(blkid -p -s LABEL -o value "$device" || true)" != "$label" ]; then
	[ -z "$(blkid -p -o export "$device" || true)" ] || { echo "$device holds something" >&2; exit 1; }
	case $kind in
	xfs) mkfs.xfs -q -K -L "$label" "$device" ;;
	ext4) mkfs.ext4 -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=1 -L "$label" "$device" ;;
	esac
fi
mount -o noatime "$device" "$mount"
