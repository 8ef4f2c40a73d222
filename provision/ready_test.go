package provision

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"krig/internal/rundir"
)

// endpoints reads what kafka-cluster.sh list-endpoints prints, by its header.
func endpoints(text string) view {
	v := view{cluster: "ours", brokers: map[int32]member{}}
	var header []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if f[0] == "ID" {
			header = f
			continue
		}
		row := map[string]string{}
		for i, name := range header {
			row[name] = f[i]
		}
		id, _ := strconv.Atoi(row["ID"])
		v.brokers[int32(id)] = member{row["HOST"] + ":" + row["PORT"], row["STATE"] == "fenced"}
	}
	return v
}

// Case 82: a broker that is fenced, or not registered, is not ready; nor is one
// whose place another has.
func TestViewAgainst(t *testing.T) {
	cl := &rundir.Cluster{ID: "ours"}
	for i, host := range []string{"broker-1", "broker-2", "broker-3"} {
		cl.Brokers = append(cl.Brokers, rundir.Node{ID: int32(4 + i), Host: host, Listener: host + ":9092"})
	}
	seen := parts(t, "kafka/82-list-endpoints.txt")
	whole := endpoints(strings.Replace(seen[0], " fenced ", " unfenced ", 1))
	elsewhere := endpoints(strings.Replace(strings.Replace(seen[0], " fenced ", " unfenced ", 1), "broker-3", "broker-9", 1))
	for _, tt := range []struct {
		name     string
		view     view
		want     string
		stranger bool
	}{
		{"fenced", endpoints(seen[0]), "broker 5 is fenced", false},
		{"absent before 4.0", endpoints(seen[1]), "broker 5 is absent or fenced", false},
		{"whole", whole, "", false},
		{"another cluster", view{cluster: "theirs"}, "something else answers at broker-1:9092: a broker of cluster theirs, perhaps left from an earlier run; this one is ours", true},
		{"another address", elsewhere, "something else answers: broker 6 says that it is at broker-9:9092, not at broker-3:9092", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.view.against(cl, cl.Brokers[0])
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want || errors.Is(err, errStranger) != tt.stranger {
				t.Errorf("against = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPoll(t *testing.T) {
	tries := 0
	err := poll(t.Context(), func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("poll = %v after %d tries, want success at the third", err, tries)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("too slow"))
	defer cancel()
	err = poll(ctx, func(context.Context) error { return errors.New("broker 2 is fenced") })
	if got, want := err.Error(), "too slow; last seen: broker 2 is fenced"; got != want {
		t.Errorf("poll = %q, want %q", got, want)
	}
	tries = 0
	err = poll(t.Context(), func(context.Context) error { tries++; return errStranger })
	if !errors.Is(err, errStranger) || tries != 1 {
		t.Errorf("poll = %v after %d tries, want an end at the first", err, tries)
	}
}

func TestReadyLimit(t *testing.T) {
	at := func(starts ...float64) *rundir.Prepared {
		p := &rundir.Prepared{}
		for _, s := range starts {
			p.Hosts = append(p.Hosts, rundir.PreparedHost{Facts: rundir.Facts{JVMStart: s}})
		}
		return p
	}
	for _, tt := range []struct {
		p    *rundir.Prepared
		want time.Duration
	}{
		{at(), 3 * time.Minute}, {at(0.04), 3 * time.Minute}, {at(0.04, 0.3), 9 * time.Minute}, {at(25), 30 * time.Minute},
	} {
		if got := readyLimit(tt.p); got.Round(time.Second) != tt.want {
			t.Errorf("readyLimit(%v) = %v, want %v", tt.p.Hosts, got, tt.want)
		}
	}
}
