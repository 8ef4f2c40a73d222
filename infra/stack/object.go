package stack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"

	"krig/internal/rundir"
)

// The roles that a host may say.
func roles() []string {
	return []string{string(rundir.Broker), string(rundir.Controller), string(rundir.Worker)}
}

var (
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	dnsForm    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\.?$`)
	userForm   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9._@-]*$`)
	deviceForm = regexp.MustCompile(`^/dev/[A-Za-z0-9._:+=/-]+$`)
	idForm     = regexp.MustCompile(`^[A-Za-z0-9._:+=/-]+$`)
)

// An object is one map of the output: its keys are taken out as they are read,
// and what remains is unknown.
type object struct {
	found *problems
	at    string // for errors: which host it is
	keys  map[string]json.RawMessage
	known []string
}

// object opens a map.
func (p *problems) object(data json.RawMessage, at string) (*object, bool) {
	o := &object{found: p, at: at}
	if json.Unmarshal(data, &o.keys) != nil || o.keys == nil {
		p.add(at, "is not an object", `such as {name = "b1", role = "broker", address = ..., host_key = ...}`)
		return nil, false
	}
	return o, true
}

func (o *object) wrong(key, reason, expected string) { o.found.add(o.at+": "+key, reason, expected) }

// take takes a key out; one with the value null is not there.
func (o *object) take(key string) (json.RawMessage, bool) {
	v, ok := o.keys[key]
	delete(o.keys, key)
	o.known = append(o.known, key)
	return v, ok && !isNull(v)
}

// has tells whether a key has a value.
func (o *object) has(key string) bool { return !isNull(o.keys[key]) }

// text takes a text of a form; "" when it is not there.
func (o *object) text(key string, form func(string) bool, expected string) string {
	v, ok := o.take(key)
	if !ok {
		return ""
	}
	var s string
	if json.Unmarshal(v, &s) != nil || !form(s) {
		o.wrong(key, "is "+excerpt(v), expected)
		return ""
	}
	return s
}

// whole takes a whole number from least to most; 0 when it is not there.
func (o *object) whole(key string, least, most int64) int64 {
	v, ok := o.take(key)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < least || n > most {
		o.wrong(key, "is "+excerpt(v), fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0
	}
	return n
}

// texts takes a list of texts, or one text in its place.
func (o *object) texts(key, expected string) []string {
	v, ok := o.take(key)
	if !ok {
		return nil
	}
	var one string
	var all []*string
	if json.Unmarshal(v, &one) == nil {
		return []string{one}
	}
	if json.Unmarshal(v, &all) != nil || slices.Contains(all, nil) {
		o.wrong(key, "is "+excerpt(v), expected)
		return nil
	}
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = *s
	}
	return out
}

// end refuses the keys that nobody took.
func (o *object) end() {
	for _, key := range slices.Sorted(maps.Keys(o.keys)) {
		o.wrong(printable(key), "unknown field", "one of "+strings.Join(o.known, ", "))
	}
}

// host reads one host; key is its name where the output is a map.
func (p *problems) host(data json.RawMessage, key, at string, login rundir.SSH) described {
	o, ok := p.object(data, at)
	if !ok {
		return described{name: key}
	}
	const nameExpected = "a name of letters, digits, ., _ and -, such as b1"
	d := described{name: cmp.Or(o.text("name", nameForm.MatchString, nameExpected), key)}
	if d.name != "" {
		o.at = "host " + printable(d.name)
	} else {
		o.wrong("name", "is missing", nameExpected)
	}
	d.roles = o.roles()
	d.host.SSH = o.login(login)
	const addressExpected = "an IP address or a name"
	d.host.Internal = cmp.Or(o.text("internal", isAddress, addressExpected), d.host.SSH.Address)
	d.host.Disks = o.disks()
	if v, ok := o.take("jump"); ok {
		if j, ok := p.object(v, o.at+": jump"); ok {
			jump := j.login(login)
			d.host.SSH.Jump = &jump
			j.end()
		}
	}
	d.host.ID = o.text("id", isText, "text")
	d.host.Type = o.text("type", isText, "text")
	d.host.Zone = o.text("zone", isText, "text")
	o.end()
	return d
}

// roles takes what the host is there for.
func (o *object) roles() []rundir.Role {
	expected := "one of " + strings.Join(roles(), ", ")
	one, several := o.has("role"), o.has("roles")
	if one && several {
		o.wrong("roles", "stands beside role", "one of the two")
	}
	said := append(o.texts("role", expected), o.texts("roles", "a list of roles, each "+expected)...)
	if len(said) == 0 && !one && !several {
		o.wrong("role", "is missing", expected)
	}
	var out []rundir.Role
	for _, s := range said {
		if !slices.Contains(roles(), s) {
			o.wrong("role", strconv.Quote(s)+" is not known", expected)
			continue
		}
		out = append(out, rundir.Role(s))
	}
	return out
}

