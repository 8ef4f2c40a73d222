//go:build !faults

package infra_test

// killRounds is how often krig is killed at some instant.
const killRounds = 6
