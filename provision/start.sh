# Formats a node's log directory, if asked, and starts Kafka so that it outlives
# this session; prints its process id.
# Arguments: log file, server.properties, cluster id to format for or "-", java,
# classpath, flags of the Java virtual machine.
log=$1 config=$2 cluster=$3 java=$4 classpath=$5
shift 5
umask 022
mkdir -p "${log%/*}"
cd "${config%/*}" || exit 1
if [ "$cluster" != - ]; then
	"$java" -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$classpath" \
		kafka.tools.StorageTool format -t "$cluster" -c "$config" >>"$log" 2>&1 </dev/null ||
		{ echo "formatting failed" >&2; exit 1; }
fi
ulimit -n "$(ulimit -Hn)" # brokers hold a file open for every segment
setsid nohup "$java" "$@" -cp "$classpath" kafka.Kafka "$config" >>"$log" 2>&1 </dev/null &
echo $!
