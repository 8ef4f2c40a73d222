# Ends the processes that have one of the given server.properties as an
# argument: politely, after a limit by force. Arguments: seconds, then config=PATH ...
limit=$1
shift
pids=$(for c; do printf '%s\n' "${c#config=}"; done |
	grep -lzxF -f - /proc/[0-9]*/cmdline 2>/dev/null | while read -r file; do
	pid=${file#/proc/}
	echo "${pid%/cmdline}"
done)
[ -n "$pids" ] || exit 0
runs() { { read -r _ _ state _ <"/proc/$1/stat"; } 2>/dev/null && [ "$state" != Z ]; }
kill -TERM $pids 2>/dev/null
left=$((limit * 5))
while :; do
	running=
	for pid in $pids; do runs "$pid" && running="$running $pid"; done
	[ -n "$running" ] || exit 0
	[ "$left" -gt 0 ] || kill -KILL $running 2>/dev/null
	[ "$left" -gt -100 ] || { echo "process$running does not end" >&2; exit 1; }
	left=$((left - 1))
	sleep 0.2
done
