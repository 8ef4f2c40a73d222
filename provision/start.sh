# Formats a node's log directory, if asked, and starts Kafka so that it outlives
# this session; prints its process id.
# Arguments: log file, server.properties, log directory, how it is formatted
# ("none", "copy:DIRECTORY" with what it is made of, or "tool:CLUSTER ID"),
# java, classpath, flags of the Java virtual machine.
log=$1 config=$2 dir=$3 format=$4 java=$5 classpath=$6
shift 6
umask 022
mkdir -p "${log%/*}"
cd "${config%/*}" || exit 1
case $format in
copy:*)
	mkdir -p "$dir" && cp -r "${format#copy:}/." "$dir" && sync -f "$dir" || { echo "formatting failed" >&2; exit 1; }
	;;
tool:*)
	"$java" -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$classpath" \
		kafka.tools.StorageTool format -t "${format#tool:}" -c "$config" >>"$log" 2>&1 ||
		{ echo "formatting failed" >&2; exit 1; }
	;;
esac
ulimit -n "$(ulimit -Hn)" # brokers hold a file open for every segment
setsid nohup "$java" "$@" -cp "$classpath" kafka.Kafka "$config" >>"$log" 2>&1 </dev/null &
echo $!
