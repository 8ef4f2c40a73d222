//go:build faults

package infra_test

import "testing"

// krig killed at many more instants than every test run tries.
func TestFaultKilledOften(t *testing.T) { killed(t, 60) }
