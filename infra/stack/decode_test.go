package stack_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"krig/infra/stack"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

const (
	keyOne = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	keyTwo = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFWzBUYJ1BQkOnvTzRzPJDZfGEV8QWNRPmV8vYKzzVYk"
)

// cell is one with so many brokers and workers.
func cell(brokers, workers int, controllers experiment.Pool) *experiment.Cell {
	return &experiment.Cell{RigName: "own", Kafka: experiment.Kafka{Mode: "kraft"}, Rig: experiment.Rig{Provider: "module",
		Brokers: experiment.Pool{Count: brokers}, Workers: experiment.Pool{Count: workers}, Controllers: controllers}}
}

func one() *experiment.Cell { return cell(1, 1, experiment.Pool{}) }

// host is an object of the output.
func host(name, role, address, more string) string {
	return fmt.Sprintf(`{"name":%q,"role":%q,"address":%q,"user":"me","host_key":%q%s}`, name, role, address, keyOne+" root@"+name, more)
}

func list(hosts ...string) json.RawMessage {
	return json.RawMessage("[" + strings.Join(hosts, ",") + "]")
}

func TestDecode(t *testing.T) {
	broker := host("kafka-0", "broker", "10.0.0.1", `,"internal":"192.168.0.1","port":2222,"id":"i-1","type":"large","zone":"a",
		"disks":[{"device":"/dev/disk/by-id/x","id":"vol-1","size":100},{"id":"vol-2","device":null}],
		"jump":{"address":"gate.example.org","user":"gate","host_key":["`+keyOne+`","`+keyTwo+` gate"]}`)
	worker := `{"name":"load","roles":["worker"],"address":"10.0.0.2","host_key":"` + keyTwo + `","port":null,"disks":[]}`
	got, err := stack.Decode(list(worker, broker), one(), rundir.SSH{User: "debian", KeyFile: "/k", Agent: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []rundir.Host{
		{Name: "b1", ID: "i-1", Provider: "module", Type: "large", Zone: "a", Roles: []rundir.Role{rundir.Broker, rundir.Controller}, Internal: "192.168.0.1",
			SSH: rundir.SSH{Address: "10.0.0.1", Port: 2222, User: "me", KeyFile: "/k", Agent: true, HostKey: []string{keyOne},
				Jump: &rundir.SSH{Address: "gate.example.org", Port: 22, User: "gate", KeyFile: "/k", Agent: true, HostKey: []string{keyOne, keyTwo}}},
			Disks: []rundir.Disk{{ID: "vol-1", Device: "/dev/disk/by-id/x", Size: 100, Profile: "none"}, {ID: "vol-2", Profile: "none"}}},
		{Name: "w1", ID: "load", Provider: "module", Roles: []rundir.Role{rundir.Worker}, Internal: "10.0.0.2",
			SSH: rundir.SSH{Address: "10.0.0.2", Port: 22, User: "debian", KeyFile: "/k", Agent: true, HostKey: []string{keyTwo}}},
	}
	if !reflect.DeepEqual(got, want) {
		g, _ := json.MarshalIndent(got, "", " ")
		t.Errorf("got %s", g)
	}
}

// names decodes and gives place=id of each host.
func names(t *testing.T, out json.RawMessage, c *experiment.Cell) string {
	t.Helper()
	hosts, err := stack.Decode(out, c, rundir.SSH{})
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, h := range hosts {
		s = append(s, h.Name+"="+h.SSH.Address+fmt.Sprint(h.Roles))
	}
	return strings.Join(s, " ")
}

func TestDecodeOrder(t *testing.T) {
	w := host("w", "worker", "10.0.0.9", "")
	for _, tt := range []struct {
		name string
		out  json.RawMessage
		cell *experiment.Cell
		want string
	}{
		{"a list's own", list(w, host("z", "broker", "10.0.0.1", ""), host("a", "broker", "10.0.0.2", "")), cell(2, 1, experiment.Pool{}),
			"b1=10.0.0.1[broker controller] b2=10.0.0.2[broker] w1=10.0.0.9[worker]"},
		{"by krig's names", list(host("b2", "broker", "10.0.0.1", ""), host("b1", "broker", "10.0.0.2", ""), host("w1", "worker", "10.0.0.9", "")), cell(2, 1, experiment.Pool{}),
			"b1=10.0.0.2[broker controller] b2=10.0.0.1[broker] w1=10.0.0.9[worker]"},
		{"a map's by numbers", json.RawMessage(`{"k10":` + host("", "broker", "10.0.0.10", "")[:0] + `{"role":"broker","address":"10.0.0.10","user":"u","host_key":"` + keyOne + `"},
			"k9":{"role":"broker","address":"10.0.0.8","user":"u","host_key":"` + keyOne + `"},"w":` + w + `}`), cell(2, 1, experiment.Pool{}),
			"b1=10.0.0.8[broker controller] b2=10.0.0.10[broker] w1=10.0.0.9[worker]"},
		{"controllers on brokers", list(w, host("x", "broker", "10.0.0.1", "")), cell(1, 1, experiment.Pool{On: "brokers"}),
			"b1=10.0.0.1[broker controller] w1=10.0.0.9[worker]"},
		{"controllers of their own", list(w, host("x", "broker", "10.0.0.1", ""), host("y", "controller", "10.0.0.2", "")), cell(1, 1, experiment.Pool{Count: 1}),
			"b1=10.0.0.1[broker] c1=10.0.0.2[controller] w1=10.0.0.9[worker]"},
	} {
		if got := names(t, tt.out, tt.cell); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	b, w := host("b1", "broker", "10.0.0.1", ""), host("w1", "worker", "10.0.0.2", "")
	const form = "a list of objects, one a host, or a map from names to such objects"
	const key = "the host's public key as in its /etc/ssh/ssh_host_ed25519_key.pub, or a list of such: krig never trusts a first answer"
	for _, tt := range []struct {
		name string
		out  json.RawMessage
		want string
	}{
		{"null", json.RawMessage("null"), "has no value; expected " + form},
		{"text", json.RawMessage(`"b1"`), "is neither a list nor a map; expected " + form},
		{"not even JSON", json.RawMessage(`[`), "is neither a list nor a map; expected " + form},
		{"no host", json.RawMessage(`[]`), "has 0 with role broker, and the experiment's brokers.count is 1; expected 1: the variable krig_hosts tells the module how many\n" +
			"output hosts: has 0 with role worker, and the experiment's workers.count is 1; expected 1: the variable krig_hosts tells the module how many"},
		{"a host that is text", list(`"b1"`), `host number 1: is not an object; expected such as {name = "b1", role = "broker", address = ..., host_key = ...}`},
		{"too many", list(b, w, host("b2", "broker", "10.0.0.3", "")), "has 2 with role broker, and the experiment's brokers.count is 1; expected 1: the variable krig_hosts tells the module how many"},
		{"no host of that role", list(b, w, host("c1", "controller", "10.0.0.3", "")), "host c1: role: the experiment has no hosts of its own for controller; expected one of broker, worker"},
		{"a role of no kind", list(host("b1", "brokr", "10.0.0.1", ""), w), `host b1: role: "brokr" is not known; expected one of broker, controller, worker`},
		{"two roles with hosts of their own", list(`{"name":"b1","roles":["broker","worker"],"address":"10.0.0.1","user":"u","host_key":"` + keyOne + `"}`),
			"host b1: role: the experiment has hosts of their own for each of broker, worker; expected one role"},
		{"one address twice", list(b, host("w1", "worker", "10.0.0.1", `,"internal":"10.1.1.1"`)),
			"host w1: address: 10.0.0.1, port 22, directly is host b1's already; expected one of its own"},
		{"one internal address twice", list(b, host("w1", "worker", "10.0.0.1", `,"port":23`)), "host w1: internal: 10.0.0.1 is host b1's already; expected one of its own"},
		{"one name twice", list(b, host("b1", "worker", "10.0.0.2", "")), "host b1: name: b1 is host b1's already; expected one of its own"},
		{"an unknown field", list(host("b1", "broker", "10.0.0.1", `,"adress":"x"`), w),
			"host b1: adress: unknown field; expected one of name, role, roles, address, port, user, host_key, internal, disks, jump, id, type, zone"},
		{"no name", list(`{"role":"broker","address":"10.0.0.1","user":"u","host_key":"`+keyOne+`"}`, w),
			"host number 1: name: is missing; expected a name of letters, digits, ., _ and -, such as b1"},
		{"no address", list(`{"name":"b1","role":"broker","address":null,"user":"u","host_key":"`+keyOne+`"}`, w),
			"host b1: address: is missing; expected an IP address or a name that this machine can reach"},
		{"no user", list(`{"name":"b1","role":"broker","address":"10.0.0.1","host_key":"`+keyOne+`"}`, w),
			"host b1: user: is missing; expected the login user, here or as ssh.user in the experiment"},
		{"no host key", list(`{"name":"b1","role":"broker","address":"10.0.0.1","user":"u","host_key":[]}`, w), "host b1: host_key: is missing; expected " + key},
		{"known_hosts form", list(`{"name":"b1","role":"broker","address":"10.0.0.1","user":"u","host_key":"b1 ssh-ed25519 AAAA"}`, w),
			`host b1: host_key: is "b1 ssh-ed25519 AAAA"; expected ` + key},
		{"an address of no kind", list(host("b1", "broker", "-oProxyCommand=x", ""), w), `host b1: address: is "-oProxyCommand=x"; expected an IP address or a name that this machine can reach`},
		{"a port of no kind", list(host("b1", "broker", "10.0.0.1", `,"port":"22"`), w), `host b1: port: is "22"; expected a whole number from 1 to 65535`},
		{"a device elsewhere", list(host("b1", "broker", "10.0.0.1", `,"disks":[{"device":"/dev/../etc/passwd"}]`), w),
			`host b1: disks: number 1: device: is "/dev/../etc/passwd"; expected a path below /dev, such as /dev/sdb or /dev/disk/by-id/NAME`},
		{"a disk of nothing", list(host("b1", "broker", "10.0.0.1", `,"disks":[{"size":5}]`), w), "host b1: disks: number 1: device: is missing; expected the disk's path on the host, or its id"},
		{"a jump without a key", list(host("b1", "broker", "10.0.0.1", `,"jump":{"address":"gate","user":"u"}`), w), "host b1: jump: host_key: is missing; expected " + key},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := stack.Decode(tt.out, one(), rundir.SSH{})
			if want := "output hosts: " + tt.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(list(host("b1", "broker", "10.0.0.1", `,"disks":[{"id":"a"}],"jump":null`), host("w1", "worker", "10.0.0.2", ""))))
	f.Add([]byte(`{"b1":{"roles":["broker"],"port":1.5},"b01":null}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		c := one()
		hosts, err := stack.Decode(out, c, rundir.SSH{})
		again, other := stack.Decode(out, c, rundir.SSH{})
		if !reflect.DeepEqual(hosts, again) || fmt.Sprint(err) != fmt.Sprint(other) {
			t.Fatalf("two answers: %v, %v and %v, %v", hosts, err, again, other)
		}
		if err != nil {
			if strings.ContainsAny(strings.ReplaceAll(err.Error(), "\n", ""), "\x1b\r\x00") {
				t.Fatalf("commands the terminal: %q", err)
			}
			return
		}
		for i, p := range c.Placement() {
			h := hosts[i]
			if h.Name != p.Name || !reflect.DeepEqual(h.Roles, p.Roles) || h.SSH.User == "" || len(h.SSH.HostKey) == 0 || h.Internal == "" || h.SSH.Port < 1 {
				t.Fatalf("place %v got %+v", p, h)
			}
		}
	})
}
