package experiment

import "strings"

// notBuilt lists keys and values (after =) of the file that are settled and
// not built yet; * stands for any name. Each is refused by name. Building one
// removes its line here and adds its field to the types.
const notBuilt = `
probes
objectives
budget
playbooks
published
baseline
rigs.*.zookeepers
rigs.*.lab
rigs.*.hosts
rigs.*.aws
rigs.*.gcp
rigs.*.module.finder=aws
rigs.*.module.finder=gcp
rigs.*.host_type
rigs.*.provider=hosts
rigs.*.provider=aws
rigs.*.provider=gcp
rigs.*.*.on=zookeepers
rigs.*.*.storage
rigs.*.*.os
rigs.*.*.price
rigs.*.*.host_type
rigs.*.*.lab
rigs.*.*.hosts
rigs.*.*.aws
rigs.*.*.gcp
rigs.*.*.module
kafka.security
kafka.external
kafka.mode=zookeeper
bench.kind
bench.workload
bench.driver_file
bench.placement
bench.until
bench.prefill
bench.strict_client
bench.driver=omb
bench.rate=search
collect.nfs
collect.jmx
`

// isNotBuilt tells whether a key, or with =value a value, is in the list. The
// key is the file's path with names of rigs as * and without those of benches.
func isNotBuilt(key string) bool {
	for line := range strings.Lines(notBuilt) {
		if line = strings.TrimSpace(line); line != "" && matches(line, key) {
			return true
		}
	}
	return false
}

func matches(pattern, key string) bool {
	p, k := strings.Split(pattern, "."), strings.Split(key, ".")
	if len(p) != len(k) {
		return false
	}
	for i := range p {
		if p[i] != "*" && p[i] != k[i] {
			return false
		}
	}
	return true
}

// refuseNotBuilt is the refusal of such a key or value, or nil.
func refuseNotBuilt(key, name string) *refusal {
	if !isNotBuilt(key) {
		return nil
	}
	return &refusal{reason: name + " is not built yet: this krig cannot do it"}
}
