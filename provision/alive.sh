# Prints, for each of the given server.properties, the process that has it as an
# argument: "PID PATH" a line; a path alone has none. Arguments: config=PATH ...
for c; do
	path=${c#config=}
	file=$(printf '%s\n' "$path" | grep -lzxF -f - /proc/[0-9]*/cmdline 2>/dev/null | head -n 1)
	pid=${file#/proc/}
	printf '%s %s\n' "${pid%/cmdline}" "$path"
done
