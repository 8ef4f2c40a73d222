package infra_test

import (
	"testing"

	"krig/infra/lab/labtest"
)

func TestSmoke(t *testing.T) {
	_, hosts := labtest.Hosts(t, labtest.Spec{Brokers: 2, Workers: 1, DiskProfile: "ssd", Rate: 1e9})
	for _, h := range hosts {
		t.Logf("%+v", h)
	}
}
