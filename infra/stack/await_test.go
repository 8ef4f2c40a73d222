package stack_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"krig/infra/lab/labtest"
	"krig/infra/stack"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// asTold is a host as a module's output has it: what it is asked is not there.
func asTold(h rundir.Host) rundir.Host {
	h.Kernel, h.Arch, h.LinkName, h.Memory = "", "", "", 0
	h.Disks = nil
	return h
}

func TestAwaitAsksWhatHostsAre(t *testing.T) {
	run, made := labtest.Hosts(t, labtest.Spec{Brokers: 1, Workers: 1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := []rundir.Host{asTold(made[0]), asTold(made[1])}
	told[0].Disks = []rundir.Disk{{Device: made[0].Disks[0].Device, ID: "vol-1", Profile: "none"}}
	got, err := stack.Await(ctx, run, told, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range got {
		if h.Kernel != made[i].Kernel || h.Arch != made[i].Arch || h.LinkName != made[i].LinkName || h.Memory < 1<<20 {
			t.Errorf("%s: kernel %s, %s, link %s, memory %d; the lab says %+v", h.Name, h.Kernel, h.Arch, h.LinkName, h.Memory, made[i])
		}
	}
	want := []rundir.Disk{{Device: made[0].Disks[0].Device, ID: "vol-1", Size: made[0].Disks[0].Size, Profile: "none"}}
	if !reflect.DeepEqual(got[0].Disks, want) || len(got[1].Disks) != 0 {
		t.Errorf("disks %+v and %+v, want %+v", got[0].Disks, got[1].Disks, want)
	}

	for _, tt := range []struct {
		name   string
		change func(*rundir.Host)
		want   string
	}{
		{"a device that is not there", func(h *rundir.Host) { h.Disks = []rundir.Disk{{Device: "/dev/nosuch"}} },
			"host b1: asking what it is: disk /dev/nosuch: there is no such block device on it"},
		{"an id that no disk has", func(h *rundir.Host) { h.Disks = []rundir.Disk{{ID: "vol-9"}} }, "disk vol-9: there is no such block device on it"},
		{"a disk smaller than said", func(h *rundir.Host) { h.Disks = []rundir.Disk{{Device: made[0].Disks[0].Device, Size: 1 << 50}} }, "where the output says 1125899906842624"},
	} {
		changed := told[0]
		tt.change(&changed)
		if _, err := stack.Await(ctx, run, []rundir.Host{changed, told[1]}, 30*time.Second); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}

	other := told[1]
	other.SSH.HostKey = []string{keyTwo}
	if _, err := stack.Await(ctx, run, []rundir.Host{other}, time.Second); !errors.Is(err, remote.ErrHostKey) {
		t.Errorf("another host key: %v", err)
	}
}
