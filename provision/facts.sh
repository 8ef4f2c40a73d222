# Prints what a host is, one fact a line: a word, a tab, its value.
# It changes nothing. Arguments: the directory that krig will make, then data disks.
LC_ALL=C
export LC_ALL
say() { printf '%s\t%s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }

dir=$1
shift
say now "$(date +%s.%N)"
[ -r /etc/os-release ] && say os "$(. /etc/os-release && printf '%s' "$PRETTY_NAME")"
say kernel "$(uname -r)"
say processors "$(nproc)"
while IFS=: read -r key value; do
	case $key in model\ name*) say cpu "${value# }"; break ;; esac
done </proc/cpuinfo
while read -r key value _; do
	case $key in MemTotal:) say memory_kib "$value"; break ;; esac
done </proc/meminfo

near=$dir
while [ ! -d "$near" ]; do near=${near%/*}; near=${near:-/}; done
say free "$(df -PB1 "$near" | while read -r _ _ _ free _; do printf '%s ' "$free"; done)"

for j in "$(command -v java)" "$JAVA_HOME/bin/java" /usr/lib/jvm/*/bin/java; do
	[ -x "$j" ] || continue
	begun=$(date +%s%N)
	text=$("$j" -version 2>&1 | tr '\n' ' ')
	say java "$j|$(($(date +%s%N) - begun))|$text"
	case $text in *version\ \"1[7-9]*|*version\ \"[2-9][0-9]*) break ;; esac # new enough for every Kafka
done
has sar && say sysstat "$(sar -V 2>&1 | tr '\n' ' ')"
for tool in apt-get mkfs.xfs mkfs.ext4 blkid; do has $tool && say tool $tool; done
[ -d /run/systemd/system ] && say systemd yes
if [ -e /run/.containerenv ] || [ -e /.dockerenv ] || [ -e /run/systemd/container ]; then say container yes; fi

for table in /proc/net/tcp /proc/net/tcp6; do
	[ -r $table ] && while read -r _ local _ state _; do
		[ "$state" = 0A ] && say listen "$local"
	done <$table
done
has ss && ss -Hltnp 2>/dev/null | while read -r line; do say socket "$line"; done
# The word comes on standard input, or grep would find itself.
echo kafka.Kafka | grep -lzxF -f - /proc/[0-9]*/cmdline 2>/dev/null | while read -r file; do
	pid=${file#/proc/}
	argv=$({ tr '\0' ' ' <"$file"; } 2>/dev/null)
	[ -n "$argv" ] && say kafka "${pid%/cmdline} $argv" # it may have ended meanwhile
done

for disk; do
	if [ ! -b "$disk" ]; then say disk "$disk|absent|"; continue; fi
	holds=$(blkid -p -o export "$disk" 2>/dev/null | tr '\n' ' ')
	real=$(readlink -f "$disk")
	for h in /sys/class/block/"${real##*/}"/holders/*; do [ -e "$h" ] && holds="$holds HOLDER=${h##*/}"; done
	while read -r dev at _; do [ "$dev" = "$real" ] && holds="$holds MOUNTED=$at"; done </proc/mounts
	while read -r dev _; do [ "$dev" = "$real" ] && holds="$holds SWAP=yes"; done </proc/swaps
	say disk "$disk|present|$holds"
done
say end "$(date +%s.%N)"
