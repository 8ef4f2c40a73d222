# Ends the processes that have one of the given server.properties as an
# argument: politely, after a limit by force. Arguments: seconds, then config=PATH ...
limit=$1
shift
find_them() {
	for c; do printf '%s\n' "${c#config=}"; done |
		grep -lzxF -f - /proc/[0-9]*/cmdline 2>/dev/null | while read -r file; do
		pid=${file#/proc/}
		echo "${pid%/cmdline}"
	done
}
pids=$(find_them "$@")
[ -n "$pids" ] || exit 0
kill -TERM $pids 2>/dev/null
left=$((limit * 5))
while pids=$(find_them "$@") && [ -n "$pids" ]; do
	[ "$left" -gt 0 ] || kill -KILL $pids 2>/dev/null
	[ "$left" -gt -50 ] || { echo "process $pids does not end" >&2; exit 1; }
	left=$((left - 1))
	sleep 0.2
done
