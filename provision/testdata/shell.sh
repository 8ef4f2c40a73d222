# Starts a controller and three brokers of Kafka as a person with a shell would:
# formats all side by side, starts all side by side, waits for their ports.
# Arguments: an empty directory, the directory of Kafka's jars, flags of the
# brokers' Java virtual machine. Ends them when its standard input ends.
dir=$1 jars=$2
shift 2
id=AAAAAAAAAAAAAAAAAAAAAQ # as good as random here, and no virtual machine more
quorum=3001@127.0.0.1:29093
node() {
	mkdir -p "$dir/$1"
	cat >"$dir/$1.properties" <<-PROPERTIES
		node.id=$1
		process.roles=$2
		controller.quorum.voters=$quorum
		controller.listener.names=CONTROLLER
		listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
		listeners=$3
		log.dirs=$dir/$1
	PROPERTIES
}
node 3001 controller CONTROLLER://127.0.0.1:29093
for n in 1 2 3; do node $n broker PLAINTEXT://127.0.0.1:2909$((3 + n)); done
for n in 3001 1 2 3; do
	java -cp "$jars/*" kafka.tools.StorageTool format -t "$id" -c "$dir/$n.properties" >"$dir/$n.log" 2>&1 &
done
wait
for n in 3001 1 2 3; do
	heap="$*"
	[ $n = 3001 ] && heap="-Xms256m -Xmx256m"
	java $heap -XX:+UseG1GC -cp "$jars/*" kafka.Kafka "$dir/$n.properties" >>"$dir/$n.log" 2>&1 &
	pids="$pids $!"
done
for port in 29093 29094 29095 29096; do
	until (: <>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do
		for p in $pids; do kill -0 $p || exit 1; done
		sleep 0.1
	done
done
echo ready
read -r _
kill -KILL $pids
wait 2>/dev/null