// login takes how a host is reached.
func (o *object) login(usual rundir.SSH) rundir.SSH {
	const address, user = "an IP address or a name that this machine can reach", "the login user, here or as ssh.user in the experiment"
	said, where := o.has("user"), o.has("address")
	s := rundir.SSH{
		Address: o.text("address", isAddress, address),
		Port:    int(cmp.Or(o.whole("port", 1, 65535), 22)),
		User:    cmp.Or(o.text("user", userForm.MatchString, user), usual.User),
		KeyFile: usual.KeyFile, Agent: usual.Agent,
		HostKey: o.hostKeys(),
	}
	if s.Address == "" && !where {
		o.wrong("address", "is missing", address)
	}
	if s.User == "" && !said {
		o.wrong("user", "is missing", user)
	}
	return s
}

// hostKeys takes the keys by which a host proves itself; krig trusts no first
// answer, so there must be one.
func (o *object) hostKeys() []string {
	const expected = "the host's public key as in its /etc/ssh/ssh_host_ed25519_key.pub, or a list of such: krig never trusts a first answer"
	before := len(*o.found)
	said := o.texts("host_key", expected)
	if len(said) == 0 && len(*o.found) == before {
		o.wrong("host_key", "is missing", expected)
	}
	var out []string
	for _, s := range said {
		key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(s))
		if err != nil || len(options) > 0 || len(bytes.TrimSpace(rest)) > 0 {
			o.wrong("host_key", "is "+excerpt([]byte(strconv.Quote(s))), expected)
			continue
		}
		out = append(out, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))))
	}
	return out
}

// disks takes the data disks.
func (o *object) disks() []rundir.Disk {
	v, ok := o.take("disks")
	if !ok {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		o.wrong("disks", "is "+excerpt(v), `a list such as [{device = "/dev/sdb"}]`)
		return nil
	}
	var out []rundir.Disk
	for i, one := range list {
		d, ok := o.found.object(one, fmt.Sprintf("%s: disks: number %d", o.at, i+1))
		if !ok {
			continue
		}
		const most = 1 << 60
		before := len(*o.found)
		disk := rundir.Disk{
			Device:  d.text("device", isDevice, "a path below /dev, such as /dev/sdb or /dev/disk/by-id/NAME"),
			ID:      d.text("id", idForm.MatchString, "how the place names the disk, such as a volume's id"),
			Size:    d.whole("size", 1, most),
			Profile: "none",
		}
		if disk.Device == "" && disk.ID == "" && len(*o.found) == before {
			d.wrong("device", "is missing", "the disk's path on the host, or its id")
		}
		d.end()
		out = append(out, disk)
	}
	return out
}

func isNull(v json.RawMessage) bool {
	s := strings.TrimSpace(string(v))
	return s == "" || s == "null"
}

func isText(s string) bool {
	return s != "" && len(s) <= 1000 && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func isAddress(s string) bool {
	return net.ParseIP(s) != nil || len(s) <= 253 && dnsForm.MatchString(s)
}

func isDevice(s string) bool { return deviceForm.MatchString(s) && !strings.Contains(s, "..") }

// excerpt is a value of the output, short enough for one line.
func excerpt(v []byte) string {
	const longest = 80
	s := string(v)
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "..."
	}
	return printable(s)
}

// printable is text of the output that neither breaks the line nor commands the terminal.
func printable(s string) string {
	if !isText(s) {
		return strconv.Quote(s)
	}
	return s
}

// byKey orders the keys of a map, no two as equals.
func byKey(a, b string) int { return cmp.Or(natural(a, b), strings.Compare(a, b)) }

// natural orders names with the numbers in them by value: b2 before b10.
func natural(a, b string) int {
	for a != "" && b != "" {
		na, ra := number(a)
		nb, rb := number(b)
		if na == "" || nb == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		if c := cmp.Or(cmp.Compare(len(na), len(nb)), cmp.Compare(na, nb)); c != 0 {
			return c
		}
		a, b = ra, rb
	}
	return cmp.Compare(len(a), len(b)) // 0 too for a1 and a01: see [byKey]
}

// number cuts the digits off the beginning, without the zeros before them.
func number(s string) (digits, rest string) {
	rest = strings.TrimLeft(s, "0123456789")
	digits = s[:len(s)-len(rest)]
	if trimmed := strings.TrimLeft(digits, "0"); digits != "" {
		digits = cmp.Or(trimmed, "0")
	}
	return digits, rest
}
